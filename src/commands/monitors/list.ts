import { lists, SvcCommand } from '../../cli/command/base.ts'
import { modeFlag, text, typesFlag } from '../../cli/command/flags.ts'
import { packageJson } from '../../cli/io/process.ts'
import { configuration, mistakesOf, storePath } from '../../cli/session/session.ts'
import { ServerType } from '../../core/protocol/index.ts'

export default class List extends SvcCommand {
  static override summary = 'List the checks of a server type and mode, without running them'
  static override answers = { '': lists(async () => (await import('../../cli/monitors/lists.ts')).plans) }
  static override examples = ['<%= config.bin %> monitors list --type Sql --mode Advanced']
  static override flags = {
    type: typesFlag({ description: 'Server types; repeatable, or all (default all)' }),
    mode: modeFlag({ description: 'Check depth (default Standard)' }),
    config: text('config')({ description: 'The svc.yaml to use (SVC_CONFIG)' }),
    store: text('store')({ description: "The embedded store's file (SVC_STORE)" }),
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(List)
    const { assemble, describePlan } = await import('../../core/plan/index.ts')
    const config = await configuration(flags, this.io.env, { tolerant: true })
    for (const mistake of mistakesOf(config)) this.say(`Warning: ${mistake}`)
    // With a configuration, a type that it lacks is not replaced by checks of svc itself (K10).
    const parts =
      config.origin === undefined
        ? { storePath: await storePath(flags, this.io.env), accounts: true, version: packageJson().version }
        : undefined
    const requested = (flags.type ?? []).flat()
    const types = requested.length === 0 || requested.includes('all') ? ServerType.values : (requested as ServerType[])
    const mode = flags.mode ?? 'Standard'
    const plans = []
    for (const type of new Set(types)) {
      const configured = config.types[type]
      const planned = await assemble(type, {
        configured: configured?.monitors ?? [],
        host: configured?.host ?? {},
        parts,
        // Nothing runs here, so no ports are examined either.
        listening: async () => [],
        signal,
        mode,
      })
      plans.push({ type, monitors: describePlan(planned, mode) })
    }
    const [only] = plans
    if (flags.json) {
      this.print(JSON.stringify(plans.length === 1 && only ? only.monitors : plans))
      return
    }
    const { renderPlans } = await import('../../cli/monitors/lists.ts')
    this.print(renderPlans(plans, mode, this.output))
  }
}
