import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fullTablespace, tablespaceMissing, transactionIdAt } from '../support/faults/postgres-faults.ts'
import { type Pgbackrest, pgbackrestMissing, startPgbackrest } from '../support/servers/pgbackrest.ts'
import {
  debianPostgres,
  debianPostgresMissing,
  type PostgresServer,
  postgresMissing,
  startPostgres,
} from '../support/servers/postgres.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, type Row, warns } from './row.ts'

const password = 'correct horse'
const env = { POSTGRES: password }
const accounts = `CREATE ROLE monitor LOGIN PASSWORD '${password}'; GRANT pg_monitor TO monitor;
  CREATE SCHEMA svc_probe AUTHORIZATION monitor`

/** A server that a fault may restart. */
type One = { server: PostgresServer }

const ask =
  (more: object = {}) =>
  ({ server }: { readonly server: PostgresServer }) => ({
    kind: 'postgres',
    url: server.url('monitor'),
    password: { env: 'POSTGRES' },
    restarted: '0s',
    ...more,
  })

const checkPostgres = (server: PostgresServer, action: string, ...limits: string[]): readonly PeerProgram[] => [
  {
    program: 'check_postgres',
    args: ['--action', action, '-H', '127.0.0.1', '-p', String(server.port), '-u', 'postgres', ...limits],
  },
]

const version = (): string =>
  /\(PostgreSQL\) ([\d.]+)/.exec(
    execFileSync(join(debianPostgres, 'postgres'), ['--version'], { encoding: 'utf8' }),
  )?.[1] ?? ''
const debian = debianPostgresMissing === undefined ? `PostgreSQL ${version()}` : 'PostgreSQL 15'
const age = ['-w', '1300000000', '-c', '1400000000']

const rows: readonly Row<One>[] = [
  { fault: 'a healthy server', monitor: ask({ allowWrites: true, role: 'primary' }), expected: { state: 'healthy' } },
  {
    fault: 'an abandoned replication slot',
    monitor: ask(),
    plant: async ({ server }) => {
      await server.query("SELECT pg_create_physical_replication_slot('forgotten', true)")
      return async () => void (await server.query("SELECT pg_drop_replication_slot('forgotten')"))
    },
    expected: warns('slots', /^forgotten has no consumer and retains/),
    peers: ({ server }) => checkPostgres(server, 'replication_slots', '-w', '1GB', '-c', '10GB'),
  },
  {
    fault: 'healthy: an abandoned replication slot that svc.yaml leaves out',
    monitor: ask({ skipSlots: ['/^forgotten/'] }),
    plant: async ({ server }) => {
      await server.query("SELECT pg_create_physical_replication_slot('forgotten', true)")
      return async () => void (await server.query("SELECT pg_drop_replication_slot('forgotten')"))
    },
    expected: { state: 'healthy' },
  },
  {
    fault: 'a replication slot retains too much WAL',
    monitor: ask({ slots: { limit: '10KiB' } }),
    plant: async ({ server }) => {
      await server.query("SELECT pg_create_physical_replication_slot('forgotten', true)")
      await server.query('CREATE TABLE much AS SELECT generate_series(1, 5000) AS x; DROP TABLE much')
      return async () => void (await server.query("SELECT pg_drop_replication_slot('forgotten')"))
    },
    expected: fails('slots', 'threshold', /^forgotten retains/),
    peers: ({ server }) => checkPostgres(server, 'replication_slots', '-w', '1KB', '-c', '10KB'),
  },
  {
    fault: 'the server restarted a moment ago',
    monitor: ask({ restarted: { warn: '10m' } }),
    expected: warns('restarted', /^up for/),
  },
  {
    fault: 'a page has a wrong checksum',
    monitor: ask(),
    plant: async (one) => {
      await one.server.query('CREATE TABLE page AS SELECT 1 AS x; CHECKPOINT')
      const [row] = await one.server.query("SELECT pg_relation_filepath('page') AS path")
      one.server = await one.server.restart()
      const file = join(one.server.folder, 'data', String(row?.['path']))
      const bytes = readFileSync(file)
      bytes.fill(0x55, 8_000, 8_100)
      writeFileSync(file, bytes)
      await one.server.query('SELECT * FROM page').catch(() => {})
      const counted = 'SELECT 1 FROM pg_stat_database WHERE checksum_failures > 0'
      await until(async () => (await one.server.query(counted)).length > 0)
      return async () => void (await one.server.query('DROP TABLE page; SELECT pg_stat_reset()'))
    },
    expected: fails('checksum failures', 'data', /\(postgres: 1\)/),
    peers: ({ server }) => checkPostgres(server, 'connection'),
  },
  {
    fault: 'autovacuum does not freeze old transaction IDs',
    monitor: ask(),
    plant: async (one) => {
      // An hour passes until autovacuum sees the server.
      one.server = await transactionIdAt(one.server, 500_000, [
        'autovacuum_freeze_max_age=100000',
        'autovacuum_naptime=1h',
      ])
      return undefined
    },
    expected: fails('freeze age', 'threshold', /^oldest transaction ID, in \w+, is at/),
    peers: ({ server }) => checkPostgres(server, 'txn_wraparound', ...age),
  },
  {
    fault: 'the transaction IDs are nearly used up',
    monitor: ask(),
    plant: async (one) => {
      one.server = await transactionIdAt(one.server, 1_999_000_000, ['autovacuum_freeze_max_age=2000000000'])
      return undefined
    },
    expected: fails('wraparound', 'threshold', /^oldest transaction ID, in \w+, is at 95/),
    peers: ({ server }) => checkPostgres(server, 'txn_wraparound', ...age),
  },
]

corpus<One>({
  server: debian,
  env,
  missing: debianPostgresMissing,
  start: async () => {
    const server = await startPostgres([], '', debianPostgres)
    await server.query(accounts)
    return { server }
  },
  rows,
})

corpus<One>({
  server: 'PostgreSQL 18 with a small tablespace',
  env,
  missing: postgresMissing ?? tablespaceMissing,
  start: async () => {
    const server = await startPostgres()
    await server.query(accounts)
    return { server }
  },
  rows: [
    { fault: 'space is free', monitor: ask({ allowWrites: true }), expected: { state: 'healthy' } },
    {
      fault: 'a full tablespace',
      monitor: ask({ allowWrites: true }),
      plant: async ({ server }) => {
        await server.query('DROP TABLE svc_probe.round_trip')
        return (await fullTablespace(server, 'monitor')).end
      },
      expected: fails('write', 'data', /has no space left: could not .*No space left/),
      peers: ({ server }) => checkPostgres(server, 'connection'),
    },
  ],
})

corpus<Pgbackrest>({
  server: `${debian} with pgBackRest`,
  env,
  missing: pgbackrestMissing ?? debianPostgresMissing,
  start: async () => {
    const repository = await startPgbackrest()
    await repository.server.query(accounts)
    return repository
  },
  rows: [
    {
      fault: 'there is no backup',
      monitor: (repository) => ask({ pgbackrest: repository.info() })(repository),
      expected: fails('backup age', 'data', /^stanza main: (no valid|missing)/),
      peers: ({ server }) => checkPostgres(server, 'connection'),
    },
    {
      fault: 'a backup was made just now',
      monitor: (repository) => ask({ pgbackrest: repository.info() })(repository),
      plant: async (repository) => {
        repository.backUp()
        return undefined
      },
      expected: { state: 'healthy' },
    },
    {
      fault: 'the newest backup is too old',
      monitor: (repository) => ask({ pgbackrest: repository.info(), backupAge: { limit: '10ms' } })(repository),
      plant: async () => {
        // pgBackRest reports whole seconds.
        await wait(1_100)
        return undefined
      },
      expected: fails('backup age', 'threshold', /^newest backup of stanza main/),
    },
  ],
})
