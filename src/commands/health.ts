import { SvcCommand } from '../cli/base.ts'
import { boolean, connectionFlags, custom, durationFlag, modeFlag, oneOf, text, typesFlag } from '../cli/flags.ts'
import {
  askHealth,
  attemptReports,
  chooseOutput,
  combinedExit,
  type HealthOutcome,
  type HealthQuestion,
  isReport,
  type Output,
  type Presentation,
  parseOutput,
  pluginFailure,
  showHealth,
  waitUntilHealthy,
} from '../cli/health.ts'
import { type CommandSession, localCall, openSession } from '../cli/session.ts'
import { progress } from '../cli/terminal.ts'
import { Fault } from '../core/errors.ts'
import { ServerType } from '../core/protocol/index.ts'

export default class Health extends SvcCommand {
  static override summary = 'Check how healthy a server is, at a chosen depth'
  static override description = `Runs the monitors of a server type, on this machine or at a server (--server).

Depth: Basic asks whether it is there, Standard whether it works for a client, Advanced whether it
would survive the night. Exit code 0 is healthy, 3 unhealthy; svc help exit-codes has the rest.`
  static override examples = [
    '<%= config.bin %> health --mode Advanced --type App',
    '<%= config.bin %> health -m Basic -t Sql --server https://svc.example.com',
    '<%= config.bin %> health -t all --output junit > health.xml',
    '<%= config.bin %> health -t Sql --wait 5m && ./deploy.sh',
  ]
  static override flags = {
    mode: modeFlag({ description: 'How deep to look (default Standard)' }),
    type: typesFlag({ description: 'What to check; repeatable, or all (default: every configured type)' }),
    output: custom<Output>({
      char: 'o',
      helpValue: '<table|json|csv|…>',
      description: 'table, json, csv, tsv, ndjson, junit, github, nagios, prtg or prometheus',
      parse: async (input) => parseOutput(input),
    })(),
    verbose: boolean({ char: 'v', description: 'Show every check with its figures' }),
    'no-header': boolean({ description: 'Leave out the line of column names in a pipe' }),
    'server-state': boolean({ description: "Include the server's memory and CPU" }),
    'suppress-error-codes': boolean({
      description: 'Ask the server for HTTP 200 whatever the result; the exit code still tells',
    }),
    'suppress-deployment-errors': boolean({ description: 'Ignore failures caused by a deployment in progress' }),
    timeout: durationFlag('timeout')({ description: 'How long one check may take in all' }),
    wait: durationFlag('wait')({ description: 'Ask again until healthy, for at most this long' }),
    'fail-on': custom<'warn'>({
      helpValue: '<warn>',
      description: 'Let warnings exit with 3 too',
      parse: async (input) => oneOf('fail-on', ['warn'] as const, input, 'Values'),
    })(),
    only: text('only')({
      description: 'Only monitors or checks with this name; * matches anything; repeatable',
      multiple: true,
      multipleNonGreedy: true,
    }),
    skip: text('skip')({
      description: 'All but monitors or checks with this name; repeatable',
      multiple: true,
      multipleNonGreedy: true,
    }),
    cached: boolean({ description: "Accept the server's shared answer instead of a new run; --wait never does" }),
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<number> {
    const { flags } = await this.parse(Health)
    const output = chooseOutput(flags)
    const session = await openSession(flags, process.env)
    this.target = session.label
    try {
      const mode = flags.mode ?? 'Standard'
      const selection = { only: flags.only ?? [], skip: flags.skip ?? [] }
      const question: HealthQuestion = {
        mode,
        types: chooseTypes(flags.type ?? [], session),
        serverState: flags['server-state'],
        suppressErrorCodes: flags['suppress-error-codes'],
        suppressDeploymentErrors: flags['suppress-deployment-errors'],
        failOnWarn: flags['fail-on'] === 'warn',
        call: (callSignal) =>
          localCall(callSignal, {
            // With --wait, a run that has already begun may be too old.
            fresh: !flags.cached || flags.wait !== undefined,
            timeoutMs: flags.timeout,
            ...(selection.only.length + selection.skip.length > 0 ? { selection } : {}),
          }),
      }
      const ask = (askSignal: AbortSignal): Promise<readonly HealthOutcome[]> => askHealth(session, question, askSignal)
      const display = progress(`Checking ${question.types.join(', ')} on ${session.label}`, !flags.quiet)
      let outcomes: readonly HealthOutcome[]
      let gaveUp: string | undefined
      try {
        outcomes =
          flags.wait === undefined
            ? await ask(signal)
            : await waitUntilHealthy(
                ask,
                flags.wait,
                signal,
                attemptReports(display, (line) => this.say(line)),
                (line) => {
                  gaveUp = line
                },
              )
      } finally {
        display.stop()
      }
      const code = await this.show(outcomes, session, {
        output,
        target: session.label,
        mode,
        detail: flags.verbose ? 'verbose' : flags.quiet ? 'verdict' : 'usual',
        header: !flags['no-header'],
      })
      if (gaveUp !== undefined) this.say(gaveUp)
      return code
    } finally {
      await session.close()
    }
  }

  /** Plugins of monitoring systems read standard output, so every failure has to stand there in their own form. */
  protected override async reportFailure(error: unknown): Promise<void> {
    const failure = await pluginFailure(this.argv, error, this.target)
    if (failure === undefined) return await super.reportFailure(error)
    this.print(failure.text)
    process.exitCode = failure.exitCode
  }

  private async show(outcomes: readonly HealthOutcome[], session: CommandSession, as: Presentation): Promise<number> {
    const [only] = outcomes
    const code = combinedExit(outcomes.map((outcome) => outcome.exitCode))
    // A single failed request is an ordinary error. Monitoring formats have a representation for it.
    if (outcomes.length === 1 && only?.fault && !isReport(as.output)) throw only.fault
    const display = await showHealth(outcomes, as)
    this.print(display.text)
    if ((as.output ?? 'table') === 'table' && session.runtime && session.runtime.facts.configuration === undefined) {
      this.say(nextSteps())
    }
    return display.exitCode ?? code
  }
}

/** The next steps on a machine without svc.yaml, in words that can be pasted. */
function nextSteps(): string {
  const svc = process.env.npm_command === 'exec' ? 'npx svc' : 'svc'
  const steps = [
    ['health -m Advanced -t Sql', 'the embedded store, in depth'],
    ['serve', 'the same answers over HTTP'],
    ['monitors discover', 'what listens here, proposed as a svc.yaml'],
  ]
  const lines = steps.map(([command, gives]) => `  ${`${svc} ${command}`.padEnd(34)}  ${gives}`)
  return `\nNothing is configured yet: this is what svc knows of this machine. Try next:\n${lines.join('\n')}`
}

function chooseTypes(requested: readonly (ServerType | 'all')[], session: CommandSession): readonly ServerType[] {
  if (requested.includes('all')) return ServerType.values
  if (requested.length > 0) return [...new Set(requested as readonly ServerType[])]
  if (!session.runtime) {
    throw new Fault('Usage', '--type is missing: a server needs it (or: --type all)', {
      hints: [`Types: ${ServerType.values.join(' ')}`, 'Give one or more, for example --type App, or --type all.'],
    })
  }
  const { types } = session.runtime.facts
  return types.length > 0 ? types : ['App']
}
