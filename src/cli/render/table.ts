import { sanitizeLine } from '../../core/base/sanitize.ts'
import { humanTime, usualZone } from '../../core/base/zone.ts'
import type { Screen } from '../io/io.ts'
import { type Paint, painter, type Style } from '../io/terminal.ts'
import { brokenWords, padEnd, width, wrap } from './width.ts'

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

/** Column widths that fit into `available`, or undefined when even the minimum widths do not. */
function fitted({ natural, least }: Widths, available: number, steps: Shrink): readonly number[] | undefined {
  const widths = [...natural]
  let over = widths.reduce((sum, each) => sum + each, 0) - available
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

/** Rows whose lines decide the widths of a longer list, spread over it. */
const sampleSize = 60
/** A word that is broken in its middle weighs as much as this many lines. */
const brokenWeight = 5
/** By how much a column gives way to another one in one step. */
const steps = [1, 2, 3, 5, 8, 13, 21] as const

/**
 * Widths of the same sum with which the rows take fewer lines and break fewer words, from those of `fitted`: columns
 * give width to others as long as that helps. `flexible` are the columns that may change.
 */
function balanced(
  widths: readonly number[],
  { natural, least }: Widths,
  flexible: readonly number[],
  rows: readonly (readonly TableCell[])[],
): { readonly widths: readonly number[]; readonly broken: number } {
  const every = Math.ceil(rows.length / sampleSize)
  const withLongWord = new Set(flexible.map((at) => rowOfLongestWord(rows, at)))
  const sample = rows.filter((_, at) => at % every === 0 || withLongWord.has(at))
  const measured = new Map<string, { readonly heights: readonly number[]; readonly broken: number }>()
  const measure = (at: number, columns: number) => {
    const key = `${at} ${columns}`
    const before = measured.get(key)
    if (before) return before
    const cells = sample.map((row) => row[at] ?? [])
    const made = {
      heights: cells.map((cell) => cell.reduce((sum, line) => sum + wrapped(line, columns).length, 0)),
      broken: cells.flat().reduce((sum, line) => sum + brokenWords(line.text, columns - (line.inset ?? 0)), 0),
    }
    measured.set(key, made)
    return made
  }
  const brokenIn = (all: readonly number[]): number => all.reduce((sum, size, at) => sum + measure(at, size).broken, 0)
  const cost = (all: readonly number[]): number =>
    brokenIn(all) * brokenWeight +
    sample.reduce((sum, _, y) => sum + Math.max(...all.map((size, at) => measure(at, size).heights[y] ?? 0)), 0)
  const floor = (at: number): number => Math.max(least[at] ?? 0, Math.min(natural[at] ?? 0, leastBalanced))
  let best = { widths, cost: cost(widths) }
  for (;;) {
    const from = best
    for (const giver of flexible) {
      for (const taker of flexible) {
        for (const step of steps) {
          const moved = Math.min(step, (natural[taker] ?? 0) - (from.widths[taker] ?? 0))
          if (giver === taker || moved <= 0 || (from.widths[giver] ?? 0) - moved < floor(giver)) continue
          const candidate = from.widths
            .with(giver, (from.widths[giver] ?? 0) - moved)
            .with(taker, (from.widths[taker] ?? 0) + moved)
          const candidateCost = cost(candidate)
          if (candidateCost < best.cost) best = { widths: candidate, cost: candidateCost }
        }
      }
    }
    if (best === from) return { widths: best.widths, broken: brokenIn(best.widths) }
  }
}

/** The row that has the longest word of a column, which a sample may miss. */
function rowOfLongestWord(rows: readonly (readonly TableCell[])[], at: number): number {
  const sizes = rows.map((row) =>
    Math.max(0, ...(row[at] ?? []).flatMap(({ text }) => text.split(' ').map((word) => word.length))),
  )
  return sizes.indexOf(Math.max(...sizes))
}

/** No column becomes narrower than this for the sake of another one, unless its content is. */
const leastBalanced = 9

export type Table = {
  readonly lines: readonly string[]
  readonly width: number
  /** How many words are broken in their middle. Only counted with `balance`. */
  readonly broken?: number
}

/**
 * A table without borders, with wrapped text. Undefined when it does not fit at all, so that the caller can choose
 * another layout. The last column is not padded.
 */
export function table(
  columns: readonly TableColumn[],
  rows: readonly (readonly TableCell[])[],
  options: {
    readonly width: number
    readonly shrink: Shrink
    readonly paint: Paint
    /** Whether the columns that shrink share the width so that the rows take few lines. */
    readonly balance?: boolean
  },
): Table | undefined {
  const natural = columns.map(({ title }, at) =>
    rows.reduce((most, row) => Math.max(most, cellWidth(row[at] ?? [])), width(title)),
  )
  const least = columns.map((column) => Math.max(width(column.title), column.least ?? 0))
  for (const gap of gaps) {
    const available = options.width - indent - gap * (columns.length - 1)
    const first = fitted({ natural, least }, available, options.shrink)
    if (!first) continue
    const flexible = [...new Set(options.shrink.flatMap((step) => step.columns))]
    const { widths, broken } = options.balance
      ? balanced(first, { natural, least }, flexible, rows)
      : { widths: first, broken: 0 }
    // The smaller gap may leave room for a whole word.
    if (broken > 0 && gap !== gaps.at(-1)) continue
    const title = columns.map((column) => [{ text: column.title, style: 'dim' as const }])
    const laidOut = columns.map(({ align }, at) => ({ align, width: widths[at] ?? 1 }))
    const lines = [title, ...rows].flatMap((row) => rowLines(row, laidOut, gap, options.paint))
    const all = indent + widths.reduce((sum, each) => sum + each, 0) + gap * (columns.length - 1)
    return { lines, width: all, ...(options.balance ? { broken } : {}) }
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
  const available = Math.max(16, (screen.columns || 80) - left - 5)
  return present
    .flatMap(({ name, cell }) =>
      cell
        .flatMap((line) => wrapped(line, available))
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

/** A sentence of ours: wrapped on a terminal, unchanged in a pipe. */
export const paragraph = (text: string, screen: Screen): string =>
  screen.isTTY ? wrap(text, screen.columns || 80).join('\n') : text

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

/** `2026-11-21 02:42 UTC`: what documents and records have. */
export const utcMoment = (at: Date): string => humanTime(at.getTime(), { zone: usualZone, to: 'minute' })

/** `2026-11-21 03:42 +01:00`: on the clock of whoever reads it. */
export const moment = (at: Date): string => humanTime(at.getTime(), { to: 'minute' })
export const day = (date: Date): string => date.toISOString().slice(0, 10)
