import { type MongoPeer, type MongoPeerOptions, mongoPeer } from '../support/simulated/mongo.ts'
import { answers, GiB, hello, member, now, set } from '../support/simulated/mongo-node.ts'
import { clockAt, answers as sqlAnswers } from '../support/simulated/sqlserver.ts'
import { type TdsAnswer, type TdsPeer, tdsPeer } from '../support/simulated/tds.ts'
import { corpus } from './corpus.ts'
import { fails, type Row, warns } from './row.ts'

// Neither product can be had here. Their names say that they are simulated, and the page counts their rows apart.
const password = 'correct horse'
const env = { PASSWORD: password, WRONG: 'another password' }

/** The present state of a simulated node: a row replaces it, and its cure takes that back. */
type Mongo = { readonly peer: MongoPeer; state: MongoPeerOptions }
const soundNode: MongoPeerOptions = { hello: hello.primary, answer: answers() }
const mongo =
  (more: object = {}) =>
  ({ peer }: Mongo) => ({
    kind: 'mongo',
    url: `mongodb://monitor@127.0.0.1:${peer.port}/`,
    password: { env: 'PASSWORD' },
    ...more,
  })
const node = (state: MongoPeerOptions) => async (server: Mongo) => {
  server.state = { ...soundNode, ...state }
  return Promise.resolve(() => {
    server.state = soundNode
  })
}
const status = (more: object) => node({ answer: answers({ serverStatus: { ...set['serverStatus'], ...more } }) })
const cacheOf = (bytes: number, dirty: number) =>
  status({
    wiredTiger: {
      cache: {
        'maximum bytes configured': 10 * GiB,
        'bytes currently in the cache': bytes,
        'tracked dirty bytes in the cache': dirty,
      },
    },
  })
const members = (...all: readonly object[]) =>
  node({ answer: answers({ replSetGetStatus: { ...set['replSetGetStatus'], members: all } }) })
const primary = member('db1:27017', 1, 'PRIMARY', { self: true })

const mongoRows: readonly Row<Mongo>[] = [
  {
    fault: 'a healthy primary',
    monitor: mongo({ allowWrites: true, role: 'primary', replicaSet: 'rs0' }),
    expected: { state: 'healthy' },
  },
  {
    fault: 'the password was changed',
    monitor: mongo({ password: { env: 'WRONG' } }),
    expected: fails('connect', 'auth', /"monitor"/),
  },
  {
    fault: 'a secondary where the primary is expected',
    monitor: mongo({ role: 'primary' }),
    plant: node({ hello: hello.secondary }),
    expected: fails('role', 'data', /secondary/),
  },
  {
    fault: 'a member of the set does not answer',
    monitor: mongo(),
    plant: members(primary, member('db2:27017', 8, '(not reachable/healthy)', { health: 0 })),
    expected: fails('members', 'any', /db2:27017/),
  },
  {
    fault: 'nearly all connections are in use',
    monitor: mongo(),
    plant: status({ connections: { current: 790, available: 10 } }),
    expected: fails('connections', 'threshold', /790 of 800/),
  },
  {
    fault: 'a secondary is behind by a minute',
    monitor: mongo(),
    plant: members(primary, member('db2:27017', 2, 'SECONDARY', { optimeDate: new Date(now - 61_000) })),
    expected: fails('replication lag', 'threshold', /db2:27017.*1 min/),
  },
  {
    fault: 'many operations wait for a lock',
    monitor: mongo(),
    plant: status({ globalLock: { currentQueue: { total: 50, readers: 20, writers: 30 } } }),
    expected: fails('queues', 'threshold', /\b50\b/),
  },
  {
    fault: 'the cache is full',
    monitor: mongo(),
    plant: cacheOf(9.8 * GiB, GiB / 2),
    expected: warns('cache', /98 %/),
  },
  {
    fault: 'too much of the cache waits to be written',
    monitor: mongo(),
    plant: cacheOf(8 * GiB, 3 * GiB),
    expected: warns('cache dirty', /30 %/),
  },
  {
    fault: 'the clock is a minute behind',
    monitor: mongo(),
    plant: node({ hello: { ...hello.primary, localTime: new Date(Date.now() - 60_000) } }),
    expected: fails('clock', 'threshold', /min|behind/),
  },
  {
    fault: 'no majority acknowledges a write',
    monitor: mongo({ allowWrites: true }),
    plant: node({
      answer: answers({
        insert: { n: 1, ok: 1, writeConcernError: { code: 64, errmsg: 'waiting for replication timed out' } },
      }),
    }),
    expected: fails('write concern', 'any', /majority|timed out/),
  },
]

corpus<Mongo>({
  server: 'MongoDB (simulated)',
  env,
  missing: undefined,
  start: async () => {
    const server = { state: soundNode } as { peer: MongoPeer; state: MongoPeerOptions }
    server.peer = await mongoPeer({
      users: { monitor: password },
      get hello() {
        return server.state.hello ?? {}
      },
      answer: (command) => server.state.answer?.(command),
    })
    return server
  },
  rows: mongoRows,
})

type Answers = Readonly<Record<string, TdsAnswer>>
type Sqlserver = { readonly peer: TdsPeer; over: Answers; loginFails: boolean }
const sqlserver =
  (more: object = {}) =>
  ({ peer }: Sqlserver) => ({
    kind: 'sqlserver',
    url: `sqlserver://monitor@127.0.0.1:${peer.port}/orders`,
    password: { env: 'PASSWORD' },
    ...more,
  })
const rowsOf = (part: string, ...rows: readonly Readonly<Record<string, string | number | null>>[]): Answers => ({
  [part]: { rows },
})
const answering = (over: Answers) => async (server: Sqlserver) => {
  server.over = over
  return Promise.resolve(() => {
    server.over = {}
  })
}
const pages = 1024 ** 3 / 8_192

/** The statements of `write`, and what a database that accepts writes answers. */
const writable: Answers = {
  Updateability: { rows: [{ writable: 1 }] },
  'CREATE TABLE': { rows: [] },
  'sys.key_constraints': { rows: [{ own: 1 }] },
  'INSERT INTO': { rows: [] },
  DATALENGTH: { rows: [{ bytes: 262_144 }] },
  'DELETE FROM': { rows: [] },
}
const waitingJobs = { queries: [{ name: 'waiting jobs', sql: 'SELECT count(*) FROM jobs', atMost: 10 }] }

const sqlserverRows: readonly Row<Sqlserver>[] = [
  {
    fault: 'healthy, with a write and a query',
    monitor: sqlserver({ allowWrites: true, ...waitingJobs }),
    plant: answering({ ...writable, 'FROM jobs': { rows: [{ x: 2 }] } }),
    expected: { state: 'healthy' },
  },
  {
    fault: 'the filegroup is full, and svc may write',
    monitor: sqlserver({ allowWrites: true }),
    plant: answering({
      ...writable,
      'INSERT INTO': { error: { number: 1_105, message: "Could not allocate space in filegroup 'PRIMARY'." } },
    }),
    expected: fails('write', 'data', /filegroup|space/),
  },
  {
    fault: 'a query of the operator finds too much',
    monitor: sqlserver(waitingJobs),
    plant: answering({ 'FROM jobs': { rows: [{ x: 25 }] } }),
    expected: fails('queries', 'threshold', /^waiting jobs: 25/),
  },
  { fault: 'healthy', monitor: sqlserver(), expected: { state: 'healthy' } },
  {
    fault: 'the login failed',
    monitor: sqlserver(),
    plant: async (server) => {
      server.loginFails = true
      return Promise.resolve(() => {
        server.loginFails = false
      })
    },
    expected: fails('connect', 'auth', /"monitor"/),
  },
  {
    fault: 'a database is suspect',
    monitor: sqlserver(),
    plant: answering(rowsOf('state_desc AS state FROM sys.databases', { may: 1, name: 'orders', state: 'SUSPECT' })),
    expected: fails('databases', 'data', /orders is SUSPECT/),
  },
  {
    fault: 'nearly all connections are in use',
    monitor: sqlserver(),
    plant: answering(rowsOf('sys.dm_exec_sessions', { may: 1, used: 98, configured: 100, most: 32_767 })),
    expected: fails('sessions', 'threshold', /98 of 100/),
  },
  {
    fault: 'a log fills up, because no backup frees it',
    monitor: sqlserver(),
    plant: answering(rowsOf('Percent Log Used', { name: 'orders', waits: 'LOG_BACKUP', used: 80 })),
    expected: warns('log reuse', /orders.*LOG_BACKUP|LOG_BACKUP.*orders/),
  },
  {
    fault: 'the files of the database are full',
    monitor: sqlserver(),
    plant: answering(
      rowsOf('SpaceUsed', {
        name: 'orders',
        used: Math.round(3.96 * pages),
        size: 4 * pages,
        most: 4 * pages,
        growth: 0,
        volume: 'D:\\',
        free: 0,
      }),
    ),
    expected: fails('data space', 'threshold', /orders/),
  },
  {
    fault: 'the last full backup is five days old',
    monitor: sqlserver(),
    plant: answering(
      rowsOf('msdb.dbo.backupset', {
        name: 'orders',
        recovery: 'SIMPLE',
        id: 7,
        made: 900_000,
        fullAge: 7_200,
        logAge: null,
      }),
    ),
    expected: fails('full backup', 'threshold', /orders.*5 d/),
  },
  {
    fault: 'no log backup for two hours',
    monitor: sqlserver(),
    plant: answering(
      rowsOf('msdb.dbo.backupset', {
        name: 'orders',
        recovery: 'FULL',
        id: 7,
        made: 900_000,
        fullAge: 600,
        logAge: 120,
      }),
    ),
    expected: fails('log backup', 'threshold', /orders.*2 h/),
  },
  {
    fault: 'an Agent job has failed',
    monitor: sqlserver(),
    plant: answering(rowsOf('msdb.dbo.sysjobs', { name: 'nightly', enabled: 1, failed: 1 })),
    expected: warns('failed jobs', /nightly/),
  },
  {
    fault: 'CHECKDB has not run for a month',
    monitor: sqlserver(),
    plant: answering(rowsOf('LastGoodCheckDbTime', { name: 'orders', made: 900_000, age: 43_200, known: 1 })),
    expected: warns('checkdb', /orders.*30 d/),
  },
  {
    fault: 'an availability group is not healthy',
    monitor: sqlserver(),
    plant: answering(
      rowsOf('r.role_desc AS role', { name: 'ag1', holder: 'DB01', role: 'PRIMARY', health: 'NOT_HEALTHY' }),
    ),
    expected: fails('availability group', 'data', /ag1/),
  },
  {
    fault: 'the clock is a minute behind',
    monitor: sqlserver(),
    plant: answering({ 'SYSUTCDATETIME()': { rows: clockAt(-60_000) } }),
    expected: fails('clock', 'threshold', /behind|min/),
  },
]

corpus<Sqlserver>({
  server: 'SQL Server (simulated)',
  env,
  missing: undefined,
  start: async () => {
    const server = { over: {}, loginFails: false } as { peer: TdsPeer; over: Answers; loginFails: boolean }
    server.peer = await tdsPeer({
      login: () =>
        server.loginFails ? [{ number: 18_456, state: 1, message: "Login failed for user 'monitor'." }] : undefined,
      answer: (sql) => sqlAnswers(server.over)(sql),
    })
    return server
  },
  rows: sqlserverRows,
})
