import { hostname } from 'node:os'
import type { ServerState } from '../protocol/index.ts'
import { readText } from './files.ts'
import { type CpuSample, cpuSample, cpuWindowMs, type Memory, memory, ownLimits, usedPercent } from './resources.ts'

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
  let kept: readonly CpuSample[] = [sample()]
  return () => {
    const begun = sample()
    return () => {
      const ended = sample()
      const base = baseOf([...kept, begun], begun, ended)
      kept = keep(kept, ended)
      return serverState(hostname(), memory(limits.memory()), usedPercent(base, ended))
    }
  }
}

/** One measurement from here to the call of what it returns: `stateMeter` for a single run. */
export const measureState = (now: () => number): (() => ServerState) => stateMeter(now)()

/** The sample to compare with: the run's own beginning, else the latest old enough, else the oldest. */
export function baseOf(samples: readonly CpuSample[], begun: CpuSample, ended: CpuSample): CpuSample {
  const old = (one: CpuSample): boolean => ended.at - one.at >= cpuWindowMs
  if (old(begun)) return begun
  const byAge = samples.toSorted((a, b) => a.at - b.at)
  return byAge.findLast(old) ?? byAge[0] ?? begun
}

/** Bounded: whatever is younger than the window, and the latest that is older. */
export function keep(kept: readonly CpuSample[], latest: CpuSample): readonly CpuSample[] {
  const last = kept.at(-1)
  const all = last && latest.at - last.at < keepEveryMs ? kept : [...kept, latest]
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
