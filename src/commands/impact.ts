import { lists } from '../cli/command/base.ts'
import { connectionFlags, required, requiredArgument } from '../cli/command/flags.ts'
import { type CommandSession, localCall } from '../cli/session/session.ts'
import { TargetCommand } from '../cli/session/target-command.ts'

export default class Impact extends TargetCommand {
  static override summary = 'Show which monitors depend on a monitor, also through others'
  static override description =
    `Lists what would not run if the monitor could not be reached: in svc health, these monitors are skipped;
in svc serve, their incidents become part of its incident. Monitors whose groups have enough other
members are listed as running. With a server, the list shows the confirmed states and takes into
account which other monitors cannot be reached now.`
  static override answers = { '': lists(async () => (await import('../cli/health/impact-lists.ts')).impact) }
  static override examples = [
    '<%= config.bin %> impact "postgres orders"',
    '<%= config.bin %> impact "Sql/postgres orders" --json',
    '<%= config.bin %> impact tag:network',
  ]
  static override args = {
    monitor: requiredArgument('MONITOR', 'Monitor, TYPE/MONITOR or tag:NAME, as dependsOn writes them'),
  }
  static override flags = { ...connectionFlags }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Impact)
    const monitor = required(args.monitor, 'MONITOR')
    const work = async (session: CommandSession, target: string): Promise<void> => {
      this.sayConfig(session)
      const { service } = session
      const answer = await service.impact({ Monitor: monitor }, localCall(signal))
      const { Causes = [], Monitors = [], HiddenMonitors: hiddenMonitors } = answer
      const { causeName, causeNow, impact, impactRow } = await import('../cli/health/impact-lists.ts')
      const around = { target, of: monitor, causes: Causes.map(causeName), hiddenMonitors }
      this.printList(impact.render(Monitors.map(impactRow), around, this.output))
      const now = Causes.flatMap((cause) => causeNow(cause) ?? [])
      if (now.length > 0) this.say(`Note: ${now.join(', ')}`)
      if (hiddenMonitors !== undefined)
        this.say(`Note: ${hiddenMonitors} more would not run, of types that you may not read`)
    }
    await this.inSession(flags, work, { readsConfig: true, tolerant: true })
  }
}
