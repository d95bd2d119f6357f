import { databaseKind, queriesCost, truth } from '../../database/index.ts'
import { behindSignIn, bytes } from '../../recognition/index.ts'
import { archiveBacklog, backupAge } from './backups.ts'
import { connectionLimits, connections, maintenanceChecks, server, sessionChecks } from './checks.ts'
import { configurationChecks } from './configuration.ts'
import { loadPg, openPostgres } from './driver.ts'
import { passwordExpiry } from './passwords.ts'
import { replicationChecks } from './replication.ts'
import { slots } from './slots.ts'
import { subscriptions } from './subscriptions.ts'
import { synchronousChecks } from './synchronous.ts'
import { deadTuples, lastVacuum, sequences } from './tables.ts'
import { upkeepChecks } from './upkeep.ts'
import { write } from './write.ts'

export { loadPg, openConsole } from './driver.ts'

/** SSLRequest: the server replies with one letter before anything else. PgBouncer does the same. */
export const postgresServer = {
  greeting: bytes('00000008 04d2162f'),
  is: (reply: Buffer): boolean => /^[SN]$/.test(reply.toString('latin1')),
}

export default databaseKind({
  name: 'postgres',
  title: 'A PostgreSQL server works, and nothing in it is about to fail',
  exposure:
    'pg_monitor reads all settings and the statements of all sessions, with their values, and no table. The rest reads names, the values of sequences, and writes only in the schema svc_probe.',
  recognition: [
    {
      name: 'postgres',
      ...postgresServer,
      propose: behindSignIn('postgres', (address) => ({ url: `postgres://monitor@${address}/postgres` })),
    },
  ],
  preload: loadPg,
  port: 5_432,
  optionalParts: [
    {
      part: 'application_name',
      unasked: 'A server refuses only parameters that it does not know, and knows this one since 9.0',
    },
    { part: 'SSLRequest', unasked: 'A server without TLS answers N; only sent where the settings ask for TLS' },
  ],
  cost: {
    unit: 'statements',
    Basic: [1, 1, 1],
    Standard: [1, 14, 1],
    Advanced: [1, 40, 1],
    adds: queriesCost(4),
    besides: 'The number of statements varies with the release and the role of the server.',
  },
  settings: {
    url: {
      type: 'url',
      protocols: ['postgres', 'postgresql'],
      required: true,
      doc: 'postgres://user@host:port/database, without a password',
    },
    password: { type: 'secret', doc: "The user's password" },
  },
  open: openPostgres,
  clock: 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS at',
  account: {
    sql: 'SELECT rolsuper AS super, rolreplication AS replication FROM pg_roles WHERE rolname = current_user',
    powers: ([row]) =>
      truth(row, 'super') ? 'as a superuser' : truth(row, 'replication') ? 'as an account with REPLICATION' : undefined,
  },
  checks: [
    server,
    connections,
    connectionLimits,
    passwordExpiry,
    ...sessionChecks,
    ...synchronousChecks,
    ...replicationChecks,
    slots,
    subscriptions,
    ...maintenanceChecks,
    deadTuples,
    lastVacuum,
    sequences,
    archiveBacklog,
    ...upkeepChecks,
    ...configurationChecks,
    backupAge,
    write,
  ],
})
