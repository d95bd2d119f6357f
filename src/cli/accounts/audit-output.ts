import type { AuditFacts } from '../../core/protocol/service/service.ts'
import { audit } from './lists.ts'

const pageSize = 1_000

/** All entries that match, newest first, at most `limit` of them. */
export async function* auditPages(
  read: (take: number, before: number | undefined) => Promise<readonly AuditFacts[]>,
  first: number | undefined,
  limit: number = Number.POSITIVE_INFINITY,
): AsyncIterable<readonly AuditFacts[]> {
  let before = first
  for (let left = limit; left > 0; ) {
    const page = await read(Math.min(left, pageSize), before)
    yield page
    left -= page.length
    if (page.length < pageSize) return
    before = page.at(-1)?.id
  }
}

/** Entries as CSV (RFC 4180) or as JSON lines, a page at a time. */
export async function* auditParts(
  pages: AsyncIterable<readonly AuditFacts[]>,
  { store, format, header }: { readonly store: string; readonly format: 'csv' | 'jsonl'; readonly header: boolean },
): AsyncIterable<string> {
  if (format === 'csv' && header) yield csvLine(audit.fields)
  for await (const page of pages) {
    // A record is sanitized: no field has a tab.
    const lines = page.map((entry) =>
      format === 'csv' ? csvLine(audit.record(entry, { store }).split('\t')) : `${JSON.stringify(audit.json(entry))}\n`,
    )
    if (lines.length > 0) yield lines.join('')
  }
}

/**
 * Anonymous callers choose the names of refused sign-ins. A spreadsheet would take a field that begins with one of
 * these characters for a formula.
 */
const formula = /^[=+\-@]/

/**
 * A line of CSV.
 *
 * @example
 * ```ts
 * csvLine(['a', 'b "c"', '=1']) // 'a,"b ""c""",\'=1\r\n'
 * ```
 */
export const csvLine = (fields: readonly string[]): string =>
  `${fields
    .map((field) => (formula.test(field) ? `'${field}` : field))
    .map((field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field))
    .join(',')}\r\n`
