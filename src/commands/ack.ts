import { prints } from '../cli/command/base.ts'
import { connectionFlags, required, requiredArgument, text } from '../cli/command/flags.ts'
import { spanFlag } from '../cli/command/instant.ts'
import { localCall } from '../cli/session/session.ts'
import { SilenceCommand } from '../cli/silences/silence-command.ts'

const load = () => import('../cli/silences/lists.ts')

export default class Ack extends SilenceCommand {
  static override summary = 'Acknowledge a fault: no notifications while it stays the same'
  static override description =
    `Silences notifications about the open incidents of a monitor, because somebody is working on them. The
acknowledgement of a fault ends when the fault has recovered, when a warning becomes a failure, and when
the class of the fault changes (all faults by which a server cannot be reached count as one): then
everybody is told. States, health checks, their exit codes and metrics stay as they are.

At a server, the caller needs the role Admin or the permission silence. svc silence list shows what is
acknowledged, and svc silence end takes an acknowledgement back.`
  static override answers = { '': prints(async () => (await load()).silences) }
  static override examples = [
    '<%= config.bin %> ack "Sql/postgres orders" --check "replication lag" --reason INC-7',
    '<%= config.bin %> ack "http shop" --for 4h --reason "vendor is on it"',
  ]
  static override args = { monitor: requiredArgument('MONITOR', 'Monitor, with or without its type') }
  static override flags = {
    check: text('check')({ description: 'Only this check (default: each open fault of the monitor)' }),
    item: text('item')({ description: 'Only this item of the check: a disk, a replica, a queue' }),
    for: spanFlag('How long at most (default 30d)'),
    until: text('until')({ description: 'Until when at most: 04:00, "2026-11-29 04:00"', helpValue: '<04:00|…>' }),
    reason: text('reason')({ description: 'Why (required), shown wherever the fault is' }),
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const { args, flags } = await this.parse(Ack)
    const Monitor = required(args.monitor, 'MONITOR')
    const length = this.lengthOf(flags, true)
    const Reason = required(flags.reason, '--reason')
    return await this.inSession(
      flags,
      async (session, target) => {
        this.sayConfig(session)
        const { service } = session
        const request = { Monitor, MonitoringName: flags.check, Item: flags.item, Reason, ...length }
        const { Silences: entries = [], NotSilenced } = await service.acknowledge(request, localCall(signal))
        const { silenceRow, renderSilences } = await load()
        const rows = entries.map((entry) => silenceRow(entry))
        this.printList(renderSilences(rows, target, this.output))
        return await this.sayNotSilenced(NotSilenced)
      },
      { readsConfig: true, tolerant: true },
    )
  }
}
