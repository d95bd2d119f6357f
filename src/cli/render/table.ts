import { sanitizeLine } from '../../core/sanitize.ts'
import type { Screen } from '../io/io.ts'
import { type Paint, painter, type Style } from '../io/terminal.ts'
import { padEnd, width, wrap } from './width.ts'

export type Mark = 'ok' | 'warn' | 'not checked' | 'fail'

/** The signs shown on a terminal. The words beside them carry the meaning. */
export type Marks = Readonly<Record<Mark, string>> & { readonly dot: string; readonly more: string }

export const marks = (unicode: boolean): Marks =>
  unicode
    ? { ok: '✓', warn: '!', 'not checked': '?', fail: '✗', dot: '·', more: '…' }
    : { ok: '+', warn: '!', 'not checked': '?', fail: 'x', dot: '-', more: '...' }

export const styles: Readonly<Record<Mark, Style>> = {
  ok: 'good',
  warn: 'caution',
  'not checked': 'caution',
  fail: 'bad',
}

export type Line = {
  readonly text: string
  readonly style?: Style | undefined
  /** Indentation of the line, in columns. */
  readonly inset?: number
}
/** The lines of a cell. Each is wrapped to the column. */
export type TableCell = readonly Line[]
export type TableColumn = {
  readonly title: string
  readonly align?: 'right' | undefined
  /** The minimum width in terminal columns. A column is never narrower than its title. */
  readonly least?: number | undefined
}

/** Which columns shrink, in this order, and to what width. Within a step, the widest shrinks first. */
export type Shrink = readonly { readonly columns: readonly number[]; readonly least: number }[]

const gaps = [3, 2] as const
const indent = 2

type Widths = {
  readonly natural: readonly number[]
  /** The minimum width of each column: titles are never broken. */
  readonly least: readonly number[]
}

/** Column widths that fit into `room`, or undefined when even the minimum widths do not. */
function fitted({ natural, least }: Widths, room: number, steps: Shrink): readonly number[] | undefined {
  const widths = [...natural]
  let over = widths.reduce((sum, each) => sum + each, 0) - room
  for (const step of steps) {
    const spare = (at: number): number => (widths[at] ?? 0) - Math.max(step.least, least[at] ?? 0)
    while (over > 0) {
      const shrinking = step.columns.filter((at) => spare(at) > 0)
      if (shrinking.length === 0) break
      const widest = shrinking.reduce((a, b) => ((widths[b] ?? 0) > (widths[a] ?? 0) ? b : a))
      widths[widest] = (widths[widest] ?? 0) - 1
      over -= 1
    }
  }
  return over > 0 ? undefined : widths
}

export type Table = { readonly lines: readonly string[]; readonly width: number }

/**
 * A table without borders, with wrapped text. Undefined when it does not fit at all, so that the caller can choose
 * another layout. The last column is not padded.
 */
export function table(
  columns: readonly TableColumn[],
  rows: readonly (readonly TableCell[])[],
  options: { readonly width: number; readonly shrink: Shrink; readonly paint: Paint },
): Table | undefined {
  const natural = columns.map(({ title }, at) =>
    rows.reduce((most, row) => Math.max(most, cellWidth(row[at] ?? [])), width(title)),
  )
  const least = columns.map((column) => Math.max(width(column.title), column.least ?? 0))
  for (const gap of gaps) {
    const widths = fitted({ natural, least }, options.width - indent - gap * (columns.length - 1), options.shrink)
    if (!widths) continue
    const title = columns.map((column) => [{ text: column.title, style: 'dim' as const }])
    const laidOut = columns.map(({ align }, at) => ({ align, width: widths[at] ?? 1 }))
    const lines = [title, ...rows].flatMap((row) => rowLines(row, laidOut, gap, options.paint))
    return { lines, width: indent + widths.reduce((sum, each) => sum + each, 0) + gap * (columns.length - 1) }
  }
  return undefined
}

const cellWidth = (cell: TableCell): number =>
  cell.reduce((most, line) => Math.max(most, width(line.text) + (line.inset ?? 0)), 0)

function wrapped(line: Line, columns: number): readonly Line[] {
  const inset = Math.max(0, Math.min(line.inset ?? 0, columns - 1))
  return wrap(line.text, columns - inset).map((text) => ({ text: ' '.repeat(inset) + text, style: line.style }))
}

type LaidOut = Pick<TableColumn, 'align'> & { readonly width: number }

function rowLines(
  row: readonly TableCell[],
  columns: readonly LaidOut[],
  gap: number,
  paint: Paint,
): readonly string[] {
  const cells = row.map((cell, at) => cell.flatMap((line) => wrapped(line, columns[at]?.width ?? 1)))
  const height = Math.max(1, ...cells.map((cell) => cell.length))
  return Array.from({ length: height }, (_, y) => {
    const parts = columns.map((column, at) => {
      const { text, style } = cells[at]?.[y] ?? { text: '', style: undefined }
      const padding = ' '.repeat(Math.max(0, column.width - width(text)))
      // Styled before padding, so that the style does not extend into the gap.
      const painted = paint(style, text)
      const aligned = column.align === 'right' ? padding + painted : painted + padding
      return at === columns.length - 1 ? aligned : aligned + ' '.repeat(gap)
    })
    return (' '.repeat(indent) + parts.join('')).trimEnd()
  })
}

/** Text of a list: plain, or with a style. */
export type StyledText = string | Line

/** The content of a cell: one line, or several below each other. Each wraps. */
export type CellText = StyledText | readonly StyledText[]

/** Names and what stands beside them. A name without a value is left out. */
export type FactRows = readonly (readonly [name: string, value: CellText])[]

/** The lines of a cell. The text may come from anyone, so it is sanitized here. */
export function cellOf(content: CellText): TableCell {
  const lines: StyledText[] = []
  return lines
    .concat(content)
    .map((line) => (typeof line === 'string' ? { text: line } : line))
    .map((line) => ({ ...line, text: sanitizeLine(line.text) }))
}

export const isEmptyCell = (cell: TableCell): boolean => cell.every(({ text }) => text === '')

/** Names and values, the values aligned and wrapped. A name without a value is left out. */
export function pairs(rows: readonly (readonly [name: string, value: CellText])[], screen: Screen): string {
  const paint = painter(screen.colour)
  const present = rows.map(([name, value]) => ({ name, cell: cellOf(value) })).filter(({ cell }) => !isEmptyCell(cell))
  const left = Math.max(...present.map(({ name }) => width(name)))
  const room = Math.max(16, (screen.columns || 80) - left - 5)
  return present
    .flatMap(({ name, cell }) =>
      cell
        .flatMap((line) => wrapped(line, room))
        .map(({ text, style }, at) => `  ${paint('dim', padEnd(at === 0 ? name : '', left))}   ${paint(style, text)}`),
    )
    .join('\n')
}

/** Names and values, one per line, the same on a terminal and in a pipe. A name without a value is left out. */
export const factLines = (facts: readonly (readonly [name: string, value: string | undefined])[]): string =>
  facts.flatMap(([name, value]) => (value ? [`${name.padEnd(12)} ${sanitizeLine(value)}`] : [])).join('\n')

/** The first line of an answer: a sign and a sentence. */
export function headline(mark: Mark, sentence: string, screen: Screen): string {
  const paint = painter(screen.colour)
  const sign = marks(screen.unicode)[mark]
  return wrap(sanitizeLine(sentence), (screen.columns || 80) - 2)
    .map((line, at) => `${at === 0 ? paint(styles[mark], sign) : ' '} ${paint('strong', line)}`)
    .join('\n')
}

/** Secondary text: indented and dim. */
export function aside(text: string, screen: Screen): string {
  const paint = painter(screen.colour)
  return wrap(sanitizeLine(text), (screen.columns || 80) - 2)
    .map((line) => `  ${paint('dim', line)}`)
    .join('\n')
}

/** Role and permission names for people; a name that could be misread is quoted. */
export const names = (list: readonly string[], none = 'none'): string =>
  list.length === 0
    ? none
    : list
        .map((name) => (/^[^\s,"']+$/u.test(name) ? sanitizeLine(name) : JSON.stringify(sanitizeLine(name))))
        .join(', ')

/** The same for scripts: a JSV list, as `--from-file` reads it. */
export const jsvNames = (list: readonly string[]): string =>
  `[${list.map((name) => (name === '' || /[":,{}[\]\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name)).join(',')}]`

/** `2026-11-21 02:42` in UTC, for people. */
export const moment = (date: Date): string => `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`
export const day = (date: Date): string => date.toISOString().slice(0, 10)
