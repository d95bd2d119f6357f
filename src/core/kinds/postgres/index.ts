import {
  databaseTarget,
  evaluateVisit,
  type Look,
  lookAtClock,
  postgresAccount,
  queriesCheck,
  queriesProblem,
  queryLooks,
  slotOf,
  type Visit,
  visit,
} from '../../database/index.ts'
import { includes, monitorKind } from '../../engine/index.ts'
import { loadPg, openPostgres } from './driver.ts'
import { evaluateLook, type PostgresLook } from './judge.ts'
import {
  lookAtArchiver,
  lookAtChecksums,
  lookAtConnections,
  lookAtLocks,
  lookAtPrepared,
  lookAtServer,
  lookAtTransactions,
  lookAtWraparound,
} from './look.ts'
import { lookAtReplication, lookAtSlots } from './replication.ts'
import { postgresSettings } from './settings.ts'

const standard: readonly Look<PostgresLook>[] = [
  ['role', lookAtServer],
  ['connections', lookAtConnections],
  ['longest transaction', lookAtTransactions],
  ['lock wait', lookAtLocks],
]
const advanced: readonly Look<PostgresLook>[] = [
  ['replication lag', lookAtReplication],
  ['slots', lookAtSlots],
  ['wraparound', lookAtWraparound],
  ['archiver', lookAtArchiver],
  ['prepared transactions', lookAtPrepared],
  ['checksum failures', lookAtChecksums],
]
/** Milliseconds since 1970. */
const clockSql = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS at'
const defaultPort = 5_432

/** Signs in and only reads. Nothing of it stays on the server after the deadline. */
export default monitorKind({
  name: 'postgres',
  title: 'A PostgreSQL server works, and would survive the night',
  preload: loadPg,
  settings: postgresSettings,
  checks: [
    { name: 'connect', depth: 'Basic', doc: 'The server lets the account in, in time' },
    { name: 'query', depth: 'Basic', doc: 'SELECT 1 is answered in time' },
    { name: 'role', depth: 'Standard', doc: 'It is the primary or the standby that it should be' },
    { name: 'restarted', depth: 'Standard', doc: 'It has not just been restarted' },
    { name: 'connections', depth: 'Standard', doc: 'Connections are left for ordinary accounts' },
    { name: 'longest transaction', depth: 'Standard', doc: 'No transaction of a client is open for too long' },
    { name: 'lock wait', depth: 'Standard', doc: 'Nobody waits too long for a lock' },
    { name: 'replication lag', depth: 'Advanced', doc: 'Its standbys, or it as a standby, are not behind' },
    {
      name: 'replicas',
      depth: 'Advanced',
      doc: 'As many replicas stream as `replicas` says; left out without it',
      when: ['replicas'],
    },
    { name: 'slots', depth: 'Advanced', doc: 'No replication slot is abandoned or holds back too much WAL' },
    { name: 'wraparound', depth: 'Advanced', doc: 'Transaction ids are frozen long before they run out' },
    { name: 'archiver', depth: 'Advanced', doc: 'WAL files are archived' },
    { name: 'prepared transactions', depth: 'Advanced', doc: 'No prepared transaction is forgotten' },
    { name: 'checksum failures', depth: 'Advanced', doc: 'No page was read with a wrong checksum' },
    { name: 'clock', depth: 'Advanced', doc: "The server's clock agrees with ours" },
    queriesCheck,
  ],
  target: (settings) => slotOf(settings, defaultPort),
  signsIn: () => true,
  validate: ({ queries }) => queriesProblem(queries, 'postgres'),
  async *observe(settings, context): AsyncGenerator<Visit<PostgresLook>> {
    const looks = [
      ...(includes(context.mode, 'Standard') ? standard : []),
      ...(includes(context.mode, 'Advanced') ? advanced : []),
      ...(includes(context.mode, 'Advanced') ? [['clock', lookAtClock(context, clockSql)] as const] : []),
      ...queryLooks(settings.queries, context, postgresAccount),
    ]
    yield* visit(context, databaseTarget(settings, defaultPort), openPostgres, looks)
  },
  evaluate: (seen, settings) => evaluateVisit(seen, settings.latency, (look) => evaluateLook(look, settings)),
})
