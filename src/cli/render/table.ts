import type { Paint, Style } from '../colour.ts'
import { padEnd, width, wrap } from './width.ts'

export type Line = {
  readonly text: string
  readonly style?: Style | undefined
  /** Columns that the line stands in from the left. */
  readonly inset?: number
}
/** A cell is one or more lines; each is wrapped to the column. */
export type Cell = readonly Line[]
export type Column = { readonly title: string }

/** Which columns give up room, in this order, and down to what; the widest of a step gives first. */
export type Shrink = readonly { readonly columns: readonly number[]; readonly least: number }[]

const gaps = [3, 2] as const
const indent = 2

/** Column widths that fit into `room`, or undefined when even the narrowest do not. */
function fitted(natural: readonly number[], room: number, steps: Shrink): readonly number[] | undefined {
  const widths = [...natural]
  let over = widths.reduce((sum, each) => sum + each, 0) - room
  for (const { columns, least } of steps) {
    while (over > 0) {
      const widest = columns.reduce((a, b) => ((widths[b] ?? 0) > (widths[a] ?? 0) ? b : a))
      const now = widths[widest] ?? 0
      if (now <= least) break
      widths[widest] = now - 1
      over -= 1
    }
  }
  return over > 0 ? undefined : widths
}

export type Table = { readonly lines: readonly string[]; readonly width: number }

/**
 * A table without borders, its text wrapped so that it fits; undefined when it does not fit at all
 * and the caller should lay it out another way. The last column is not padded.
 */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  options: { readonly width: number; readonly shrink: Shrink; readonly paint: Paint },
): Table | undefined {
  const natural = columns.map((column, at) =>
    rows.reduce((most, row) => Math.max(most, cellWidth(row[at] ?? [])), width(column.title)),
  )
  for (const gap of gaps) {
    const widths = fitted(natural, options.width - indent - gap * (columns.length - 1), options.shrink)
    if (!widths) continue
    const title = columns.map((column) => [{ text: column.title, style: 'dim' as const }])
    const lines = [title, ...rows].flatMap((row) => rowLines(row, widths, gap, options.paint))
    return { lines, width: indent + widths.reduce((sum, each) => sum + each, 0) + gap * (columns.length - 1) }
  }
  return undefined
}

const cellWidth = (cell: Cell): number =>
  cell.reduce((most, line) => Math.max(most, width(line.text) + (line.inset ?? 0)), 0)

function wrapped(line: Line, columns: number): readonly Line[] {
  const inset = Math.min(line.inset ?? 0, columns - 1)
  return wrap(line.text, columns - inset).map((text) => ({ text: ' '.repeat(inset) + text, style: line.style }))
}

function rowLines(row: readonly Cell[], widths: readonly number[], gap: number, paint: Paint): readonly string[] {
  const cells = row.map((cell, at) => cell.flatMap((line) => wrapped(line, widths[at] ?? 1)))
  const height = Math.max(1, ...cells.map((cell) => cell.length))
  return Array.from({ length: height }, (_, y) => {
    const parts = cells.map((cell, at) => {
      const { text, style } = cell[y] ?? { text: '', style: undefined }
      const last = at === cells.length - 1
      // Painted before it is padded, so that no style runs on into the gap.
      return paint(style, text) + (last ? '' : padEnd('', (widths[at] ?? 0) - width(text) + gap))
    })
    return (' '.repeat(indent) + parts.join('')).trimEnd()
  })
}
