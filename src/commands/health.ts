import { lists, SvcCommand } from '../cli/command/base.ts'
import {
  argument,
  boolean,
  connectionFlags,
  custom,
  durationFlag,
  modeFlag,
  oneOf,
  parseTypes,
  repeatable,
  text,
  typesFlag,
} from '../cli/command/flags.ts'
import {
  type AttemptOptions,
  askHealth,
  chooseDetail,
  combinedExit,
  failureReport,
  type HealthAnswers,
  type HealthQuestion,
  isPlugin,
  isReport,
  nagiosUnknown,
  type Output,
  outputs,
  type Presentation,
  parseNagiosSize,
  parseOutput,
  preloadScreen,
  requestedReport,
  showHealth,
  type TimeoutState,
  timeoutStates,
  withUnread,
} from '../cli/health/health.ts'
import type { Outstanding } from '../cli/health/outstanding.ts'
import type { WatchEnd } from '../cli/health/watch.ts'
import type { Io } from '../cli/io/io.ts'
import { progress } from '../cli/io/terminal.ts'
import { type CommandSession, localCall, openSession } from '../cli/session/session.ts'
import { Fault } from '../core/base/errors.ts'
import { count } from '../core/base/format.ts'
import type { ServerType } from '../core/protocol/index.ts'

export default class Health extends SvcCommand {
  static override summary = 'Check the health of servers, at a chosen depth'
  static override description =
    `Runs the monitors in svc.yaml once, or requests the result from an svc or ServiceStack server (--server).

Basic checks whether a server responds, Standard whether it works for its clients, Advanced whether it
is about to fail. Exit code 0 means healthy, 3 unhealthy; svc help exit-codes lists all.`
  static override answers = { '': lists(async () => (await import('../cli/health/health-answer.ts')).healthAnswer) }
  static override examples = [
    '<%= config.bin %> health --mode Advanced --type App',
    '<%= config.bin %> health -m Basic -t Sql --server https://svc.example.com',
    '<%= config.bin %> health --require-config --output junit > health.xml',
    '<%= config.bin %> health -t Sql --require-config --wait 5m && ./deploy.sh',
  ]
  static override args = {
    types: argument({
      name: 'TYPES',
      description: 'Server types, as for --type: App Sql, or App,Sql',
      ignoreStdin: true,
      multiple: true,
    }),
  }
  static override flags = {
    mode: modeFlag({ description: 'Check depth (default Standard)' }),
    type: typesFlag({
      description: 'Server types: App or App,Sql; repeatable, or all (default: every configured type)',
    }),
    output: custom<Output>({
      char: 'o',
      helpValue: '<table|json|csv|…>',
      description: `${outputs.slice(0, -1).join(', ')} or ${outputs.at(-1)}`,
      parse: async (input) => parseOutput(input),
    })(),
    'nagios-timeout': custom<TimeoutState>({
      helpValue: `<${timeoutStates.join('|')}>`,
      description: 'With --output nagios: the state after a timeout (default critical)',
      parse: async (input) => oneOf('nagios-timeout', timeoutStates, input, 'States'),
    })(),
    'nagios-size': custom<number>({
      helpValue: '<64k>',
      description: 'With --output nagios: the size of the output at most (default 4000 bytes)',
      parse: async (input) => parseNagiosSize(input),
    })(),
    host: boolean({
      description: 'With --output prometheus and --type: with the figures of the machine',
    }),
    verbose: boolean({ char: 'v', description: 'Show every check with its figures' }),
    failed: boolean({
      description: 'Show only results that are not ok: failed, not checked, skipped, warnings (also in a pipe)',
    }),
    'server-state': boolean({ description: "Include the server's memory and CPU" }),
    'suppress-error-codes': boolean({
      description: 'Request HTTP 200 from the server for every result; the exit code does not change',
    }),
    'suppress-deployment-errors': boolean({ description: 'Ignore failures caused by a deployment in progress' }),
    'honor-silences': boolean({
      description: 'Do not count failures and warnings that svc silence, svc ack or silences: in svc.yaml silences',
    }),
    timeout: durationFlag('timeout')({ description: 'Maximum duration of the check of one server type' }),
    watch: boolean({ description: 'Repeat the check, and show what changes' }),
    interval: durationFlag('interval')({
      description: 'With --watch: time between two rounds (default 10s; 2s to 1h)',
    }),
    until: custom<'healthy' | 'unhealthy'>({
      helpValue: '<healthy|unhealthy>',
      description: 'Watch until this is so, and exit with 0',
      parse: async (input) => oneOf('until', ['healthy', 'unhealthy'] as const, input, 'States'),
    })(),
    within: durationFlag('within')({ description: 'With --until: for at most this long, then exit with 7' }),
    wait: durationFlag('wait')({ description: 'Repeat the check until healthy, for at most this long' }),
    'fail-on': custom<'warn'>({
      helpValue: '<warn>',
      description: 'Also exit with 3 on warnings',
      parse: async (input) => oneOf('fail-on', ['warn'] as const, input, 'Values'),
    })(),
    only: text('only')({
      description: 'Show only monitors or checks with this name; * matches any text; repeatable',
      ...repeatable,
    }),
    skip: text('skip')({
      description: 'Leave out monitors or checks with this name; repeatable',
      ...repeatable,
    }),
    'require-config': boolean({
      description: 'Exit with 12 if nothing is configured (SVC_REQUIRE_CONFIG=1)',
    }),
    cached: boolean({
      description: "Accept the server's latest shared result instead of a new run; --wait and --until ignore this",
    }),
    ...connectionFlags,
    server: text('server')({
      description: `${connectionFlags.server.description}; repeatable`,
      helpGroup: 'TARGET',
      ...repeatable,
    }),
    profile: text('profile')({
      description: `${connectionFlags.profile.description}; * matches any text`,
      helpGroup: 'TARGET',
    }),
    fleet: text('fleet')({ description: 'Check the servers in this file', helpGroup: 'TARGET' }),
    tag: text('tag')({
      description: 'With --fleet: only servers with this tag; repeatable',
      helpGroup: 'TARGET',
      ...repeatable,
    }),
    'at-once': custom<number>({
      helpValue: '<64>',
      parse: async (input) => parseAtOnce(input),
    })({ description: 'With several servers: requests at once (default: at most 256)', helpGroup: 'TARGET' }),
  }

  protected async perform(signal: AbortSignal): Promise<number> {
    const { flags, args } = await this.parse(Health)
    const output = flags.json ? 'json' : (flags.output ?? 'table')
    const detail = chooseDetail(flags, output)
    for (const [flag, format] of [
      ['nagios-timeout', 'nagios'],
      ['nagios-size', 'nagios'],
      ['host', 'prometheus'],
    ] as const) {
      if (flags[flag] === undefined || flags[flag] === false || output === format) continue
      throw new Fault('Usage', `--${flag} has an effect only with --output ${format}`, {
        hints: [`Add --output ${format}, or omit --${flag}.`],
      })
    }
    const isWatch =
      flags.watch || [flags.interval, flags.until, flags.within, flags.wait].some((one) => one !== undefined)
    const watching = isWatch ? await import('../cli/health/watch.ts') : undefined
    const plan = watching?.watchPlan(flags, output, this.io)
    const requested = [...(flags.type ?? []).flat(), ...(args.types ?? []).flatMap(parseTypes)]
    // Read beside the flag too: a wrong value is a mistake, whatever else requires a configuration.
    const byVariable =
      this.io.env['SVC_REQUIRE_CONFIG'] !== undefined &&
      (await import('../cli/health/health-types.ts')).requiresConfig(this.io.env)
    const requireConfig = flags['require-config'] || byVariable
    const mode = flags.mode ?? 'Standard'
    const selection = { only: flags.only ?? [], skip: flags.skip ?? [] }
    const question: HealthQuestion = {
      mode,
      types: { requested, requireConfig },
      serverState: flags['server-state'],
      suppressErrorCodes: flags['suppress-error-codes'],
      suppressDeploymentErrors: flags['suppress-deployment-errors'],
      honorSilences: flags['honor-silences'],
      failOnWarn: flags['fail-on'] === 'warn',
      call: (callSignal) =>
        localCall(callSignal, {
          // With --wait or --until, a run that has already begun may be too old.
          fresh: !flags.cached || plan?.until !== undefined,
          timeoutMs: flags.timeout,
          ...(selection.only.length + selection.skip.length > 0 ? { selection } : {}),
        }),
    }
    const everything = requested.length === 0 || requested.includes('all')
    const as = {
      withoutMachine: !everything && flags.host !== true,
      output,
      detail,
      header: this.output.header ?? true,
      timeoutState: flags['nagios-timeout'],
      size: flags['nagios-size'],
    }
    const [server, other] = flags.server ?? []
    if (other !== undefined || flags.fleet !== undefined || flags.profile?.includes('*')) {
      const { checkFleet } = await import('../cli/fleet/run.ts')
      return await checkFleet({ flags, question, as, io: this.io, say: (line) => this.say(line) }, signal)
    }
    if (flags.tag !== undefined || flags['at-once'] !== undefined)
      (await import('../cli/fleet/targets.ts')).refuseFleetFlags(flags)
    await using session = await openSession({ ...flags, server }, this.io, {
      readsConfig: true,
      tolerant: true,
      requireConfig,
      say: (line) => this.say(line),
    })
    this.target = session.label
    if (session.target.kind === 'server' && output === 'table') setImmediate(preloadScreen)
    let outstanding: Outstanding | undefined
    const ask = (attempt: AttemptOptions): Promise<HealthAnswers> =>
      askHealth(session, question, { ...attempt, outstanding })
    const label = `Checking ${requested.length === 0 ? session.label : `${requested.join(', ')} on ${session.label}`}`
    const display = progress(label, !flags.quiet && plan?.shows !== 'screen', this.io)
    let ended: WatchEnd
    try {
      if (display.live || plan?.shows === 'screen') {
        outstanding = new (await import('../cli/health/outstanding.ts')).Outstanding(this.io)
        display.update(outstanding.textOf(label))
      }
      ended =
        watching && plan
          ? await watching.watchHealth({
              plan,
              ask,
              io: this.io,
              signal,
              target: session.label,
              mode,
              atServer: session.target.kind === 'server',
              output,
              flags,
              display,
              outstanding,
              say: (line) => this.say(line),
            })
          : { answers: await ask({ signal, repeatsRefused: false }) }
    } finally {
      display.stop()
    }
    const showing = this.show(ended.answers, session, {
      ...as,
      everything,
      target: session.label,
      atServer: session.target.kind === 'server',
      mode,
    })
    const code = await showing.finally(() => ended.gaveUp !== undefined && this.say(ended.gaveUp))
    return ended.exit ?? code
  }

  /** A report is written whatever happens, an unexpected exception included. Nagios has exit codes of its own. */
  override async run(): Promise<void> {
    const report = requestedReport(this.argv)
    if (report !== undefined) this.io.reportUncaught = (error) => this.reportFailure(error)
    if (report === 'nagios') this.io.exitCodeOfLostOutput = nagiosUnknown
    await super.run()
  }

  /**
   * Programs read a report from standard output, so every failure is there in its form. Only plugins of monitoring
   * systems get no text for people on standard error, too.
   */
  protected override async reportFailure(error: unknown): Promise<void> {
    const failure = await failureReport(this.argv, error, this.target)
    // The document on standard output contains the failure, and the log shows it.
    if (this.isJsonRequested() && !this.isQuiet && !this.io.stdout.used)
      await super.reportFailure(error, { json: false })
    // Standard output contains one answer: after it, no other follows.
    const isFirst = !this.io.stdout.used
    if (!failure || !isFirst || !isPlugin(requestedReport(this.argv))) await super.reportFailure(error)
    if (!failure) return
    if (isFirst) this.print(failure.text, failure.form)
    this.io.exitCode = failure.exitCode
  }

  private async show(
    { outcomes: answered, notConfigured }: HealthAnswers,
    session: CommandSession,
    { everything, ...as }: Presentation & { readonly everything: boolean },
  ): Promise<number> {
    const mistakes = session.config?.mistakeLines ?? []
    // Mistakes outside of the server types may hide a type that should be checked.
    const unread = everything && mistakes.length > 0
    const outcomes = session.config && unread ? withUnread(answered, session.config) : answered
    const [only] = outcomes
    const code = combinedExit(outcomes.map((outcome) => outcome.exitCode))
    // A single failed request is an ordinary error. Monitoring formats have a representation for it.
    if (outcomes.length === 1 && only?.fault && !isReport(as.output)) throw only.fault
    const display = await showHealth(outcomes, as, this.io)
    const forPeople = as.output === 'table'
    // Before the answer: the verdict stays the last line on a terminal.
    if (forPeople && as.detail === 'verbose' && notConfigured.length > 0) this.say(notConfiguredLine(notConfigured))
    this.print(display.text, display.form)
    if (display.log !== undefined) this.say(display.log)
    for (const text of mistakes) {
      if (unread) this.writeNote(`Error: ${text}`)
      else this.say(`Warning: ${text}`)
    }
    const { config } = session
    // In every format: svc checks itself instead of what the file names, or the next version refuses the file.
    const warnings = config?.origin === undefined ? config?.warnings : config.trustWarnings
    for (const text of warnings ?? []) this.say(`Warning: ${text}`)
    if (forPeople && session.runtime && session.runtime.facts.configuration === undefined) {
      this.say(nextSteps(this.io))
    }
    return display.exitCode ?? code
  }
}

/** The next steps on a machine without svc.yaml, in words that can be pasted. */
function nextSteps({ env }: Io): string {
  const svc = env['npm_command'] === 'exec' ? 'npx svc' : 'svc'
  const steps = [
    ['init', 'writes a svc.yaml with what listens here'],
    ['health -m Advanced -t Sql', 'the embedded store, in depth'],
    ['serve', 'the same checks over HTTP'],
  ]
  const lines = steps.map(([command, gives]) => `  ${`${svc} ${command}`.padEnd(34)}  ${gives}`)
  return `\nNothing is configured yet: this is what svc knows of this machine. Try next:\n${lines.join('\n')}`
}

/** `10 types not configured (FtpApi, Ftp, …)`: no failure of a check of everything. */
const notConfiguredLine = (types: readonly ServerType[]): string =>
  `${count(types.length, 'type')} not configured (${types.join(', ')})`

/** A whole number from 1. Throws Usage for anything else. */
function parseAtOnce(input: string): number {
  if (/^[1-9]\d{0,4}$/.test(input)) return Number(input)
  throw new Fault('Usage', `--at-once "${input}" is not a number from 1 to 99999`, {
    hints: ['For example: --at-once 64'],
  })
}
