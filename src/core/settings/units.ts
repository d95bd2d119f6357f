import type { Threshold, ThresholdUnit } from './setting.ts'
import { type At, isMap, type Of, told, unknownKey } from './validation-context.ts'

/** How figures are written in svc.yaml, both ways. The base units are those of `Threshold`. */
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

/** `250ms`, `5s`, `2m`, `48h`, `30d` → milliseconds. */
export const parseDuration = (written: string): number | undefined =>
  scaled(written, durationPattern, durationUnits as Readonly<Record<string, number>>)

/** `512B`, `64KiB`, `10GB` → bytes. */
export const parseBytes = (written: string): number | undefined => {
  const bytes = scaled(written, bytesPattern, byteUnits as Readonly<Record<string, number>>)
  return bytes === undefined ? undefined : Math.round(bytes)
}

/** `80%` → 80. */
export const parsePercent = (written: string): number | undefined =>
  percentPattern.test(written) ? Number.parseFloat(written) : undefined

function scaled(written: string, pattern: RegExp, units: Readonly<Record<string, number>>): number | undefined {
  const unit = pattern.exec(written)?.[2]
  const factor = unit === undefined ? undefined : units[unit]
  return factor === undefined ? undefined : Number.parseFloat(written) * factor
}

/** Milliseconds as svc.yaml writes them, in the largest unit that needs no fraction. */
export const writeDuration = (ms: number): string => {
  const unit = (['d', 'h', 'm', 's'] as const).find((name) => ms !== 0 && ms % durationUnits[name] === 0) ?? 'ms'
  return `${ms / durationUnits[unit]}${unit}`
}

/** Bytes as svc.yaml writes them. */
export const writeBytes = (bytes: number): string => {
  const unit = (['TiB', 'GiB', 'MiB', 'KiB'] as const).find((name) => bytes !== 0 && bytes % byteUnits[name] === 0)
  return unit === undefined ? `${bytes}B` : `${bytes / byteUnits[unit]}${unit}`
}

/** A value of a threshold's unit, as svc.yaml writes it. */
export function writeFigure(value: number, unit: ThresholdUnit): string {
  if (unit === 'duration') return writeDuration(value)
  if (unit === 'bytes') return writeBytes(value)
  return unit === 'percent' ? `${value}%` : unit === 'days' ? `${value}d` : String(value)
}

/** A threshold in base units: `{warn, limit}`, a bare limit, or `off`. */
export function readThreshold(given: unknown, setting: Of<'threshold'>, at: At): Threshold | undefined {
  if (given === 'off') return {}
  if (!isMap(given)) return { limit: readFigure(given, setting.unit, at) }
  // Half of a threshold keeps the other half's default: to move a warning is not to lose the limit.
  const both = setting.default ?? {}
  for (const key of Object.keys(given)) {
    if (key !== 'warn' && key !== 'limit') at.in(key).wrong(unknownKey(key, ['warn', 'limit']))
  }
  const half = (name: 'warn' | 'limit'): number | undefined => {
    const written = Object.hasOwn(given, name) ? given[name] : undefined
    if (written === undefined) return both[name]
    return written === 'off' ? undefined : readFigure(written, setting.unit, at.in(name))
  }
  const read = { warn: half('warn'), limit: half('limit') }
  if ('warn' in given && 'limit' in given && crossed(read, both)) {
    return at.wrong('would fail before it warns: exchange warn and limit')
  }
  return read
}

/** Whether a threshold runs against the direction of its default. */
function crossed(read: Threshold, usual: Threshold): boolean {
  if (read.warn === undefined || read.limit === undefined) return false
  if (usual.warn === undefined || usual.limit === undefined) return false
  return (read.limit - read.warn) * (usual.limit - usual.warn) < 0
}

const examples: Record<ThresholdUnit, string> = {
  duration: '250ms, 5s, 2m, 48h or 30d',
  bytes: '512B, 64KiB, 512MB or 10GB',
  percent: '80% or 80',
  days: '20 or 20d',
  count: '100',
  ratio: '0.5',
}
const longest = 10 * 365 * 86_400_000

/** A duration in ms, bytes, percent, days, a count or a ratio, as written in svc.yaml. */
export function readFigure(given: unknown, unit: ThresholdUnit, at: At): number | undefined {
  const bare = typeof given === 'number'
  if (bare && (unit === 'duration' || unit === 'bytes')) {
    const [first, second] = unit === 'duration' ? ['s', 'ms'] : ['KiB', 'MB']
    return at.wrong(`is ${given}, without a unit: write ${given}${first} or ${given}${second}`)
  }
  const value = bare ? given : typeof given === 'string' ? parsed(given, unit) : undefined
  if (value === undefined || !Number.isFinite(value) || value < 0) {
    return at.wrong(`must be written like ${examples[unit]}, not ${told(given)}`)
  }
  if (unit === 'duration' && value > longest) return at.wrong(`is longer than ${writeFigure(longest, unit)}: give less`)
  return value
}

function parsed(written: string, unit: ThresholdUnit): number | undefined {
  if (unit === 'duration') return parseDuration(written)
  if (unit === 'bytes') return parseBytes(written)
  if (unit === 'percent') return parsePercent(written)
  const ms = unit === 'days' ? parseDuration(written) : undefined
  return ms === undefined ? undefined : ms / 86_400_000
}
