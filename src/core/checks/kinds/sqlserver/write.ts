import { randomUUID } from 'node:crypto'
import { sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import {
  type DatabaseConnection,
  evaluateRoundTrip,
  figure,
  foreignTable,
  onDatabase,
  roundTripSettings,
} from '../../database/index.ts'
import { notChecked } from '../../engine/index.ts'
import { UnreadableError } from './errors.ts'

/** Bytes that a round trip writes: pages that the database has to allocate. */
const payloadBytes = 256 * 1024

const grantTo = (login: string): string =>
  `CREATE USER ${login} FOR LOGIN ${login}; GRANT CREATE TABLE TO ${login}; GRANT ALTER, SELECT, INSERT, DELETE ON SCHEMA::dbo TO ${login}`

export const write = onDatabase({
  depth: 'Advanced',
  results: {
    write: 'With `allowWrites`: a row can be written, committed, read and deleted; left out in a read-only database',
  },
  settings: {
    allowWrites: {
      type: 'flag',
      default: false,
      doc: 'Lets `write` create its own table in the database of the url, and write a row of 256 KiB to it. Without it, writes that the server refuses or blocks remain undetected',
    },
    probeTable: {
      ...roundTripSettings.probeTable,
      doc: 'The table of `write` in the schema dbo, which svc creates. svc does not write to a table that it has not created',
    },
    write: roundTripSettings.write,
  },
  when: ['allowWrites'],
  emptyWhere: 'the database is read-only',
  privilege: grantTo('<login>'),
  async *observe({ ask, user }, { probeTable }, { now }): AsyncGenerator<{ readonly ms: number } | UnprivilegedLogin> {
    const [database] = await ask(
      "SELECT CASE WHEN DATABASEPROPERTYEX(DB_NAME(), 'Updateability') = 'READ_WRITE' THEN 1 ELSE 0 END AS writable",
    )
    if (figure(database, 'writable') === 0) return
    const since = now()
    try {
      await roundTrip(ask, probeTable)
      yield { ms: now() - since }
    } catch (error) {
      if (!(error instanceof UnreadableError) || error.why !== 'permission') throw error
      yield { why: error.message, grant: grantTo(`[${sanitize(user, 64).replaceAll(']', ']]')}]`) }
    }
  },
  evaluate: (observation, { write: threshold }) => {
    if ('why' in observation)
      return notChecked('write', 'permission', observation.why, { details: [observation.grant] })
    return evaluateRoundTrip(observation.ms, threshold)
  },
})

type UnprivilegedLogin = { readonly why: string; readonly grant: string }

/** Each statement ends its own transaction, so that nothing stays open when one of them fails. */
async function roundTrip(ask: DatabaseConnection['ask'], name: string): Promise<void> {
  const table = `[dbo].[${name}]`
  const id = randomUUID()
  // The name of the key marks the table as one that svc has created.
  const mark = `svc_write_probe_${name}`
  await ask(`IF OBJECT_ID('${table}') IS NULL
    CREATE TABLE ${table} (id char(36) NOT NULL CONSTRAINT [${mark}] PRIMARY KEY, written datetime NOT NULL,
      payload varbinary(max) NULL)`)
  const [marks] = await ask(
    `SELECT COUNT(*) AS own FROM sys.key_constraints WHERE parent_object_id = OBJECT_ID('${table}') AND name = '${mark}'`,
  )
  if (figure(marks, 'own') !== 1) throw foreignTable(name)
  await ask(`SET XACT_ABORT ON; BEGIN TRANSACTION; INSERT INTO ${table} VALUES ('${id}', GETUTCDATE(),
    CAST(REPLICATE(CAST('x' AS varchar(max)), ${payloadBytes}) AS varbinary(max))); COMMIT TRANSACTION`)
  const [row] = await ask(`SELECT DATALENGTH(payload) AS bytes FROM ${table} WHERE id = '${id}'`)
  // Also the rows that earlier runs left behind.
  await ask(`DELETE FROM ${table} WHERE id = '${id}' OR written < DATEADD(HOUR, -1, GETUTCDATE())`)
  if (figure(row, 'bytes') !== payloadBytes) {
    throw new ProbeError('data', 'the row that was written is not in the table')
  }
}
