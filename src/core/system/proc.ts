/** The fields of /proc/<pid>/stat that matter here. The name stands in brackets and may hold any character. */
export type ProcessStat = {
  readonly name: string
  readonly state: string
  readonly flags: number
  /** Ticks of 10 ms since the machine started: user space always sees a hundred a second. */
  readonly startTicks: number
  readonly cpuTicks: number
}
export const tickMs = 10

export function parseStat(content: string): ProcessStat | undefined {
  const open = content.indexOf('(')
  const close = content.lastIndexOf(')')
  if (open < 0 || close < open) return undefined
  const rest = content.slice(close + 2).split(' ')
  const [flags, user, system, start] = [6, 11, 12, 19].map((at) => Number(rest[at]))
  const [state] = rest
  if (!state || flags === undefined || user === undefined || system === undefined || start === undefined)
    return undefined
  if (![flags, user, system, start].every(Number.isFinite)) return undefined
  return { name: content.slice(open + 1, close), state, flags, startTicks: start, cpuTicks: user + system }
}

/** Bytes of resident memory in /proc/<pid>/status. */
export function parseRss(status: string): number | undefined {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB/m.exec(status) ?? []
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
}

/** The soft limit of open files in /proc/<pid>/limits; undefined when there is none. */
export function parseOpenFilesLimit(limits: string): number | undefined {
  const [, soft] = /^Max open files\s+(\d+)\s/m.exec(limits) ?? []
  return soft === undefined ? undefined : Number(soft)
}

/** Milliseconds since the machine started: the first figure of /proc/uptime. */
export const parseUptime = (content: string): number => Number.parseFloat(content) * 1_000
