import { stringify } from 'csv-stringify/sync'
import { cell, columns, records } from './read.ts'
import type { Report } from './reading.ts'

/**
 * RFC 4180 with a header row, unless it is left out. Prefixes cells that a spreadsheet would run as a formula with `'` (OWASP, CSV
 * injection): people open this report. The CSV format of the interface is never altered.
 */
export default {
  name: 'csv',
  contentType: 'text/csv; charset=utf-8',
  render: (entries, { header = true } = {}) => {
    const rows = records(entries).map((record) => columns.map((column) => cell(record[column])))
    return stringify([...(header ? [[...columns]] : []), ...rows], {
      record_delimiter: '\r\n',
      escape_formulas: true,
      // The writer quotes only its own delimiter, but a lone line feed would end the row too.
      quoted_match: /[\r\n]/,
    })
  },
} satisfies Report
