import { showDuration } from '../../base/format.ts'
import { readText } from '../../base/system/files.ts'
import type { Result } from './result.ts'

/** Milliseconds that a reading may be old where many observations begin at once. */
const freshMs = 100
let latest: { readonly at: number; readonly waitMs: number | undefined } | undefined

/**
 * Milliseconds for which the main thread of svc was ready to run and no processor was free, since it began: the second
 * number of `/proc/self/schedstat` (Linux). Undefined elsewhere. `roughly`: the last reading will do.
 */
export function processorWaitMs(roughly: boolean): number | undefined {
  const at = performance.now()
  if (roughly && latest && at - latest.at < freshMs) return latest.waitMs
  const [, nanoseconds] = readText('/proc/self/schedstat')?.split(' ') ?? []
  latest = { at, waitMs: nanoseconds === undefined ? undefined : Number(nanoseconds) / 1e6 }
  return latest.waitMs
}

/** Whether a result is a time that was too long: a latency above its threshold, or a timeout. */
const isSlow = ({ status, fault, measurement }: Result): boolean =>
  (status === 'failed' && fault === 'timeout') ||
  ((status === 'failed' || status === 'warning') &&
    measurement?.unit === 'milliseconds' &&
    measurement.bound === 'atMost')

/**
 * The results, each time that was too long with how long svc itself waited for a processor meanwhile, if that was at least
 * half of it: it is then a matter of this machine rather than of the server. The verdict stays, since nobody knows how
 * long the server would have taken. `ms`: since the observation began; `waitMs` is only called where a time is too long.
 */
export function withOwnWait(
  results: readonly Result[],
  { ms, waitMs }: { readonly ms: number; readonly waitMs: () => number },
): readonly Result[] {
  if (!results.some(isSlow)) return results
  const wait = waitMs()
  return results.map((result) => {
    const own = result.fault === 'timeout' ? ms : (result.measurement?.value ?? ms)
    if (!isSlow(result) || wait < freshMs || wait < own / 2) return result
    const note = `svc itself waited ${showDuration(wait)} for a processor in this time: this machine is too busy to tell how long the server takes`
    return { ...result, details: [...(result.details ?? []), note] }
  })
}
