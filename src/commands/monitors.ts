import { lists, pagerFlag, prints, SvcCommand } from '../cli/command/base.ts'
import {
  boolean,
  custom,
  modeFlag,
  optionalArgument,
  parseDuration,
  required,
  requiredArgument,
  rowNamed,
  text,
  typeFlag,
  typesFlag,
} from '../cli/command/flags.ts'
import type { ProcessEnvironment } from '../cli/io/io.ts'
import { packageJson, thisMachine } from '../cli/io/process.ts'
import { waysToConfigure } from '../cli/session/first-config.ts'
import { configuration, loadWarnings, mistakesOf, storePath } from '../cli/session/session.ts'
import { configNote } from '../cli/session/target-command.ts'
import { exits, Fault } from '../core/base/errors.ts'
import { sanitizeLine } from '../core/base/sanitize.ts'
import type { LoadedConfig } from '../core/config/index.ts'
import { ServerType } from '../core/protocol/index.ts'

const load = () => import('../cli/monitors/lists.ts')

export class MonitorsDiscover extends SvcCommand {
  static override summary = 'Detect the services on this machine and propose a svc.yaml'
  static override description =
    `Connects to every listening port of this machine, tries the protocols that svc knows, and runs the
monitors that it proposes. Monitors that fail or need an account become comments with the reason. svc
never signs in and changes nothing. The file goes to stdout, the list of services to stderr.`
  static override answers = { '': prints(async () => (await import('../cli/setup/lists.ts')).discoveries) }
  static override examples = [
    '<%= config.bin %> monitors discover',
    '<%= config.bin %> monitors discover > svc.yaml && <%= config.bin %> health --config svc.yaml -t all',
    '<%= config.bin %> monitors discover --write',
  ]
  static override flags = {
    write: boolean({
      description: "Write the file to the user's configuration folder; never overwrites a file",
    }),
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(MonitorsDiscover)
    const { proposedPath, writeProposed } = await import('../cli/setup/init-file.ts')
    // Before svc connects to anything.
    if (flags.write) proposedPath(this.io.env)
    const { discoveryLines, proposedBy, proposeForThisMachine } = await import('../cli/setup/discovery.ts')
    const discovery = await proposeForThisMachine(this.io.env, signal)
    const { proposals, others } = discovery
    const file = await discovery.file([
      proposedBy('svc monitors discover', this.io.clock),
      'Each entry has run once. Names, thresholds and accounts are yours to add: svc monitors kinds',
    ])
    if (flags.json) {
      const { discoveries } = await import('../cli/setup/lists.ts')
      this.print(discoveries.text({ target: thisMachine, yaml: file, others }, proposals))
      return
    }
    for (const line of discoveryLines(discovery)) this.say(line)
    if (proposals.length === 0) this.say('svc recognized no service on this machine: add your servers to svc.yaml.')
    if (!flags.write) {
      this.printList(file.trimEnd())
      return
    }
    const types = [...new Set(proposals.flatMap(({ type, problem }) => (problem === undefined ? [type] : [])))]
    this.print(
      `${writeProposed(file, this.io.env)} is written. Try it: svc health ${types.map((type) => `-t ${type}`).join(' ')}`,
    )
  }
}

export class MonitorsKinds extends SvcCommand {
  static override summary = 'List every kind of monitor, or the settings of one'
  static override answers = { '': lists(async () => (await load()).kinds) }
  static override examples = ['<%= config.bin %> monitors kinds', '<%= config.bin %> monitors kinds postgres']
  static override args = { kind: optionalArgument('KIND', 'Kind whose settings and checks are shown') }

  protected async perform(): Promise<undefined> {
    const { args } = await this.parse(MonitorsKinds)
    const { describeKinds } = await import('../core/checks/plan/index.ts')
    const kinds = await describeKinds()
    if (args.kind === undefined) {
      const monitors = await load()
      this.printList(monitors.kinds.render(kinds, { target: thisMachine }, this.output))
      return
    }
    const kind = rowNamed(kinds, args.kind, 'kind', 'Kinds')
    const { renderKind } = await load()
    this.printList(renderKind(kind, this.output))
  }
}

export class MonitorsList extends SvcCommand {
  static override summary = 'List the monitors of a server type and mode, without running them'
  static override answers = { '': lists(async () => (await load()).plans) }
  static override examples = [
    '<%= config.bin %> monitors list',
    '<%= config.bin %> monitors list --type Sql --mode Advanced --verbose',
  ]
  static override flags = {
    type: typesFlag({ description: 'Server types; repeatable, or all (default all)' }),
    verbose: boolean({ char: 'v', description: 'Show every check, as tsv and json do' }),
    mode: modeFlag({ description: 'Check depth (default Standard)' }),
    config: text('config')({ description: 'The svc.yaml to use (SVC_CONFIG)' }),
    store: text('store')({ description: "The embedded store's file (SVC_STORE)" }),
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(MonitorsList)
    const { assemble, describePlan } = await import('../core/checks/plan/index.ts')
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
    const { renderMonitors, renderPlans } = await load()
    const isShort = this.output.screen.isTTY && !flags.verbose
    this.printList(isShort ? renderMonitors(plans, mode, this.output) : renderPlans(plans, mode, this.output))
    if (!isShort) return
    const { repeatTargetFlags } = await import('../cli/render/hints.ts')
    this.say(`\n  ${repeatTargetFlags('Every check:   svc monitors list -v', this.argv)}`)
  }
}

export class MonitorsProfiles extends SvcCommand {
  static override summary = 'List the profiles that come with svc, or the parameters of one'
  static override answers = { '': lists(async () => (await load()).monitorProfiles) }
  static override examples = ['<%= config.bin %> monitors profiles', '<%= config.bin %> monitors profiles vantage']
  static override args = { profile: optionalArgument('PROFILE', 'Profile whose parameters and monitors are shown') }

  protected async perform(): Promise<undefined> {
    const { args } = await this.parse(MonitorsProfiles)
    const { describeProfiles } = await import('../core/checks/plan/index.ts')
    const profiles = await describeProfiles()
    if (args.profile === undefined) {
      const { monitorProfiles } = await load()
      this.printList(monitorProfiles.render(profiles, { target: thisMachine }, this.output))
      return
    }
    const profile = rowNamed(profiles, args.profile, 'profile', 'Profiles')
    const { renderProfile } = await load()
    this.printList(renderProfile(profile, this.output))
  }
}

export class MonitorsTest extends SvcCommand {
  static override summary = 'Run one monitor of svc.yaml and show all its results'
  static override description =
    `Does not run the monitors that its dependsOn names. Without --mode, all its checks run. The exit code is 3 if it fails.`
  static override answers = { '': lists(async () => (await load()).findings) }
  static override examples = [
    '<%= config.bin %> monitors test "postgres orders"',
    '<%= config.bin %> monitors test orders --mode Basic --config ./svc.yaml',
  ]
  static override args = {
    name: requiredArgument('NAME', 'Name of the monitor: "postgres orders", orders, or Sql/orders'),
  }
  static override flags = {
    type: typeFlag({ description: 'Server type of the monitor, if several types have a monitor with this name' }),
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
    const { hasPassed, renderTrial, tryMonitor } = await import('../cli/monitors/monitor-test.ts')
    const trial = await tryMonitor(name, flags, this.io.env, signal)
    if (!this.isJsonRequested()) this.say(sanitizeLine(configNote(trial)))
    for (const mistake of trial.mistakes) this.say(`Warning: ${mistake}`)
    if (trial.dependsOn.length > 0)
      this.say(`Note: not run here, although it depends on it: ${trial.dependsOn.join(', ')}`)
    this.printList(renderTrial(trial, this.output))
    return hasPassed(trial.trial) ? undefined : exits.unhealthy.code
  }
}

export class MonitorsValidate extends SvcCommand {
  static override summary = 'Check svc.yaml; report every mistake with its line and column'
  static override answers = { '': prints(async () => (await load()).validated) }
  static override examples = [
    '<%= config.bin %> monitors validate',
    '<%= config.bin %> monitors validate --config ./svc.yaml',
    '<%= config.bin %> monitors validate --verbose',
  ]
  static override flags = {
    config: text('config')({ description: 'The svc.yaml to check (SVC_CONFIG)' }),
    verbose: boolean({ char: 'v', description: 'Also print the next five times of each cron expression' }),
    ...pagerFlag,
  }

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(MonitorsValidate)
    const config = await configuration(flags, this.io.env)
    const warnings = [...config.warnings, ...(await loadWarnings(config, this.io.env))]
    for (const warning of warnings) this.say(`Warning: ${warning}`)
    demandMonitors(config, this.io.env)
    const shallow = Object.values(config.types).flatMap(({ monitors }) => monitors.filter(seesOnly))
    for (const [what, some] of Map.groupBy(shallow, ({ kind }) => kind.seesOnly?.what)) {
      this.say(`Note: ${some.map(({ name }) => name).join(', ')}: ${what}: use its kind, or send and expect`)
    }
    const types = Object.entries(config.types).map(([type, entry]) => ({ type, monitors: entry.monitors.length }))
    if (flags.json) {
      const { origin: file, included } = config
      const { validated } = await load()
      this.print(validated.text({ target: thisMachine, valid: true, file, included, warnings }, types))
      return
    }
    const counted = types.flatMap(({ type, monitors }) => (monitors > 0 ? [`${type} ${monitors}`] : [])).join(', ')
    const { length: files } = config.included
    const more = files === 0 ? '' : ` with the ${files === 1 ? 'file' : `${files} files`} that it includes`
    const times = flags.verbose
      ? (await import('../cli/monitors/next-times.ts')).nextTimes(config, this.io.clock.now().getTime())
      : []
    this.printList([`${config.origin}${more} is valid: ${counted || 'no types'}`, ...times].join('\n'))
  }
}

type ConfiguredMonitor = NonNullable<LoadedConfig['types'][ServerType]>['monitors'][number]

/** Whether a monitor tests only the connection. */
const seesOnly = ({ kind, settings }: ConfiguredMonitor): boolean =>
  kind.seesOnly?.without.every((name) => (settings as Readonly<Record<string, unknown>>)[name] === undefined) ?? false

/** Throws Local without a file, for one that configures nothing, and for entries that cannot run here. */
function demandMonitors(
  { origin, searched, types, otherSections, cannotRun }: LoadedConfig,
  env: ProcessEnvironment,
): void {
  const propose = waysToConfigure(origin, env)
  if (origin === undefined) {
    throw new Fault('Local', 'there is no svc.yaml to check', {
      hints: [...searched.map((path) => `Looked for ${path}`), ...propose],
    })
  }
  const monitors = Object.values(types).flatMap((type) => type.monitors)
  if (monitors.length === 0 && otherSections.length === 0) {
    const places = [{ file: origin, line: 1, column: 1, message: 'configures nothing' }]
    throw new Fault('Local', `${origin} configures nothing`, { places, hints: propose })
  }
  const [first] = cannotRun
  if (!first) return
  const lines = cannotRun.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`)
  const message = lines.length === 1 ? lines[0] : `${origin} has ${lines.length} entries that cannot run`
  throw new Fault('Local', message, {
    places: cannotRun,
    hints: [
      ...(lines.length === 1 ? [] : lines),
      "Remove the entry, or allow its folder in the system's svc.yaml: exec: {allow: [FOLDER]}",
    ],
  })
}
