import { lists, SvcCommand } from '../cli/command/base.ts'
import { optionalArgument, text, unknownName } from '../cli/command/flags.ts'
import { thisMachine } from '../cli/io/process.ts'
import { configuration } from '../cli/session/session.ts'
import { Fault } from '../core/base/errors.ts'
import { count } from '../core/base/format.ts'

const load = () => import('../cli/notify/lists.ts')

const flags = { config: text('config')({ description: 'The svc.yaml to use (SVC_CONFIG)' }) }

export class NotifyList extends SvcCommand {
  static override summary = 'List the receivers of notifications in svc.yaml'
  static override description = 'Shows where each sends to as scheme and host, and no secret.'
  static override answers = { '': lists(async () => (await load()).receivers) }
  static override examples = ['<%= config.bin %> notify list', '<%= config.bin %> notify list --config ./svc.yaml']
  static override flags = flags

  protected async perform(): Promise<undefined> {
    const { flags: typed } = await this.parse(NotifyList)
    const { notify = [] } = await configuration(typed, this.io.env, { tolerant: 'entries' })
    const { receivers } = await load()
    this.printList(receivers.render(notify, { target: thisMachine }, this.output))
  }
}

export class NotifyTest extends SvcCommand {
  static override summary = 'Send a test message by one receiver of svc.yaml, or by each'
  static override description =
    `The message says that it is a test and that nothing has failed. Sends from this machine and this account,
which may differ from those of svc serve in network, secrets and trust. Accepted means that the receiver
itself accepted the message; what it does with the message is not tested. The exit code is 10 if only
some receivers accept, and otherwise that of the first reason: 6 not reachable, 7 no answer in time,
8 an error of the receiver, 9 refused, 12 a secret or a file that cannot be read.`
  static override answers = { '': lists(async () => (await load()).receiverTests) }
  static override examples = ['<%= config.bin %> notify test', '<%= config.bin %> notify test oncall']
  static override args = { name: optionalArgument('NAME', 'Name of the receiver; default: all') }
  static override flags = flags

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const { args, flags: typed } = await this.parse(NotifyTest)
    const {
      notify = [],
      serve,
      exec: programs,
      origin,
    } = await configuration(typed, this.io.env, { tolerant: 'entries' })
    if (notify.length === 0) {
      const where = origin ?? 'svc.yaml, which does not exist,'
      throw new Fault('Local', `${where} lists no receiver of notifications`, {
        hints: ['Add `notify:` to svc.yaml, then: svc notify list'],
      })
    }
    const chosen = notify.filter(({ name }) => args.name === undefined || name === args.name)
    if (chosen.length === 0) {
      const names = notify.map(({ name }) => name)
      throw unknownName('receiver', args.name ?? '', names, 'Receivers')
    }
    const [{ exitOfTests, testReceivers }, { receiverTests }] = await Promise.all([
      import('../cli/notify/notify-test.ts'),
      load(),
    ])
    const sender = {
      server: serve.name,
      url: serve.url,
      programs,
      now: () => this.io.clock.now(),
      say: (line: string) => this.say(line),
    }
    const tests = await testReceivers(chosen, sender, signal)
    const accepted = tests.filter(({ result }) => result === 'accepted').length
    const mark = accepted === tests.length ? 'ok' : 'fail'
    const sentence = `${accepted} of ${count(tests.length, 'receiver')} accepted the test message`
    this.printList(
      receiverTests.render(tests, { target: thisMachine }, { ...this.output, headline: { mark, sentence } }),
    )
    return exitOfTests(tests) || undefined
  }
}
