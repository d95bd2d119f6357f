import { records } from './read.ts'
import type { Report } from './reading.ts'

/** One JSON object per line, for jq and log shippers. */
export default {
  name: 'ndjson',
  contentType: 'application/x-ndjson; charset=utf-8',
  render: (entries) =>
    records(entries)
      .map((record) => `${JSON.stringify(record)}\n`)
      .join(''),
} satisfies Report
