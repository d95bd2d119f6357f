import type { Line, Mark } from '../render/table.ts'
import { cut, padEnd, width, wrap } from '../render/width.ts'
import { type Look, sign } from './text.ts'

/** One line on the screen: a sign, whose it is, and what to say. */
export type ScreenRow = {
  /** `idle`: it did not run, because something else failed. */
  readonly mark: Mark | 'idle'
  readonly type: string
  readonly name: string
  readonly check: string
  readonly lines: readonly Line[]
  /** How many monitors it stands for. Absent: one. */
  readonly monitors?: number
  /** Figures that fill the rest of one line, the most telling first. */
  readonly figures?: readonly string[]
}

/** The least room for messages beside the names. */
const leastBeside = 30

/** The rows on the screen, and how far their signs are from its left side. */
export type Layout = { readonly lines: readonly string[]; readonly indent: number }

/** The rows in columns or, on a narrow terminal, one below the other. */
export function layOut(rows: readonly ScreenRow[], look: Look): Layout {
  const lines = beside(rows, look)
  return lines ? { lines, indent: 2 } : { lines: below(rows, look), indent: 0 }
}

type Columns = { readonly types: number; readonly names: number; readonly checks: number; readonly texts: number }

/** The rows in columns, or undefined when the terminal is too narrow for them. */
function beside(rows: readonly ScreenRow[], look: Look): readonly string[] | undefined {
  const room = look.width - 4
  // Messages get half of the terminal, or less where names then fit without more lines.
  const choices = [Math.floor(room / 2), leastBeside].flatMap((least) => {
    const columns = columnsFor(rows, room, Math.min(room, Math.max(leastBeside, least)))
    return columns ? [inColumns(rows, columns, look)] : []
  })
  const fewest = Math.min(...choices.map((lines) => lines.length))
  return choices.findLast((lines) => lines.length === fewest)
}

/** Divides `room` among the columns so that `least` columns remain for messages. Undefined if they cannot. */
function columnsFor(rows: readonly ScreenRow[], room: number, least: number): Columns | undefined {
  const widest = (text: (row: ScreenRow) => string): number =>
    rows.reduce((most, row) => Math.max(most, width(text(row))), 0)
  const types = widest((row) => row.type)
  const natural = { name: widest((row) => row.name), check: widest((row) => row.check) }
  const gaps = types > 0 ? 6 : 4
  const over = Math.max(0, types + natural.name + natural.check + gaps + least - room)
  const names = Math.max(Math.min(14, natural.name), natural.name - Math.ceil(over / 2))
  const checks = Math.max(Math.min(12, natural.check), natural.check - Math.max(0, over - (natural.name - names)))
  const texts = room - types - names - checks - gaps
  return texts < Math.min(leastBeside, room) ? undefined : { types, names, checks, texts }
}

const inColumns = (
  rows: readonly ScreenRow[],
  { types, names, checks, texts }: Columns,
  look: Look,
): readonly string[] =>
  rows.flatMap((row) => {
    const name = wrap(row.name, names)
    const check = wrap(row.check, checks)
    const text = textOf(row, texts, look)
    const height = Math.max(1, name.length, check.length, text.length)
    return Array.from({ length: height }, (_, at) => {
      const cells = [
        ...(types > 0 ? [padEnd(at === 0 ? row.type : '', types)] : []),
        padEnd(name[at] ?? '', names),
        padEnd(check[at] ?? '', checks),
      ].join('  ')
      const line = text[at]
      return `  ${at === 0 ? rowSign(row, look) : ' '} ${cells}  ${line ? look.paint(line.style, line.text) : ''}`.trimEnd()
    })
  })

/** The rows one below the other, for narrow terminals. */
function below(rows: readonly ScreenRow[], look: Look): readonly string[] {
  const room = look.width - 2
  return rows.flatMap((row) => {
    const title = [row.type, row.name, row.check].filter(Boolean).join(' ')
    const text = textOf(row, look.width - 4, look)
    const first = wrap(title, room).map((line, at) => `${at === 0 ? rowSign(row, look) : ' '} ${line}`.trimEnd())
    return [...(title === '' ? [] : first), ...text.map((line) => `    ${look.paint(line.style, line.text)}`.trimEnd())]
  })
}

/** The text of a row in lines of at most `columns`. */
function textOf(row: ScreenRow, columns: number, look: Look): readonly Line[] {
  if (row.figures) return [{ text: fittingFigures(row.figures, columns, look) }]
  return row.lines.flatMap(({ text, style, inset: by = 0 }) => {
    const indent = Math.min(by, columns - 1)
    return wrap(text, Math.max(1, columns - indent)).map((line) => ({ text: ' '.repeat(indent) + line, style }))
  })
}

/** As many figures as one line has room for, in their order. */
function fittingFigures(figures: readonly string[], columns: number, { marks }: Look): string {
  const gap = ` ${marks.dot} `
  const [first = '', ...others] = figures
  let text = cut(first, columns, marks.more)
  for (const figure of others) {
    if (width(text) + width(gap) + width(figure) <= columns) text += gap + figure
  }
  return text
}

/** A row about checks that are well, beneath one that is not, has no sign of its own. */
function rowSign({ mark, type, name, check }: ScreenRow, look: Look): string {
  if (type + name + check === '') return ' '
  return mark === 'idle' ? look.paint('dim', look.marks.dot) : sign(mark, look)
}
