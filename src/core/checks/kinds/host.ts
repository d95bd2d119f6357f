import { loadavg, uptime } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { fileProblem } from '../../base/file-errors.ts'
import { filesWithin, SilentShareError } from '../../base/files/index.ts'
import { show, showBytes, showDuration } from '../../base/format.ts'
import { askChrony, chronyAddress, chronyPort, chronySilenceMs } from '../../base/net/chrony.ts'
import { hostPort } from '../../base/net/connect.ts'
import { askTime } from '../../base/net/sntp.ts'
import { sanitize } from '../../base/net/text.ts'
import { hostPortMistake, parseHostPort } from '../../base/net/url.ts'
import { ProbeError } from '../../base/probe-error.ts'
import type { SettingsSpec, Threshold, Values } from '../../base/settings/index.ts'
import { type Disk, diskOf, disks, mountedAt, type ReadOnly, type SilentDisk } from '../../base/system/disks.ts'
import { isMissing, preloadSystemInformation, readText, readTextOrThrow } from '../../base/system/files.ts'
import { hiddenProcesses, seesAllProcesses, whyHidden, zombies } from '../../base/system/processes.ts'
import {
  type CpuSample,
  cpuSample,
  cpuWindowMs,
  hostMemory,
  type OwnLimits,
  ownLimits,
  swapIn,
  usedPercent,
} from '../../base/system/resources.ts'
import { loadMeasures } from '../../protocol/index.ts'
import { limitsOn } from '../assert/limit-check.ts'
import {
  atLeast,
  atMost,
  type CheckContext,
  checksOn,
  fail,
  type HistoryReading,
  machineKind,
  notChecked,
  ok,
  type Result,
  runIncludes,
  warn,
  withThreshold,
} from '../engine/index.ts'

/** How fast a file system fills. */
export type Trend = {
  /** Bytes that are left. */
  readonly free: number
  /** Bytes per millisecond by which the free space changes; negative while it fills. */
  readonly slope: number
  /** The number of readings behind the trend, and the milliseconds between the first and the last. */
  readonly readings: number
  readonly spanMs: number
}

/** Milliseconds between two stored readings. */
export const trendEveryMs = 15 * 60_000
/** Fewer readings or a shorter span give no trend: one copied file is not a trend. */
const fewest = 6
const shortestMs = 3 * 3_600_000
/**
 * Prefers readings of this recent span if they suffice: a log that grows out of control may have started only recently.
 */
const recentMs = 6 * 3_600_000

/** The trend of free space; the last reading is the current one. Undefined while there are too few readings. */
export function trendOf(readings: readonly HistoryReading[] = []): Trend | undefined {
  const last = readings.at(-1)
  if (!last) return undefined
  const recent = trendTo(
    last,
    readings.filter(({ at }) => last.at - at <= recentMs),
  )
  return recent ?? trendTo(last, readings)
}

function trendTo(last: HistoryReading, readings: readonly HistoryReading[]): Trend | undefined {
  const spanMs = last.at - (readings[0] ?? last).at
  if (readings.length < fewest || spanMs < shortestMs) return undefined
  return { free: last.value, slope: steadySlope(readings), readings: readings.length, spanMs }
}

/**
 * Takes the slope on which both halves of the span agree: a single large file that appears or disappears is not a trend.
 */
function steadySlope(readings: readonly HistoryReading[]): number {
  const middle = Math.floor(readings.length / 2)
  return Math.max(medianSlope(readings.slice(0, middle + 1)), medianSlope(readings.slice(middle)))
}

/** The Theil-Sen estimator: the median of the slopes of all pairs. */
function medianSlope(readings: readonly HistoryReading[]): number {
  const slopes = readings.flatMap((a, index) =>
    readings.slice(index + 1).flatMap((b) => (b.at > a.at ? [(b.value - a.value) / (b.at - a.at)] : [])),
  )
  slopes.sort((a, b) => a - b)
  const middle = slopes.length / 2
  return ((slopes[Math.ceil(middle) - 1] ?? 0) + (slopes[Math.floor(middle)] ?? 0)) / 2
}

/** Measured before the first check. The time that the other checks take separates the two processor samples. */
type Host = {
  readonly upMs: number
  readonly limits: OwnLimits
  /** Undefined if the system did not report its processors, and in Basic, where nothing compares it. */
  readonly before: CpuSample | undefined
}
const check = checksOn<Host>()
const limitCheck = limitsOn<Host>()

export const up = check({
  depth: 'Basic',
  results: { uptime: 'How long the machine has been up; informational' },
  observe: ({ upMs }) => Promise.resolve(upMs),
  evaluate: (ms) => ok('uptime', `up ${showDuration(ms)}`, { measurement: { value: ms, unit: 'milliseconds' } }),
})

/** Selects the file systems to visit. All disk checks share one walk. */
const mounts = {
  disks: {
    type: 'texts',
    default: [],
    doc: 'Check only these mount points, whatever their file systems: also in memory such as /dev/shm, or a share, which gets 3 s to answer; one that is not mounted is a failure',
  },
  skipDisks: {
    type: 'texts',
    default: [],
    narrows: true,
    doc: 'Mount points to leave out, e.g. one that is read-only by design without `ro` in /etc/fstab',
  },
} as const satisfies SettingsSpec

/** The privilege that this account needs where a folder above a mount point is closed to it. */
const reachable = 'chmod o+x <the folders above the mount point>'

function isDenied(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown }
  return code === 'EACCES' || code === 'EPERM'
}

/** The data that the walk reads at one mount point: its usage, its path, and earlier readings. */
type Mount = {
  readonly mount: string
  readonly disk?: Disk | SilentDisk | 'not mounted' | 'not local' | 'without size'
  /** Earlier readings of the free space, in Advanced. */
  readonly readings?: readonly HistoryReading[] | undefined
}

async function* walk(
  _: Host,
  { disks: only, skipDisks }: Values<typeof mounts>,
  context: CheckContext,
): AsyncGenerator<Mount> {
  context.step('disk')
  const missing = new Set(only)
  let hasLocal = false
  async function* read(disk: Disk | SilentDisk): AsyncGenerator<Mount> {
    const { mount } = disk
    yield { mount, disk }
    if (!runIncludes(context, 'Advanced') || 'error' in disk) return
    yield { mount, readings: await context.history(`free ${mount}`, disk.available, trendEveryMs) }
  }
  for await (const disk of disks(only)) {
    const { mount } = disk
    missing.delete(mount)
    hasLocal = true
    if ((only.length > 0 && !only.includes(mount)) || skipDisks.includes(mount)) continue
    yield* read(disk)
  }
  const shareMs = Math.min(maxShareMs, context.msLeft() / 2)
  // All at once: each of them may hang until its deadline.
  const others = [...(await mountedAt([...missing]))].map(async ([mount, type]) => ({
    mount,
    disk: await usageOf(mount, type, shareMs),
  }))
  for (const { mount, disk } of await Promise.all(others)) {
    missing.delete(mount)
    if (typeof disk === 'string') yield { mount, disk }
    else yield* read(disk)
  }
  for (const mount of missing) yield { mount, disk: 'not mounted' }
  if (!hasLocal && only.length === 0) yield { mount: '/', disk: 'not local' }
}

/** Milliseconds that a share may take to report its size: the other checks of the machine do not wait longer. */
const maxShareMs = 3_000

/** The usage of a file system that is not a local disk. It may belong to another machine, which may not answer. */
async function usageOf(mount: string, type: string, ms: number): Promise<Disk | SilentDisk | 'without size'> {
  try {
    return diskOf(mount, type, await filesWithin(ms)('space', { path: mount })) ?? 'without size'
  } catch (error) {
    return { mount, error }
  }
}

export const space = check({
  depth: 'Standard',
  results: { 'disk <mount>': 'Free space of each local file system; fails for one that has become read-only' },
  settings: {
    disk: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 20, limit: 10 },
      doc: 'Free space of every local file system that is not read-only by design',
    },
    ...mounts,
  },
  privilege: reachable,
  observe: walk,
  evaluate: ({ mount, disk }, { disk: threshold }) => {
    const name = `disk ${mount}` as const
    if (disk === undefined) return []
    if (disk === 'not local') return ok(name, 'this machine has no local file system, so there is no disk to check')
    if (disk === 'not mounted') return fail(name, 'data', 'no file system is mounted there')
    if (disk === 'without size') return notChecked(name, 'missing', 'the file system does not report its size')
    if ('error' in disk) return evaluateSilent(name, disk.error)
    const free = evaluateFree(name, 'free', disk, threshold)
    return disk.readOnly === undefined ? free : evaluateReadOnly(free, disk.readOnly)
  },
})

const byDesign = 'if it is read-only by design, put ro into its options in /etc/fstab, or add it to skipDisks'

function evaluateReadOnly<const Name extends string>(free: Result<Name>, why: ReadOnly): Result<Name> {
  const { check: name, measurement } = free
  if (why === 'no error') {
    const message = `the file system is read-only, and the kernel has counted no error; ${free.message}`
    const details = ['somebody has remounted it: mount -o remount,rw makes it writable again', byDesign]
    return free.status === 'failed' ? { ...free, message, details } : warn(name, message, { measurement, details })
  }
  return fail(name, 'data', `the file system is read-only; ${free.message}`, {
    measurement,
    details: [
      'the kernel makes a file system read-only after an error: look at the output of dmesg and at the disk',
      byDesign,
    ],
  })
}

function evaluateSilent<const Name extends string>(name: Name, error: unknown): Result<Name> {
  if (isDenied(error)) {
    const grant = 'allow this account to enter its parent folders (chmod o+x), or add it to skipDisks'
    return notChecked(name, 'permission', `this account may not reach the mount point: ${grant}`)
  }
  const hidden = 'the mount point does not exist: another mount may hide it; unmount it, or add it to skipDisks'
  if (isMissing(error)) return notChecked(name, 'missing', hidden)
  if (error instanceof SilentShareError) return fail(name, 'timeout', error.message)
  return fail(name, 'internal', `the file system ${fileProblem(error)}`)
}

export const inodes = check({
  depth: 'Standard',
  results: { 'inodes <mount>': 'Free inodes, where the file system has a fixed number' },
  settings: {
    inodes: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 10, limit: 2 },
      doc: 'Free inodes of the same file systems',
    },
    ...mounts,
  },
  privilege: reachable,
  observe: walk,
  evaluate: ({ mount, disk }, { inodes: threshold }) => {
    if (disk === undefined || typeof disk === 'string') return []
    if ('error' in disk) return isDenied(disk.error) ? evaluateSilent(`inodes ${mount}`, disk.error) : []
    if (!disk.inodes) return []
    const { total, free } = disk.inodes
    return evaluateFree(`inodes ${mount}`, 'free', { total, available: free }, threshold, String)
  },
})

export const memory = check({
  depth: 'Standard',
  results: { memory: 'Available memory' },
  settings: {
    memory: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 10 },
      isMinimum: true,
      doc: 'Available memory; inside a container, that of the container',
    },
  },
  observe: ({ limits }) => hostMemory(limits),
  evaluate: (figures, { memory: threshold }) => evaluateFree('memory', 'available', figures, threshold),
})

export const swap = check({
  depth: 'Standard',
  results: { swap: 'Free swap space; left out without any, and in a container with a memory limit; Linux only' },
  settings: {
    swap: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 10 },
      isMinimum: true,
      doc: 'Free swap space of the machine (Linux)',
    },
  },
  applies: () => process.platform === 'linux',
  // In a container, the swap space is that of the machine, and nothing of it may be usable.
  observe: async ({ limits }) => ({
    isLimited: limits.memory() !== undefined,
    space: swapIn(readText('/proc/meminfo') ?? ''),
  }),
  evaluate: ({ isLimited, space }, { swap: threshold }) => {
    if (isLimited) return []
    if (space === undefined) return notChecked('swap', 'missing', '/proc/meminfo does not report the swap space')
    return space.total === 0 ? [] : evaluateFree('swap', 'free', space, threshold)
  },
})

export const cpu = limitCheck({
  depth: 'Standard',
  check: 'cpu',
  proves: 'CPU use over at least 500 ms',
  setting: 'cpu',
  unit: 'percent',
  default: { warn: 80 },
  doc: 'CPU use over half a second',
  last: true,
  observe: async ({ limits, before }, _, { now, signal }) => {
    if (!before) return { percent: undefined, ms: 0 }
    const rest = Math.max(0, Math.ceil(cpuWindowMs - (now() - before.at)) + 1)
    await pause(rest, undefined, { signal })
    const after = cpuSample(now, limits.cpu())
    return { percent: usedPercent(before, after), ms: after.at - before.at }
  },
  evaluate: ({ percent, ms }, compare, { cpu: threshold }) =>
    percent === undefined
      ? notChecked('cpu', 'missing', 'the system reports no processor time')
      : compare({
          what: 'CPU use',
          value: percent,
          after: `over ${showDuration(ms)}`,
          threshold,
        }),
})

export const load = check({
  depth: 'Standard',
  results: { load: 'Load per CPU; not on Windows' },
  settings: {
    load: {
      type: 'threshold',
      unit: 'ratio',
      default: { warn: 2 },
      doc: 'Load of one minute per CPU',
    },
  },
  applies: () => process.platform !== 'win32',
  observe: ({ before }) => Promise.resolve({ load: loadavg()[0] ?? Number.NaN, processors: before?.processors ?? 0 }),
  evaluate: ({ load, processors }, { load: threshold }) =>
    atMost({
      check: 'load',
      what: `${load.toFixed(2)} over 1 min, per CPU`,
      // Without descriptors, for example, the system reports no processors.
      value: processors > 0 ? load / processors : undefined,
      unit: 'ratio',
      threshold,
    }),
})

const ntpPort = 123

export const clock = check({
  depth: 'Standard',
  results: { clock: 'Offset to the configured time server' },
  settings: {
    clock: {
      type: 'group',
      doc: 'Compares the clock with a time server; left out without one',
      fields: {
        reference: {
          type: 'text',
          required: true,
          mistake: hostPortMistake,
          doc: 'Time server (NTP), host or host:port',
        },
        offset: {
          type: 'threshold',
          unit: 'duration',
          default: { warn: 50, limit: 1_000 },
          doc: 'Maximum clock offset, in either direction',
        },
      },
    },
  },
  // Runs last, because it waits for another machine.
  last: true,
  applies: (_, settings) => settings.clock !== undefined,
  observe: async (_, settings, context) => {
    const { reference = '' } = settings.clock ?? {}
    context.step('clock', reference)
    const target = parseHostPort(reference, ntpPort) ?? { host: reference, port: ntpPort }
    const [ip] = await context.resolve(target.host)
    if (ip === undefined) throw new ProbeError('dns', `${target.host} has no address`)
    const { offset, roundTrip } = await askTime(ip, target.port, () => context.date().getTime(), context.signal)
    return { offset, roundTrip, address: hostPort(ip, target.port) }
  },
  evaluate: ({ offset, roundTrip, address }, settings) =>
    atMost({
      check: 'clock',
      what: `${offset > 0 ? 'behind' : 'ahead of'} ${address} by`,
      value: Math.abs(offset),
      unit: 'duration',
      threshold: settings.clock?.offset ?? {},
      address,
      details: [`round trip ${showDuration(roundTrip)}: the offset is accurate to half of that`],
    }),
})

const chronyAt = `chrony at ${chronyAddress}:${chronyPort}`

/** Without the setting in svc.yaml, a machine without chrony has no such result: most use another time service. */
export const timeSync = limitCheck({
  depth: 'Standard',
  check: 'time sync',
  proves: 'If chrony runs: it has synchronized the clock, and its last correction is not too old; Linux only',
  setting: 'timeSync',
  unit: 'duration',
  default: { warn: 86_400_000 },
  doc: 'Maximum time since chrony last corrected the clock; a clock that it has not synchronized warns, and fails if this has a limit (Linux)',
  // chrony answers at once, but a hung one would delay the other checks.
  last: true,
  applies: () => process.platform === 'linux',
  observe: async (_, __, { date, isConfigured, signal }) => {
    const state = await askChrony(signal)
    return { state, now: date().getTime(), isDemanded: isConfigured('timeSync') }
  },
  evaluate({ state, now, isDemanded }, compare, { timeSync: threshold }) {
    if (state === 'absent') {
      if (!isDemanded) return []
      const next = 'start it, or allow its command port (cmdport)'
      return notChecked('time sync', 'missing', `no ${chronyAt} answers: ${next}`)
    }
    if (state === 'silent')
      return warn('time sync', `${chronyAt} did not answer within ${showDuration(chronySilenceMs)}`)
    if (state === 'unreadable') return notChecked('time sync', 'missing', `${chronyAt} does not report its state`)
    const { isSynchronized, source, stratum, correctedAt, maxError } = state
    if (!isSynchronized) {
      const message = 'chrony has not synchronized the clock: it follows no time server'
      const details = ['next: chronyc -n sources']
      return threshold.limit === undefined
        ? warn('time sync', message, { details })
        : fail('time sync', 'data', message, { details })
    }
    const followed = source === undefined ? 'the clock of this machine itself (local)' : source
    return compare({
      what: `chrony follows ${followed} (stratum ${stratum}), and corrected the clock`,
      value: Math.max(0, now - correctedAt),
      after: 'ago',
      at: new Date(correctedAt),
      details: [`the clock is off by at most ${showDuration(maxError)}`],
    })
  },
})

export const trend = check({
  depth: 'Advanced',
  results: {
    'trend <mount>': 'How long until the disk is full; needs a store, and at least 6 Advanced runs over 3 hours',
  },
  settings: {
    diskTrend: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 24 * 3_600_000 },
      isMinimum: true,
      doc: 'How long until a disk is full, if it continues to fill as in previous Advanced runs',
    },
    ...mounts,
  },
  privilege: reachable,
  observe: walk,
  evaluate: ({ mount, disk, readings }, { diskTrend: threshold }) => {
    if (typeof disk === 'object' && 'error' in disk && isDenied(disk.error))
      return evaluateSilent(`trend ${mount}`, disk.error)
    const filling = trendOf(readings)
    if (!filling) return []
    const { free, slope, readings: count, spanMs } = filling
    const basis = `based on ${count} readings of the last ${showDuration(spanMs)}`
    if (slope >= 0 || free / -slope > furthestMs) return ok(`trend ${mount}`, `not filling up, ${basis}`)
    return atLeast({
      check: `trend ${mount}`,
      what: `fills by ${showBytes(-slope * 3_600_000)} per hour: full in`,
      value: free / -slope,
      unit: 'duration',
      threshold,
      details: [basis],
    })
  },
})
/** Forecasts beyond this are dropped. Milliseconds. */
const furthestMs = 90 * 86_400_000

export const fileDescriptors = limitCheck({
  depth: 'Advanced',
  check: 'file descriptors',
  proves: 'Open files of the whole machine; Linux only',
  setting: 'fileDescriptors',
  unit: 'percent',
  default: { warn: 70, limit: 90 },
  doc: 'Open files of the machine, as a share of the maximum of the kernel (Linux)',
  observe: () => {
    const [open, , max] = (readText('/proc/sys/fs/file-nr') ?? '').trim().split(/\s+/).map(Number)
    return Promise.resolve({ open, max })
  },
  applies: () => process.platform === 'linux',
  evaluate: ({ open, max = 0 }, compare) => {
    if (open === undefined || !(max > 0))
      return notChecked('file descriptors', 'missing', '/proc/sys/fs/file-nr cannot be read')
    return compare({
      what: `${open} open of ${max < 2 ** 53 ? max : 'an unlimited number'}:`,
      value: (open / max) * 100,
    })
  },
})

/** The kernel's count of processes that it has ended for lack of memory. Undefined where it does not count them. */
const oomKillsIn = (vmstat: string): number | undefined => {
  const [, kills] = /^oom_kill (\d{1,15})$/m.exec(vmstat) ?? []
  return kills === undefined ? undefined : Number(kills)
}
/** For how many milliseconds a kill is reported. */

const oomReportedMs = 3_600_000

export const oomKills = limitCheck({
  depth: 'Advanced',
  check: 'OOM kills',
  proves: 'Processes that the kernel has ended for lack of memory since an earlier run; needs a store; Linux only',
  setting: 'oomKills',
  unit: 'count',
  default: { warn: 0 },
  doc: 'Processes that the kernel has ended for lack of memory in the last hour, or since the last run before that (Linux)',
  applies: () => process.platform === 'linux',
  observe: async (_, __, { history }) => {
    const vmstat = readText('/proc/vmstat')
    const kills = vmstat === undefined ? undefined : oomKillsIn(vmstat)
    const readings = kills === undefined ? undefined : await history('OOM kills', kills, trendEveryMs)
    return { isReadable: vmstat !== undefined, readings: readings ?? [] }
  },
  evaluate: ({ isReadable, readings }, compare) => {
    if (!isReadable) return notChecked('OOM kills', 'missing', '/proc/vmstat cannot be read')
    const last = readings.at(-1)
    const earlier = readings.slice(0, -1)
    const base = last && (earlier.findLast(({ at }) => last.at - at >= oomReportedMs) ?? earlier[0])
    if (!base) return []
    // The count begins anew when the machine starts.
    const value = last.value < base.value ? last.value : last.value - base.value
    const what = `processes that the kernel ended for lack of memory in the last ${showDuration(last.at - base.at)}:`
    return compare({ what, value })
  },
})

export const zombieProcesses = limitCheck({
  depth: 'Advanced',
  check: 'zombies',
  proves: 'Processes that have ended and that their parents have not collected; Linux only',
  setting: 'zombies',
  unit: 'count',
  default: { warn: 20 },
  doc: 'Maximum number of processes that have ended and that their parents have not collected (Linux)',
  privilege: seesAllProcesses,
  applies: () => process.platform === 'linux',
  observe: async (_, __, { signal }) => ({ ...(await zombies(signal)), hiding: await hiddenProcesses() }),
  evaluate: ({ count, parent, hiding }, compare) => {
    if (hiding !== undefined) return notChecked('zombies', 'permission', whyHidden(hiding))
    const by = parent && `${parent.count} of them are children of process ${parent.pid} (${sanitize(parent.name, 15)})`
    const details = by === undefined ? [] : [`${by}: it does not collect them, so restart it or report the error`]
    return compare({ what: 'zombie processes:', value: count, details })
  },
})

export const restarted = limitCheck({
  depth: 'Advanced',
  check: 'restarted',
  proves: 'Warns if the machine has restarted recently',
  setting: 'restarted',
  unit: 'duration',
  default: { warn: 600_000 },
  doc: 'Minimum time since the start of the machine',
  bound: 'atLeast',
  observe: ({ upMs }) => Promise.resolve(upMs),
  evaluate: (value, compare) => compare({ what: 'up', value }),
})

/**
 * Compares the remaining share of a total, in percent, with its threshold, and reports both: `41 % free of 120 GiB
 * (warn below 20 %, fail below 10 %)`. Fails below the limit and warns below `warn`; a value on the boundary is ok.
 */
function evaluateFree<const Name extends string>(
  name: Name,
  word: 'free' | 'available',
  { total, available }: { readonly total: number; readonly available: number },
  threshold: Threshold,
  showTotal: (total: number) => string = showBytes,
): Result<Name> {
  const { warn, limit } = threshold
  const percent = total > 0 ? (available / total) * 100 : 0
  const status =
    limit !== undefined && percent < limit ? 'failed' : warn !== undefined && percent < warn ? 'warning' : 'ok'
  // Rounded down, so that 9.96 % never reads "10 % (fail below 10 %)" on a failure.
  const share = `${show(Math.floor(percent * 10) / 10, 'percent')} ${word} of ${showTotal(total)}`
  return {
    check: name,
    status,
    message: withThreshold(share, threshold, 'percent', 'atLeast'),
    ...(status === 'failed' ? { fault: 'threshold' as const } : {}),
    measurement: { value: percent, unit: 'percent', warn, limit, bound: 'atLeast' },
  }
}

/** Undefined without processors or file descriptors: a later sample cannot be compared with it. */
function firstSample(limits: OwnLimits, now: () => number): CpuSample | undefined {
  try {
    const sample = cpuSample(now, limits.cpu())
    return sample.processors > 0 ? sample : undefined
  } catch {
    return undefined
  }
}

/** This machine. Leaves out what cannot be evaluated here (load on Windows, a clock without a reference). */
export default machineKind({
  name: 'host',
  title: 'This machine: disks, memory, CPU, clock',
  preload: preloadSystemInformation,
  cost: {
    unit: 'queries to the time server',
    Basic: [0, 0],
    Standard: [0, 0],
    Advanced: [0, 0],
    adds: [{ setting: 'clock', from: 'Standard', connections: 1, requests: 1 }],
  },
  settings: {
    for: {
      type: 'duration',
      default: 5 * 60_000,
      min: 0,
      max: 7 * 86_400_000,
      doc: `How long every run of svc serve must find ${loadMeasures.join(', ')} beyond a threshold before it counts; a single run of svc health shows it at once`,
    },
  },
  hold: { checks: loadMeasures, setting: 'for' },
  open(_: object, context: CheckContext): Host {
    const limits = ownLimits(readTextOrThrow)
    return {
      upMs: uptime() * 1_000,
      limits,
      before: runIncludes(context, 'Standard') ? firstSample(limits, context.now) : undefined,
    }
  },
  checks: [
    up,
    space,
    inodes,
    memory,
    swap,
    cpu,
    load,
    clock,
    timeSync,
    trend,
    oomKills,
    fileDescriptors,
    zombieProcesses,
    restarted,
  ],
})
