import { columns, records, tabbed } from './read.ts'
import type { Report } from './reading.ts'

/** A header row and one record per line, whatever the text contains. */
export default {
  name: 'tsv',
  contentType: 'text/tab-separated-values; charset=utf-8',
  render: (entries) => `${[columns.join('\t'), ...records(entries).map(tabbed)].join('\n')}\n`,
} satisfies Report
