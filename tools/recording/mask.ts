import { fileURLToPath } from 'node:url'
import type { Result } from './shape.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Texts that differ with every run: ports, paths of temporary files, ids, process ids, dates, durations below a minute.
 */
const always: readonly (readonly [RegExp, string])[] = [
  [/(\/tmp\/[\w.-]*-)\w{6}\b/g, '$1<id>'],
  [/\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/gi, '<id>'],
  [/\b(?=[a-f]*\d)[\da-f]{12,}\b/gi, '<id>'],
  [/\bSHA256:[\w+/]{43}/g, 'SHA256:<key>'],
  [/\b(svc-probe-)[\w-]+/g, '$1<id>'],
  [/(?<=\b127\.0\.0\.1:|\bport )\d{4,5}\b|(?<=:)\d{5}\b/g, '<port>'],
  [/\b(pid |svc|svcself|svc-test-sleeper-)\d{2,}\b/g, '$1<pid>'],
  [/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC)?)?/g, '<date>'],
  [/\b\d\d:\d\d(?::\d\d)?(?= UTC\b)/g, '<time>'],
  [/(?<!\b(?:warn|fail|below) )\b\d+(?:\.\d+)? ms\b/g, '<short>'],
  [/(?<!\b(?:warn|fail|below|within) )\b[1-5]?\d(?:\.\d+)? s\b/g, '<short>'],
]

/** A value without what differs with every run. */
export function masked<T>(value: T): T {
  return JSON.parse(JSON.stringify(value), (key, part: unknown) => {
    if (key === 'port' && typeof part === 'number' && part > 10_000) return '<port>'
    if (typeof part !== 'string') return part
    return always.reduce((text, [pattern, mask]) => text.replace(pattern, mask), part.replaceAll(root, '<root>/'))
  }) as T
}

/** A result with its figure as coarse as two runs can agree on: no duration below a minute, else three digits. */
export function coarse(result: Result): Result {
  const { unit, value } = result
  if (unit === undefined || typeof value !== 'number') return result
  return {
    ...result,
    value:
      (unit === 'ms' || unit === 'milliseconds') && Math.abs(value) < 60_000 ? '<short>' : Number(value.toPrecision(3)),
  }
}

const figure =
  /<(?:short|port|pid|time)>|(?<!\b(?:warn|fail|below) )\b\d+(?:\.\d+)?(?: (?:ms|s|min|h|d|B|[KMGT]iB)\b)?/g

/** A result without the figures in which two runs of the same code may differ. Limits stay. */
export function withoutFigures(result: Result): Result {
  const { message, details, value } = result
  const text = (written: unknown): unknown => (typeof written === 'string' ? written.replace(figure, '#') : written)
  return {
    ...result,
    message: text(message),
    ...(Array.isArray(details) ? { details: details.map(text) } : {}),
    ...(value === undefined ? {} : { value: '#' }),
  }
}
