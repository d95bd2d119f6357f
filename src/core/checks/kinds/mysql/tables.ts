import { count } from '../../../base/format.ts'
import { sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { skipSetting, withoutSkipped } from '../../assert/skip.ts'
import { type DatabaseConnection, figure, onDatabase } from '../../database/index.ts'
import { type CheckContext, fail, ok, type Result } from '../../engine/index.ts'

const maxTables = 1_000
/** The number of tables that one statement reads: few tables are broken, so that most statements find none. */
const portion = 25

/** SELECT on a table, or on one of its columns, is denied. */
const deniedErrors: ReadonlySet<string> = new Set(['error 1142', 'error 1143'])

const quoted = (name: string): string => `\`${name.replaceAll('`', '``')}\``

/** One row of each table, as a client reads it. */
const readEach = (tables: readonly string[]): string =>
  `SELECT ${tables.map((name, index) => `(SELECT 1 FROM ${quoted(name)} LIMIT 1) AS t${index}`).join(', ')}`

type Readings = { readonly broken: string[]; looked: number; denied: unknown }

/** Reads tables until the time is over, and those of a statement that fails one by one. */
async function readTables(
  connection: DatabaseConnection,
  tables: readonly string[],
  { now, msLeft, signal }: CheckContext,
): Promise<Readings> {
  const end = now() + msLeft() / 4
  const readings: Readings = { broken: [], looked: 0, denied: undefined }
  const waiting: string[][] = []
  for (let first = 0; first < tables.length; first += portion) waiting.push(tables.slice(first, first + portion))
  while (waiting.length > 0 && now() < end) {
    const some = waiting.shift() ?? []
    try {
      await connection.ask(readEach(some))
      readings.looked += some.length
    } catch (error) {
      if (signal.aborted || !connection.usable) throw error
      if (some.length > 1) waiting.unshift(...some.map((one) => [one]))
      else if (!(error instanceof ProbeError) || error.details.some((one) => deniedErrors.has(one)))
        readings.denied ??= error
      else if (error.fault !== 'timeout') {
        readings.looked += 1
        readings.broken.push(`${sanitize(some[0] ?? '', 64)}: ${error.message.replace(/^the query failed: /, '')}`)
      }
    }
  }
  return readings
}

export const tables = onDatabase({
  depth: 'Advanced',
  results: {
    tables:
      'A row of each table in the database of the url can be read, of up to 1,000 and within a quarter of the time: no file is gone or damaged so that it does not open; left out without a database or the privilege',
  },
  privilege: 'GRANT SELECT ON <database>.* TO <account>',
  optional: true,
  settings: { skipTables: skipSetting('Tables of the check `tables`') },
  observe: async (connection, { skipTables }, context) => {
    const rows = await connection.ask(`SELECT table_name AS name, (SELECT COUNT(*) FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE') AS total FROM information_schema.tables
      WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY table_name LIMIT ${maxTables}`)
    const all = rows.flatMap(({ name }) => (typeof name === 'string' ? [name] : []))
    const names = withoutSkipped(all, (name) => name, skipTables)
    if (names.length === 0) return undefined
    context.step('tables')
    const readings = await readTables(connection, names, context)
    if (readings.looked === 0 && readings.denied !== undefined) throw readings.denied
    return { ...readings, total: Math.max(all.length, figure(rows[0], 'total') ?? 0) - (all.length - names.length) }
  },
  evaluate: (observed): Result<'tables'> | [] => {
    if (observed === undefined) return []
    const { broken, looked, total } = observed
    const [first, ...others] = broken
    const of = looked < total ? `${looked} of ${count(total, 'table')}` : count(total, 'table')
    if (first === undefined) return ok('tables', `a row of ${of} can be read`)
    const more = others.length === 0 ? '' : ` (and ${count(others.length, 'other')})`
    return fail('tables', 'data', `${first}${more}`, {
      details: [...others.slice(0, 20), `${of} ${looked === 1 ? 'was' : 'were'} looked at`],
    })
  },
})
