import { lists } from '../cli/command/base.ts'
import { connectionFlags, custom, oneOf, sinceFlag, text, typeFlag } from '../cli/command/flags.ts'
import { localCall } from '../cli/session/session.ts'
import { TargetCommand } from '../cli/session/target-command.ts'
import { count } from '../core/base/format.ts'
import { ExecutionMode } from '../core/protocol/index.ts'

export default class History extends TargetCommand {
  static override summary = 'Show the availability, down times and figures of the monitors'
  static override description =
    `svc serve records what its monitors find and keeps it for 400 days, in periods that get longer with
their age. Availability is the share of the time observed in which no check failed; the time that was not
observed is shown beside it. With --monitor, the periods of one monitor are listed with their figures.
The incidents of each monitor are listed, too: when they began, how long they lasted, and their victims.
A server without a store (svc serve --only health) remembers 24 hours: --server URL shows them.`
  static override answers = { '': lists(async () => (await import('../cli/health/period-lists.ts')).history) }
  static override examples = [
    '<%= config.bin %> history',
    '<%= config.bin %> history --type Sql --since 30d',
    '<%= config.bin %> history --monitor "postgres orders" --since 6h',
    '<%= config.bin %> history --depth Basic --json',
  ]
  static override flags = {
    type: typeFlag({ description: 'Only this server type (default: every type that you may read)' }),
    monitor: text('monitor')({ description: 'Only this monitor, by the name that svc monitors list shows' }),
    since: sinceFlag({ least: '5m', most: '400d' })({
      description: 'How far back, at most 400d (default 1d)',
    }),
    depth: custom<ExecutionMode>({
      helpValue: `<${ExecutionMode.values.join('|')}>`,
      parse: async (input) => oneOf('depth', ExecutionMode.values, input, 'Depths'),
    })({ description: 'Only the checks that this depth includes (default: all checks)' }),
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(History)
    await this.inSession(flags, async (session, target) => {
      const answer = await session.service.history(
        {
          ServerType: flags.type,
          MonitorName: flags.monitor,
          SinceMinutes: flags.since && Math.round(flags.since / 60_000),
          ExecutionMode: flags.depth,
        },
        localCall(signal),
      )
      const { history, historyRows, incidentList, incidentsToShow, rowsForPeople } = await import(
        '../cli/health/period-lists.ts'
      )
      const { Monitors = [], NotKept: notKept, HiddenMonitors: hiddenMonitors } = answer
      const all = Monitors.flatMap(historyRows)
      const isTable = this.output.screen.isTTY && !this.output.json
      const rows = isTable && flags.monitor === undefined ? rowsForPeople(all) : all
      const list = history.render(rows, { target, notKept, hiddenMonitors }, this.output)
      const { visible, left } = incidentsToShow(rows)
      const incidents = [
        ...(visible.length > 0 ? ['', incidentList.table(visible, this.output.screen)] : []),
        ...(left > 0 ? [`and ${left} earlier ones: --json lists them`] : []),
      ]
      this.printList([list, ...(isTable ? incidents : [])].join('\n'))
      if (notKept !== undefined) this.say(`Note: ${notKept}`)
      if (hiddenMonitors !== undefined)
        this.say(`Note: ${count(hiddenMonitors, 'monitor is', 'monitors are')} of types that you may not read`)
    })
  }
}
