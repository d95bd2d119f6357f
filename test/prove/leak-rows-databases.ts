import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openData } from '../../src/core/store/index.ts'
import { mariadbMissing, startMariadb } from '../support/servers/mariadb.ts'
import { pgbouncerMissing, startPgbouncer } from '../support/servers/pgbouncer.ts'
import { postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { redisMissing, startRedis } from '../support/servers/redis.ts'
import { remove } from '../support/servers/server.ts'
import { mongoPeer } from '../support/simulated/mongo.ts'
import { done, errorToken, packets, tdsPeer } from '../support/simulated/tds.ts'
import { broken, open, type Row, run, well } from './leak-row.ts'

const word = 'correct horse'
const env = { WORD: word, WRONG: 'wrong horse' }
const password = { env: 'WORD' }
const problems = { env: 'WRONG' }
const at = (scheme: string, port: number, rest = ''): string => `${scheme}://monitor@127.0.0.1:${port}${rest}`
const rows = (results: readonly Record<string, unknown>[]): readonly string[] =>
  results.map((row) => JSON.stringify(row))

const queries = [{ name: 'one', sql: 'SELECT 1 AS answer', atMost: 1 }]

/** Kinds that sign in to a database. */
export const databaseRows = {
  postgres: {
    missing: postgresMissing,
    cost: 'cheap',
    start: async () => {
      const server = await startPostgres()
      await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor`)
      // The server offers no TLS, whatever the client requests, and then demands an unknown authentication method.
      const breaks = await broken((port) => ({ url: at('postgres', port, '/postgres'), password }), 'R\0\0')
      const url = server.url('monitor')
      return {
        env,
        breaks,
        cases: [
          well({ url, password, queries }),
          run('wrong password', ['auth'], { url, password: problems }),
          run('no such database', 'fails', { url: server.url('monitor', 'none'), password }),
        ],
        left: async () => [
          ...rows(
            await server.query(
              "SELECT pid, usename, state FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
            ),
          ),
        ],
        stop: async () => await server.remove(),
      }
    },
  },
  mysql: {
    missing: mariadbMissing,
    cost: 'cheap',
    start: async () => {
      const server = await startMariadb(['--max-connect-errors=1000000'])
      await server.query(`CREATE USER monitor@'127.0.0.1' IDENTIFIED BY '${word}';
        GRANT PROCESS, SLAVE MONITOR ON *.* TO monitor@'127.0.0.1'`)
      const breaks = await broken(
        (port) => ({ url: at('mysql', port), password }),
        Buffer.from([74, 0, 0, 0, 10, 53]),
        { sendsFirst: true },
      )
      const url = server.url('monitor')
      return {
        env,
        breaks,
        cases: [well({ url, password, queries }), run('wrong password', ['auth'], { url, password: problems })],
        left: async () => [
          ...rows(
            await server.query(
              "SELECT id, user, command FROM information_schema.processlist WHERE user IN ('monitor', 'unauthenticated user')",
            ),
          ),
        ],
        stop: async () => await server.remove(),
      }
    },
  },
  redis: {
    missing: redisMissing,
    cost: 'cheap',
    start: async () => {
      const server = await startRedis({ password: word, settings: ['--requirepass', word] })
      const breaks = await broken((port) => ({ url: `redis://127.0.0.1:${port}` }), '+PO')
      return {
        env,
        breaks,
        cases: [
          well({ url: server.url, password, allowWrites: true, queues: [{ key: 'jobs', age: '1h' }] }),
          run('wrong password', ['auth'], { url: server.url, password: problems }),
        ],
        left: async () => [...(await server.left())],
        stop: async () => await server.remove(),
      }
    },
  },
  pgbouncer: {
    missing: pgbouncerMissing ?? postgresMissing,
    cost: 'cheap',
    start: async () => {
      const server = await startPostgres()
      const databases = { orders: `host=127.0.0.1 port=${server.port} dbname=postgres` }
      const bouncer = await startPgbouncer({ users: { stats: word }, databases })
      const breaks = await broken((port) => ({ url: at('postgres', port, '/pgbouncer'), password }), 'R\0\0')
      const url = bouncer.url('stats', 'pgbouncer')
      return {
        env,
        breaks,
        cases: [well({ url, password }), run('wrong password', ['auth'], { url, password: problems })],
        stop: async () => {
          await bouncer.remove()
          await server.remove()
        },
      }
    },
  },
  mongo: {
    missing: undefined,
    simulated: 'MongoDB',
    // Seen to swing by 200 in 600 runs, and never beyond.
    hoards: 200,
    cost: 'cheap',
    start: async () => {
      const server = await mongoPeer({
        users: { monitor: word },
        answer: (command) =>
          'serverStatus' in command ? { globalLock: { currentQueue: { total: 0 } }, ok: 1 } : undefined,
      })
      const breaks = await broken(
        (port) => ({ url: at('mongodb', port, '/'), password }),
        Buffer.from([90, 0, 0, 0, 1]),
      )
      const url = at('mongodb', server.port, '/')
      return {
        env,
        breaks,
        cases: [
          // It answers with too little for most looks, which then say so as a warning.
          well({ url, password }),
          run('wrong password', ['auth'], { url, password: problems }),
        ],
        left: () => open('simulated', server),
        stop: async () => await server.close(),
      }
    },
  },
  sqlserver: {
    missing: undefined,
    simulated: 'SQL Server',
    cost: 'cheap',
    start: async () => {
      const refused = { number: 18_456, state: 1, message: "Login failed for user 'monitor'." }
      const server = await tdsPeer({
        login: (login) => (login.password === word ? undefined : [refused]),
        answer: (sql) => {
          if (sql.includes('SELECT 1 AS one') || sql.includes('AS answer')) return { rows: [{ one: 1 }] }
          if (sql.includes('SYSUTCDATETIME()')) return { rows: [{ at: Date.now() }] }
          return { error: { number: 208, message: 'Invalid object name.' } }
        },
      })
      const reply = packets(4, Buffer.concat([errorToken(refused), done()]))
      const breaks = await broken(
        (port) => ({ url: at('sqlserver', port, '/orders'), password }),
        reply.subarray(0, 20),
      )
      const url = at('sqlserver', server.port, '/orders')
      return {
        env,
        breaks,
        cases: [
          // It refuses what the looks ask, which then say so as a warning.
          well({ url, password, queries }),
          run('wrong password', ['auth'], { url, password: problems }),
        ],
        left: () => open('simulated', server),
        stop: async () => await server.close(),
      }
    },
  },
  sqlite: {
    missing: undefined,
    cost: 'dear',
    start: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'svc-sqlite-'))
      const path = join(folder, 'svc.db')
      await (await openData({ store: path, create: true })).close()
      return {
        cases: [
          well(
            { path, queries },
            { modes: ['Basic', 'Standard', 'Basic', 'Standard', 'Basic', 'Advanced'], atOnce: 4 },
          ),
          run('missing', 'fails', { path: join(folder, 'none.db') }),
          run('no database', 'fails', { path: process.execPath }),
          run('cut by the deadline', ['timeout'], { path, timeout: '40ms' }, { modes: ['Advanced'], atOnce: 4 }),
        ],
        left: () => [],
        stop: async () => remove(folder),
      }
    },
  },
} as const satisfies Record<string, Row>
