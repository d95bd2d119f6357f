import { databaseKind, figure, queriesCost } from '../../database/index.ts'
import { signInSettings } from '../../engine/index.ts'
import { behindSignIn, bytes } from '../../recognition/index.ts'
import { backups, checkdb } from './backups.ts'
import { availabilityGroups, blocked, databases, failedJobs, logReuse, sessions } from './checks.ts'
import { loadTedious, openSqlserver } from './driver.ts'
import { dataSpace, logSpace, tempdb } from './space.ts'
import { write } from './write.ts'

/** The smallest PRELOGIN of TDS: a version, no encryption. */
const prelogin = bytes('12 01 001a 0000 00 00 00 000b 0006 01 0011 0001 ff 000000000000 02')

export default databaseKind({
  name: 'sqlserver',
  title: 'A Microsoft SQL Server works, and nothing in it is about to fail',
  exposure:
    'VIEW SERVER STATE shows the statements of all sessions, and VIEW ANY DEFINITION the source of all objects. No row of a database, apart from the names of backups and jobs in msdb.',
  recognition: [
    {
      name: 'sqlserver',
      greeting: prelogin,
      is: (reply) => reply[0] === 4 && reply.length > 8,
      pool: 'alike',
      propose: behindSignIn('sqlserver', { greeting: prelogin, expect: '/^\\x04/' }, (address) => ({
        url: `sqlserver://monitor@${address}/master`,
      })),
    },
  ],
  driver: 'sqlserver',
  preload: loadTedious,
  port: 1_433,
  optionalParts: [],
  cost: {
    unit: 'statements',
    Basic: [1, 2, 1],
    Standard: [1, 9, 1],
    Advanced: [1, 18, 1],
    adds: queriesCost(2),
    besides:
      'The figures are those of a simulated server; the number of statements varies with the release of the server.',
  },
  settings: {
    ...signInSettings(
      ['sqlserver', 'mssql'],
      'sqlserver://user@host:port/database, without a password, for a SQL Server login; for a named instance, give its port',
      'Password of the login',
    ),
  },
  connectDoc: 'The login can sign in, in time',
  open: openSqlserver,
  // Counts from 2020, because DATEDIFF returns 32 bits; only servers since 2016 can count milliseconds directly.
  clock: `SELECT (CAST(DATEDIFF(SECOND, '20200101', t) AS bigint) + 1577836800) * 1000
    + DATEPART(MILLISECOND, t) AS [at] FROM (VALUES (SYSUTCDATETIME())) AS clock (t)`,
  account: {
    sql: "SELECT IS_SRVROLEMEMBER('sysadmin') AS sysadmin",
    powers: ([row]) => (figure(row, 'sysadmin') === 1 ? 'as a sysadmin' : undefined),
  },
  checks: [
    databases,
    logReuse,
    sessions,
    blocked,
    dataSpace,
    logSpace,
    backups,
    availabilityGroups,
    tempdb,
    failedJobs,
    checkdb,
    write,
  ],
})
