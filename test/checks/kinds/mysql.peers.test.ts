import { chownSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Connection, createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import { databaseTarget, PeerSocket } from '../../../src/core/checks/database/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import { openMysql } from '../../../src/core/checks/kinds/mysql/driver.ts'
import mysql from '../../../src/core/checks/kinds/mysql/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { files } from '../../support/engine/files.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { checked, ofRunner, type RunKindOptions, runKind, secret } from '../../support/engine/run-kind.ts'
import { endless, type Peer, peer, speaks } from '../../support/faults/faults.ts'
import {
  autoIncrementAt,
  mountMissing,
  readOnly,
  startMariadbOnSmallDisk,
} from '../../support/faults/mariadb-faults.ts'
import { type MariadbServer, mariadbMissing, startMariadb } from '../../support/servers/mariadb.ts'
import { asServer, remove, serverFolder } from '../../support/servers/server.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'
import { sqlSuite, word } from './sql/suite.ts'

type Settings = Partial<Values<typeof mysql.settings>>

let server: MariadbServer
const here = "'127.0.0.1'"
const run = (settings: Settings = {}, mode: ExecutionMode = 'Basic', options: RunKindOptions = {}) =>
  runKind(mysql, { url: server.url('monitor'), password: secret(word), ...settings }, mode, options)
const one = async (check: string, ...args: Parameters<typeof run>): Promise<Result> =>
  checked(await run(...args), check)
const processes = (which: string, of = server) =>
  of.query(`SELECT id, user AS user FROM information_schema.processlist WHERE ${which}`)
const figureOf = async (of: MariadbServer, name: string): Promise<number> =>
  Number((await of.query(`SHOW GLOBAL STATUS LIKE '${name}'`))[0]?.['Value'])
const sleeping = (of = server) => processes("info LIKE '%SLEEP(60)%' AND user = 'monitor'", of)
const grants = (privilege: string) => ({
  name: privilege,
  plant: () => server.query(`GRANT ${privilege} ON *.* TO monitor@${here}`),
  end: () => server.query(`REVOKE ${privilege} ON *.* FROM monitor@${here}`),
  as: `with the privilege ${privilege}`,
})
/** It is without TLS, neither a replica nor a node of a cluster, and svc.yaml has neither queries nor expectations. */
const absent: readonly string[] = [
  ...['certificate', 'write', 'queries'],
  ...['galera', 'group replication', 'nodes', 'flow control', 'receive queue'],
  ...['grant tables', 'password expiry'],
  ...['semi-sync', 'replication lag', 'replication filters', 'source heartbeat', 'replicas', 'errant transactions'],
]
const all = mysql.checks.map(({ name }) => name).filter((name) => ![...absent, ...ofRunner].includes(name))

sqlSuite(
  {
    name: 'MariaDB',
    missing: mariadbMissing,
    start: async () => {
      const log = ['--log-bin=binlog', '--log-bin-trust-function-creators=1', '--server-id=1']
      server = await startMariadb([...log, '--max-connect-errors=100000'])
      await server.query(`CREATE USER monitor@${here} IDENTIFIED BY '${word}';
        GRANT PROCESS, SLAVE MONITOR ON *.* TO monitor@${here}; CREATE USER stranger@${here} IDENTIFIED BY '${word}';
        CREATE DATABASE orders; USE orders; CREATE DATABASE closed; CREATE TABLE closed.jobs (id int);
        CREATE TABLE jobs (id int, state varchar(20), created_at timestamp(3) NULL, naive datetime);
        CREATE TABLE old (id int) ENGINE = MyISAM; CREATE SEQUENCE ids;
        CREATE FUNCTION add_job() RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO jobs (id) VALUES (99); RETURN 1; END;
        CREATE FUNCTION add_old() RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO old VALUES (9); RETURN 1; END;
        INSERT INTO jobs VALUES (1, 'waiting', NOW() - INTERVAL 1 HOUR, UTC_TIMESTAMP() - INTERVAL 2 HOUR),
          (2, 'waiting', NOW(), UTC_TIMESTAMP()), (3, 'failed', NULL, NULL);
        GRANT SELECT, INSERT, DELETE, EXECUTE ON orders.* TO monitor@${here}`)
    },
    stop: () => server.remove(),
    run,
    runWell: (settings = {}, ...more) =>
      run({ url: server.url('monitor', 'orders'), restarted: {}, ...settings }, ...more),
    checks: {
      Basic: ['connect', 'query'],
      Standard: ['connect', 'query', 'connections', 'running', 'restarted', 'role', 'lock wait'],
      Advanced: all,
    },
    messages: {
      mode: 'Standard',
      of: {
        connect: /^signed in to 127\.0\.0\.1:\d+ as monitor in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/,
        connections: /^\d of 20 connections: \d+ % \(warn 80 %\)$/,
        running: /^\d running threads? of 20: \d+ % \(warn 60 %\)$/,
      },
    },
    open: () => processes("user IN ('monitor', 'stranger', 'unauthenticated user')"),
    log: () => server.log(),
    network: {
      scheme: 'mysql',
      database: 'orders',
      server: () => server,
      open: openMysql,
      resources: '',
      refusals: () => figureOf(server, 'Access_denied_errors'),
      passwordRefusal: /refused the sign-in of "monitor"/,
      conditions: {
        noPassword: { run: () => runKind(mysql, { url: server.url('monitor') }) },
        noAccount: { settings: () => ({ url: server.url('nobody') }) },
        locked: {
          plant: () => server.query(`ALTER USER stranger@${here} ACCOUNT LOCK`),
          settings: () => ({ url: server.url('stranger') }),
          end: () => server.query(`ALTER USER stranger@${here} ACCOUNT UNLOCK`),
        },
        missingDatabase: {
          plant: () => server.query(`GRANT SELECT ON \`gone\`.* TO monitor@${here}`),
          settings: () => ({ url: server.url('monitor', 'gone') }),
          message: /Unknown database 'gone'/,
        },
        closedDatabase: {
          settings: () => ({ url: server.url('stranger', 'orders') }),
          message: /denies "stranger" access to the database/,
        },
        full: {
          plant: async () => {
            await server.query(`GRANT USAGE ON *.* TO stranger@${here} WITH MAX_CONNECTIONS_PER_HOUR 1`)
            await run({ url: server.url('stranger') })
          },
          settings: () => ({ url: server.url('stranger') }),
          message: /accepts no more connections/,
          end: () => server.query(`GRANT USAGE ON *.* TO stranger@${here} WITH MAX_CONNECTIONS_PER_HOUR 0`),
        },
      },
      inAnotherZone: async () => {
        await server.query("SET GLOBAL time_zone = '+05:00'")
        return () => server.query("SET GLOBAL time_zone = 'SYSTEM'")
      },
      hostile: [
        ['a handshake that is cut', speaks(Buffer.from('\x05\0\0\0\x0a8.0.', 'latin1'))],
        ['a result before any question', speaks(Buffer.from('\x01\0\0\0\x05\x01\0\0\x01\x01', 'latin1'))],
        ['an endless answer', endless('\x05\0\0\0\x0a8.0.')],
      ],
      hostileFaults: [],
      // A header that is right takes the rest to the parser of the handshake.
      randomAnswer: (bytes, round) =>
        round % 2 ? Buffer.concat([Buffer.from([bytes.length, 0, 0, 0, 10]), bytes.subarray(1)]) : bytes,
      frozen: { freeze: () => server.freeze(), thaw: () => server.thaw() },
      sleep: 'SELECT SLEEP(60)',
      sleeping: async () =>
        (await processes("info LIKE '%SLEEP(60)%' AND user <> 'root'")).map((row) => String(row['user'])),
      sleeper: 'monitor',
      ownLimit: { running: () => processes("user = 'monitor' AND command <> 'Sleep'") },
      identity: {
        sql: 'SELECT @@max_statement_time > 0 AS limited, CURRENT_USER() AS me',
        shows: '[{"limited":1,"me":"monitor@127.0.0.1"}]',
      },
      privileges: {
        account: 'limited',
        kind: mysql,
        begin: () => server.query(`CREATE USER limited@${here} IDENTIFIED BY '${word}'`),
        query: (grant) => server.query(grant.replace('<account>', `limited@${here}`).replace('<database>', 'orders')),
        unwell: ['role', 'lock wait', 'replication', 'longest transaction', 'history list', 'auto-increment'],
        end: () => server.query(`DROP USER limited@${here}`),
      },
      restarted: true,
      tls: {
        start: async (certificates) => {
          const folder = serverFolder('mariadb-tls')
          const files = (['key', 'cert'] as const).map((name) => {
            writeFileSync(join(folder, name), certificates.good[name], { mode: 0o600 })
            if (asServer.uid !== undefined) chownSync(join(folder, name), asServer.uid, asServer.gid)
            return `--ssl-${name}=${join(folder, name)}`
          })
          const secured = await startMariadb(files)
          await secured.query(`CREATE USER monitor@${here} IDENTIFIED BY '${word}'; CREATE DATABASE orders;
            GRANT SELECT ON orders.* TO monitor@${here}`)
          const removeBoth = async (): Promise<void> => {
            await secured.remove()
            remove(folder)
          }
          return { ...secured, remove: removeBoth }
        },
        version: 'TLS',
        verifiesAddress: false,
        own: (connect) => {
          test('MariaDB: a certificate without the address fails, and the message names the setting', async () => {
            expect(await connect('127.0.0.1', { mode: 'verify' })).toMatchObject({
              fault: 'tls',
              message: expect.stringContaining('tls: {servername: …}'),
            })
          })
        },
      },
      large: {
        million: [
          'SELECT seq, REPEAT(MD5(seq), 20) FROM seq_1_to_1000000',
          'SELECT seq, REPEAT(MD5(seq), 20) FROM seq_1_to_1000000 LIMIT 1000000',
        ],
        maxBytes: 8 * 1024 ** 2,
        text: (characters) => `SELECT REPEAT('x', ${characters})`,
        flood: "SELECT 1, REPEAT('x', 1000000) FROM seq_1_to_400",
      },
    },
    queries: {
      judged: [
        [
          { name: 'with', sql: 'WITH one AS (SELECT 0.5 AS share) SELECT share FROM one', atLeast: { limit: 0.5 } },
          'ok',
          'with: 0.5 (fail below 0.5)',
        ],
        [{ name: 'text', sql: 'SELECT state FROM jobs', expect: '/^(waiting|failed)$/' }, 'ok', 'text: is as expected'],
        [{ name: 'json', sql: "SELECT JSON_OBJECT('a', 1), 5", expect: '{"a": 1}' }, 'ok', 'json: is "{"a": 1}"'],
        [{ name: 'binary', sql: "SELECT CAST('ab' AS BINARY)", expect: 'ab' }, 'ok', 'binary: is "ab"'],
      ],
      fails: [
        {
          query: { name: 'gone', sql: 'SELECT 1 FROM gone', atMost: { limit: 1 } },
          message: "gone: the query failed: Table 'orders.gone' doesn't exist",
          fault: 'data',
          details: ['error 1146', 'query: SELECT 1 FROM gone'],
        },
        {
          query: { name: 'closed', sql: 'SELECT id FROM closed.jobs', atMost: { limit: 1 } },
          message: /^closed: "monitor" may not read the table: SELECT command denied to user .*jobs/,
          fault: 'data',
        },
      ],
      writes: {
        sql: [
          ['a sequence', 'SELECT NEXTVAL(ids)'],
          ['a function that inserts', 'SELECT add_job()'],
          // svc itself refuses a second statement that it can see.
          ['two statements', 'SELECT 1; DELETE FROM jobs; "'],
          ['two statements that end the transaction', 'SELECT 1; COMMIT; DELETE FROM jobs; "'],
          ['a function that inserts where nothing is taken back', 'SELECT add_old()'],
          ['a WITH that deletes', 'WITH one AS (SELECT 1 AS id) DELETE FROM jobs'],
        ].map(
          ([name = '', sql = '']) =>
            [name, sql, /^jobs: (the query failed|the query would write, and was refused): ./] as const,
        ),
        state: () =>
          server.query(`SELECT (SELECT count(*) FROM orders.jobs) AS jobs, (SELECT count(*) FROM orders.old) AS old,
            next_not_cached_value AS ids FROM orders.ids`),
      },
      slow: { sql: 'SELECT SLEEP(60)', message: /^slow: ./, next: /^next: (1 \(fail 1\)|not run: )/, timeoutMs: 1_500 },
      wide: (rows) => `SELECT REPEAT(CONCAT(seq, 'x'), 600) FROM seq_1_to_${rows}`,
      powers: [grants('SUPER'), grants('FILE')],
    },
  },
  ({ ask, opened, nothingOpen }) => {
    test('MariaDB: with a database, and with the scheme mariadb', async () => {
      await server.query(`GRANT SELECT ON orders.* TO monitor@${here}`)
      const url = server.url('monitor', 'orders').replace('mysql:', 'mariadb:')
      expect(await one('query', { url })).toMatchObject({ status: 'ok' })
    })

    test('MariaDB: a server that asks for a file of this machine gets none', async () => {
      await using thief = await peer((socket) => {
        const packet = (sequence: number, body: Buffer): void =>
          void socket.write(Buffer.concat([Buffer.from([body.length, 0, 0, sequence]), body]))
        const flags = Buffer.from([0xff, 0xf7, 0x2d, 0x02, 0x00, 0xff, 0x81, 0x15])
        const hello = Buffer.concat([
          Buffer.from('\x0a8.0.36\0\x01\0\0\0abcdefgh\0', 'latin1'),
          flags,
          Buffer.alloc(10),
        ])
        packet(0, Buffer.concat([hello, Buffer.from('abcdefghijkl\0mysql_native_password\0', 'latin1')]))
        let packets = 0
        socket.on('data', () => {
          packets += 1
          // First the sign-in is accepted, then the query is answered with LOCAL INFILE.
          if (packets === 1) packet(2, Buffer.from([0, 0, 0, 2, 0, 0, 0]))
          else if (packets === 2) packet(1, Buffer.from('\xfb/etc/hostname', 'latin1'))
        })
      })
      const results = await run({ url: `mysql://monitor@127.0.0.1:${thief.port}/` }, 'Basic', { timeoutMs: 1_000 })
      expect(checked(results, 'connect').status).toBe('ok')
      expect(checked(results, 'query').status).toBe('failed')
      expect(thief.input()).not.toContain(readFileSync('/etc/hostname', 'utf8').trim())
    })

    test('MariaDB: the age of a transaction is the same whatever time zone the server has set', async () => {
      const other: Connection = await server.client()
      await other.query(
        'CREATE TABLE orders.t (x INT) ENGINE=InnoDB; START TRANSACTION; INSERT INTO orders.t VALUES (1)',
      )
      await wait(1_100)
      await server.query("SET GLOBAL time_zone = '+09:00'")
      const elsewhere = await one('longest transaction', {}, 'Advanced')
      await server.query("SET GLOBAL time_zone = 'SYSTEM'")
      await other.end()
      expect(elsewhere.status).toBe('ok')
      expect(elsewhere.measurement?.value).toBeGreaterThan(500)
    })

    test('MariaDB: a history list that is not counted is not taken for an empty one', async () => {
      await server.query("SET GLOBAL innodb_monitor_disable = 'trx_rseg_history_len'")
      const result = await one('history list', {}, 'Advanced')
      await server.query("SET GLOBAL innodb_monitor_enable = 'trx_rseg_history_len'")
      expect(result).toMatchObject({ status: 'failed', notChecked: 'missing' })
      expect(result.details?.join()).toContain("innodb_monitor_enable = 'trx_rseg_history_len'")
    })

    test('MariaDB: an AUTO_INCREMENT column that runs out of values is reported, whatever the name of its type', async () => {
      const counted = (database: string): Promise<Result> =>
        one('auto-increment', { url: server.url('counter', database) }, 'Advanced')
      await server.query(`CREATE USER counter@${here} IDENTIFIED BY '${word}'`)
      const fault = await autoIncrementAt(server, 45_875)
      onTestFinished(async () => {
        await fault.end()
        await server.query(`DROP USER counter@${here}`)
      })

      expect(await counted('')).toMatchObject({
        status: 'warning',
        notChecked: 'permission',
        message: "not checked: this account sees no table and needs GRANT SELECT ON *.* TO 'counter'@'127.0.0.1'",
        details: ["GRANT SELECT ON *.* TO 'counter'@'127.0.0.1'"],
      })
      await server.query(`GRANT SELECT ON counted.* TO counter@${here}`)
      await server.query(`DROP TABLE counted.jobs; CREATE TABLE counted.large (id bigint unsigned NOT NULL
          AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 17000000000000000000`)
      expect((await counted('counted')).message).toMatch(
        /^counted\.large\.id \(bigint\(20\) unsigned\), values used: 92/,
      )
      await server.query('DROP TABLE counted.large')
      expectResult(await counted('counted'), 'ok: none of 0 tables has an AUTO_INCREMENT column')
    })

    describe('the round trip of allowWrites', () => {
      const trip = (settings: Settings = {}, options: RunKindOptions = {}): Promise<Result> =>
        one('write', { url: server.url('writer', 'orders'), allowWrites: true, ...settings }, 'Advanced', options)
      beforeAll(() => server.query(`CREATE USER writer@${here} IDENTIFIED BY '${word}'`))
      afterAll(() => server.query(`DROP USER writer@${here}; DROP TABLE orders.svc_probe`))
      test('MariaDB: an account that may not write is not checked, and the GRANT is reported', async () => {
        await server.query(`GRANT SELECT ON orders.jobs TO writer@${here}`)
        const result = await trip()
        expect(result).toMatchObject({ status: 'failed', notChecked: 'permission' })
        expect(result.details?.[0]).toBe("GRANT CREATE ON `orders`.`svc_probe` TO 'writer'@'127.0.0.1'")
        await server.query(`REVOKE SELECT ON orders.jobs FROM writer@${here}`)
      })
      test('MariaDB: an account with nothing but the declared privilege writes, commits, reads and deletes', async () => {
        const { privilege = '' } = mysql.checks.find(({ name }) => name === 'write') ?? {}
        await server.query(privilege.replace('<database>', 'orders').replace('<account>', `writer@${here}`))
        const result = await trip()
        expect(result).toMatchObject({ status: 'ok', measurement: { warn: 1_000, limit: 5_000 } })
        expect(result.message).toMatch(/^a row was written, committed, read and deleted in /)
        expect(await server.query('SELECT * FROM orders.svc_probe')).toEqual([])
      })
      test('MariaDB: a row that an earlier run left behind is deleted', async () => {
        await server.query("INSERT INTO orders.svc_probe VALUES ('old', NULL)")
        expect(await trip()).toMatchObject({ status: 'ok' })
        expect(await server.query('SELECT * FROM orders.svc_probe')).toEqual([])
      })
      test('MariaDB: a table that svc has not created is neither emptied nor written to', async () => {
        await server.query('CREATE TABLE orders.precious (id char(36) NOT NULL PRIMARY KEY, payload longblob)')
        onTestFinished(async () => void (await server.query('DROP TABLE orders.precious')))

        await server.query("INSERT INTO orders.precious VALUES ('an order', NULL)")
        await server.query(`GRANT CREATE, DROP, SELECT, INSERT, DELETE ON orders.precious TO writer@${here}`)
        expectResult(
          await trip({ probeTable: 'precious' }),
          'failed (data): svc has not created the table precious, and does not write to it',
        )
        expect(await server.query('SELECT id FROM orders.precious')).toEqual([{ id: 'an order' }])
      })
      test('MariaDB: it is left out without allowWrites and on a read-only server', async () => {
        const names = async (settings: Settings): Promise<readonly string[]> =>
          (await run({ url: server.url('writer', 'orders'), ...settings }, 'Advanced')).map(({ check }) => check)
        expect(await names({})).not.toContain('write')
        const fault = await readOnly(server)
        expect(await names({ allowWrites: true })).not.toContain('write')
        await fault.end()
      })
      test('MariaDB: a url without a database cannot be written to, and that is reported', async () => {
        const [result] = await run({ url: server.url('writer'), allowWrites: true }, 'Advanced')
        expect(result).toMatchObject({
          status: 'failed',
          message: expect.stringContaining('the setting url has no database, and allowWrites needs one for its table'),
        })
      })
    })
    test('MariaDB: a TIMESTAMP is of the zone of the session, and a DATETIME is taken for UTC', async () => {
      await server.query("SET GLOBAL time_zone = '-05:00'")
      const result = await ask([
        { name: 'zoned', sql: 'SELECT created_at FROM jobs', age: { limit: 1 } },
        { name: 'naive', sql: 'SELECT min(naive) FROM jobs', age: { limit: 1 } },
        // What compares with NOW() works as it does for any client.
        { name: 'late', sql: 'SELECT count(*) FROM jobs WHERE created_at < NOW() - INTERVAL 30 MINUTE', expect: '1' },
      ])
      await server.query("SET GLOBAL time_zone = 'SYSTEM'")
      expect(result.map(({ message }) => message)).toEqual([
        'zoned: oldest 1 h (fail 1 ms)',
        'naive: oldest 2 h (fail 1 ms)',
        'late: is "1"',
      ])
    })

    test.each([
      'INSERT INTO orders.old VALUES (7)',
      'CREATE TABLE orders.made (id int)',
      '/*! CREATE TABLE orders.made AS */ SELECT 1 AS id',
      "SELECT 1 INTO OUTFILE '/tmp/svc-made'",
    ])('what the server would not refuse is not sent: %s', async (sql) => {
      const { session } = await opened()
      await expect(session.read(sql, false)).rejects.toMatchObject({ message: expect.stringMatching(/^sql /) })
      await session.close()
    })

    test('MariaDB: a query that takes too long is ended, and the session goes on', async () => {
      const { session } = await opened(undefined, 700)
      const reading = session.read('WITH far AS (SELECT 1 AS one) SELECT 1 FROM (SELECT SLEEP(60)) AS slow', false)
      await expect(reading).rejects.toMatchObject({ fault: 'timeout' })
      expect(await session.ask('SELECT 1 AS one')).toEqual([{ one: 1 }])
      await session.close()
      await nothingOpen()
    })

    test('MariaDB: where the server itself does not end it in time, it is called off from here', async () => {
      const { session } = await opened(undefined, 700)
      const reading = session.read('SELECT SLEEP(60)', false).catch((error: unknown) => error)
      await until(async () => (await sleeping()).length === 1, 15_000, 5)
      server.freeze()
      await wait(900)
      server.thaw()
      expect(await reading).toMatchObject({ message: 'the query was cancelled because it took too long' })
      expect(await session.ask('SELECT 1 AS one')).toEqual([{ one: 1 }])
      await session.close()
      await nothingOpen()
    })

    test('MariaDB: rows that the server keeps back end by themselves, and nothing is killed', async () => {
      const before = await figureOf(server, 'Com_kill')
      const { session } = await opened()
      const column = await session.read('SELECT seq FROM seq_1_to_1000000', false)
      expect(column).toMatchObject({ rows: 1_000, more: true })
      expect(await figureOf(server, 'Com_kill')).toBe(before)
      const limited = await session.read('SELECT seq FROM seq_1_to_1000000 LIMIT 1000000', false)
      expect(limited).toMatchObject({ rows: 1_000, more: true })
      expect(await figureOf(server, 'Com_kill')).toBe(before + 1)
      await session.close()
      await nothingOpen()
    })
    describe('behind a balancer', () => {
      let first: MariadbServer
      let other: MariadbServer
      let balancer: Peer
      let next: 'first' | 'other' = 'first'
      beforeAll(async () => {
        ;[first, other] = await Promise.all([startMariadb(), startMariadb()])
        for (const one of [first, other])
          await one.query(`CREATE USER monitor@'127.0.0.1' IDENTIFIED BY '${word}'; CREATE DATABASE orders;
        GRANT SELECT ON orders.* TO monitor@'127.0.0.1'`)
        // The first of each session is led to the one, all that follow to the other.
        balancer = await peer((socket) => {
          const far = connect((next === 'first' ? first : other).port, '127.0.0.1')
          next = 'other'
          far.on('error', () => socket.destroy())
          socket.on('close', () => far.destroy())
          far.on('close', () => socket.destroy())
          socket.pipe(far).pipe(socket)
        })
      })
      afterAll(async () => {
        await balancer.close()
        await Promise.all([first.remove(), other.remove()])
      })
      const idNow = async (of: MariadbServer) => Number((await of.query('SELECT CONNECTION_ID() AS id'))[0]?.id)
      const through = async (signal: AbortSignal, msLeft = 60_000) => {
        // Ahead of the other, where an id can be waited for.
        const ahead = (await idNow(other)) + 20
        while ((await idNow(first)) < ahead);
        next = 'first'
        const socket = await PeerSocket.reach('127.0.0.1', balancer.port, signal)
        const way = { socket, ip: '127.0.0.1', address: 'here', signal, msLeft: () => msLeft, files }
        const url = `mysql://monitor@127.0.0.1:${balancer.port}/orders`
        return { socket, session: await openMysql(databaseTarget({ url, password: secret(word) }, balancer.port), way) }
      }
      const idHere = async (of: MariadbServer) =>
        Number(
          (await of.query("SELECT MAX(id) AS id FROM information_schema.processlist WHERE user = 'monitor'"))[0]?.id,
        )
      /** Somebody of the same account and the same id on the other server, who sleeps. */
      const stranger = async (id: number) => {
        for (;;) {
          const one = await createConnection({ host: '127.0.0.1', port: other.port, user: 'monitor', password: word })
          const at = one.threadId ?? 0
          if (at > id) throw new Error(`the other server is at ${at} already, and ${id} was wanted`)
          if (at < id) {
            await one.end()
            continue
          }
          one.query('SELECT SLEEP(50)').catch(() => {})
          await until(async () => (await sleeps()) === 1)
          return { end: () => one.destroy() }
        }
      }
      const sleeps = async () => (await processes("info LIKE '%SLEEP(50)%' AND user = 'monitor'", other)).length
      test.each(['at the deadline', 'for taking too long'])(
        'MariaDB: no stranger of the same id is killed: %s',
        async (when) => {
          const control = new AbortController()
          const { session, socket } = await through(control.signal, when === 'at the deadline' ? 60_000 : 700)
          const one = await stranger(await idHere(first))
          const killed = () => figureOf(other, 'Com_kill')
          const before = await killed()
          const reading = session.read('SELECT SLEEP(60)', false).catch((error: unknown) => error)
          await until(async () => (await sleeping(first)).length === 1, 15_000, 5)
          if (when === 'at the deadline') control.abort()
          else {
            // The server does not end it in time, so that it is called off from here.
            first.freeze()
            await wait(1_500)
            first.thaw()
          }
          expect(await reading).toBeInstanceOf(Error)
          // Frozen, it could not end anything itself.
          if (when !== 'at the deadline') expect(socket.destroyed).toBe(true)
          await session.close()
          expect(socket.destroyed).toBe(true)
          expect([await sleeps(), await killed()]).toEqual([1, before])
          one.end()
          for (const { id } of await processes("user = 'monitor'", first))
            await first.query(`KILL ${Number(id)}`).catch(() => {})
          await until(async () => (await processes("user = 'monitor'", first)).length === 0)
        },
      )
      test('MariaDB: rows beyond the LIMIT of a query end the connection, and the rows read so far count', async () => {
        const { session, socket } = await through(new AbortController().signal)
        const column = await session.read('SELECT seq FROM seq_1_to_100000000 LIMIT 100000000', false)
        expect(column).toMatchObject({ rows: 1_000, more: true })
        expect(socket.destroyed).toBe(true)
        await expect(session.read('SELECT 1', false)).rejects.toThrow('not run')
        await session.close()
        await until(async () => (await processes("user = 'monitor'", first)).length === 0)
      })
    })
  },
)

peerSuite(mariadbMissing ?? mountMissing, 'mysql: a data directory that is full', () => {
  let small: Awaited<ReturnType<typeof startMariadbOnSmallDisk>>
  beforeAll(async () => {
    small = await startMariadbOnSmallDisk(220)
    await small.query(`CREATE DATABASE orders; CREATE USER monitor@${here} IDENTIFIED BY '${word}';
      GRANT PROCESS, SLAVE MONITOR ON *.* TO monitor@${here}; GRANT ALL ON orders.* TO monitor@${here}`)
  })
  afterAll(() => small.remove())
  const trip = async (): Promise<Result> => {
    const settings = { url: small.url('monitor', 'orders'), password: secret(word), allowWrites: true, restarted: {} }
    return checked(await runKind(mysql, settings, 'Advanced'), 'write')
  }
  test('MariaDB: a round trip on a nearly full disk leaves the server running', { timeout: 60_000 }, async () => {
    const outcomes: string[] = []
    for (const kilobytes of [48, 64, 80, 128, 160, 200, 256]) {
      await small.query('DROP TABLE IF EXISTS orders.svc_probe')
      await trip()
      await small.fill(kilobytes * 1_024)
      const { status, message } = await trip()
      outcomes.push(`${kilobytes} KiB: ${status === 'ok' ? 'ok' : message}`)
      small.free()
    }
    expect(outcomes).toEqual([
      expect.stringMatching(/^48 KiB: .* has no space left for data/),
      ...[64, 80, 128, 160, 200, 256].map((kilobytes) => `${kilobytes} KiB: ok`),
    ])
    expect(small.log()).not.toContain('[FATAL]')
  })
})
