import { setTimeout as wait } from 'node:timers/promises'
import { lists } from '../cli/command/base.ts'
import { boolean, connectionFlags, repeatable, text } from '../cli/command/flags.ts'
import { type CommandSession, localCall } from '../cli/session/session.ts'
import { TargetCommand } from '../cli/session/target-command.ts'
import { exits, Fault } from '../core/base/errors.ts'
import type { GetDrillResponse } from '../core/protocol/index.ts'

type DrillOf = NonNullable<GetDrillResponse['Drill']>

/** How often the command polls the drill. Milliseconds. */
const pollMs = 2_000
/** No drill takes longer. Milliseconds. */
const maxMs = 15 * 60_000

export default class Drill extends TargetCommand {
  static override summary = 'Send a marked fault through the alarm path, and follow it'
  static override description =
    `Each message says DRILL and that nothing has failed; receivers that are not named get none. Looks up what
shows that it arrived: the answer of the receiver, the alerts, routes and counters of Alertmanager, and
the link in the message that whoever gets it opens. What nothing shows is "not proven". Takes about two minutes.
To test what reads svc, such as gates and dashboards: svc serve --rehearse.
At a server, needs Admin or the permission drill. The exit code is 3 if a hop failed, 10 while a drill is
not over (--last), otherwise 0.`
  static override answers = { '': lists(async () => (await import('../cli/notify/drill-lists.ts')).drill) }
  static override examples = [
    '<%= config.bin %> drill --through am',
    '<%= config.bin %> drill --server https://svc.example.com',
    '<%= config.bin %> drill --last --json',
  ]
  static override flags = {
    ...connectionFlags,
    through: text('through')({
      description: 'A receiver of notify: by name; repeatable. Default: those of drill: in svc.yaml',
      ...repeatable,
    }),
    last: boolean({ description: 'Show the latest drill and begin none', exclusive: ['through'] }),
  }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const { flags } = await this.parse(Drill)
    const work = async (session: CommandSession, target: string): Promise<number> => {
      const { service } = session
      const drill = flags.last
        ? (await service.getDrill({}, localCall(signal))).Drill
        : await this.#toEnd(session, flags.through ?? [], signal)
      if (drill === undefined) throw new Fault('UnreadableAnswer', `${target} describes no drill`)
      return await this.#show(drill, target)
    }
    return (await this.inSession(flags, work, { readsConfig: true, tolerant: true })) || undefined
  }

  async #toEnd(
    { service }: CommandSession,
    through: readonly string[],
    signal: AbortSignal,
  ): Promise<DrillOf | undefined> {
    const { Drill: drill } = await service.startDrill({ Through: through }, localCall(signal))
    if (drill?.Id === undefined) return drill
    this.say(`Drilling through ${(drill.Through ?? []).join(', ')}: takes about two minutes`)
    const until = performance.now() + maxMs
    for (;;) {
      await wait(pollMs, undefined, { signal })
      const { Drill: current } = await service.getDrill({ Id: drill.Id }, localCall(signal))
      if (current?.EndedAt !== undefined || current === undefined || performance.now() > until) return current
    }
  }

  async #show(drill: DrillOf, target: string): Promise<number> {
    const { Id = '', By = '', Through = [], BeganAt, EndedAt, Hops = [] } = drill
    const { drill: hops, hopRow, resultIn } = await import('../cli/notify/drill-lists.ts')
    const rows = Hops.map(hopRow)
    const result = resultIn(drill)
    const failed = rows.filter((row) => row.result === 'failed')
    const unproven = rows.filter((row) => row.result === 'not proven')
    const mark = failed.length > 0 ? 'fail' : result === 'proven' ? 'ok' : 'warn'
    const count = (n: number, what: string): string => `${n} of ${rows.length} hops ${what}`
    const sentence =
      result === 'waiting'
        ? 'the drill is not over'
        : failed.length > 0
          ? count(failed.length, 'failed')
          : unproven.length > 0
            ? `no hop failed, ${count(unproven.length, unproven.length === 1 ? 'is not proven' : 'are not proven')}`
            : 'every hop is proven'
    const around = {
      target,
      id: Id,
      by: By,
      through: Through,
      beganAt: BeganAt?.toISOString() ?? '',
      endedAt: EndedAt?.toISOString(),
      result,
    }
    this.printList(hops.render(rows, around, { ...this.output, headline: { mark, sentence } }))
    if (failed.length > 0) return exits.unhealthy.code
    // What has proven nothing yet must not look like a success.
    return result === 'waiting' ? exits.partial.code : exits.ok.code
  }
}
