import { figure, onDatabase, text } from '../../database/index.ts'
import { atMost, notChecked, ok } from '../../engine/index.ts'
import { connectionsSetting } from './checks.ts'

/** A role or a database that may have only so many connections, and how many it has. */
type Limited = {
  /** `role app` or `database orders`. */
  readonly name: string
  readonly used: number
  readonly most: number
}

export const connectionLimits = onDatabase({
  depth: 'Standard',
  results: {
    'connection limits': 'No role and no database has used up the connections that it may have (CONNECTION LIMIT)',
  },
  settings: { connections: connectionsSetting },
  observe: async ({ ask }) => {
    // The server does not apply the limits to superusers. With a limit of 0, nobody is meant to connect.
    const rows = await ask(`WITH other AS (SELECT usesysid, datid FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND (backend_type = 'client backend' OR (backend_type IS NULL AND usesysid IS NOT NULL)))
      SELECT * FROM (
        SELECT 'role ' || rolname AS name, rolconnlimit AS most,
          (SELECT count(*) FROM other WHERE usesysid = r.oid)::int AS used
        FROM pg_roles AS r WHERE rolconnlimit > 0 AND NOT rolsuper AND rolcanlogin UNION ALL
        SELECT 'database ' || datname, datconnlimit, (SELECT count(*) FROM other WHERE datid = d.oid)::int
        FROM pg_database AS d WHERE datconnlimit > 0 AND datallowconn
      ) AS limited ORDER BY used::float8 / most DESC LIMIT 20`)
    return rows.map((row) => ({ name: text(row, 'name', 80), used: figure(row, 'used'), most: figure(row, 'most') }))
  },
  evaluate: (limited, { connections: threshold }) => {
    const check = 'connection limits'
    const [worst, ...others] = limited.filter(
      (one): one is Limited => one.used !== undefined && one.most !== undefined && one.most > 0,
    )
    if (!worst) {
      return limited.length === 0
        ? ok(check, 'no role and no database has a limit')
        : notChecked(check, 'missing', 'the numbers of connections are not reported')
    }
    return atMost({
      check,
      what: `${describe(worst)}:`,
      value: percentOf(worst),
      unit: 'percent',
      threshold,
      details: others.filter((one) => percentOf(one) > (threshold.warn ?? threshold.limit ?? 100)).map(describe),
    })
  },
})

const percentOf = ({ used, most }: Limited): number => (used / most) * 100
const describe = ({ name, used, most }: Limited): string => `${used} of ${most} connections of the ${name}`
