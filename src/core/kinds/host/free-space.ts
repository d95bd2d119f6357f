import type { Result } from '../../engine/index.ts'
import { show, showBytes } from '../../format.ts'
import type { Threshold } from '../../settings/index.ts'

/**
 * Judges what is left of a total in percent, and says both: `41 % free of 120 GiB (limit 10 %)`.
 * Fails below the limit, warns below `warn`; the boundary itself is ok.
 */
export function evaluateFree(
  check: string,
  word: 'free' | 'available',
  { total, available }: { readonly total: number; readonly available: number },
  { warn, limit }: Threshold,
  showTotal: (total: number) => string = showBytes,
): Result {
  const percent = total > 0 ? (available / total) * 100 : 0
  const status =
    limit !== undefined && percent < limit ? 'failed' : warn !== undefined && percent < warn ? 'warning' : 'ok'
  const said = `${show(floorTenth(percent), 'percent')} ${word} of ${showTotal(total)}`
  const bound =
    status === 'warning' || limit === undefined
      ? warn === undefined
        ? ''
        : ` (warns below ${show(warn, 'percent')})`
      : ` (limit ${show(limit, 'percent')})`
  return {
    check,
    status,
    message: `${said}${bound}`,
    ...(status === 'failed' ? { fault: 'threshold' as const } : {}),
    measurement: { value: percent, unit: 'percent', limit: limit ?? warn },
  }
}

/** Rounded down, so that 9.96 % never reads "10 % (limit 10 %)" on a failure. */
const floorTenth = (percent: number): number => Math.floor(percent * 10) / 10
