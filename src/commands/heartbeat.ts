import { SvcCommand } from '../cli/base.ts'
import { argument, connectionFlags, custom, durationFlag, oneOf, required, text } from '../cli/flags.ts'
import { localCall, openSession, placeOf } from '../cli/session.ts'
import { Fault } from '../core/errors.ts'
import { HeartbeatStatus } from '../core/protocol/index.ts'

export default class Heartbeat extends SvcCommand {
  static override summary = 'Report that this agent is alive, and how it is'
  static override description =
    `For cron, a systemd timer or the agent itself. A monitor of the kind heartbeat then finds an agent
that has fallen silent. The caller needs the permission heartbeat; a key that may do nothing else:
svc users add agents --no-password --permission heartbeat; svc keys create NAME --user agents
--permission heartbeat.`
  static override examples = [
    '<%= config.bin %> heartbeat nightly-import --interval 1d',
    '<%= config.bin %> heartbeat agent-7 --status warn --message "queue is slow" --backlog 120',
    'SVC_TOKEN=KEY <%= config.bin %> heartbeat agent-7 --server https://svc.example.com',
  ]
  static override args = {
    name: argument({
      name: 'NAME',
      description: 'What the agent is called, up to 128 characters',
      ignoreStdin: true,
    }),
  }
  static override flags = {
    status: custom<HeartbeatStatus>({
      helpValue: '<ok|warn|fail>',
      description: 'How the agent is (default: ok)',
      parse: async (input) => oneOf('status', HeartbeatStatus.values, input, 'Values'),
    })(),
    message: text('message')({ description: 'What there is to say of that, on one line' }),
    version: text('version')({ description: 'The version that it runs' }),
    interval: custom<number>({
      helpValue: '<1m|1h|1d|…>',
      description: 'How often it means to report: its silence is measured in this',
      parse: async (input) => interval(input),
    })(),
    backlog: custom<number>({
      helpValue: '<n>',
      description: 'How much work waits there',
      parse: async (input) => backlog(input),
    })(),
    disk: text('disk')({ description: 'A folder: reports how much of its disk is free', helpValue: '<folder>' }),
    timeout: durationFlag('timeout')({ description: 'Give up after this (default: 10s)' }),
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Heartbeat)
    const Name = required(args.name, 'NAME')
    const DiskFreePercent = flags.disk === undefined ? undefined : await freePercent(flags.disk)
    const session = await openSession(flags, process.env)
    this.target = placeOf(session)
    await this.warnOfOtherStore(session.runtime?.facts.store)
    try {
      const answer = await session.service.reportHeartbeat(
        {
          Name,
          Status: flags.status ?? 'Ok',
          Message: flags.message,
          Version: flags.version,
          Interval: flags.interval,
          Backlog: flags.backlog,
          DiskFreePercent,
          SentAt: new Date(),
        },
        localCall(signal, { timeoutMs: flags.timeout ?? 10_000 }),
      )
      const { renderReceipt } = await import('../cli/render/details.ts')
      this.print(renderReceipt(answer, this.target, { json: flags.json, screen: process.stdout }))
    } finally {
      await session.close()
    }
  }
}

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** `30s`, `1m`, `1h`, `1d` → milliseconds: 1 second to 7 days. */
function interval(input: string): number {
  const [, figure, unit = ''] = /^(\d+(?:\.\d+)?)(s|m|min|h|d)$/.exec(input.trim()) ?? []
  const ms = Number(figure) * (units[unit] ?? Number.NaN)
  if (ms >= 1_000 && ms <= 7 * 86_400_000) return ms
  throw new Fault('Usage', `--interval "${input}" is no interval of 1 second to 7 days`, {
    hints: ['Write a number and its unit, for example --interval 30s, 1m, 1h or 1d.'],
  })
}

function backlog(input: string): number {
  if (/^\d{1,15}$/.test(input.trim())) return Number(input)
  throw new Fault('Usage', `--backlog "${input}" is no whole number`, { hints: ['Give 0 or more: --backlog 120'] })
}

/** The free percentage of a folder's disk, as available to this account. */
async function freePercent(folder: string): Promise<number> {
  const { statfs } = await import('node:fs/promises')
  try {
    const { bavail, blocks } = await statfs(folder)
    return blocks === 0 ? 0 : Math.min(100, Math.round((bavail / blocks) * 1_000) / 10)
  } catch (error) {
    throw new Fault(
      'Local',
      `--disk: ${folder} cannot be looked at (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`,
    )
  }
}
