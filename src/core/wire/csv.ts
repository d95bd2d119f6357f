import { parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import { Fault, type FieldFault } from '../errors.ts'
import { type Dto, type Schema, text } from '../protocol/index.ts'
import { membersOf, pick } from './fields.ts'
import type { Format, WireValues } from './format.ts'
import { readJsv, readJsvItems, writeJsv } from './jsv.ts'
import { limits } from './limits.ts'
import { invalidValue, unbindable, undeserialisable, wrongType } from './problems.ts'
import { isScalar, readScalar, writeScalar } from './scalars.ts'

/** A cell: null is an empty cell, a text without characters is `""`. */
type Cell = { readonly text: string; readonly quoted: boolean }

/** F3: a header row of the DTO's fields and one row, rows ended by CRLF; nested values in JSV. */
const encode = (schema: Dto, value: unknown): string => {
  const properties = value as Readonly<Record<string, unknown>>
  const members = membersOf(schema)
  const row = members.map((member) => writeCell(member.schema, properties[member.name]))
  return stringify([members.map((member) => member.name), row], {
    record_delimiter: '\r\n',
    // Brackets as a real server does, so that no reader takes a text for a nested value by its looks.
    quoted_match: /[\r\n]|^[[{]/,
    cast: { string: (text) => (text === '' ? { value: text, quoted_empty: true } : text) },
  })
}

const writeCell = (schema: Schema, value: unknown): string | null => {
  if (value === undefined || value === null) return null
  return (isScalar(schema) ? writeScalar(schema, value) : writeJsv(schema, value)) ?? null
}

const decode = (schema: Dto, body: string): WireValues => {
  const [header, row, next] = rows(schema, body)
  if (!header || !row || (next && !isBlank(next)) || header.length !== row.length) {
    throw undeserialisable(schema, 'text/csv', 'a header row and one row of as many cells are expected')
  }
  const values: WireValues = {}
  const problems: FieldFault[] = []
  const pairs = header.map((name, column) => [name.text.trim(), row[column]] as const)
  for (const { member, written, values: cells } of pick(schema, pairs)) {
    const cell = cells.at(-1)
    if (!cell || isUnset(member.schema, cell)) continue
    const value = isScalar(member.schema) ? readScalar(member.schema, cell.text) : readJsv(member.schema, cell.text)
    if (value !== undefined) values[member.name] = value
    else
      problems.push(
        member.schema.kind === 'text' ? wrongType(written, member.schema) : invalidValue(written, cell.text),
      )
  }
  if (problems.length > 0) throw unbindable(schema, problems)
  return values
}

const isUnset = (schema: Schema, cell: Cell): boolean => cell.text === '' && !(cell.quoted && schema.kind === 'text')

const isBlank = (cells: readonly Cell[]): boolean => cells.length === 1 && cells[0]?.text === ''

/** A header, a row, and what follows them: a blank line ends a body. */
const rows = (schema: Dto, body: string): readonly (readonly Cell[])[] => {
  try {
    const cells: unknown = parse(body, {
      bom: true,
      to: 3,
      relax_column_count: true,
      // Named, because finding them out costs the parser a second for a megabyte without any.
      record_delimiter: ['\r\n', '\n', '\r'],
      cast: (text, { index, quoting }): Cell => {
        if (index >= limits.columns) throw new Error('too many cells')
        return { text, quoted: quoting }
      },
    })
    return cells as readonly (readonly Cell[])[]
  } catch {
    // Not chained: the parser's message quotes the cell, which may be a password.
    throw undeserialisable(schema, 'text/csv', 'the body is not valid CSV')
  }
}

export const csv: Format = { name: 'csv', contentType: 'text/csv; charset=utf-8', encode, decode }

/** A row of a table: its number as a spreadsheet counts (the header is 1), and its cells by column. */
export type TableRow = { readonly row: number; readonly cells: ReadonlyMap<string, string> }
export type CsvTable = { readonly columns: readonly string[]; readonly rows: readonly TableRow[] }

/**
 * A CSV file with a header row, as spreadsheets write it: comma, double quotes, any line end, with or
 * without a byte-order mark; rows without any text are passed over. Throws Fault `BadRequest` that
 * names the row for what is no table.
 */
export function readCsvTable(content: string): CsvTable {
  const records = parsed(content)
  const [header = [], ...rest] = records
  const columns = header.map((name) => name.trim())
  const folded = columns.map((name) => name.toLowerCase())
  const twice = columns.find((_, at) => folded[at] !== '' && folded.indexOf(folded[at] ?? '') !== at)
  if (twice !== undefined) throw new Fault('BadRequest', `row 1: the column ${twice} is there twice`)
  const rows = rest.flatMap((record, at) => {
    const row = at + 2
    if (record.every((cell) => cell.trim() === '')) return []
    if (record.slice(columns.length).some((cell) => cell.trim() !== '')) {
      throw new Fault('BadRequest', `row ${row}: ${record.length} cells under ${columns.length} columns`, {
        hints: ['A list with several names belongs in quotes: "[Admin,Ops]"'],
      })
    }
    return [{ row, cells: new Map(columns.map((name, column) => [name, record[column] ?? ''])) }]
  })
  return { columns, rows }
}

function parsed(content: string): readonly (readonly string[])[] {
  let row = 0
  try {
    return parse(content, {
      bom: true,
      relax_column_count: true,
      record_delimiter: ['\r\n', '\n', '\r'],
      max_record_size: 1024 * 1024,
      on_record: (record: string[]) => {
        row += 1
        if (record.length > limits.columns) throw new Error('too many cells')
        return record
      },
    })
  } catch {
    // Not chained: the parser's message quotes the cell.
    throw new Fault('BadRequest', `row ${row + 1}: not valid CSV, perhaps a quote that is not closed`)
  }
}

/** The names in a cell: `Admin`, `Admin,Ops` or `[Admin,"a, b"]`; undefined when it is no such list. */
export const readNames = (cell: string): readonly string[] | undefined =>
  cell.trim() === '' ? [] : (readJsvItems(text, cell.trim()) as readonly string[] | undefined)
