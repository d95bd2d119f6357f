import { columns, records, tabbed } from './read.ts'
import type { Report } from './reading.ts'

/** A header row unless it is left out, and one record per line, whatever the text contains. */
export default {
  name: 'tsv',
  contentType: 'text/tab-separated-values; charset=utf-8',
  render: (entries, { header = true } = {}) =>
    [...(header ? [columns.join('\t')] : []), ...records(entries).map(tabbed)].map((line) => `${line}\n`).join(''),
} satisfies Report
