import { cpus } from 'node:os'
import type { CpuQuota } from './cgroup.ts'

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
