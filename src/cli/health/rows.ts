import type { Line, Mark } from '../render/table.ts'
import { cut, padEnd, width, wrap } from '../render/width.ts'
import { type Look, type ScreenLine, sign } from './text.ts'

/** One line on the screen: a sign, whose it is, and what to say. */
export type ScreenRow = {
  /** `idle`: it did not run, because something else failed. */
  readonly mark: Mark | 'idle'
  readonly type: string
  readonly name: string
  readonly check: string
  readonly lines: readonly ScreenLine[]
  /** The names of the monitors, or of the types, that it stands for. Absent: it stands for one. */
  readonly names?: readonly string[]
  /** The unit of the names. Absent: monitors, or types if the row names none. */
  readonly unit?: 'servers'
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
  const available = look.width - 4
  // Messages get half of the terminal, or less where names then fit without more lines.
  const choices = [Math.floor(available / 2), leastBeside].flatMap((least) => {
    const columns = columnsFor(rows, available, Math.min(available, Math.max(leastBeside, least)))
    return columns ? [inColumns(rows, columns, look)] : []
  })
  const fewest = Math.min(...choices.map((lines) => lines.length))
  return choices.findLast((lines) => lines.length === fewest)
}

/** Divides `available` among the columns so that `least` columns remain for messages. Undefined if they cannot. */
function columnsFor(rows: readonly ScreenRow[], available: number, least: number): Columns | undefined {
  const widest = (text: (row: ScreenRow) => string): number =>
    rows.reduce((most, row) => Math.max(most, width(text(row))), 0)
  const types = widest((row) => row.type)
  const natural = { name: widest((row) => row.name), check: widest((row) => row.check) }
  const gaps = types > 0 ? 6 : 4
  const over = Math.max(0, types + natural.name + natural.check + gaps + least - available)
  const names = Math.max(Math.min(14, natural.name), natural.name - Math.ceil(over / 2))
  const checks = Math.max(Math.min(12, natural.check), natural.check - Math.max(0, over - (natural.name - names)))
  const texts = available - types - names - checks - gaps
  return texts < Math.min(leastBeside, available) ? undefined : { types, names, checks, texts }
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
  const available = look.width - 2
  return rows.flatMap((row) => {
    const title = [row.type, row.name, row.check].filter(Boolean).join(' ')
    const text = textOf(row, look.width - 4, look)
    const first = wrap(title, available).map((line, at) => `${at === 0 ? rowSign(row, look) : ' '} ${line}`.trimEnd())
    return [...(title === '' ? [] : first), ...text.map((line) => `    ${look.paint(line.style, line.text)}`.trimEnd())]
  })
}

/** The text of a row in lines of at most `columns`. */
function textOf(row: ScreenRow, columns: number, look: Look): readonly Line[] {
  if (row.figures) return [{ text: fittingFigures(row.figures, columns, look) }]
  const lines = row.lines.flatMap(({ text, style, inset: by = 0 }) => {
    const indent = Math.min(by, columns - 1)
    return wrap(text, Math.max(1, columns - indent)).map((line) => ({ text: ' '.repeat(indent) + line, style }))
  })
  return row.names ? [...lines, ...nameLines(row, row.names, columns, look)] : lines
}

/** The lines that the names of monitors take, if one name leaves room for that. `-v` shows all names. */
const maxNameLines = 2
const maxNames = 20

/** As many names as the lines have room for, each in one piece, and how many more there are. */
function nameLines(row: ScreenRow, names: readonly string[], columns: number, { marks }: Look): readonly Line[] {
  const label = `${row.unit ?? (row.type === '' ? 'types' : 'monitors')}:`
  let lines: readonly string[] = []
  for (let count = Math.min(maxNames, names.length); count > 0; count -= 1) {
    const more = names.length - count
    const units = names.slice(0, count).map((name, at) => (at < count - 1 ? `${name},` : name))
    lines = joined([label, ...units, ...(more > 0 ? [`and ${more} more`] : [])], columns - 2)
    if (lines.length <= maxNameLines) break
  }
  return lines.map((line) => ({ text: cut(`  ${line}`, columns, marks.more), style: 'dim' }))
}

/** The units in lines, each unit whole. */
function joined(units: readonly string[], columns: number): readonly string[] {
  const lines: string[] = []
  for (const unit of units) {
    const longer = `${lines.at(-1)} ${unit}`
    if (lines.length > 0 && width(longer) <= columns) lines[lines.length - 1] = longer
    else lines.push(unit)
  }
  return lines
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
