import { isIP } from 'node:net'
import { count } from '../../../base/format.ts'
import { bareHost } from '../../../base/loopback.ts'
import { sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { hostMistake, type SettingsSpec, type Threshold, type Values } from '../../../base/settings/index.ts'
import { system32File } from '../../../base/system/end-process.ts'
import { firstFile } from '../../../base/system/files.ts'
import { plainEnvironment, runProgram } from '../../../base/system/run-program.ts'
import { limitsOn } from '../../assert/limit-check.ts'
import {
  addressGroups,
  atMost,
  type CheckContext,
  checksOn,
  fail,
  includes,
  machineKind,
  notChecked,
  type Result,
  reachSettings,
} from '../../engine/index.ts'

/** The packets to send: the address is already resolved, so it can never be taken for a flag. */
type PingRequest = {
  readonly ip: string
  readonly count: number
  /** Milliseconds to wait for the reply to a packet. */
  readonly waitMs: number
  /** The address of this machine to send from. */
  readonly source?: string | undefined
}

/** A command line of the system's own program. */
type PingCommand = {
  /** Where the program may be, the usual place first. */
  readonly files: readonly string[]
  readonly args: readonly string[]
}

/** Seconds between two packets: the shortest pause that programs allow an ordinary account. */
const pause = '0.2'

/** The command for a platform of Node. Undefined for one whose program svc does not know. */
export function pingCommand(platform: string, { ip, count, waitMs, source }: PingRequest): PingCommand | undefined {
  const six = isIP(ip) === 6
  const packets = String(count)
  const seconds = String(Math.ceil(waitMs / 1_000))
  const to = source === undefined ? [ip] : [platform === 'linux' ? '-I' : '-S', source, ip]
  switch (platform) {
    case 'linux':
      return {
        files: ['/usr/bin/ping', '/bin/ping', '/usr/sbin/ping', '/sbin/ping'],
        args: ['-n', '-q', six ? '-6' : '-4', '-c', packets, '-i', pause, '-W', seconds, ...to],
      }
    case 'darwin':
      // ping6 has no option for the time to wait.
      return six
        ? { files: ['/sbin/ping6'], args: ['-n', '-q', '-c', packets, '-i', pause, ...to] }
        : { files: ['/sbin/ping'], args: ['-n', '-q', '-c', packets, '-i', pause, '-W', String(waitMs), ...to] }
    case 'win32':
      return {
        files: [system32File('PING.EXE')],
        args: [six ? '-6' : '-4', '-n', packets, '-w', String(waitMs), ...to],
      }
    default:
      return undefined
  }
}

/** The statistics that the program prints at its end. */
type PingStatistics = NonNullable<ReturnType<typeof parsePing>>

/** Windows translates its words, so only the numbers of its statistics count. */
const windowsCounts = /= (\d{1,10})[^=\n]{0,60}= (\d{1,10})[^=\n]{0,60}= \d{1,10}\s{0,12}\(\d{1,3} ?%/
const windowsTimes = /= \d{1,10} ?ms[^=\n]{0,60}= \d{1,10} ?ms[^=\n]{0,60}= (\d{1,10}) ?ms/

/** Reads the statistics of iputils, BusyBox, macOS and Windows. Undefined for any other output. */
export function parsePing(output: string) {
  const text = output.slice(-4_096)
  const unix = /(\d{1,10}) packets transmitted, (\d{1,10}) (?:packets )?received/.exec(text)
  const [, sent, received] = unix ?? windowsCounts.exec(text) ?? []
  if (sent === undefined || received === undefined) return undefined
  const times = unix ? /min\/avg\/max[^=\n]{0,40}= [\d.]{1,20}\/([\d.]{1,20})\// : windowsTimes
  const average = times.exec(text)?.[1]
  const replies = unix ? Number(received) : windowsReplies(text, Number(received), average !== undefined)
  return {
    sent: Number(sent),
    received: replies,
    /** Milliseconds; undefined without any reply. */
    averageMs: average === undefined || replies === 0 ? undefined : Number(average),
  }
}

/**
 * Windows also counts the answer of a router that it cannot reach the host. Such an answer has no time and no TTL; a
 * reply through IPv6 has a time but no TTL.
 */
function windowsReplies(text: string, received: number, isTimed: boolean): number {
  if (!isTimed) return 0
  const lines = text.match(/\bTTL=/g)?.length ?? received
  return Math.min(received, lines)
}

const pingSettings = {
  host: { type: 'text', observed: true, required: true, mistake: hostMistake, doc: 'Host name or address' },
  count: { type: 'integer', default: 5, min: 1, max: 20, doc: 'Number of packets, 0.2 s apart' },
  wait: { type: 'duration', default: 1_000, doc: 'How long to wait for the reply to a packet' },
  addresses: {
    type: 'choice',
    values: ['first', 'all'],
    doc: 'Which addresses of the name to test. By default `first` in Basic, `all` from Standard on',
  },
  ...reachSettings,
} as const satisfies SettingsSpec
type PingSettings = Values<typeof pingSettings>

/** The outcome for one address. */
type Outcome = { readonly ip: string } & (
  | PingStatistics
  | { readonly refused: string }
  | { readonly problem: string }
  /** Why the program cannot test anything here. */
  | { readonly unusable: string }
)

/** Maximum bytes read of the program's output, and maximum number of addresses. */
const maxBytes = 16 * 1024
const maxAddresses = 8

const privilege = "sysctl -w net.ipv4.ping_group_range='0 2147483647', or setcap cap_net_raw+ep /usr/bin/ping"

/** Runs the program for each address, one after the other. */
async function* pings(_: object, settings: PingSettings, context: CheckContext): AsyncGenerator<Outcome> {
  const { host, count: packets, wait: waitMs, sourceAddress: source } = settings
  const groups = await addressGroups(context, bareHost(host))
  const which = settings.addresses ?? (includes(context.mode, 'Standard') ? 'all' : 'first')
  const most = which === 'first' ? 1 : maxAddresses / groups.length
  for (const ip of groups.flatMap(({ ips }) => ips.slice(0, most))) {
    context.step('loss', ip)
    const command = pingCommand(process.platform, { ip, count: packets, waitMs, source })
    if (!command) throw new ProbeError('internal', `svc does not know the program ping of ${process.platform}`)
    const file = await firstFile(command.files)
    if (file === undefined) {
      yield { ip, unusable: `the program ping is not installed (${command.files.join(', ')}): install iputils-ping` }
      continue
    }
    const ended = await runProgram(
      { file, args: command.args, env: plainEnvironment(), keep: maxBytes },
      context.signal,
    )
    const words = sanitize(`${ended.stderr}\n${ended.stdout}`.trim().split(/\r?\n/, 1)[0] ?? '', 160)
    if (/not permitted|permission denied|lacking privilege/i.test(words)) yield { ip, refused: words }
    else if (/\b(?:invalid|unrecognized|unknown|illegal) option\b|^usage\b/i.test(words))
      yield { ip, unusable: `${file} does not know the options of svc: ${words}` }
    else yield { ip, ...(parsePing(ended.stdout) ?? { problem: words === '' ? 'no output' : words }) }
  }
  for (const { cause } of groups) if (cause !== undefined) throw cause
}

const check = checksOn<object>()
const limitCheck = limitsOn<object>()

export const loss = check({
  depth: 'Basic',
  results: { loss: 'Packets are answered: their loss in percent' },
  settings: {
    ...pingSettings,
    loss: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 10, limit: 50 },
      doc: 'Maximum share of packets without a reply; without any reply, the host always fails',
    },
  },
  privilege,
  observe: pings,
  evaluate: (outcome, { loss: threshold }): Result<'loss'> => {
    const { ip } = outcome
    const address = { address: ip }
    if ('refused' in outcome)
      return notChecked('loss', 'permission', `${ip}: ${outcome.refused}`, { ...address, details: [privilege] })
    if ('unusable' in outcome) return notChecked('loss', 'missing', outcome.unusable, address)
    // The program reports a missing route or an invalid address on its own.
    if ('problem' in outcome) return fail('loss', 'refused', `${ip}: ping reports "${outcome.problem}"`, address)
    return evaluateLoss(outcome, threshold)
  },
})

function evaluateLoss(
  { ip, sent, received }: PingStatistics & { readonly ip: string },
  threshold: Threshold,
): Result<'loss'> {
  const value = sent === 0 ? undefined : ((sent - received) / sent) * 100
  if (received === 0 && sent > 0) {
    const message = `${ip} answered none of ${count(sent, 'packet')}: the host is down, or a firewall drops ICMP`
    const measurement = { value: 100, unit: 'percent', ...threshold, bound: 'atMost' } as const
    return fail('loss', 'timeout', message, { address: ip, measurement })
  }
  const what = `${ip} answered ${received} of ${count(sent, 'packet')}, loss`
  return atMost({ check: 'loss', what, value, unit: 'percent', threshold, address: ip })
}

export const roundTrip = limitCheck({
  depth: 'Basic',
  check: 'round trip',
  proves: 'The average time until a reply arrives',
  setting: 'roundTrip',
  unit: 'duration',
  default: { warn: 200, limit: 1_000 },
  doc: 'Maximum average time until a reply arrives',
  settings: pingSettings,
  privilege,
  observe: pings,
  evaluate: (outcome, compare) => {
    // Without a reply, `loss` has already failed.
    if (!('sent' in outcome) || outcome.received === 0) return []
    const { ip, averageMs: value } = outcome
    return compare({ what: `${ip} answered on average in`, value, address: ip })
  },
})

/**
 * Runs the system's own program ping, without a shell, because raw sockets need a privilege. svc resolves the name, so
 * that the program receives an address and nothing that could be a flag.
 */
export default machineKind({
  name: 'ping',
  title: 'A host answers ICMP echo requests (ping)',
  // Every host answers.
  recognition: 'none',
  runsOn: 'network',
  optionalParts: [],
  cost: {
    unit: 'packets',
    Basic: [1, 5],
    Standard: [1, 5],
    Advanced: [1, 5],
    adds: [
      { setting: 'count', from: 'Basic', requests: -5 },
      { setting: 'count', each: true, from: 'Basic', requests: 1 },
    ],
    eachAddressFrom: 'Basic',
  },
  settings: pingSettings,
  target: ({ host }) => ({ host }),
  open: () => ({}),
  checks: [loss, roundTrip],
})
