import { figure, onDatabase, text } from '../../database/index.ts'
import { notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { count } from '../../net/text.ts'
import { byName } from './checks.ts'

/** MySQL 8.0.26 and later says `source` where older versions and MariaDB say `master`. */
const either = (name: string): string => `'rpl_semi_sync_master_${name}', 'rpl_semi_sync_source_${name}'`

export const semiSync = onDatabase({
  depth: 'Standard',
  results: {
    'semi-sync': 'The commits of a source wait for a replica; omitted without semi-synchronous replication',
  },
  settings: {},
  observe: async ({ ask }) => {
    const variables = byName(
      await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name IN (${either('enabled')}, 'read_only', 'max_connections')`),
    )
    const status = byName(
      await ask(`SHOW GLOBAL STATUS WHERE Variable_name IN (${either('status')}, ${either('clients')})`),
    )
    const one = (row: typeof status, name: string): string =>
      text(row, `rpl_semi_sync_source_${name}`) || text(row, `rpl_semi_sync_master_${name}`)
    return {
      answered: figure(variables, 'max_connections') !== undefined,
      isOn: one(variables, 'enabled') === 'ON',
      /** On a replica, the applied changes wait for nobody, and the status is mostly off. */
      isReadOnly: !/^(?:OFF|0|)$/.test(text(variables, 'read_only')),
      status: one(status, 'status'),
      replicas: figure({ clients: one(status, 'clients') }, 'clients'),
    }
  },
  evaluate: ({ answered, isOn, isReadOnly, status, replicas }): Result<'semi-sync'> | [] => {
    const check = 'semi-sync'
    if (!answered) return notChecked(check, 'missing', 'the server does not report its variables')
    if (!isOn || isReadOnly) return []
    if (status === '' || replicas === undefined) {
      return notChecked(check, 'missing', 'the server does not report the state of semi-synchronous replication')
    }
    const connected = count(replicas, 'semi-synchronous replica is', 'semi-synchronous replicas are')
    const measurement = { value: replicas, unit: 'count', warn: 1, bound: 'atLeast' } as const
    if (status !== 'ON') {
      const message = `replication is asynchronous now: commits wait for no replica, and ${connected} connected`
      return warn(check, message, { measurement })
    }
    if (replicas === 0) {
      return warn(check, 'no semi-synchronous replica is connected: the next commit waits in vain', { measurement })
    }
    return ok(check, `commits wait for a replica: ${connected} connected`, { measurement })
  },
})
