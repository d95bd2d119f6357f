import { sanitizeLine } from '../../core/sanitize.ts'
import { type Paint, painter, type Style, showsUnicode, useColour } from '../terminal.ts'
import { padEnd, width, wrap } from './width.ts'

export type Mark = 'ok' | 'warn' | 'fail'

/** The signs of the screen. The words beside them carry the meaning; these are for the eye. */
export type Marks = Readonly<Record<Mark, string>> & { readonly dot: string; readonly more: string }

export const marks = (unicode: boolean): Marks =>
  unicode
    ? { ok: '✓', warn: '!', fail: '✗', dot: '·', more: '…' }
    : { ok: '+', warn: '!', fail: 'x', dot: '-', more: '...' }

export const words: Readonly<Record<Mark, string>> = { ok: 'ok', warn: 'warn', fail: 'FAIL' }
export const styles: Readonly<Record<Mark, Style>> = { ok: 'good', warn: 'caution', fail: 'bad' }

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

/** The stream that an answer goes to. */
export type Screen = { readonly isTTY?: boolean; readonly columns?: number }

/** A cell of a list: a text, or one with a style of its own. */
export type Shown = string | { readonly text: string; readonly style: Style }

const textOf = (shown: Shown): string => sanitizeLine(typeof shown === 'string' ? shown : shown.text)
const styleOf = (shown: Shown): Style | undefined => (typeof shown === 'string' ? undefined : shown.style)
const cell = (shown: Shown): Cell => [{ text: textOf(shown), style: styleOf(shown) }]

export type Columns = {
  readonly titles: readonly string[]
  /** Which columns give up room on a narrow terminal, the first first. */
  readonly yielding: readonly number[]
}

/** A table on a terminal; where it is too narrow for one, a block a record. */
export function listing({ titles, yielding }: Columns, rows: readonly (readonly Shown[])[], screen: Screen): string {
  const paint = painter(useColour(screen))
  const room = screen.columns || 80
  const shrink: Shrink = [18, 9].flatMap((least) => yielding.map((column) => ({ columns: [column], least })))
  const columns = titles.map((title) => ({ title }))
  const drawn = table(
    columns,
    rows.map((row) => row.map(cell)),
    { width: room, shrink, paint },
  )
  if (drawn) return drawn.lines.join('\n')
  return rows
    .map((row) =>
      pairs(
        row.flatMap((shown, at) => (textOf(shown) === '' ? [] : [[(titles[at] ?? '').toLowerCase(), shown] as const])),
        screen,
      ),
    )
    .join('\n\n')
}

/** Names and values, the values aligned and wrapped. Lines without a value are left out. */
export function pairs(lines: readonly (readonly [name: string, value: Shown])[], screen: Screen): string {
  const paint = painter(useColour(screen))
  const given = lines.filter(([, value]) => textOf(value) !== '')
  const left = Math.max(...given.map(([name]) => width(name)))
  const room = Math.max(16, (screen.columns || 80) - left - 5)
  return given
    .flatMap(([name, value]) =>
      wrap(textOf(value), room).map((line, at) => {
        return `  ${paint('dim', padEnd(at === 0 ? name : '', left))}   ${paint(styleOf(value), line)}`
      }),
    )
    .join('\n')
}

/** The first line of an answer: a sign and a sentence. */
export function headline(mark: Mark, sentence: string, screen: Screen): string {
  const paint = painter(useColour(screen))
  const sign = marks(showsUnicode(process.env, process.platform))[mark]
  return wrap(sanitizeLine(sentence), (screen.columns || 80) - 2)
    .map((line, at) => `${at === 0 ? paint(styles[mark], sign) : ' '} ${paint('strong', line)}`)
    .join('\n')
}

/** What says less than the others: indented, and dim. */
export function aside(text: string, screen: Screen): string {
  const paint = painter(useColour(screen))
  return wrap(sanitizeLine(text), (screen.columns || 80) - 2)
    .map((line) => `  ${paint('dim', line)}`)
    .join('\n')
}

/** What a pipe gets of a record: its cells between tabs, never cut (the text of each on one line). */
export const tabbed = (cells: readonly string[]): string => cells.map(sanitizeLine).join('\t')

/** Role and permission names for people; one that could be misread stands in quotes. */
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

/** Milliseconds for people: `14 ms`, `1.28 s`, `2.5 min`, `3 h`, `4 d`. */
export function showDuration(ms: number): string {
  const rounded = (value: number, digits: number): number => Number(value.toFixed(digits))
  if (ms < 999.5) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 59_995) return `${rounded(ms / 1_000, 2)} s`
  if (ms < 3_597_000) return `${rounded(ms / 60_000, 1)} min`
  if (ms < 48 * 3_600_000) return `${rounded(ms / 3_600_000, 1)} h`
  return `${rounded(ms / 86_400_000, 1)} d`
}
