import { databaseKind, queriesCost, truth } from '../../database/index.ts'
import { signInSettings, socketSettings } from '../../engine/index.ts'
import { behindSignIn, bytes, type Recognition } from '../../recognition/index.ts'
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

/** SSLRequest and GSSENCRequest: the server replies with one letter before anything else. PgBouncer does the same. */
const sslRequest = { greeting: bytes('00000008 04d2162f'), expect: '/^[SN]/' }
const gssRequest = { greeting: bytes('00000008 04d21630'), expect: '/^[GN]/' }

/** How a server that speaks the protocol of PostgreSQL is recognized, and proposed with the database for a deeper check. */
export const postgresServer = (kind: 'postgres' | 'pgbouncer', database: string) =>
  ({
    name: kind,
    greeting: sslRequest.greeting,
    is: (reply) => /^[SN]$/.test(reply.toString('latin1')),
    pool: 'alike',
    propose: async (server, name) => {
      // Offered TLS that no handshake follows is an error in the log of the server, in each run. Before 12, this one is.
      const isKnown = /^[GN]$/.test((await server.ask(gssRequest.greeting))?.toString('latin1') ?? '')
      const url = (address: string) => ({ url: `postgres://monitor@${address}/${database}` })
      return behindSignIn(kind, isKnown ? gssRequest : sslRequest, url)(server, name)
    },
  }) as const satisfies Recognition

export default databaseKind({
  name: 'postgres',
  title: 'A PostgreSQL server works, and nothing in it is about to fail',
  exposure:
    'pg_monitor reads all settings and the statements of all sessions, with their values, and no table. The rest reads names, the values of sequences, and writes only in the schema svc_probe.',
  recognition: [postgresServer('postgres', 'postgres')],
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
    Standard: [1, 8, 1],
    Advanced: [1, 32, 1],
    adds: queriesCost(4),
    besides:
      'The number of statements varies with the release and the role of the server, and is higher with synchronous standbys or subscriptions.',
  },
  settings: {
    ...signInSettings(['postgres', 'postgresql'], 'postgres://user@host:port/database, without a password'),
    ...socketSettings,
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
