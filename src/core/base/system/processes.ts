import { readFileSync, readlinkSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { loadSystemInformation, parseMountinfo, throwIfExhausted } from './files.ts'

/** The relevant fields of /proc/<pid>/stat. The name is in parentheses and may contain any character. */
export type ProcessStat = {
  readonly name: string
  readonly state: string
  /** The process id of the parent. */
  readonly parent: number
  readonly flags: number
  /** Ticks of 10 ms since the machine started. User space always sees 100 ticks a second. */
  readonly startTicks: number
  readonly cpuTicks: number
}
export const tickMs = 10

export function parseStat(content: string): ProcessStat | undefined {
  const open = content.indexOf('(')
  const close = content.lastIndexOf(')')
  if (open < 0 || close < open) return undefined
  const rest = content.slice(close + 2).split(' ')
  const [parent, flags, user, system, start] = [1, 6, 11, 12, 19].map((at) => Number(rest[at]))
  const [state] = rest
  if (
    !state ||
    parent === undefined ||
    flags === undefined ||
    user === undefined ||
    system === undefined ||
    start === undefined
  )
    return undefined
  if (![flags, user, system, start].every(Number.isFinite)) return undefined
  return { name: content.slice(open + 1, close), state, parent, flags, startTicks: start, cpuTicks: user + system }
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

/** A process that may match a query. The command line may contain secrets: it is compared and never shown. */
export type Candidate = {
  readonly pid: number
  /** Possible names of the executable: the kernel's name for it (15 characters), the file, the first argument. */
  readonly names: readonly string[]
  readonly command: string
  /** Ended, but not yet reaped by its parent. */
  readonly zombie: boolean
  /** Stopped by a signal or by a debugger: it does nothing until somebody continues it. */
  readonly stopped?: boolean | undefined
  /** A thread of the kernel itself. */
  readonly kernel?: boolean | undefined
  /** Resident memory in bytes, and milliseconds since its start, if the listing has them. */
  readonly rss?: number | undefined
  readonly age?: number | undefined
}

/** How many processes are read in one go. */
const atATime = 32

/** The processes to look for. Every given condition must hold. */
export type ProcessQuery = {
  /** The exact name of the executable. */
  readonly name?: string | undefined
  /** Text that the command line contains. */
  readonly match?: string | undefined
  readonly pid?: number | undefined
}

/** The matching processes among those visible to this account. A process that ends meanwhile is left out. */
export async function findProcesses(query: ProcessQuery, signal: AbortSignal): Promise<Candidate[]> {
  if (process.platform !== 'linux') {
    const system = await loadSystemInformation()
    return fromProcessListing((await system.processes()).list, Date.now()).filter((one) => fits(one, query))
  }
  const pids = query.pid === undefined ? await allPids() : [query.pid]
  const candidates: Candidate[] = []
  for (let first = 0; first < pids.length; first += atATime) {
    // Thousands of processes must not block the rest of this program.
    await setImmediate(undefined, { signal })
    const some = pids.slice(first, first + atATime).flatMap((pid) => candidate(pid) ?? [])
    const whole = await Promise.all(some.map((one) => withCommand(one, query)))
    candidates.push(...whole.filter((one) => fits(one, query)))
  }
  return candidates
}

/**
 * The options with which the system hides the processes of other accounts from this one, e.g. `hidepid=2`; undefined
 * if it shows them. root, and the group of the option `gid`, see all.
 */
export async function hiddenProcesses(): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.geteuid?.() === 0) return undefined
  const mounts = parseMountinfo(await textOf('/proc/self/mountinfo'))
  const options = mounts.findLast(({ point }) => point === '/proc')?.options ?? []
  const hiding = options.find((option) => /^hidepid=(?:[12]|noaccess|invisible|4|ptraceable)$/.test(option))
  const [group] = options.flatMap((option) => /^gid=(\d{1,10})$/.exec(option)?.[1] ?? [])
  const isMember = group !== undefined && process.getgroups?.().includes(Number(group)) === true
  return isMember ? undefined : hiding
}

/** The account or group that sees the processes of others. */
export const seesAllProcesses =
  'the account of the processes, or the group of the option gid= with which /proc is mounted'

/** Why processes cannot be counted where `option` of /proc hides those of other accounts. */
export const whyHidden = (option: string): string =>
  `/proc is mounted with ${option}, so that this account sees only its own processes: ${seesAllProcesses}`

const allPids = async (): Promise<number[]> => (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)

/** The processes that have ended and that their parents have not collected, and the parent with the most of them. */
export type Zombies = {
  readonly count: number
  readonly parent?: { readonly pid: number; readonly name: string; readonly count: number } | undefined
}

/** Counts the zombies among the processes that this account sees. Only on Linux. */
export async function zombies(signal: AbortSignal): Promise<Zombies> {
  const parents = new Map<number, number>()
  for (const [place, pid] of (await allPids()).entries()) {
    // Thousands of processes must not block the rest of this program.
    if (place % atATime === 0) await setImmediate(undefined, { signal })
    const stat = parseStat(readProcess(`/proc/${pid}/stat`))
    if (stat?.state === 'Z') parents.set(stat.parent, (parents.get(stat.parent) ?? 0) + 1)
  }
  const [most] = [...parents].toSorted(([, a], [, b]) => b - a)
  if (!most) return { count: 0 }
  const [pid, count] = most
  const name = parseStat(readProcess(`/proc/${pid}/stat`))?.name ?? ''
  return { count: [...parents.values()].reduce((sum, one) => sum + one, 0), parent: { pid, name, count } }
}

/** The flag of kernel threads, which have neither arguments nor a file. */
const kernelThread = 0x20_0000

/**
 * A file of a process, empty if the process has ended or is not readable. Throws when this program has no file
 * descriptors left: otherwise every process would seem to have ended.
 */
function readProcess(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throwIfExhausted(error)
    return ''
  }
}

/** Read synchronously: neither file makes the kernel wait for the process. */
function candidate(pid: number): Candidate | undefined {
  const stat = parseStat(readProcess(`/proc/${pid}/stat`))
  if (!stat) return undefined
  const kernel = (stat.flags & kernelThread) !== 0
  const file = kernel ? '' : basename(linkOf(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, ''))
  const names = [stat.name, file].filter((name) => name !== '')
  const { state } = stat
  return {
    pid,
    names,
    command: '',
    zombie: state === 'Z' || state === 'X',
    stopped: state === 'T' || state === 't',
    kernel,
  }
}

/** Reads the command line only if it decides: the kernel may have to wait for the process's memory. */
async function withCommand(one: Candidate, { name, match }: ProcessQuery): Promise<Candidate> {
  const settledOrUndefined = match === undefined && (name === undefined || isCalled(one, name, 'linux'))
  if (settledOrUndefined || one.kernel) return one
  const command = await textOf(`/proc/${one.pid}/cmdline`)
  const first = basename(command.split('\0', 1)[0] ?? '')
  return {
    ...one,
    names: first === '' ? one.names : [...one.names, first],
    command: command.replaceAll('\0', ' ').trim(),
  }
}

const fits = (one: Candidate, { name, match, pid }: ProcessQuery): boolean =>
  (pid === undefined || one.pid === pid) &&
  (name === undefined || isCalled(one, name, process.platform)) &&
  (match === undefined || one.command.includes(match))

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

const textOf = (path: string): Promise<string> =>
  readFile(path, 'utf8').catch((error: unknown) => {
    throwIfExhausted(error)
    return ''
  })

/** A row of systeminformation's `processes`; `memRss` is in KiB, `started` in local time. */
export type ListedProcess = {
  readonly pid: number
  readonly name: string
  readonly command: string
  readonly params: string
  readonly state: string
  readonly memRss: number
  readonly started: string
}

/** Converts the listing of macOS and Windows. */
export const fromProcessListing = (rows: readonly ListedProcess[], nowMs: number): Candidate[] =>
  rows.map((row) => {
    const started = Date.parse(row.started.replace(' ', 'T'))
    return {
      pid: row.pid,
      names: [basename(row.name)],
      command: `${row.command} ${row.params}`.trim(),
      zombie: row.state === 'zombie',
      rss: row.memRss * 1024,
      age: Number.isNaN(started) ? undefined : Math.max(0, nowMs - started),
    }
  })

/** The resources that a running process uses. A value is absent when it cannot be read. */
export type Usage = {
  readonly rss?: number | undefined
  /** Milliseconds since it started. */
  readonly age?: number | undefined
  /** Milliseconds of processor time so far. */
  readonly cpu?: number | undefined
  readonly openFiles?: { readonly open: number; readonly limit: number } | undefined
  /** Whether its program is still the file that it was started from. */
  readonly program?: 'current' | 'replaced' | undefined
}

/** `whole`: with what only the account of the process may see. */
export async function usage(one: Candidate, whole: boolean): Promise<Usage> {
  if (process.platform !== 'linux') return { rss: one.rss, age: one.age }
  const folder = `/proc/${one.pid}`
  const [stat, status, uptime] = await Promise.all([
    textOf(`${folder}/stat`),
    textOf(`${folder}/status`),
    textOf('/proc/uptime'),
  ])
  const parsed = parseStat(stat)
  return {
    rss: parseRss(status),
    age: parsed && Math.max(0, parseUptime(uptime) - parsed.startTicks * tickMs),
    cpu: parsed && parsed.cpuTicks * tickMs,
    openFiles: whole ? await openFiles(folder) : undefined,
    program: whole ? programOf(linkOf(`${folder}/exe`)) : undefined,
  }
}

/** The kernel marks a program that was deleted, or replaced by another file. Some have never been a file (memfd). */
function programOf(link: string): Usage['program'] {
  if (link === '') return undefined
  return link.endsWith(' (deleted)') && !link.startsWith('/memfd:') ? 'replaced' : 'current'
}

/** Undefined for another account's process, whose descriptors are not readable. */
async function openFiles(folder: string): Promise<Usage['openFiles']> {
  const open = await readdir(`${folder}/fd`).catch((error: unknown) => throwIfExhausted(error))
  const limit = parseOpenFilesLimit(await textOf(`${folder}/limits`))
  return open === undefined || limit === undefined ? undefined : { open: open.length, limit }
}

/**
 * Whether a process waits in the kernel and cannot be interrupted, and the count of its context switches: as long as
 * that does not change, it is the same wait. Undefined if it has ended, or on other systems than Linux.
 */
export async function uninterruptibleWait(pid: number): Promise<number | undefined> {
  if (process.platform !== 'linux') return undefined
  const status = await textOf(`/proc/${pid}/status`)
  if (!/^State:\s+D/m.test(status)) return undefined
  const switches = [...status.matchAll(/^(?:non)?voluntary_ctxt_switches:\s+(\d{1,15})$/gm)]
  return switches.reduce((sum, [, number]) => sum + Number(number), 0)
}

/** When a process started, in milliseconds since 1970. Undefined when that is unknown. */
export async function startedAt(pid: number, wallClock: number): Promise<number | undefined> {
  if (process.platform !== 'linux') return undefined
  const stat = parseStat(await textOf(`/proc/${pid}/stat`))
  const uptime = parseUptime(await textOf('/proc/uptime'))
  return stat && Number.isFinite(uptime) ? wallClock - uptime + stat.startTicks * tickMs : undefined
}

/** Characters of a name that the kernel keeps. */
const kernelName = 15

/** Whether a process has this name. On Windows, letter case and `.exe` do not matter. */
export function isCalled(one: Candidate, name: string, platform: NodeJS.Platform): boolean {
  const plain = (text: string): string => (platform === 'win32' ? text.toLowerCase().replace(/\.exe$/, '') : text)
  if (one.names.some((other) => plain(other) === plain(name))) return true
  // A zombie has neither file nor arguments, only the truncated name of the kernel.
  const [only, ...others] = one.names
  return platform === 'linux' && others.length === 0 && only?.length === kernelName && name.startsWith(only)
}
