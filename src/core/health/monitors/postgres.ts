import { lookAtClock } from '../db/clock.ts'
import { loadPg, openPostgres } from '../db/postgres.ts'
import { judgeLook, type PostgresLook } from '../db/postgres-judge.ts'
import {
  lookAtArchiver,
  lookAtChecksums,
  lookAtConnections,
  lookAtLocks,
  lookAtPrepared,
  lookAtServer,
  lookAtTransactions,
  lookAtWraparound,
} from '../db/postgres-look.ts'
import { lookAtReplication, lookAtSlots } from '../db/postgres-replication.ts'
import { postgresSettings } from '../db/postgres-settings.ts'
import { queryLooks } from '../db/query.ts'
import { postgresAccount } from '../db/query-account.ts'
import { queriesCheck, queriesProblem } from '../db/query-settings.ts'
import { databaseTarget, slotOf } from '../db/target.ts'
import { judgeVisit, type Look, type Visit, visit } from '../db/visit.ts'
import { includes } from '../engine.ts'
import { monitorKind } from '../monitor.ts'

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
  kind: 'postgres',
  title: 'A PostgreSQL server works, and would survive the night',
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
  contradiction: ({ queries }) => queriesProblem(queries, 'postgres'),
  preload: loadPg,
  async *observe(settings, world): AsyncGenerator<Visit<PostgresLook>> {
    const looks = [
      ...(includes(world.mode, 'Standard') ? standard : []),
      ...(includes(world.mode, 'Advanced') ? advanced : []),
      ...(includes(world.mode, 'Advanced') ? [['clock', lookAtClock(world, clockSql)] as const] : []),
      ...queryLooks(settings.queries, world, postgresAccount),
    ]
    yield* visit(world, databaseTarget(settings, defaultPort), openPostgres, looks)
  },
  judge: (seen, settings) => judgeVisit(seen, settings.latency, (look) => judgeLook(look, settings)),
})
