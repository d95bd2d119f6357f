import { parse } from 'csv-parse/sync'
import { Fault } from '../errors.ts'
import { text } from '../protocol/index.ts'
import { readJsvItems } from './jsv-read.ts'
import { limits } from './limits.ts'

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
