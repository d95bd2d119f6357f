import { cpus, freemem, hostname, totalmem } from 'node:os'
import type { ServerState } from '../protocol/index.ts'
import { loadSystemInformation, type Mount, parseMountinfo, type ReadText, readText } from './files.ts'

/**
 * The folders of one cgroup controller that bound this process: its own group first, then its
 * parents as far as they are mounted here. A limit of any of them holds.
 */
export type CgroupFolders = { readonly version: 1 | 2; readonly folders: readonly string[] }

/** Deeper nesting than this is not a container platform's. */
const deepest = 32
/** Bytes. Version 1 writes a number near 2^63 for "none". */
const unlimited = 2 ** 60

/** Reads `/proc/self/cgroup` and the mounts; undefined where the controller is not mounted. */
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
  // Without a cgroup namespace the path is the host's, and so is the root of the mount.
  const inside = mount.root !== '/' && path.startsWith(mount.root) ? path.slice(mount.root.length) : path
  const parts = inside.split('/').filter((part) => part !== '')
  const usable = parts.includes('..') ? [] : parts.slice(0, deepest)
  return Array.from({ length: usable.length + 1 }, (_, up) =>
    [mount.point, ...usable.slice(0, usable.length - up)].join('/'),
  )
}

/** Bytes. The tightest limit on this process, and what is left below the tightest of them. */
export type MemoryLimit = { readonly limit: number; readonly available: number }

/**
 * Memory limits of the groups. Page cache that the kernel would give back first (`inactive_file`)
 * counts as available, as the kernel's own MemAvailable does. Undefined without any limit.
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

/** The tightest quota of the groups; undefined without one, or where its use cannot be read. */
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

/** What bounds this process, read at each call; undefined where nothing does. */
export type OwnLimits = {
  readonly memory: () => MemoryLimit | undefined
  readonly cpu: () => CpuQuota | undefined
}

/**
 * Finds the groups of this process once: it does not change them, and to find them costs more than
 * to read them. Where they could not be read they are looked for again: the limits of a container must
 * not be lost for good because its descriptors ran out for a moment. Elsewhere than on Linux there are none.
 */
export function ownLimits(read: ReadText): OwnLimits {
  let result: OwnGroups | undefined
  const groups = (): OwnGroups | undefined => {
    result ??= ownGroups(read)
    return result
  }
  groups()
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

/** Undefined where /proc does not tell. */
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

/** Counters at one moment; two of them make a figure. Milliseconds. */
export type CpuSample = {
  /** Monotonic. */
  readonly at: number
  readonly busy: number
  readonly idle: number
  readonly processors: number
  /** Processor time of this very process. */
  readonly own: number
  readonly quota?: CpuQuota | undefined
}

/** A shorter window than this says more about the program that measures than about the server. */
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
 * Percent of the processors used between two samples: of the quota where there is one, else of the
 * machine. In a window below 500 ms this process's own time is taken off, because its start would
 * be most of the figure. Undefined when no time was counted: then there is nothing to say.
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
 * The machine's memory, or the container's where it is tighter. On Linux and Windows `os.freemem`
 * is what programs may still take (MemAvailable, ullAvailPhys). On macOS it counts free pages only.
 */
export const memory = (limit: MemoryLimit | undefined): Memory =>
  within({ total: totalmem(), available: freemem() }, limit)

/** The same for a monitor, which may wait: on macOS with the pages that the system would give back. */
export async function hostMemory(limits: OwnLimits): Promise<Memory> {
  if (process.platform !== 'darwin') return memory(limits.memory())
  const system = await loadSystemInformation()
  const { total, available } = await system.mem()
  return { total, available }
}

/** A container cannot take more than its limit leaves, nor more than the machine has. */
export function within(machine: Memory, limit: MemoryLimit | undefined): Memory {
  if (limit === undefined || limit.limit >= machine.total) return machine
  return { total: limit.limit, available: Math.min(limit.available, machine.available) }
}

const mebibyte = 2 ** 20
/** Samples closer together than this are not kept: a busy server asks thousands of times. */
const keepEveryMs = 100

/**
 * A long-lived measure of this machine (H4): every call begins one measurement, the function it
 * returns ends it. The CPU figure covers the run when that took 500 ms; a shorter run borrows the
 * latest sample that is 500 ms old, or the oldest there is, so `svc serve` always has a true window
 * and a single short command measures from when this was made.
 */
export function stateMeter(now: () => number): () => () => ServerState {
  const limits = ownLimits(readText)
  const sample = (): CpuSample => cpuSample(now, limits.cpu())
  let samples: readonly CpuSample[] = [sample()]
  return () => {
    const first = sample()
    return () => {
      const ended = sample()
      const base = baseOf([...samples, first], first, ended)
      samples = keep(samples, ended)
      return serverState(hostname(), memory(limits.memory()), usedPercent(base, ended))
    }
  }
}

/** One measurement from here to the call of what it returns: `stateMeter` for a single run. */
export const measureState = (now: () => number): (() => ServerState) => stateMeter(now)()

/** The sample to compare with: the run's own beginning, else the latest old enough, else the oldest. */
export function baseOf(samples: readonly CpuSample[], first: CpuSample, ended: CpuSample): CpuSample {
  const old = (one: CpuSample): boolean => ended.at - one.at >= cpuWindowMs
  if (old(first)) return first
  const byAge = samples.toSorted((a, b) => a.at - b.at)
  return byAge.findLast(old) ?? byAge[0] ?? first
}

/** Bounded: whatever is younger than the window, and the latest that is older. */
export function keep(samples: readonly CpuSample[], latest: CpuSample): readonly CpuSample[] {
  const last = samples.at(-1)
  const all = last && latest.at - last.at < keepEveryMs ? samples : [...samples, latest]
  const firstNeeded = all.findLastIndex((one) => latest.at - one.at >= cpuWindowMs)
  return firstNeeded > 0 ? all.slice(firstNeeded) : all
}

/** Interface 2.6: whole megabytes of 2^20 bytes; percent with one decimal, absent when nothing could be counted. */
export function serverState(name: string, { total, available }: Memory, used: number | undefined): ServerState {
  return {
    ServerName: name,
    TotalRamInMb: Math.round(total / mebibyte),
    AvailableRamInMb: Math.round(available / mebibyte),
    ...(used === undefined ? {} : { UsedCpuPercent: used }),
  }
}
