import { cpus, freemem, hostname, totalmem } from 'node:os'
import { loadSystemInformation, type Mount, parseMountinfo, type ReadText, readText } from './files.ts'

/** The state of this machine, as ServerState of the interface (2.6) has it. */
type MachineState = {
  readonly ServerName: string
  readonly TotalRamInMb: number
  readonly AvailableRamInMb: number
  readonly UsedCpuPercent?: number
}

/**
 * The folders of one cgroup controller that limit this process: its own group first, then its parents as far as they
 * are mounted here. Every one of these limits applies.
 */
export type CgroupFolders = { readonly version: 1 | 2; readonly folders: readonly string[] }

/** No container platform nests groups deeper than this. */
const deepest = 32
/** Bytes. Version 1 writes a number near 2^63 for "unlimited". */
const unlimited = 2 ** 60

/** Reads `/proc/self/cgroup` and the mounts. Returns undefined when the controller is not mounted. */
export function cgroupFolders(
  controller: string,
  selfCgroup: string,
  mounts: readonly Mount[],
): CgroupFolders | undefined {
  const lines = selfCgroup.split('\n').map((line) => {
    const [, controllers = '', ...path] = line.split(':')
    return { controllers: controllers.split(','), path: path.join(':') }
  })
  const v1 = lines.find((line) => line.controllers.includes(controller))
  const v1Mount = mounts.find((mount) => mount.type === 'cgroup' && mount.options.includes(controller))
  if (v1 && v1Mount) return { version: 1, folders: upwards(v1.path, v1Mount) }
  const v2 = lines.find((line) => line.controllers.length === 1 && line.controllers[0] === '' && line.path !== '')
  const v2Mount = mounts.find((mount) => mount.type === 'cgroup2')
  return v2 && v2Mount ? { version: 2, folders: upwards(v2.path, v2Mount) } : undefined
}

function upwards(path: string, mount: Mount): string[] {
  // Without a cgroup namespace, the path and the root of the mount are those of the host.
  const inside = mount.root !== '/' && path.startsWith(mount.root) ? path.slice(mount.root.length) : path
  const parts = inside.split('/').filter((part) => part !== '')
  const usable = parts.includes('..') ? [] : parts.slice(0, deepest)
  return Array.from({ length: usable.length + 1 }, (_, up) =>
    [mount.point, ...usable.slice(0, usable.length - up)].join('/'),
  )
}

/** Bytes. The lowest limit on this process, and the least memory left under any of its limits. */
export type MemoryLimit = { readonly limit: number; readonly available: number }

/**
 * The memory limit that the groups set, or undefined without one. Page cache that the kernel reclaims first
 * (`inactive_file`) counts as available, as in the kernel's own MemAvailable.
 */
export function memoryLimit({ version, folders }: CgroupFolders, read: ReadText): MemoryLimit | undefined {
  const limits = folders.flatMap((folder) => {
    const limit = count(read(`${folder}/${version === 2 ? 'memory.max' : 'memory.limit_in_bytes'}`))
    if (limit === undefined || limit >= unlimited) return []
    const used = count(read(`${folder}/${version === 2 ? 'memory.current' : 'memory.usage_in_bytes'}`))
    if (used === undefined) return []
    const stat = read(`${folder}/memory.stat`) ?? ''
    const reclaimable = statLine(stat, version === 2 ? 'inactive_file' : 'total_inactive_file') ?? 0
    return [{ limit, available: Math.max(0, limit - Math.max(0, used - reclaimable)) }]
  })
  if (limits.length === 0) return undefined
  return {
    limit: Math.min(...limits.map((group) => group.limit)),
    available: Math.min(...limits.map((group) => group.available)),
  }
}

/** Processors that a quota allows, and the milliseconds of processor time used under it so far. */
export type CpuQuota = { readonly processors: number; readonly usedMs: number }

/** The lowest quota of the groups. Undefined without a quota, or when its use cannot be read. */
export function cpuQuota(
  { version, folders }: CgroupFolders,
  accounting: CgroupFolders | undefined,
  read: ReadText,
): CpuQuota | undefined {
  const quotas = folders.flatMap((folder, up) => {
    const [quota, period] =
      version === 2
        ? (read(`${folder}/cpu.max`) ?? '').trim().split(' ')
        : [read(`${folder}/cpu.cfs_quota_us`), read(`${folder}/cpu.cfs_period_us`)]
    const allowed = count(quota)
    const per = count(period)
    if (allowed === undefined || per === undefined || allowed <= 0 || per <= 0) return []
    const usedMs =
      version === 2
        ? thousandth(statLine(read(`${folder}/cpu.stat`) ?? '', 'usage_usec'))
        : thousandth(thousandth(count(read(`${accounting?.folders[up] ?? ''}/cpuacct.usage`))))
    return usedMs === undefined ? [] : [{ processors: allowed / per, usedMs }]
  })
  return quotas.toSorted((a, b) => a.processors - b.processors)[0]
}

const count = (text: string | undefined): number | undefined => {
  const trimmed = text?.trim()
  return trimmed !== undefined && /^\d+$/.test(trimmed) ? Number(trimmed) : undefined
}
const thousandth = (value: number | undefined): number | undefined => (value === undefined ? undefined : value / 1_000)

function statLine(content: string, key: string): number | undefined {
  const line = content.split('\n').find((entry) => entry.startsWith(`${key} `))
  return count(line?.slice(key.length))
}

/** The limits of this process, read at each call. Undefined without a limit. */
export type OwnLimits = {
  readonly memory: () => MemoryLimit | undefined
  readonly cpu: () => CpuQuota | undefined
}

/**
 * Finds the groups of this process once: they do not change, and finding them costs more than reading them. If reading
 * fails, the next call looks for them again, so that a container's limits are not lost for good because file
 * descriptors ran out for a moment. What `read` throws, the functions of the result throw. On systems other than Linux there are no limits.
 */
export function ownLimits(read: ReadText): OwnLimits {
  let result: OwnGroups | undefined
  const groups = (): OwnGroups | undefined => {
    result ??= ownGroups(read)
    return result
  }
  try {
    groups()
  } catch {
    // The next call reports it.
  }
  return {
    memory: () => {
      const memory = groups()?.memory
      return memory && memoryLimit(memory, read)
    },
    cpu: () => {
      const { cpu, accounting } = groups() ?? {}
      return cpu && cpuQuota(cpu, accounting, read)
    },
  }
}

type OwnGroups = Readonly<Record<'memory' | 'cpu' | 'accounting', CgroupFolders | undefined>>

/** Undefined when /proc does not contain them. */
function ownGroups(read: ReadText): OwnGroups | undefined {
  const self = read('/proc/self/cgroup')
  const mountinfo = self === undefined ? undefined : read('/proc/self/mountinfo')
  if (self === undefined || mountinfo === undefined) return undefined
  const mounts = parseMountinfo(mountinfo)
  return {
    memory: cgroupFolders('memory', self, mounts),
    cpu: cgroupFolders('cpu', self, mounts),
    accounting: cgroupFolders('cpuacct', self, mounts),
  }
}

/** Counters at one moment. A percentage needs two samples. Milliseconds. */
export type CpuSample = {
  /** By the monotonic clock. */
  readonly at: number
  readonly busy: number
  readonly idle: number
  readonly processors: number
  /** Processor time of this process. */
  readonly own: number
  readonly quota?: CpuQuota | undefined
}

/** A shorter window measures this program rather than the server. */
export const cpuWindowMs = 500

export function cpuSample(now: () => number, quota: CpuQuota | undefined): CpuSample {
  const all = cpus()
  const spent = process.cpuUsage()
  let busy = 0
  let idle = 0
  for (const { times } of all) {
    busy += times.user + times.nice + times.sys + times.irq
    idle += times.idle
  }
  return { at: now(), busy, idle, processors: all.length, own: (spent.user + spent.system) / 1_000, quota }
}

/**
 * Percentage of processor time used between two samples: of the quota if there is one, else of the machine. In a window
 * below 500 ms this process's own time is subtracted, because its start would dominate the result. Undefined when the
 * counters did not advance.
 */
export function usedPercent(before: CpuSample, after: CpuSample): number | undefined {
  const window = after.at - before.at
  const bounded = before.quota !== undefined && after.quota !== undefined
  const busy = bounded ? (after.quota?.usedMs ?? 0) - (before.quota?.usedMs ?? 0) : after.busy - before.busy
  const allowed = bounded
    ? window * Math.min(after.quota?.processors ?? 1, after.processors)
    : busy + after.idle - before.idle
  if (!(allowed > 0)) return undefined
  const used = window < cpuWindowMs ? busy - (after.own - before.own) : busy
  return Math.round(Math.min(100, Math.max(0, (used / allowed) * 100)) * 10) / 10
}

/** Bytes. */
export type Memory = { readonly total: number; readonly available: number }

/**
 * The machine's memory, or the container's if that is less. On Linux and Windows `os.freemem` is what programs may
 * still allocate (MemAvailable, ullAvailPhys). On macOS it counts free pages only.
 */
export const memory = (limit: MemoryLimit | undefined): Memory =>
  within({ total: totalmem(), available: freemem() }, limit)

/** The same for a monitor, which may wait. On macOS it includes the pages that the system can reclaim. */
export async function hostMemory(limits: OwnLimits): Promise<Memory> {
  if (process.platform !== 'darwin') return memory(limits.memory())
  const system = await loadSystemInformation()
  const { total, available } = await system.mem()
  return { total, available }
}

/** Bytes of swap space in /proc/meminfo: its total, and what is free. Undefined where it is not reported. */
export function swapIn(meminfo: string): Memory | undefined {
  const bytes = (name: string): number | undefined => {
    const line = meminfo.split('\n').find((each) => each.startsWith(`${name}:`))
    const [, kibibytes] = /^\w+:\s+(\d{1,15}) kB$/.exec(line ?? '') ?? []
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
  }
  const [total, available] = [bytes('SwapTotal'), bytes('SwapFree')]
  return total === undefined || available === undefined ? undefined : { total, available }
}

/** Applies a container's limit: the result exceeds neither what that limit leaves nor what the machine has. */
export function within(machine: Memory, limit: MemoryLimit | undefined): Memory {
  if (limit === undefined || limit.limit >= machine.total) return machine
  return { total: limit.limit, available: Math.min(limit.available, machine.available) }
}

const mebibyte = 2 ** 20
/** Samples closer together than this are dropped: a busy server takes thousands a second. */
const keepEveryMs = 100

/** A server measures its machine at most this often, however many runs begin and end. Milliseconds. */
const measuredEveryMs = 1_000

/**
 * A long-lived meter of this machine (H4). Every call begins one measurement; the function it returns ends it. The CPU
 * percentage covers the run when that took at least 500 ms. A shorter run uses the latest sample that is 500 ms old, or
 * else the oldest one. `svc serve` thus always has a full window, and a single short command measures from the creation
 * of the meter.
 *
 * Reading the counters costs more than a small run, so runs share them: a beginning or an end takes those of a
 * beginning or an end less than a second ago.
 */
export function stateMeter(now: () => number): () => () => MachineState {
  const limits = ownLimits(readText)
  const sample = (): CpuSample => cpuSample(now, limits.cpu())
  const begin = atMostEvery(measuredEveryMs, now, sample)
  // A run that begins at once shares it.
  let samples: readonly CpuSample[] = [begin()]
  const end = atMostEvery(measuredEveryMs, now, (first: CpuSample): MachineState => {
    const ended = sample()
    const base = baseOf([...samples, first], first, ended)
    samples = keep(samples, ended)
    return serverState(hostname(), memory(limits.memory()), usedPercent(base, ended))
  })
  return () => {
    const first = begin()
    return () => end(first)
  }
}

/** Returns the latest value while it is younger than `ms`, and makes a new one after that. */
function atMostEvery<A extends readonly unknown[], T>(
  ms: number,
  now: () => number,
  make: (...args: A) => T,
): (...args: A) => T {
  let latest: { readonly at: number; readonly value: T } | undefined
  return (...args) => {
    const at = now()
    if (latest === undefined || at - latest.at >= ms) latest = { at, value: make(...args) }
    return latest.value
  }
}

/** Makes one measurement, from this call to the call of the function it returns: `stateMeter` for a single run. */
export const measureState = (now: () => number): (() => MachineState) => stateMeter(now)()

/**
 * The sample to compare with: the run's own start if it is old enough, else the latest one that is, else the oldest.
 */
export function baseOf(samples: readonly CpuSample[], first: CpuSample, ended: CpuSample): CpuSample {
  const old = (one: CpuSample): boolean => ended.at - one.at >= cpuWindowMs
  if (old(first)) return first
  const byAge = samples.toSorted((a, b) => a.at - b.at)
  return byAge.findLast(old) ?? byAge[0] ?? first
}

/** Keeps the samples younger than the window, and the latest older one. */
export function keep(samples: readonly CpuSample[], latest: CpuSample): readonly CpuSample[] {
  const last = samples.at(-1)
  const all = last && latest.at - last.at < keepEveryMs ? samples : [...samples, latest]
  const firstNeeded = all.findLastIndex((one) => latest.at - one.at >= cpuWindowMs)
  return firstNeeded > 0 ? all.slice(firstNeeded) : all
}

/**
 * Memory is in whole megabytes of 2^20 bytes. The CPU percentage has one decimal and is absent when there is none
 * (interface 2.6).
 */
export function serverState(name: string, { total, available }: Memory, used: number | undefined): MachineState {
  return {
    ServerName: name,
    TotalRamInMb: Math.round(total / mebibyte),
    AvailableRamInMb: Math.round(available / mebibyte),
    ...(used === undefined ? {} : { UsedCpuPercent: used }),
  }
}

/**
 * Milliseconds for which the main thread of svc was ready to run and no processor was free, since it began: the second
 * number of `/proc/self/schedstat` (Linux). Undefined elsewhere.
 */
export function processorWaitMs(): number | undefined {
  const [, nanoseconds] = readText('/proc/self/schedstat')?.split(' ') ?? []
  return nanoseconds === undefined ? undefined : Number(nanoseconds) / 1e6
}

/** The same, up to 100 ms old: for many observations that begin at once. */
export const roughProcessorWaitMs = atMostEvery(100, () => performance.now(), processorWaitMs)
