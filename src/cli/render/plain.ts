import { type Entry, records, tabbed } from '../../core/reports/index.ts'

/**
 * What a pipe gets: one record a line, its cells between tabs in the order of the tsv report,
 * without a header, never truncated, never coloured.
 */
export const renderPlain = (entries: readonly Entry[]): string =>
  records(entries)
    .map((record) => `${tabbed(record)}\n`)
    .join('')
