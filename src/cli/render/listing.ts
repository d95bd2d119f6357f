import { painter, type Style, useColour } from '../colour.ts'
import { safeLine } from '../safe-text.ts'
import { showsUnicode } from '../unicode.ts'
import { type Mark, marks, styles } from './marks.ts'
import { type Cell, type Shrink, table } from './table.ts'
import { padEnd, width, wrap } from './width.ts'

/** The stream that an answer goes to. */
export type Screen = { readonly isTTY?: boolean; readonly columns?: number }

/** A cell of a list: a text, or one with a style of its own. */
export type Shown = string | { readonly text: string; readonly style: Style }

const textOf = (shown: Shown): string => safeLine(typeof shown === 'string' ? shown : shown.text)
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
  return wrap(safeLine(sentence), (screen.columns || 80) - 2)
    .map((line, at) => `${at === 0 ? paint(styles[mark], sign) : ' '} ${paint('strong', line)}`)
    .join('\n')
}

/** What says less than the others: indented, and dim. */
export function aside(text: string, screen: Screen): string {
  const paint = painter(useColour(screen))
  return wrap(safeLine(text), (screen.columns || 80) - 2)
    .map((line) => `  ${paint('dim', line)}`)
    .join('\n')
}

/** What a pipe gets of a record: its cells between tabs, never cut (the text of each on one line). */
export const tabbed = (cells: readonly string[]): string => cells.map(safeLine).join('\t')

/** Role and permission names for people; one that could be misread stands in quotes. */
export const names = (list: readonly string[], none = 'none'): string =>
  list.length === 0
    ? none
    : list.map((name) => (/^[^\s,"']+$/u.test(name) ? safeLine(name) : JSON.stringify(safeLine(name)))).join(', ')

/** The same for scripts: a JSV list, as `--from-file` reads it. */
export const jsvNames = (list: readonly string[]): string =>
  `[${list.map((name) => (name === '' || /[":,{}[\]\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name)).join(',')}]`

/** `2026-11-21 02:42` in UTC, for people. */
export const moment = (date: Date): string => `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`
export const day = (date: Date): string => date.toISOString().slice(0, 10)
