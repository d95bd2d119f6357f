import { figure, onDatabase } from '../../database/index.ts'
import { fail, notChecked, ok, type Result, withThreshold } from '../../engine/index.ts'
import { count } from '../../net/text.ts'

export const replicas = onDatabase({
  depth: 'Advanced',
  results: { replicas: 'With `replicas`: so many replicas receive the changes of this source' },
  settings: {
    replicas: { type: 'integer', min: 0, doc: 'Minimum number of replicas that are connected to this source' },
  },
  when: ['replicas'],
  privilege: 'GRANT PROCESS ON *.* TO <account>',
  observe: async ({ ask }) => {
    // Without PROCESS, the list contains only the own sessions, without an error. Reading innodb_trx is refused then.
    await ask('SELECT COUNT(*) AS open FROM information_schema.innodb_trx')
    const [row] = await ask(`SELECT COUNT(*) AS total, SUM(command LIKE 'Binlog Dump%') AS connected
      FROM information_schema.processlist`)
    return { total: figure(row, 'total'), connected: figure(row, 'connected') }
  },
  evaluate: ({ total, connected }, { replicas: min = 0 }): Result<'replicas'> => {
    const check = 'replicas'
    // The own session is always in the list.
    if (!total || connected === undefined) {
      return notChecked(check, 'missing', 'the server does not report its sessions')
    }
    const are = `${count(connected, 'replica is', 'replicas are')} connected`
    const message = withThreshold(are, { limit: min }, 'count', 'atLeast')
    const measurement = { value: connected, unit: 'count', limit: min, bound: 'atLeast' } as const
    return connected < min ? fail(check, 'data', message, { measurement }) : ok(check, message, { measurement })
  },
})
