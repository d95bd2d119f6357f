import { parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import { Fault, type FieldFault } from '../../base/errors.ts'
import { type Dto, limits, type Schema, text } from '../index.ts'
import { membersOf, pickFromRequest } from './fields.ts'
import type { Format, WireValues } from './format.ts'
import { readJsv, readJsvItems, writeJsv } from './jsv.ts'
import { badRequest, invalidValue, repeatedName, typeMismatch, unbindable, undeserialisable } from './problems.ts'
import { isScalar, readScalar, writeScalar } from './scalars.ts'

/** A cell. Null is an empty cell; an empty text is `""`. */
type Cell = { readonly text: string; readonly quoted: boolean }

/** A header row with the DTO's fields and one row of values, each ended by CRLF; nested values are JSV (F3). */
const encode = (schema: Dto, value: unknown): string => {
  const properties = value as Readonly<Record<string, unknown>>
  const members = membersOf(schema)
  const row = members.map((member) => writeCell(member.schema, properties[member.name]))
  return stringify([members.map((member) => member.name), row], {
    record_delimiter: '\r\n',
    // Quotes texts that begin with a bracket, as real servers do, so that no reader mistakes them for nested values.
    quoted_match: /[\r\n]|^[[{]/,
    cast: { string: (text) => (text === '' ? { value: text, quoted_empty: true } : text) },
  })
}

const writeCell = (schema: Schema, value: unknown): string | null => {
  if (value === undefined || value === null) return null
  return (isScalar(schema) ? writeScalar(schema, value) : writeJsv(schema, value)) ?? null
}

const decode = (schema: Dto, body: string): WireValues => {
  const [header, row, next] = rows(schema, body, 3)
  if (!header || !row || (next && !isBlank(next))) {
    throw undeserialisable(schema, 'text/csv', `${expected} one row with the same number of cells`)
  }
  return bindRow(schema, columnsOf(header), row)
}

const expected = 'expected a header row and'

/** The rows of a batch, each read in its turn. Skips blank lines. Reads at most one row more than `most`. */
export const csvRequests = (schema: Dto, body: string, most: number): readonly (() => WireValues)[] => {
  const [header = [], ...records] = rows(schema, body, most + 2, true)
  const columns = columnsOf(header)
  return records.map((row) => () => bindRow(schema, columns, row))
}

/** The names in a header row. Refuses one that occurs twice (S2). */
const columnsOf = (header: readonly Cell[]): readonly string[] => {
  const names = header.map(({ text }) => text.trim())
  const twice = names.find((name, at) => name !== '' && names.indexOf(name) !== at)
  if (twice !== undefined) throw badRequest([repeatedName(twice)])
  return names
}

const bindRow = (schema: Dto, columns: readonly string[], row: readonly Cell[]): WireValues => {
  if (columns.length !== row.length) {
    throw undeserialisable(schema, 'text/csv', `${expected} rows with the same number of cells`)
  }
  const values: WireValues = {}
  const problems: FieldFault[] = []
  const pairs = columns.map((name, column) => [name, row[column]] as const)
  for (const { member, written, values: cells } of pickFromRequest(schema, pairs)) {
    const cell = cells.at(-1)
    if (!cell || isUnset(member.schema, cell)) continue
    const value = isScalar(member.schema) ? readScalar(member.schema, cell.text) : readJsv(member.schema, cell.text)
    if (value !== undefined) values[member.name] = value
    else
      problems.push(
        member.schema.kind === 'text' ? typeMismatch(written, member.schema) : invalidValue(written, cell.text),
      )
  }
  if (problems.length > 0) throw unbindable(schema, problems)
  return values
}

const isUnset = (schema: Schema, cell: Cell): boolean => cell.text === '' && !(cell.quoted && schema.kind === 'text')

const isBlank = (cells: readonly Cell[]): boolean => cells.length === 1 && cells[0]?.text === ''

/** The first rows of a body, the header included. */
const rows = (schema: Dto, body: string, most: number, skipsBlank = false): readonly (readonly Cell[])[] => {
  try {
    const cells: unknown = parse(body, {
      bom: true,
      to: most,
      skip_empty_lines: skipsBlank,
      relax_column_count: true,
      // Explicit, because detecting them costs the parser a second for a megabyte without line ends.
      record_delimiter: ['\r\n', '\n', '\r'],
      cast: (text, { index, quoting }): Cell => {
        if (index >= limits.columns) throw new Error('too many cells')
        return { text, quoted: quoting }
      },
    })
    return cells as readonly (readonly Cell[])[]
  } catch {
    // Without a cause: the parser's message quotes the cell, which may be a password.
    throw undeserialisable(schema, 'text/csv', 'the body is not valid CSV')
  }
}

const headerOf = (schema: Dto): string =>
  stringify([membersOf(schema).map((member) => member.name)], { record_delimiter: '\r\n' })

/** One header row, and the row of each answer. */
const join = (schema: Dto, encoded: readonly string[]): string => {
  const header = headerOf(schema)
  return header + encoded.map((one) => one.slice(header.length)).join('')
}

export const csv: Format = { name: 'csv', contentType: 'text/csv; charset=utf-8', encode, decode, join }

/** A row of a table: its number as in a spreadsheet (the header is 1), and its cells by column. */
export type TableRow = { readonly row: number; readonly cells: ReadonlyMap<string, string> }
export type CsvTable = { readonly columns: readonly string[]; readonly rows: readonly TableRow[] }

/**
 * Reads a CSV file with a header row, as spreadsheets write it: commas, double quotes, any line end, with or without a
 * byte-order mark. Skips rows without text. Throws Fault `BadRequest` that names the row for an invalid table.
 */
export function readCsvTable(content: string): CsvTable {
  const records = parsed(content)
  const [header = [], ...rest] = records
  const columns = header.map((name) => name.trim())
  const folded = columns.map((name) => name.toLowerCase())
  const twice = columns.find((_, at) => folded[at] !== '' && folded.indexOf(folded[at] ?? '') !== at)
  if (twice !== undefined) throw new Fault('BadRequest', `row 1: the column ${twice} appears twice`)
  const rows = rest.flatMap((record, at) => {
    const row = at + 2
    if (record.every((cell) => cell.trim() === '')) return []
    if (record.slice(columns.length).some((cell) => cell.trim() !== '')) {
      throw new Fault('BadRequest', `row ${row}: ${record.length} cells for ${columns.length} columns`, {
        hints: ['Put a list of several names in quotes: "[Admin,Ops]"'],
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
    // Without a cause: the parser's message quotes the cell.
    throw new Fault('BadRequest', `row ${row + 1}: not valid CSV, perhaps because of an unclosed quote`)
  }
}

/** The names in a cell: `Admin`, `Admin,Ops` or `[Admin,"a, b"]`. Undefined for an invalid list. */
export const readNames = (cell: string): readonly string[] | undefined =>
  cell.trim() === '' ? [] : (readJsvItems(text, cell.trim()) as readonly string[] | undefined)
