import { Resolver } from 'node:dns/promises'
import { expect, test } from 'vitest'
import { costOf } from '../../../src/core/checks/engine/cost.ts'
import { loadKind } from '../../../src/core/checks/plan/index.ts'
import { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { behindTap, type CostRow, describeCosts, type Tap } from '../../support/engine/costs.ts'
import { secret } from '../../support/engine/run-kind.ts'
import { inNamespace, missingNamespace } from '../../support/faults/network.ts'
import { bindMissing, startBind } from '../../support/servers/bind.ts'
import { mariadbMissing, startMariadb } from '../../support/servers/mariadb.ts'
import { pgbouncerMissing, startPgbouncer } from '../../support/servers/pgbouncer.ts'
import { postgresMissing } from '../../support/servers/postgres.ts'
import { administrator, rabbitmqMissing, startRabbitmq } from '../../support/servers/rabbitmq.ts'
import { redisMissing, startRedis } from '../../support/servers/redis.ts'
import { findProgram } from '../../support/servers/server.ts'
import { dedicated, probe, slapdMissing, startSlapd, suffix } from '../../support/servers/slapd.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const host = '127.0.0.1'
const word = 'correct horse'
const password = secret(word)
const query = { name: 'one', sql: 'SELECT 1 AS answer', depth: 'Standard', rows: { limit: 1 } }
const both = [query, { ...query, name: 'two' }]

const rows: readonly (CostRow & { readonly missing: string | undefined })[] = [
  {
    kind: 'redis',
    missing: redisMissing,
    start: behindTap(
      async () => {
        const server = await startRedis()
        server.cli('ACL', 'SETUSER', 'monitor', 'on', `>${word}`, '~*', '&*', '+@all')
        return server
      },
      (server, tapped) => {
        // The INFO that is answered is not among the calls yet.
        server.cli('CONFIG', 'RESETSTAT')
        let own = 0
        const cli = (...command: readonly string[]): string => {
          own += 1
          return server.cli(...command)
        }
        const at = `${host}:${tapped.port}`
        const account = { url: `redis://monitor@${at}`, password }
        const queue = (key: string) => ({ key, length: { limit: 5 } })
        return {
          cases: {
            plain: { url: `redis://${at}` },
            account,
            'one queue': { ...account, queues: [queue('jobs')] },
            'two queues': { ...account, queues: [queue('jobs'), queue('mails')] },
          },
          counted: async () => {
            await until(() => cli('CLIENT', 'LIST', 'TYPE', 'normal').split('\n').length === 1)
            const ownBefore = own
            const lines = [...cli('INFO', 'commandstats').matchAll(/^cmdstat_([\w|-]+):calls=(\d+)/gm)]
            const calls = Object.fromEntries(lines.map(([, name = '', count]) => [name, Number(count)]))
            const all = Object.values(calls).reduce((sum, count) => sum + count, 0)
            const resets = calls['config|resetstat'] ?? 0
            return { requests: all - ownBefore - resets, signIns: calls['auth'] ?? 0 }
          },
        }
      },
    ),
  },
  {
    kind: 'mysql',
    missing: mariadbMissing,
    start: behindTap(
      async () => {
        const server = await startMariadb(['--general-log=1', '--log-output=TABLE'])
        await server.query(`CREATE USER monitor@'127.0.0.1' IDENTIFIED BY '${word}';
        GRANT PROCESS, SLAVE MONITOR ON *.* TO monitor@'127.0.0.1'`)
        return server
      },
      (server, tapped) => {
        const at = { url: `mysql://monitor@${host}:${tapped.port}/`, password }
        const counts = async (): Promise<Readonly<Record<string, number>>> => {
          const rows = await server.query(
            "SELECT command_type AS type, count(*) AS n FROM mysql.general_log WHERE user_host LIKE '%monitor%' GROUP BY 1",
          )
          return Object.fromEntries(rows.map(({ type, n }) => [String(type), Number(n)]))
        }
        return {
          cases: { plain: at, 'one query': { ...at, queries: [query] }, 'two queries': { ...at, queries: both } },
          counted: async () => {
            await until(async () => ((await counts())['Quit'] ?? 0) === tapped.sent().length)
            const { Connect = 0, Quit = 0, ...rest } = await counts()
            return {
              connections: Quit,
              requests: Object.values(rest).reduce((sum, count) => sum + count, 0),
              signIns: Connect,
            }
          },
        }
      },
    ),
  },
  {
    kind: 'pgbouncer',
    missing: pgbouncerMissing ?? postgresMissing,
    start: behindTap(
      () => startPgbouncer({ users: { stats: word }, databases: {} }),
      (_, tapped) => ({
        cases: { plain: { url: `postgres://stats@${host}:${tapped.port}/pgbouncer`, password } },
        counted: () => {
          const types = tapped.sent().map(postgresMessages)
          return {
            connections: types.length,
            requests: types.flat().filter((type) => type === 'Q' || type === 'E').length,
            signIns: types.filter((one) => one.includes('p')).length,
          }
        },
      }),
    ),
  },
  {
    kind: 'rabbitmq',
    missing: rabbitmqMissing,
    start: behindTap(
      async () => {
        const server = await startRabbitmq()
        for (const name of ['orders', 'stock']) {
          await server.api('PUT', `queues/%2f/${name}`, { durable: true })
          // Until the server has statistics of a queue, svc requests more.
          const counted = async () => 'messages_ready' in ((await server.api('GET', `queues/%2f/${name}`)) as object)
          await until(counted, 60_000, 200)
        }
        return server
      },
      (_, tapped) => {
        const at = {
          url: `http://${host}:${tapped.port}`,
          username: administrator.username,
          password: secret(administrator.password),
        }
        const queue = (name: string) => ({ name, consumers: 0 })
        return {
          cases: {
            plain: at,
            'one queue': { ...at, queues: [queue('orders')] },
            'two queues': { ...at, queues: [queue('orders'), queue('stock')] },
          },
          counted: () => {
            const heads = requestHeads(tapped)
            return { requests: heads.length, signIns: heads.filter((head) => /^authorization:/im.test(head)).length }
          },
        }
      },
    ),
  },
  {
    kind: 'ldap',
    missing: slapdMissing,
    start: behindTap(
      () => startSlapd(),
      async (server, tapped) => {
        const at = { url: `ldap://${host}:${tapped.port}` }
        const account = { ...at, username: probe.user, password: secret(probe.password) }
        const times = (what: RegExp): number => server.log().match(what)?.length ?? 0
        // The start of the server itself connects, to see whether it listens.
        await until(() => times(/fd=\d+ closed/g) > 0)
        const probed = times(/fd=\d+ closed/g)
        return {
          cases: {
            plain: at,
            account,
            base: { ...account, base: suffix },
            entry: { ...account, base: suffix, entry: { filter: '(uid=probe)', base: `ou=people,${suffix}` } },
            'wrong password': {
              ...account,
              refusesWrongPassword: { username: dedicated.user, password: secret(dedicated.password) },
            },
          },
          counted: async () => {
            const accepted = tapped.sent().length
            await until(() => times(/conn=\d+ fd=\d+ closed/g) >= probed + accepted)
            return {
              connections: times(/conn=\d+ fd=\d+ ACCEPT/g),
              requests: times(/conn=\d+ op=\d+ (?:SRCH base|BIND dn="[^"]*" method|EXT oid|CMP dn)/g),
              signIns: times(/conn=\d+ op=\d+ BIND dn="[^"]+" method/g),
            }
          },
        }
      },
    ),
  },
  {
    kind: 'dns',
    missing: bindMissing,
    start: async () => {
      const server = await startBind({ queryLog: true, records: ['mail MX 10 www', 'ns2 A 127.0.0.1'] })
      const resolver = new Resolver()
      resolver.setServers([server.server])
      let marks = 0
      const at = { query: 'www.svc.test', server: server.server }
      const nameServers = [server.server]
      return {
        cases: {
          plain: at,
          'one name server': { ...at, query: 'svc.test', type: 'SOA', nameServers },
          'two name servers': { ...at, query: 'svc.test', type: 'SOA', nameServers: [...nameServers, ...nameServers] },
        },
        counted: async () => {
          // BIND logs queries in order: once it has logged this one, it has logged the others.
          marks += 1
          const mark = `mark-${marks}.svc.test`
          await resolver.resolve4(mark).catch(() => {})
          await until(() => server.log().includes(mark))
          const lines = [...server.log().matchAll(/client \S+ 127\.0\.0\.1#(\d+) \((\S+)\): query:/g)]
          const ours = lines.filter(([, , name = '']) => !name.startsWith('mark-'))
          return { connections: new Set(ours.map(([, port]) => port)).size, requests: ours.length, signIns: 0 }
        },
        stop: () => server.remove(),
      }
    },
  },
]

for (const { missing, ...row } of rows) peerSuite(missing, `the cost of ${row.kind}`, () => describeCosts([row]))

/** The types of the messages of a PostgreSQL client, after the one that begins the session. */
function postgresMessages(bytes: Buffer): readonly string[] {
  const types: string[] = []
  let at = bytes.length < 4 ? 0 : bytes.readInt32BE(0)
  // A request for TLS is answered before the session begins.
  if (at === 8) at += bytes.readInt32BE(8)
  for (; at + 5 <= bytes.length; at += 1 + bytes.readInt32BE(at + 1)) types.push(String.fromCharCode(bytes[at] ?? 0))
  return types
}

/** The heads of the HTTP requests without a body that came. */
const requestHeads = (tapped: Tap): readonly string[] =>
  tapped.sent().flatMap((bytes) => bytes.toString('latin1').split('\r\n\r\n').slice(0, -1))

const pingMissing = findProgram('ping') === undefined ? 'ping is not installed' : missingNamespace()
peerSuite(pingMissing, 'the cost of ping', () => {
  const row = { kind: 'ping' } as const
  test('ping: the kernel of the peer counts as many packets per run as the reference states', async () => {
    const counted = await inNamespace(new URL('../../support/engine/ping-cost-child.ts', import.meta.url))
    const ping = await loadKind(row.kind)
    const stated = [5, 3].flatMap((count) =>
      ExecutionMode.values.map((mode) => costOf(ping, mode, { count })?.requests),
    )
    expect(counted).toEqual(stated)
  })
})
