import type { Every, ThresholdUnit } from './setting.ts'

/** Reads and writes values with units as in svc.yaml. The base units are those of `Threshold`. */
const durationUnits = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
// A megabyte is 2^20 bytes throughout svc, with or without the "i".
const byteUnits = {
  B: 1,
  KB: 1024,
  KiB: 1024,
  MB: 1024 ** 2,
  MiB: 1024 ** 2,
  GB: 1024 ** 3,
  GiB: 1024 ** 3,
  TB: 1024 ** 4,
  TiB: 1024 ** 4,
} as const

const durationPattern = /^[0-9]{1,12}([.][0-9]{1,6})? ?(ms|s|m|h|d)$/
const bytesPattern = /^[0-9]{1,12}([.][0-9]{1,6})? ?(B|KB|KiB|MB|MiB|GB|GiB|TB|TiB)$/
const percentPattern = /^[0-9]{1,12}([.][0-9]{1,6})? ?%$/
/** The same patterns, for the JSON Schema. */
export const writtenAs = {
  duration: durationPattern.source,
  bytes: bytesPattern.source,
  percent: percentPattern.source,
} as const

/**
 * `250ms`, `5s`, `2m`, `48h`, `30d` → milliseconds.
 *
 * @example
 * ```ts
 * parseDuration('2m') // 120000
 * parseDuration('5') // undefined
 * ```
 */
export const parseDuration = (written: string): number | undefined =>
  scaled(written, durationPattern, durationUnits as Readonly<Record<string, number>>)

/**
 * `512B`, `64KiB`, `10GB` → bytes.
 *
 * @example
 * ```ts
 * parseBytes('64MiB') // 67108864
 * ```
 */
export const parseBytes = (written: string): number | undefined => {
  const bytes = scaled(written, bytesPattern, byteUnits as Readonly<Record<string, number>>)
  return bytes === undefined ? undefined : Math.round(bytes)
}

/**
 * `80%` → 80.
 *
 * @example
 * ```ts
 * parsePercent('80%') // 80
 * ```
 */
export const parsePercent = (written: string): number | undefined =>
  percentPattern.test(written) ? Number.parseFloat(written) : undefined

function scaled(written: string, pattern: RegExp, units: Readonly<Record<string, number>>): number | undefined {
  const unit = pattern.exec(written)?.[2]
  const factor = unit === undefined ? undefined : units[unit]
  return factor === undefined ? undefined : Number.parseFloat(written) * factor
}

/**
 * Formats milliseconds for svc.yaml, in the largest unit that needs no fraction.
 *
 * @example
 * ```ts
 * writeDuration(90_000) // '90s'
 * ```
 */
export const writeDuration = (ms: number): string => {
  const unit = (['d', 'h', 'm', 's'] as const).find((name) => ms !== 0 && ms % durationUnits[name] === 0) ?? 'ms'
  return `${ms / durationUnits[unit]}${unit}`
}

/**
 * Formats bytes for svc.yaml.
 *
 * @example
 * ```ts
 * writeBytes(1_048_576) // '1MiB'
 * ```
 */
export const writeBytes = (bytes: number): string => {
  const unit = (['TiB', 'GiB', 'MiB', 'KiB'] as const).find((name) => bytes !== 0 && bytes % byteUnits[name] === 0)
  return unit === undefined ? `${bytes}B` : `${bytes / byteUnits[unit]}${unit}`
}

/**
 * Formats a value of a threshold's unit for svc.yaml.
 *
 * @example
 * ```ts
 * writeFigure(80, 'percent') // '80%'
 * ```
 */
export function writeFigure(value: number, unit: ThresholdUnit): string {
  if (unit === 'duration') return writeDuration(value)
  if (unit === 'bytes') return writeBytes(value)
  return unit === 'percent' ? `${value}%` : unit === 'days' ? `${value}d` : String(value)
}

/** `1m`, `{Standard: 1m, Advanced: 1h}` or `off`, as in svc.yaml. */
export function writeEvery(every: Every): string {
  if (every === 'off') return every
  const written = (['Basic', 'Standard', 'Advanced'] as const).flatMap((mode) => {
    const interval = every[mode]
    if (interval === undefined) return []
    return [`${mode}: ${interval === 'off' ? interval : writeDuration(interval)}`]
  })
  return `{${written.join(', ')}}`
}
