import { count } from '../../core/base/format.ts'
import { sanitizeLine } from '../../core/base/sanitize.ts'
import type { Screen } from '../io/io.ts'
import { painter } from '../io/terminal.ts'
import {
  type Answer,
  documentShape,
  documentText,
  type JsonShape,
  type JsonShapes,
  membersOf,
  objectOf,
  optional,
  string,
} from './document.ts'
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
  /** The cell of the table, where that is not the value itself. */
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
  /** A table that is too wide omits these columns, in this order, before it becomes a block for each row. */
  readonly spare?: number
  /** Leaves a cell blank when it repeats the cell above it. */
  readonly once?: boolean
  /** The field's name in the record, if it is not the capitalized key. `false` for no field. */
  readonly field?: string | false
  /** The field's text, if it is not the text of the value. */
  readonly text?: (row: Row) => string
  /** The JSON Schema of the member. Every member of a row that is made of the columns needs one. */
  readonly is?: JsonShape
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

type Declaration<Row, Columns extends readonly Column<Row>[], Place extends string, Extra extends JsonShapes> = {
  readonly columns: Columns
  /**
   * Texts common to all rows, such as their store. The JSON document has them once, around the rows; every record
   * begins with them.
   */
  readonly around?: readonly Place[]
  /** More that the JSON document has around the rows, and the records do not: `{ target: string }`. */
  readonly documentOnly?: Extra
  /** The one of `around` shown beneath the headline. */
  readonly beneath?: NoInfer<Place>
  /**
   * The member of the JSON document that holds the rows. `spread`: the document of the one row has its members beside
   * what is around it, as the interface has it. Without it, the list is a part of another answer and has no document.
   */
  readonly rows?: string | { readonly spread: true }
  /** The order of the members in JSON, if it differs from that of the columns. Scripts compare documents. */
  readonly members?: readonly NoInfer<Columns[number]['key']>[]
  /** The JSON of a row that is not made of the columns, and its JSON Schema. */
  readonly json?: { readonly of: (row: Row) => object; readonly is: JsonShape }
  /** The headline over the rows: singular and plural of what they are, or a sentence. */
  readonly headline?:
    | readonly [one: string, many: string]
    | ((rows: readonly Row[], common: Common<NoInfer<Place>>) => Headline)
  /** The sentence for a terminal without rows, and the command that creates the first row. */
  readonly empty?: { readonly sentence: string; readonly next?: string }
}

type Common<Place extends string> = Readonly<Record<Place, string>>
type DocumentAround<Place extends string, Extra extends string> = Common<Place> & Readonly<Record<Extra, unknown>>

export type Headline = { readonly mark: Mark; readonly sentence: string }
export type ListOutput = {
  readonly json: boolean
  readonly screen: Screen
  /** The command line, whose target flags a suggested command repeats. */
  readonly argv?: readonly string[]
  /** Whether the rows of a list in a pipe begin with a line of field names (default true). */
  readonly header?: boolean
}

export type RecordList<Row, Place extends string, Extra extends string = never> = Answer & {
  /** The names of a record's fields, in order. */
  readonly fields: readonly string[]
  /** False for a list that is a part of another answer. */
  readonly hasDocument: boolean
  /** The JSON Schema of a row. Throws TypeError for a member without one. */
  readonly rowShape: () => JsonShape
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
  /** All rows as a pipe gets them: a header line unless `output` leaves it out, then the records. */
  readonly records: (rows: readonly Row[], around: Common<Place>, output: Pick<ListOutput, 'header'>) => string
  /** Only the rows, fitted to the terminal: a table, or a block for each row if the terminal is too narrow. */
  readonly table: (rows: readonly Row[], screen: Screen) => string
  /** The JSON document. */
  readonly document: (rows: readonly Row[], around: DocumentAround<Place, Extra>) => string
  /** The whole answer: one JSON value, records, or headline and table. */
  readonly render: (
    rows: readonly Row[],
    around: DocumentAround<Place, Extra>,
    output: ListOutput & { readonly headline?: Headline },
  ) => string
  /**
   * The whole answer in parts, for more rows than memory should hold: `pages` has at least one page, and all but the last
   * have rows. A terminal gets a table for each page. `total` is the number of all rows.
   */
  readonly parts: (
    pages: AsyncIterable<readonly Row[]>,
    around: DocumentAround<Place, Extra>,
    output: ListOutput & { readonly headline?: Headline; readonly total: number },
  ) => AsyncIterable<string>
  /** A single row for machines: the JSON document or a record without a header. Undefined on a terminal. */
  readonly single: (row: Row, around: DocumentAround<Place, Extra>, output: ListOutput) => string | undefined
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

/** The JSON Schemas of the members of a row. */
const memberShapes = (columns: readonly Pick<Column<never>, 'key' | 'is' | 'absent'>[]): JsonShapes =>
  Object.fromEntries(
    columns.map(({ key, is, absent }) => {
      if (is === undefined) throw new TypeError(`the member ${key} has no JSON Schema`)
      return [key, absent === undefined ? is : optional(is)]
    }),
  )

/** The server type in the row of the machine, which each type has. */
export const everyType = 'all'

/** The widths to which columns shrink: first every one to the first width, then to the next. */
const leastWidths = [18, 9]

type TableColumn = Pick<Column<unknown>, 'title' | 'align' | 'least' | 'shrink' | 'optional' | 'spare' | 'once'>

type VisibleColumn = TableColumn & { readonly title: string; readonly at: number }
type Rows = readonly (readonly TableCell[])[]

/** The rows as a table, or as a block for each if the terminal is too narrow. */
function layOut(columns: readonly TableColumn[], rows: Rows, screen: Screen): string {
  const visible = columns.flatMap(({ title = '', ...column }, at) =>
    column.optional && rows.every((row) => isEmptyCell(row[at] ?? [])) ? [] : [{ ...column, title, at }],
  )
  const spare = visible.flatMap((column) => column.spare ?? []).toSorted((a, b) => a - b)
  for (const last of [0, ...spare]) {
    const lines = tableLines(
      visible.filter((column) => (column.spare ?? Number.POSITIVE_INFINITY) > last),
      rows,
      screen,
    )
    if (lines) return lines.join('\n')
  }
  const block = (row: readonly TableCell[]): string =>
    pairs(
      visible.map(({ title, at }) => [title.toLowerCase(), row[at] ?? []] as const),
      screen,
    )
  return rows.map(block).join('\n\n')
}

/** The lines of a table that fits without breaking a word. */
function tableLines(visible: readonly VisibleColumn[], rows: Rows, screen: Screen): readonly string[] | undefined {
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
  return asTable && !asTable.broken ? asTable.lines : undefined
}

/**
 * Declares a list: `list<UserFacts>()({ columns: [...] })`. A key that the row does not have needs a `value`. A wrong
 * key, also in `members` or `beneath`, does not compile. The first call takes only the type of the rows, so that the
 * second can infer the keys.
 */
export const list =
  <Row>() =>
  <
    const Columns extends readonly Column<Row>[],
    const Place extends string = never,
    const Extra extends JsonShapes = Readonly<Record<never, JsonShape>>,
  >(
    declaration: Declaration<Row, Columns, Place, Extra>,
  ): RecordList<Row, Place, keyof Extra & string> => {
    const { around = [], documentOnly = {}, members, rows: things } = declaration
    const columns: readonly Column<Row>[] = declaration.columns
    const valueIn = (column: Column<Row>, row: Row): unknown =>
      column.value === undefined ? row[column.key] : column.value(row)
    const fields = columns.filter(({ field }) => field !== false)
    const tableColumns = columns.filter(({ title }) => title !== undefined)

    const inJson = columns.filter((column) => column.json !== false)
    const place = ({ key }: Column<Row>): number => members?.indexOf(key) ?? 0
    const jsonColumns = inJson.toSorted((a, b) => place(a) - place(b))
    const json =
      declaration.json?.of ??
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

    const headlineOf = (
      rows: readonly Row[],
      common: Common<Place>,
      total: number = rows.length,
    ): Headline | undefined => {
      const { headline: wording, empty } = declaration
      if (total === 0 && empty) return { mark: 'warn', sentence: empty.sentence }
      if (wording === undefined || typeof wording === 'function') return wording?.(rows, common)
      return { mark: 'ok', sentence: count(total, ...wording) }
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

    const rowShape = (): JsonShape => declaration.json?.is ?? objectOf(memberShapes(jsonColumns))
    const aroundShape: JsonShapes = { ...documentOnly, ...Object.fromEntries(around.map((key) => [key, string])) }
    const aroundJson = (common: Readonly<Record<string, unknown>>): object =>
      Object.fromEntries(Object.keys(aroundShape).map((key) => [key, common[key]]))

    const schema = (): JsonShape => {
      if (things === undefined) throw new TypeError('this list has no JSON document')
      if (typeof things === 'string') return documentShape(aroundShape, things, rowShape())
      return objectOf({ ...aroundShape, ...membersOf(rowShape()) })
    }
    const document = (rows: readonly Row[], common: Readonly<Record<string, unknown>>): string => {
      if (typeof things === 'string') return documentText(aroundJson(common), things, rows.map(json))
      const [row] = rows
      if (things === undefined || row === undefined) throw new TypeError('this list has no JSON document')
      return JSON.stringify({ ...aroundJson(common), ...json(row) })
    }

    /** A document in parts: what comes before the rows, the rows of each page, and its end. */
    async function* documentParts(
      pages: AsyncIterable<readonly Row[]>,
      common: Readonly<Record<string, unknown>>,
    ): AsyncIterable<string> {
      const end = ']}'
      yield document([], common).slice(0, -end.length)
      let separator = ''
      for await (const rows of pages) {
        for (const row of rows) {
          yield separator + JSON.stringify(json(row))
          separator = ','
        }
      }
      yield `${end}\n`
    }

    async function* parts(
      pages: AsyncIterable<readonly Row[]>,
      common: DocumentAround<Place, keyof Extra & string>,
      output: ListOutput & { readonly headline?: Headline; readonly total: number },
    ): AsyncIterable<string> {
      if (output.json) return yield* documentParts(pages, common)
      let isFirst = true
      for await (const rows of pages) {
        const head = isFirst ? (output.headline ?? headlineOf(rows, common, output.total)) : undefined
        const text = output.screen.isTTY
          ? isFirst
            ? onTerminal(rows, common, output, head)
            : `\n${toTable(rows, output.screen)}`
          : records(rows, common, { header: isFirst && output.header !== false })
        if (text !== '') yield `${text}\n`
        isFirst = false
      }
    }

    const fieldNames = [...around.map(capital), ...fields.map(fieldName)]
    const records = (
      rows: readonly Row[],
      common: Common<Place>,
      { header = true }: Pick<ListOutput, 'header'>,
    ): string => [...(header ? [record(fieldNames)] : []), ...rows.map((row) => toRecord(row, common))].join('\n')

    return {
      fields: fieldNames,
      schema,
      hasDocument: things !== undefined,
      rowShape,
      columns: columns.map((column) => ({
        key: column.key,
        title: column.title,
        field: column.field === false ? undefined : fieldName(column),
        member: column.json !== false,
      })),
      json,
      record: toRecord,
      records,
      table: toTable,
      document,
      render: (rows, common, output) => {
        const { json: asJson, screen, headline: head = headlineOf(rows, common) } = output
        if (asJson) return document(rows, common)
        return screen.isTTY ? onTerminal(rows, common, output, head) : records(rows, common, output)
      },
      parts,
      single: (row, common, { json: asJson, screen }) => {
        if (asJson) return document([row], common)
        return screen.isTTY ? undefined : toRecord(row, common)
      },
    }
  }
