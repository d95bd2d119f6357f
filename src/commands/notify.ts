import { lists, prints, SvcCommand } from '../cli/command/base.ts'
import {
  boolean,
  custom,
  oneOf,
  optionalArgument,
  repeatable,
  required,
  requiredArgument,
  rowNamed,
  text,
} from '../cli/command/flags.ts'
import { thisMachine } from '../cli/io/process.ts'
import type { SecretPlace } from '../cli/notify/notify-add.ts'
import { document, string, strings } from '../cli/render/document.ts'
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
    const chosen = args.name === undefined ? notify : [rowNamed(notify, args.name, 'receiver', 'Receivers')]
    const [{ exitOfTests, linesToChange, testReceivers }, { receiverTests }] = await Promise.all([
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
    if (origin !== undefined && accepted < tests.length) {
      const { textToChange } = await import('../cli/session/config-file.ts')
      const text = await textToChange(origin).catch(() => '')
      for (const line of await linesToChange(tests, origin, text)) this.say(line)
    }
    return exitOfTests(tests) || undefined
  }
}

const previews = document<{ readonly receiver: string; readonly requests: readonly string[] }>()({
  around: { target: string },
  rows: 'previews',
  members: { receiver: string, requests: strings },
})

export class NotifyPreview extends SvcCommand {
  static override summary = 'Show the messages that a receiver of svc.yaml would get'
  static override description =
    `Prints the requests, the mail or the input of the program for an incident that nobody has, and sends
nothing. Secrets are not read: each is shown as its reference.`
  static override answers = { '': prints(async () => previews) }
  static override examples = ['<%= config.bin %> notify preview ops', '<%= config.bin %> notify preview ops --many']
  static override args = { name: requiredArgument('NAME', 'Name of the receiver') }
  static override flags = {
    fault: boolean({ description: 'A fault (the default)' }),
    recovery: boolean({ description: 'Its recovery', exclusive: ['fault'] }),
    many: boolean({ description: 'A fault, a warning and a recovery together', exclusive: ['fault', 'recovery'] }),
    ...flags,
  }

  protected async perform(): Promise<undefined> {
    const { args, flags: typed } = await this.parse(NotifyPreview)
    const { notify = [], serve } = await configuration(typed, this.io.env, { tolerant: 'entries' })
    const name = required(args.name, 'NAME')
    const receiver = rowNamed(notify, name, 'receiver', 'Receivers')
    const { previewOf } = await import('../cli/notify/notify-preview.ts')
    const requests = await previewOf(receiver, typed.many ? 'many' : typed.recovery ? 'recovery' : 'fault', {
      server: serve.name,
      url: serve.url,
      timezone: serve.timezone,
      now: this.io.clock.now(),
    })
    this.print(
      typed.json ? previews.text({ target: thisMachine }, [{ receiver: name, requests }]) : requests.join('\n\n'),
    )
  }
}

const secretPlaces = ['file', 'keychain', 'env'] as const
const additions = document<{ readonly receiver: string; readonly file: string }>()({
  around: { target: string },
  rows: 'receivers',
  members: { receiver: string, file: string },
})

export class NotifyAdd extends SvcCommand {
  static override summary = 'Add a receiver of notifications to svc.yaml, and send it a test'
  static override description =
    `Asks for what the kind requires, shows the new lines, sends a test message, and writes them. A secret
goes into a file beside svc.yaml that only the account of svc serve can read, into the keychain
(--secrets keychain), or remains a variable that you set (--secrets env, without a test). If the test
fails, nothing is written.`
  static override answers = { '': prints(async () => additions) }
  static override examples = [
    '<%= config.bin %> notify add slack',
    '<%= config.bin %> notify add ntfy --name phone --set topic=prod-alarms',
    'pass show slack | <%= config.bin %> notify add slack --stdin',
    '<%= config.bin %> notify add discord --secrets env',
  ]
  static override args = { kind: requiredArgument('KIND', 'Kind of the receiver, such as slack') }
  static override flags = {
    name: text('name')({ description: 'Name of the receiver (default: its kind)' }),
    set: text('set')({
      ...repeatable,
      helpValue: '<SETTING=VALUE>',
      description: 'A setting that is no secret; lists with commas',
    }),
    secrets: custom<SecretPlace>({
      helpValue: '<file|keychain|env>',
      description: 'Where secrets are kept (default: file)',
      parse: async (input) => oneOf('secrets', secretPlaces, input, 'Places'),
    })(),
    stdin: boolean({ description: 'Read its only secret from standard input' }),
    'no-test': boolean({ description: 'Send no test message' }),
    ...flags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags: typed } = await this.parse(NotifyAdd)
    const [{ addition, withAddition }, { difference, writeChange }, { faultFor, testReceivers }] = await Promise.all([
      import('../cli/notify/notify-add.ts'),
      import('../cli/session/config-file.ts'),
      import('../cli/notify/notify-test.ts'),
    ])
    const config = await configuration(typed, this.io.env)
    const { origin } = config
    if (origin === undefined) {
      throw new Fault('Local', 'there is no svc.yaml to add a receiver to', {
        hints: ['svc init writes one, and so does svc monitors add'],
      })
    }
    const secrets = typed.secrets ?? 'file'
    const described = { name: typed.name, set: typed.set, stdin: typed.stdin, secrets }
    const { name, change, notes, keepSecrets } = await addition(
      required(args.kind, 'KIND'),
      described,
      { ...config, origin },
      this.io,
      signal,
    )
    const { notify = [], serve, exec: programs } = await withAddition(change, typed, this.io.env)
    for (const line of difference(change)) this.say(line)
    const removeSecrets = await keepSecrets(signal)
    try {
      const isTested = !typed['no-test'] && secrets !== 'env'
      const tests = isTested
        ? await testReceivers(
            notify.filter((one) => one.name === name),
            {
              server: serve.name,
              url: serve.url,
              programs,
              now: () => this.io.clock.now(),
              say: (line) => this.say(line),
            },
            signal,
          )
        : []
      const [failed] = tests.filter(({ result }) => result !== 'accepted')
      if (failed !== undefined) {
        throw new Fault(faultFor(failed.delivery), `the test message was ${failed.result}: ${failed.message ?? ''}`, {
          hints: ['Nothing was written. Correct the settings, or write them without a test: --no-test'],
        })
      }
      signal.throwIfAborted()
      writeChange(change)
      if (tests.length > 0) this.say('The receiver accepted a test message: look whether it arrived.')
    } catch (error) {
      await removeSecrets()
      throw error
    }
    for (const note of notes) this.say(note)
    this.print(
      typed.json
        ? additions.text({ target: thisMachine }, [{ receiver: name, file: change.path }])
        : `${name} is added to ${change.path}`,
    )
  }
}
