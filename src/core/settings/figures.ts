import type { Threshold, ThresholdUnit } from './setting.ts'
import { parseBytes, parseDuration, parsePercent, writeFigure } from './units.ts'
import { type At, isMap, type Of, told, unknownKey } from './validation-context.ts'

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
