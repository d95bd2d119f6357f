import type { Line } from '../render/table.ts'
import type { ScreenRow } from './rows.ts'

/** Fewer rows than these do not get shorter as one. */
const leastEqual = 3
/** A duration as svc writes it. */
const duration = /\b\d+(?:\.\d+)? (?:ms|s|min|h|d)\b/g

/**
 * Makes one row of three or more that say the same about different monitors, at the place of the first. Durations may
 * differ: the row has the shortest and the longest. A failure keeps its own row: whoever is called has to see its name.
 */
export function foldEqual(rows: readonly ScreenRow[]): readonly ScreenRow[] {
  const groups = Map.groupBy(rows, keyOf)
  return [...groups.values()].flatMap((group) => (group.length < leastEqual ? group : [merged(group)]))
}

function keyOf(row: ScreenRow): unknown {
  if (row.mark === 'fail' || row.name === '') return row
  return JSON.stringify([row.mark, row.type, row.check, row.lines.map(({ text }) => text.replace(duration, '#'))])
}

function merged(rows: readonly ScreenRow[]): ScreenRow {
  const [first] = rows
  if (!first) throw new Error('no row to merge')
  return {
    ...first,
    name: `${rows.length} monitors`,
    monitors: rows.map(({ name }) => name),
    lines: first.lines.map((line, at) => mergedLine(line, rows, at)),
  }
}

/** The line with the range of each duration that differs. */
function mergedLine(line: Line, rows: readonly ScreenRow[], at: number): Line {
  const texts = rows.map(({ lines }) => lines[at]?.text.match(duration) ?? [])
  let index = -1
  const text = line.text.replace(duration, () => {
    index += 1
    return rangeOf(texts.map((durations) => durations[index] ?? ''))
  })
  return { ...line, text }
}

function rangeOf(durations: readonly string[]): string {
  const sorted = [...new Set(durations)].toSorted((a, b) => millisecondsOf(a) - millisecondsOf(b))
  const [shortest = '', ...longer] = sorted
  return longer.length === 0 ? shortest : `${shortest} to ${longer.at(-1)}`
}

const factors: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

function millisecondsOf(text: string): number {
  const [value = '', unit = ''] = text.split(' ')
  return Number(value) * (factors[unit] ?? 0)
}
