import { lists, SvcCommand } from '../../cli/command/base.ts'
import { custom, modeFlag, oneOf, parseDuration, required, requiredArgument, text } from '../../cli/command/flags.ts'
import { exits } from '../../core/errors.ts'
import { ServerType } from '../../core/protocol/index.ts'

export default class MonitorsTest extends SvcCommand {
  static override summary = 'Run a single monitor of svc.yaml and show all its results'
  static override description =
    `Monitors named in its dependsOn, of the same or of another type, do not run. Without --mode, all checks run. Exits 3 when it fails.`
  static override answers = { '': lists(async () => (await import('../../cli/monitors/lists.ts')).findings) }
  static override examples = [
    '<%= config.bin %> monitors test "postgres orders"',
    '<%= config.bin %> monitors test orders --mode Basic --config ./svc.yaml',
  ]
  static override args = {
    name: requiredArgument({
      name: 'NAME',
      description: 'Name of the monitor: "postgres orders", or orders',
      ignoreStdin: true,
    }),
  }
  static override flags = {
    type: custom<ServerType>({
      char: 't',
      helpValue: '<App|Sql|…>',
      description: 'Server type of the monitor, if several types have one with this name',
      parse: async (input) => oneOf('type', ServerType.values, input, 'Types'),
    })(),
    mode: modeFlag({ description: 'Check depth (default Advanced)' }),
    timeout: custom<number>({
      helpValue: '<5s|500ms|…>',
      description: 'Timeout of the monitor',
      parse: async (input) => parseDuration('timeout', input),
    })(),
    config: text('config')({ description: 'The svc.yaml to use (SVC_CONFIG)' }),
    store: text('store')({ description: "The embedded store's file (SVC_STORE)" }),
  }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const { args, flags } = await this.parse(MonitorsTest)
    const name = required(args.name, 'NAME')
    const { hasPassed, renderTrial, tryMonitor } = await import('../../cli/monitors/monitor-test.ts')
    const trial = await tryMonitor(name, flags, this.io.env, signal)
    for (const mistake of trial.mistakes) this.say(`Warning: ${mistake}`)
    if (trial.dependsOn.length > 0)
      this.say(`Note: not run here, although it depends on it: ${trial.dependsOn.join(', ')}`)
    this.print(renderTrial(trial, this.output))
    return hasPassed(trial.trial) ? undefined : exits.unhealthy.code
  }
}
