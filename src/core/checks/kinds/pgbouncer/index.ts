import { databaseSlot, userIn } from '../../../base/net/url.ts'
import type { SettingsSpec, Values } from '../../../base/settings/index.ts'
import {
  connectDatabase,
  type DatabaseConnection,
  type DatabaseTarget,
  databaseLatency,
  databaseTarget,
  evaluateSignIn,
  tlsProblem,
  tlsSetting,
  validity,
} from '../../database/index.ts'
import { type AddressTurn, type CheckContext, networkKind, signInSettings } from '../../engine/index.ts'
import { loadPg, openConsole, postgresServer } from '../postgres/index.ts'
import { clients, databases, maxWait, version, waitingClients } from './checks.ts'

const port = 6_432

const own = {
  ...signInSettings(
    ['postgres', 'postgresql'],
    'postgres://user@host:6432/pgbouncer, the console, without a password; `stats_users` must contain the user',
  ),
  tls: tlsSetting,
  latency: databaseLatency,
} as const satisfies SettingsSpec

async function prepare(settings: Values<typeof own>): Promise<DatabaseTarget> {
  await loadPg()
  return databaseTarget(settings, port)
}

const open = (
  at: AddressTurn,
  _: unknown,
  context: CheckContext,
  target: DatabaseTarget,
): Promise<DatabaseConnection> => connectDatabase(openConsole, { at, context, target })

/** Signs in to the console of one PgBouncer, and only sends SHOW commands. */
export default networkKind({
  name: 'pgbouncer',
  title: 'A PgBouncer has server connections for its clients',
  exposure:
    'stats_users may use SHOW: addresses, users, databases and figures. PAUSE, RELOAD and SHUTDOWN need admin_users, which svc does not.',
  recognition: [{ ...postgresServer('pgbouncer', 'pgbouncer'), onlyAtStandardPorts: true }],
  preload: loadPg,
  optionalParts: [
    {
      part: 'application_name',
      unasked: 'PgBouncer knows it; every other parameter would need `ignore_startup_parameters`',
    },
    { part: 'SSLRequest', unasked: 'A server without TLS answers N; only sent where the settings ask for TLS' },
  ],
  cost: {
    unit: 'statements',
    Basic: [1, 1, 1],
    Standard: [1, 5, 1],
    Advanced: [1, 5, 1],
  },
  settings: own,
  target: (settings) => databaseSlot(settings, port),
  signsIn: ({ url, password }) => ({ account: userIn(url), secrets: [password], result: 'connect' }),
  validate: (settings) => tlsProblem(databaseTarget(settings, port)),
  prepare,
  connect: {
    results: { connect: 'The account can sign in to the console, in time' },
    open,
    evaluate: ({ connection, ms }, { latency }) => evaluateSignIn(connection, ms, latency),
  },
  checks: [version, validity(), maxWait, waitingClients, databases, clients],
})
