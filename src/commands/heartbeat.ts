import { prints } from '../cli/command/base.ts'
import {
  boolean,
  connectionFlags,
  custom,
  durationFlag,
  oneOf,
  required,
  requiredArgument,
  text,
} from '../cli/command/flags.ts'
import type { JobOptions } from '../cli/heartbeats/heartbeat-run.ts'
import { localCall, openSession, type SessionFlags } from '../cli/session/session.ts'
import { TargetCommand } from '../cli/session/target-command.ts'
import { Fault } from '../core/base/errors.ts'
import { nameMistake } from '../core/base/names.ts'
import { HeartbeatStatus } from '../core/protocol/index.ts'

export default class Heartbeat extends TargetCommand {
  static override summary = 'Report that an agent is alive, or run a job and report it'
  static override description =
    `Run it from cron, from a systemd timer or from the agent itself. A monitor of the kind heartbeat fails
when the reports stop. The caller needs the permission heartbeat. To create a key with this permission
only: svc users add agents --no-password --permission heartbeat; svc keys create NAME --user agents
--permission heartbeat.

With -- COMMAND, svc runs the command and reports its start, its end, its exit code, its duration and
the last lines of its output. svc redacts the passwords and tokens that it recognizes; --no-output
sends no output. svc passes signals on and exits with the exit code of the command. If it cannot
deliver a report, it prints a warning to standard error.`
  static override answers = { '': prints(async () => (await import('../cli/heartbeats/lists.ts')).receipts) }
  static override examples = [
    '<%= config.bin %> heartbeat nightly-import --max-runtime 2h -- /opt/import --all',
    '<%= config.bin %> heartbeat nightly-import --interval 1d',
    '<%= config.bin %> heartbeat agent-7 --status warn --message "queue is slow" --backlog 120',
    'SVC_TOKEN=KEY <%= config.bin %> heartbeat agent-7 --server https://svc.example.com',
  ]
  static override args = { name: requiredArgument('NAME', 'Name of the agent, up to 128 characters') }
  static override flags = {
    status: custom<HeartbeatStatus>({
      helpValue: '<ok|warn|fail>',
      description: 'Status of the agent (default: ok)',
      parse: async (input) => oneOf('status', HeartbeatStatus.values, input, 'Values'),
    })(),
    message: text('message')({ description: 'Description of the status, on one line' }),
    version: text('version')({ description: 'Version of the agent' }),
    interval: custom<number>({
      helpValue: '<1m|1h|1d|…>',
      description: 'Expected time between two reports, from which the monitor derives when they are overdue',
      parse: async (input) => interval(input),
    })(),
    backlog: custom<number>({
      helpValue: '<n>',
      description: "Number of items in the agent's queue",
      parse: async (input) => backlog(input),
    })(),
    disk: text('disk')({
      description: 'Report the free space of the disk that contains this folder',
      helpValue: '<folder>',
    }),
    'max-runtime': durationFlag('max-runtime')({ description: 'With -- COMMAND: maximum duration of the command' }),
    'no-output': boolean({ description: 'With -- COMMAND: do not report its output' }),
    timeout: durationFlag('timeout')({ description: 'Give up after this long (default: 10s)' }),
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const command = this.takeCommand('svc heartbeat nightly -- /opt/nightly')
    const { args, flags } = await this.parse(Heartbeat)
    const Name = required(args.name, 'NAME')
    if (command) return await this.runJob(Name, command, flags)
    this.checkName(Name)
    const misplaced = (['max-runtime', 'no-output'] as const).find((flag) => flags[flag])
    if (misplaced) throw new Fault('Usage', `--${misplaced} needs a command: svc heartbeat NAME -- COMMAND`)
    const facts = await agentFacts(Name, flags)
    return await this.inSession(flags, async (session, target) => {
      const report = { ...facts, Status: flags.status ?? 'Ok', Message: flags.message, SentAt: this.io.clock.now() }
      const call = localCall(signal, { timeoutMs: flags.timeout ?? 10_000 })
      const answer = await session.service.reportHeartbeat(report, call)
      const { renderReceipt } = await import('../cli/heartbeats/lists.ts')
      this.printList(renderReceipt(answer, target, this.output))
      return undefined
    })
  }

  /** Throws Usage for a name that no server accepts. On a terminal, notes one that scripts and URLs have to quote. */
  private checkName(name: string): void {
    const mistake = nameMistake(name)
    if (mistake !== undefined) {
      throw new Fault('Usage', `NAME ${mistake}`, { hints: ['svc heartbeat nightly-import'] })
    }
    const plain = name.replace(/[^\p{L}\p{N}._:@/-]+/gu, '-').replace(/^-+|(?<!-)-+$/g, '')
    if (plain === name || !this.io.stderr.isTTY) return
    const instead = plain === '' ? 'nightly-import' : plain
    this.say(`Note: ${JSON.stringify(name)} has characters that scripts and URLs have to quote; ${instead} has none.`)
  }

  /** Like `warnOfOtherStore`; the next step leaves the job to this account, which it may need. */
  private async refuseSecondStore(store: string | undefined): Promise<void> {
    try {
      await this.warnOfOtherStore(store)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      throw new Fault(error.fault, error.message, {
        hints: ['To report to the service: SVC_TOKEN=KEY svc heartbeat NAME --server URL -- COMMAND'],
      })
    }
  }

  private async runJob(Name: string, command: readonly string[], flags: JobFlags): Promise<number> {
    const own = (['status', 'message'] as const).find((flag) => flags[flag] !== undefined)
    if (own) {
      throw new Fault('Usage', `--${own} and a command cannot be combined`, {
        hints: ['The exit code of the command decides the status.'],
      })
    }
    const { runReported } = await import('../cli/heartbeats/heartbeat-run.ts')
    const job: JobOptions = {
      report: await agentFacts(Name, flags),
      maxMs: flags['max-runtime'],
      output: !flags['no-output'],
      deliver: async (report) => {
        await using session = await openSession(flags, this.io, { say: (line) => this.say(line) })
        await this.refuseSecondStore(session.runtime?.facts.store)
        // The job decides when it ends: a signal to it must not cancel its report.
        const { signal } = new AbortController()
        await session.service.reportHeartbeat(report, localCall(signal, { timeoutMs: flags.timeout ?? 10_000 }))
      },
    }
    return await runReported(command, job, this.io)
  }
}

/** The facts about the agent in a report, with and without a job. */
const agentFacts = async (Name: string, { version, interval, backlog, disk }: JobFlags) => ({
  Name,
  Version: version,
  Interval: interval,
  Backlog: backlog,
  DiskFreePercent: disk === undefined ? undefined : await (await import('../cli/heartbeats/disk.ts')).freePercent(disk),
})

type JobFlags = SessionFlags & {
  readonly status?: HeartbeatStatus | undefined
  readonly message?: string | undefined
  readonly version?: string | undefined
  readonly interval?: number | undefined
  readonly backlog?: number | undefined
  readonly disk?: string | undefined
  readonly timeout?: number | undefined
  readonly 'max-runtime'?: number | undefined
  readonly 'no-output'?: boolean | undefined
}

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** `30s`, `1m`, `1h`, `1d` → milliseconds: 1 second to 7 days. */
function interval(input: string): number {
  const [, figure, unit = ''] = /^(\d+(?:\.\d+)?)(s|m|min|h|d)$/.exec(input.trim()) ?? []
  const ms = Number(figure) * (units[unit] ?? Number.NaN)
  if (ms >= 1_000 && ms <= 7 * 86_400_000) return ms
  throw new Fault('Usage', `--interval "${input}" is not an interval of 1 second to 7 days`, {
    hints: ['Write a number and its unit, for example --interval 30s, 1m, 1h or 1d.'],
  })
}

function backlog(input: string): number {
  if (/^\d{1,15}$/.test(input.trim())) return Number(input)
  throw new Fault('Usage', `--backlog "${input}" is not a whole number`, { hints: ['Give 0 or more: --backlog 120'] })
}
