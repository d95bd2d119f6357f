import { randomUUID } from 'node:crypto'
import { sanitize } from '../../../base/net/text.ts'
import { MissingPrivilegeError, ProbeError } from '../../../base/probe-error.ts'
import { flag, limitOnDatabase, text, truth } from '../../database/index.ts'
import { notChecked } from '../../engine/index.ts'
import { roleReadsOnly } from './checks.ts'
import { identifier } from './errors.ts'

const schema = 'svc_probe'
const relation = 'round_trip'
const table = `${schema}.${relation}`
/** Milliseconds to delete the row. */
const deleteMs = 1_000

const createSchema = (account: string): string => `CREATE SCHEMA ${schema} AUTHORIZATION ${account}`

/**
 * Writes to a table of its own, in a schema that the account owns, so that nobody else can have put a trigger there.
 * The table is unlogged: no publication contains it, so no subscriber receives its rows.
 */
export const write = limitOnDatabase({
  depth: 'Advanced',
  check: 'write',
  proves: `With \`allowWrites\`, on a primary: a row can be inserted, committed and deleted in ${table}. Without it, a full tablespace and a COMMIT that hangs can go unnoticed`,
  setting: 'write',
  unit: 'duration',
  default: { warn: 1_000, limit: 5_000 },
  doc: 'Maximum time to insert a row, and to commit it',
  settings: {
    allowWrites: {
      type: 'flag',
      default: false,
      doc: `Lets \`write\` insert and delete a row in ${table}, which it creates. To test a tablespace other than the default one: ALTER TABLE ${table} SET TABLESPACE`,
    },
  },
  when: ['allowWrites'],
  emptyWhere: 'the server is a standby',
  privilege: createSchema('<account>'),
  observe: async ({ ask, commit, user }, { write: { limit = Number.POSITIVE_INFINITY } }, { now, msLeft }) => {
    const [row] = await ask(`SELECT pg_is_in_recovery() AS standby,
        (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = '${schema}') AS owner,
        ${roleReadsOnly} AS role_reads_only, c.oid IS NOT NULL AS present,
        c.relkind = 'r' AND c.relpersistence = 'u' AND pg_get_userbyid(c.relowner) = current_user AS own
      FROM (SELECT 1) AS one LEFT JOIN pg_class AS c ON c.relname = '${relation}'
        AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = '${schema}')`)
    const isStandby = flag(row, 'standby')
    if (isStandby !== false) return { isStandby }
    const owner = text(row, 'owner')
    if (owner !== sanitize(user, 64)) {
      const whose = owner === '' ? 'does not exist' : `belongs to ${identifier(owner)}`
      throw new MissingPrivilegeError(`the schema ${schema} ${whose}`, [createSchema(identifier(user))])
    }
    const isPresent = truth(row, 'present')
    if (isPresent && !truth(row, 'own'))
      throw new ProbeError('data', `${table} is not the table that svc creates`, [drop])
    const id = randomUUID()
    const create = `CREATE UNLOGGED TABLE IF NOT EXISTS ${table} (id uuid, at timestamptz);`
    // Read-only transactions of the role are not a fault of the server.
    const mode = truth(row, 'role_reads_only') ? 'SET TRANSACTION READ WRITE;' : ''
    const since = now()
    try {
      // A new file gets the row, so that the tablespace needs space for it. TRUNCATE also removes what earlier runs left.
      const insert = `TRUNCATE ${table}; INSERT INTO ${table} VALUES ('${id}', now())`
      await commit(`${mode} ${isPresent ? '' : create} ${insert}`, Math.min(limit, msLeft() / 3))
    } catch (error) {
      if (error instanceof ProbeError && error.fault === 'timeout') await remove(commit, id, mode)
      throw error
    }
    const ms = now() - since
    await remove(commit, id, mode)
    return { isStandby, ms }
  },
  evaluate: ({ isStandby, ms: value }, compare) => {
    if (isStandby === undefined) return notChecked('write', 'missing', 'the server does not report its role')
    if (isStandby) return []
    return compare({ what: 'a row was inserted and committed in', value })
  },
})

const drop = `next: DROP TABLE ${table}`

/** Waits for no standby. A row that stays is removed by the next run. */
const remove = async (commit: (sql: string, ms: number) => Promise<void>, id: string, mode: string): Promise<void> => {
  await commit(`${mode} SET LOCAL synchronous_commit = local; DELETE FROM ${table} WHERE id = '${id}'`, deleteMs).catch(
    () => {},
  )
}
