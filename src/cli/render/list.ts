import { sanitizeLine } from '../../core/sanitize.ts'
import type { Screen } from '../io/io.ts'
import { painter } from '../io/terminal.ts'
import { repeatTargetFlags } from './hints.ts'
import {
  aside,
  type CellText,
  cellOf,
  day,
  headline,
  isEmptyCell,
  jsvNames,
  type Mark,
  names,
  pairs,
  type Shrink,
  type TableCell,
  table,
} from './table.ts'

/** One column of a list, declared once for its three forms: the terminal's table, a pipe's record, the JSON document. */
type Column<Row> = {
  /** The column's title in the table. Without it the table leaves the column out. */
  readonly title?: string
  /** What the table shows, where that is not the value itself. */
  readonly cell?: (row: Row) => CellText
  /**
   * In a table that is too wide, columns shrink in this order, starting at 1. Among columns with the same number, the
   * widest shrinks first.
   */
  readonly shrink?: number
  /** The minimum width in terminal columns. Sentences need more than the default of 9. */
  readonly least?: number
  readonly align?: 'right'
  /** Omits the column from a table in which every row has it empty. */
  readonly optional?: boolean
  /** Leaves a cell blank when it repeats the cell above it. */
  readonly once?: boolean
  /** The field's name in the record, if it is not the capitalized key. `false` for no field. */
  readonly field?: string | false
  /** The field's text, if it is not the text of the value. */
  readonly text?: (row: Row) => string
  /** `false` for no member in the JSON object. */
  readonly json?: false
  /**
   * `json`: a row without a value has no member in JSON, instead of null. `anywhere`: it has no field in its record
   * either.
   */
  readonly absent?: 'json' | 'anywhere'
} & (
  | { readonly key: keyof Row & string; readonly value?: undefined }
  | { readonly key: string; readonly value: (row: Row) => unknown }
)

type Declaration<Row, Columns extends readonly Column<Row>[], Place extends string> = {
  readonly columns: Columns
  /**
   * Values common to all rows, such as their store. The JSON document has them once, around the rows; every record
   * begins with them.
   */
  readonly around?: readonly Place[]
  /** The one of those shown beneath the headline. */
  readonly beneath?: NoInfer<Place>
  /** The member of the JSON document that holds the rows. Without it the document is the array of them. */
  readonly rows?: string
  /** The order of the members in JSON, if it differs from that of the columns. Scripts compare documents. */
  readonly members?: readonly NoInfer<Columns[number]['key']>[]
  /** The JSON of a row that is a document of its own instead of one made of the columns. */
  readonly json?: (row: Row) => object
  /** The headline over the rows: singular and plural of what they are, or a sentence. */
  readonly headline?:
    | readonly [one: string, many: string]
    | ((rows: readonly Row[], common: Common<NoInfer<Place>>) => Headline)
  /** What a terminal shows when there are no rows: a sentence, and the command that creates the first. */
  readonly empty?: { readonly sentence: string; readonly next?: string }
}

type Common<Place extends string> = Readonly<Record<Place, string>>

export type Headline = { readonly mark: Mark; readonly sentence: string }
export type ListOutput = {
  readonly json: boolean
  readonly screen: Screen
  /** The command line, whose target flags a suggested command repeats. */
  readonly argv?: readonly string[]
}

export type RecordList<Row, Place extends string> = {
  /** The names of a record's fields, in order. */
  readonly fields: readonly string[]
  /** Where each column appears: its title in the table, its field in the record, and whether it is a member in JSON. */
  readonly columns: readonly {
    readonly key: string
    readonly title: string | undefined
    readonly field: string | undefined
    readonly member: boolean
  }[]
  /** A row as `--json` shows it. */
  readonly json: (row: Row) => object
  /** A row as a pipe gets it: its fields between tabs, each on one line, never cut. */
  readonly record: (row: Row, around: Common<Place>) => string
  /** Only the rows, fitted to the terminal: a table, or a block for each row if the terminal is too narrow. */
  readonly table: (rows: readonly Row[], screen: Screen) => string
  /** The whole answer: one JSON value, records (an empty text for no rows), or headline and table. */
  readonly render: (
    rows: readonly Row[],
    around: Common<Place>,
    output: ListOutput & { readonly headline?: Headline },
  ) => string
  /** A single row for machines: one JSON object or a record. Undefined on a terminal. */
  readonly single: (row: Row, around: Common<Place>, output: ListOutput) => string | undefined
}

/**
 * Joins fields with tabs. Fields may contain text from anyone, so each is sanitized: it cannot end its line or begin
 * another field.
 */
export const record = (fields: readonly string[]): string => fields.map(sanitizeLine).join('\t')

const capital = (key: string): string => key.slice(0, 1).toUpperCase() + key.slice(1)
const fieldName = ({ key, field }: Pick<Column<unknown>, 'field'> & { readonly key: string }): string =>
  field || capital(key)

/** A value as a record shows it. */
function fieldText(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return jsvNames(value.map(String))
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A value as people read it. */
function plainText(value: unknown): string {
  if (value instanceof Date) return day(value)
  return Array.isArray(value) ? names(value.map(String), '') : fieldText(value)
}

/** The widths to which columns shrink: first every one to the first width, then to the next. */
const leastWidths = [18, 9]

type TableColumn = Pick<Column<unknown>, 'title' | 'align' | 'least' | 'shrink' | 'optional' | 'once'>

/** The rows as a table, or as a block for each if the terminal is too narrow. */
function layOut(columns: readonly TableColumn[], rows: readonly (readonly TableCell[])[], screen: Screen): string {
  const visible = columns.flatMap(({ title = '', ...column }, at) =>
    column.optional && rows.every((row) => isEmptyCell(row[at] ?? [])) ? [] : [{ ...column, title, at }],
  )
  const turns = [...new Set(visible.flatMap(({ shrink }) => shrink ?? []))].sort((a, b) => a - b)
  const shrink: Shrink = leastWidths.flatMap((least) =>
    turns.map((turn) => ({ columns: visible.flatMap((one, at) => (one.shrink === turn ? [at] : [])), least })),
  )
  const repeats = (y: number, at: number): boolean =>
    JSON.stringify(rows[y]?.[at]) === JSON.stringify(rows[y - 1]?.[at])
  const body = rows.map((row, y) => visible.map(({ once, at }) => (once && repeats(y, at) ? [] : (row[at] ?? []))))
  const asTable = table(visible, body, {
    width: screen.columns || 80,
    shrink,
    paint: painter(screen.colour),
    balance: true,
  })
  if (asTable && !asTable.broken) return asTable.lines.join('\n')
  const block = (row: readonly TableCell[]): string =>
    pairs(
      visible.map(({ title, at }) => [title.toLowerCase(), row[at] ?? []] as const),
      screen,
    )
  return rows.map(block).join('\n\n')
}

/**
 * Declares a list: `list<UserFacts>()({ columns: [...] })`. A key that the row does not have needs a `value`. A wrong
 * key, also in `members` or `beneath`, does not compile. The first call takes only the type of the rows, so that the
 * second can infer the keys.
 */
export const list =
  <Row>() =>
  <const Columns extends readonly Column<Row>[], const Place extends string = never>(
    declaration: Declaration<Row, Columns, Place>,
  ): RecordList<Row, Place> => {
    const { around = [], members, rows: rowsMember } = declaration
    const columns: readonly Column<Row>[] = declaration.columns
    const valueIn = (column: Column<Row>, row: Row): unknown =>
      column.value === undefined ? row[column.key] : column.value(row)
    const fields = columns.filter(({ field }) => field !== false)
    const tableColumns = columns.filter(({ title }) => title !== undefined)

    const inJson = columns.filter((column) => column.json !== false)
    const place = ({ key }: Column<Row>): number => members?.indexOf(key) ?? 0
    const jsonColumns = inJson.toSorted((a, b) => place(a) - place(b))
    const json =
      declaration.json ??
      ((row: Row): object =>
        Object.fromEntries(
          jsonColumns.flatMap((column) => {
            const value = valueIn(column, row)
            return value === undefined && column.absent ? [] : [[column.key, value ?? null]]
          }),
        ))

    const toRecord = (row: Row, common: Common<Place>): string => {
      const present = fields.filter((column) => column.absent !== 'anywhere' || valueIn(column, row) !== undefined)
      return record([
        ...around.map((key) => common[key]),
        ...present.map((column) => column.text?.(row) ?? fieldText(valueIn(column, row))),
      ])
    }

    const toTable = (rows: readonly Row[], screen: Screen): string => {
      const cells = rows.map((row) =>
        tableColumns.map((column) => cellOf(column.cell?.(row) ?? plainText(valueIn(column, row)))),
      )
      return layOut(tableColumns, cells, screen)
    }

    const headlineOf = (rows: readonly Row[], common: Common<Place>): Headline | undefined => {
      const { headline: wording, empty } = declaration
      if (rows.length === 0 && empty) return { mark: 'warn', sentence: empty.sentence }
      if (wording === undefined || typeof wording === 'function') return wording?.(rows, common)
      return { mark: 'ok', sentence: rows.length === 1 ? `1 ${wording[0]}` : `${rows.length} ${wording[1]}` }
    }

    const onTerminal = (rows: readonly Row[], common: Common<Place>, output: ListOutput, head?: Headline): string => {
      const { beneath, empty } = declaration
      const { screen, argv = [] } = output
      const next = empty?.next === undefined ? '' : `  ${repeatTargetFlags(empty.next, argv)}`
      const body = rows.length > 0 ? toTable(rows, screen) : next
      const top = [
        ...(head ? [headline(head.mark, head.sentence, screen)] : []),
        ...(beneath === undefined ? [] : [aside(common[beneath], screen)]),
      ].join('\n')
      return [top, body].filter((part) => part !== '').join('\n\n')
    }

    const commonJson = (common: Common<Place>): object => Object.fromEntries(around.map((key) => [key, common[key]]))

    return {
      fields: [...around.map(capital), ...fields.map(fieldName)],
      columns: columns.map((column) => ({
        key: column.key,
        title: column.title,
        field: column.field === false ? undefined : fieldName(column),
        member: column.json !== false,
      })),
      json,
      record: toRecord,
      table: toTable,
      render: (rows, common, output) => {
        const { json: asJson, screen, headline: head = headlineOf(rows, common) } = output
        const documents = asJson ? rows.map(json) : []
        if (asJson) return JSON.stringify(rowsMember ? { ...commonJson(common), [rowsMember]: documents } : documents)
        if (screen.isTTY) return onTerminal(rows, common, output, head)
        return rows.map((row) => toRecord(row, common)).join('\n')
      },
      single: (row, common, { json: asJson, screen }) => {
        if (asJson) return JSON.stringify({ ...commonJson(common), ...json(row) })
        return screen.isTTY ? undefined : toRecord(row, common)
      },
    }
  }
