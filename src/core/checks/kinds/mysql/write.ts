import { randomUUID } from 'node:crypto'
import { ProbeError } from '../../../base/probe-error.ts'
import {
  type DatabaseConnection,
  evaluateRoundTrip,
  figure,
  foreignTable,
  onDatabase,
  roundTripSettings,
  text,
} from '../../database/index.ts'
import { byName } from './checks.ts'

/**
 * Bytes that a round trip writes: a row that fits in a page of any size (4 KiB or more) beside others. The TRUNCATE before
 * it shows a full disk, because it creates a file of 64 KiB or fails as a whole. A row that needs new pages would be fatal
 * there: InnoDB also needs free pages to take it back, and ends the server when it has none for 5 s.
 */
const payloadBytes = 1_024

/** Another svc may empty the table between two statements. */
const maxTries = 3

/** The comment of a table that svc has created: no other table is ever written to or emptied. */
const mark = 'write probe of svc'

/** The table is in the database of the URL. */
export const writeProblem = ({ url, allowWrites }: { readonly url: string; readonly allowWrites: boolean }) =>
  allowWrites && /^\/?$/.test(new URL(url).pathname)
    ? 'the setting url has no database, and allowWrites needs one for its table: write mysql://user@host:port/database'
    : undefined

export const write = onDatabase({
  depth: 'Advanced',
  results: {
    write: 'With `allowWrites`: a row can be written, committed, read and deleted; left out on a read-only server',
  },
  settings: {
    allowWrites: {
      type: 'flag',
      default: false,
      doc: 'Lets `write` create and empty its own table in the database of the url, which takes 64 KiB of new space, and write a row of 1 KiB to it. Without it, a full data directory remains undetected',
    },
    probeTable: {
      ...roundTripSettings.probeTable,
      doc: 'The table of `write`, which svc creates and empties. svc does not write to a table that it has not created',
    },
    write: roundTripSettings.write,
  },
  when: ['allowWrites'],
  emptyWhere: 'the server is read-only',
  privilege: 'GRANT CREATE, DROP, SELECT, INSERT, DELETE ON <database>.svc_probe TO <account>',
  async *observe({ ask }, { probeTable }, { now }) {
    const variables = byName(
      await ask("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'innodb_read_only')"),
    )
    if (Object.keys(variables).some((name) => text(variables, name) === 'ON')) return
    const table = `\`${probeTable}\``
    await ask(
      `CREATE TABLE IF NOT EXISTS ${table} (id char(36) NOT NULL PRIMARY KEY, payload longblob) ENGINE = InnoDB COMMENT = '${mark}'`,
    )
    // Unlike a query of information_schema, this needs no temporary table, for which a full disk has no space.
    const [own] = await ask(`SHOW CREATE TABLE ${table}`)
    if (!text(own, 'Create Table', 1_000).includes(` COMMENT='${mark}'`)) throw foreignTable(probeTable)
    for (let tries = 1; ; tries += 1) {
      // Needs new space, and removes the rows of round trips that ended early.
      await ask(`TRUNCATE TABLE ${table}`)
      const since = now()
      if (await roundTrip(ask, table)) return yield { ms: now() - since }
      if (tries === maxTries) throw new ProbeError('data', 'the row that was written is not in the table')
    }
  },
  evaluate: ({ ms }, { write: threshold }) => evaluateRoundTrip(ms, threshold),
})

/** True if the row was found after the commit. */
async function roundTrip(ask: DatabaseConnection['ask'], table: string): Promise<boolean> {
  const id = randomUUID()
  await ask('START TRANSACTION')
  try {
    await ask(`INSERT INTO ${table} VALUES ('${id}', REPEAT('x', ${payloadBytes}))`)
  } catch (error) {
    await ask('ROLLBACK').catch(() => {})
    throw error
  }
  await ask('COMMIT')
  const [row] = await ask(`SELECT LENGTH(payload) AS bytes FROM ${table} WHERE id = '${id}'`)
  await ask(`DELETE FROM ${table} WHERE id = '${id}'`)
  await ask('COMMIT')
  return figure(row, 'bytes') === payloadBytes
}
