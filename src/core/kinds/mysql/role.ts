import { onDatabase, text } from '../../database/index.ts'
import { fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { byName, mayReadReplication, replicationStatement } from './checks.ts'

/** The variables that make a server refuse writes. Those that a server does not know are missing. */
const readOnlyVariables = ['read_only', 'super_read_only', 'innodb_read_only', 'transaction_read_only', 'tx_read_only']

type RoleObservation = {
  /** The read-only variables that are set. Undefined if the server does not report `read_only`. */
  readonly readOnly: readonly string[] | undefined
  /** Whether the server has a source. Undefined if it was not read, because no verdict depends on it. */
  readonly replicates: boolean | undefined
}

export const role = onDatabase({
  depth: 'Standard',
  results: { role: 'A source accepts writes, and a replica is read-only' },
  settings: {
    role: {
      type: 'choice',
      values: ['any', 'source', 'replica'],
      default: 'any',
      doc: 'Expected role of the server. `any`: warns if the server is read-only and not a replica',
    },
  },
  privilege: mayReadReplication,
  observe: async ({ ask }, { role: expected }): Promise<RoleObservation> => {
    const names = readOnlyVariables.map((name) => `'${name}'`).join(', ')
    const variables = byName(await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name IN (${names})`))
    if (text(variables, 'read_only') === '') return { readOnly: undefined, replicates: undefined }
    const readOnly = readOnlyVariables.filter((name) => !/^(OFF|0)?$/.test(text(variables, name)))
    const isUnexpected = readOnly.length > 0 !== (expected === 'replica')
    if (expected === 'source' || !isUnexpected) return { readOnly, replicates: undefined }
    const [row] = await ask('SELECT VERSION() AS version')
    const sources = await ask(replicationStatement(text(row, 'version')))
    return { readOnly, replicates: sources.length > 0 }
  },
  evaluate: ({ readOnly, replicates }, { role: expected }): Result<'role'> => {
    if (!readOnly) return notChecked('role', 'missing', 'the server does not report read_only')
    const on = `${readOnly.join(', ')} ${readOnly.length > 1 ? 'are' : 'is'} on`
    const finding = { facts: { role: readOnly.length > 0 ? 'read-only' : 'writable' } }
    if (expected === 'replica') {
      if (readOnly.length > 0) return ok('role', `accepts no writes of clients, as a replica: ${on}`, finding)
      if (!replicates) return fail('role', 'data', 'accepts writes and has no source, expected a replica', finding)
      return warn('role', 'is a replica that accepts writes of clients: read_only is off', finding)
    }
    if (readOnly.length === 0) return ok('role', 'accepts writes', finding)
    if (expected === 'source') return fail('role', 'data', `accepts no writes, expected a source: ${on}`, finding)
    return replicates
      ? ok('role', `is a read-only replica: ${on}`, finding)
      : warn('role', `accepts no writes although it is not a replica: ${on}`, finding)
  },
})
