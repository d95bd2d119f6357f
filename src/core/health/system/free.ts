import { show, showBytes } from '../judge.ts'
import type { Finding } from '../monitor.ts'
import type { Threshold } from '../settings.ts'

/**
 * Judges what is left of a total in percent, and says both: `41 % free of 120 GiB (limit 10 %)`.
 * Fails below the limit, warns below `warn`; the boundary itself is ok.
 */
export function judgeFree(
  check: string,
  word: 'free' | 'available',
  { total, available }: { readonly total: number; readonly available: number },
  { warn, limit }: Threshold,
  showTotal: (total: number) => string = showBytes,
): Finding {
  const percent = total > 0 ? (available / total) * 100 : 0
  const level = limit !== undefined && percent < limit ? 'fail' : warn !== undefined && percent < warn ? 'warn' : 'ok'
  const said = `${show(floorTenth(percent), 'percent')} ${word} of ${showTotal(total)}`
  const bound =
    level === 'warn' || limit === undefined
      ? warn === undefined
        ? ''
        : ` (warns below ${show(warn, 'percent')})`
      : ` (limit ${show(limit, 'percent')})`
  return {
    check,
    level,
    message: `${said}${bound}`,
    ...(level === 'fail' ? { fault: 'threshold' as const } : {}),
    observed: percent,
    unit: '%',
    limit: limit ?? warn,
  }
}

/** Rounded down, so that 9.96 % never reads "10 % (limit 10 %)" on a failure. */
const floorTenth = (percent: number): number => Math.floor(percent * 10) / 10
