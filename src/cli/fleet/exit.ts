import { exits } from '../../core/base/errors.ts'

const notReached: ReadonlySet<number> = new Set([exits.unreachable.code, exits.timeout.code])

/** Whether an exit code says that a server could not be reached, or did not answer in time. */
export const isNotReached = (code: number): boolean => notReached.has(code)

/**
 * The exit code of many servers: 0 if all are 0; 3 if any is unhealthy, could not be reached or timed out; 12 if any is
 * not configured; else the code that all others share, else 10.
 *
 * @example
 * ```ts
 * fleetExit([0, 7]) // 3
 * fleetExit([0, 4, 12]) // 12
 * fleetExit([0, 4, 4]) // 4
 * fleetExit([4, 9]) // 10
 * ```
 */
export function fleetExit(codes: Iterable<number>): number {
  const bad = new Set(codes)
  bad.delete(exits.ok.code)
  const [shared = exits.ok.code, other] = bad
  if ([...bad].some((code) => code === exits.unhealthy.code || isNotReached(code))) return exits.unhealthy.code
  if (bad.has(exits.local.code)) return exits.local.code
  return other === undefined ? shared : exits.partial.code
}
