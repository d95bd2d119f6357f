import { onDatabase, text } from '../../database/index.ts'
import { fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { count } from '../../net/text.ts'
import { byName } from './checks.ts'
import { mayReadReplication, readChannels, readGroupRole } from './replication.ts'

/** The variables that make a server refuse writes. Those that a server does not know are missing. */
const readOnlyVariables = ['read_only', 'super_read_only', 'innodb_read_only', 'transaction_read_only', 'tx_read_only']

type RoleObservation = {
  /** The read-only variables that are set. Undefined if the server does not report `read_only`. */
  readonly readOnly: readonly string[] | undefined
  /** How many sources the server replicates from. Undefined if it was not read, because no verdict depends on it. */
  readonly sources: number | undefined
  /** Whether it is the primary or a secondary of a group (group replication). */
  readonly group: 'primary' | 'secondary' | undefined
}

export const role = onDatabase({
  depth: 'Standard',
  results: { role: 'A source accepts writes, and a replica is read-only' },
  settings: {
    role: {
      type: 'choice',
      values: ['any', 'source', 'replica', 'both'],
      default: 'any',
      doc: 'Expected role of the server. `both`: accepts writes and replicates, as two servers that replicate from each other. `any`: warns if the server is read-only and no replica, or accepts writes and is a replica',
    },
  },
  privilege: mayReadReplication,
  observe: async ({ ask }, { role: expected }): Promise<RoleObservation> => {
    const names = readOnlyVariables.map((name) => `'${name}'`).join(', ')
    const variables = byName(await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name IN (${names})`))
    const group = await readGroupRole(ask)
    if (text(variables, 'read_only') === '') return { readOnly: undefined, sources: undefined, group }
    const readOnly = readOnlyVariables.filter((name) => !/^(OFF|0)?$/.test(text(variables, name)))
    const isDecided = readOnly.length > 0 && (expected === 'replica' || expected === 'source' || group === 'secondary')
    return { readOnly, sources: isDecided ? undefined : (await readChannels(ask)).length, group }
  },
  evaluate: ({ readOnly, sources = 0, group }, { role: expected }): Result<'role'> => {
    if (!readOnly) return notChecked('role', 'missing', 'the server does not report read_only')
    const on = `${readOnly.join(', ')} ${readOnly.length > 1 ? 'are' : 'is'} on`
    const of = group === undefined ? '' : `, ${group} of its group`
    const finding = { facts: { role: readOnly.length > 0 ? 'read-only' : 'writable' } }
    const from = count(sources, 'source')
    if (readOnly.length > 0) {
      if (expected === 'replica') return ok('role', `accepts no writes of clients, as a replica: ${on}`, finding)
      if (expected !== 'any') {
        return fail('role', 'data', `accepts no writes, expected a source${of}: ${on}`, finding)
      }
      if (group === 'secondary') return ok('role', `is a read-only secondary of its group: ${on}`, finding)
      return sources > 0
        ? ok('role', `is a read-only replica: ${on}`, finding)
        : warn('role', `accepts no writes although it is not a replica: ${on}`, finding)
    }
    if (expected === 'both') {
      if (sources === 0) return fail('role', 'data', 'accepts writes and has no source, expected both', finding)
      return ok('role', `accepts writes and replicates from ${from}`, finding)
    }
    if (sources > 0) {
      const details = ['next: SET GLOBAL read_only = 1, or, if that is intended, role: both']
      const message = 'is a replica that accepts writes of clients: read_only is off'
      return warn('role', message, { ...finding, details })
    }
    if (expected === 'replica') {
      return fail('role', 'data', 'accepts writes and has no source, expected a replica', finding)
    }
    return ok('role', `accepts writes${of}`, finding)
  },
})
