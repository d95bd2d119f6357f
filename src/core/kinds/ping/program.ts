import { isIP } from 'node:net'
import { system32File } from '../../system/end-process.ts'

/** What to send: the address is already resolved, so it can never be taken for a flag. */
export type PingRequest = {
  readonly ip: string
  readonly count: number
  /** Milliseconds to wait for the reply to a packet. */
  readonly waitMs: number
}

/** A command line of the system's own program. */
export type PingCommand = {
  /** Where the program may be, the usual place first. */
  readonly files: readonly string[]
  readonly args: readonly string[]
}

/** Seconds between two packets: the shortest pause that programs allow an ordinary account. */
const pause = '0.2'

/** The command for a platform of Node. Undefined for one whose program svc does not know. */
export function pingCommand(platform: string, { ip, count, waitMs }: PingRequest): PingCommand | undefined {
  const six = isIP(ip) === 6
  const packets = String(count)
  switch (platform) {
    case 'linux':
      return {
        files: ['/usr/bin/ping', '/bin/ping', '/usr/sbin/ping', '/sbin/ping'],
        args: ['-n', '-q', six ? '-6' : '-4', '-c', packets, '-i', pause, '-W', String(Math.ceil(waitMs / 1_000)), ip],
      }
    case 'darwin':
      // ping6 has no option for the time to wait.
      return six
        ? { files: ['/sbin/ping6'], args: ['-n', '-q', '-c', packets, '-i', pause, ip] }
        : { files: ['/sbin/ping'], args: ['-n', '-q', '-c', packets, '-i', pause, '-W', String(waitMs), ip] }
    case 'win32':
      return { files: [system32File('PING.EXE')], args: [six ? '-6' : '-4', '-n', packets, '-w', String(waitMs), ip] }
    default:
      return undefined
  }
}

/** The statistics that the program prints at its end. */
export type PingStatistics = {
  readonly sent: number
  readonly received: number
  /** Milliseconds; undefined without any reply. */
  readonly averageMs: number | undefined
}

/** Windows translates its words, so only the numbers of its statistics count. */
const windowsCounts = /= (\d{1,10})[^=\n]{0,60}= (\d{1,10})[^=\n]{0,60}= \d{1,10}\s{0,12}\(\d{1,3} ?%/
const windowsTimes = /= \d{1,10} ?ms[^=\n]{0,60}= \d{1,10} ?ms[^=\n]{0,60}= (\d{1,10}) ?ms/

/** Reads the statistics of iputils, BusyBox, macOS and Windows. Undefined for any other output. */
export function parsePing(output: string): PingStatistics | undefined {
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
