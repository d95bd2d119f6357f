import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import type { Cost } from '../../../src/core/checks/engine/index.ts'
import { timeAnswer } from '../../prove/leak-datagrams.ts'
import { type CostRow, describeCosts, type Tap, tap } from '../../support/engine/costs.ts'
import { kindsWithRows } from '../../support/engine/kind-rows.ts'
import { secret } from '../../support/engine/run-kind.ts'
import { blackHole, peer } from '../../support/faults/faults.ts'
import { client, resource, startOidc } from '../../support/openid/oidc.ts'
import { makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { startFtpServer } from '../../support/servers/ftp-server.ts'
import { checkServer } from '../../support/servers/grpc.ts'
import { startPostgres } from '../../support/servers/postgres.ts'
import { startSftpServer } from '../../support/servers/sftp-server.ts'
import { smtpAccount, startSmtp } from '../../support/servers/smtp.ts'
import { type HttpPeer, httpPeer, pages } from '../../support/simulated/http-peer.ts'
import { mongoPeer } from '../../support/simulated/mongo.ts'
import { answers, hello } from '../../support/simulated/mongo-node.ts'
import { answers as sqlAnswers } from '../../support/simulated/sqlserver.ts'
import { tdsPeer } from '../../support/simulated/tds.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { hungUp, until } from '../../support/suite/until.ts'

const host = '127.0.0.1'
const word = 'correct horse'
const password = secret(word)

/** Counts the requests to an HTTP server behind a tap. A sign-in is a request with credentials. */
async function countedHttp(server: HttpPeer, tapped: Tap): Promise<Cost> {
  await tapped.idle()
  const requests = server.requests()
  const signIns = requests.filter(({ headers }) => headers.authorization !== undefined)
  return { connections: tapped.sent().length, requests: requests.length, signIns: signIns.length }
}

/** A row of a kind that requests something from an HTTP server. */
const overHttp = (
  row: Pick<CostRow, 'kind'>,
  listener: RequestListener,
  cases: (origin: string) => Readonly<Record<string, Readonly<Record<string, unknown>>>>,
): CostRow => ({
  ...row,
  start: async () => {
    const server = await httpPeer(listener)
    const tapped = await tap(server.port)
    return {
      cases: cases(`http://${host}:${tapped.port}`),
      counted: () => countedHttp(server, tapped),
      stop: async () => {
        await tapped.close()
        await server[Symbol.asyncDispose]()
      },
    }
  },
})

const steps = [
  { name: 'one', path: '/a' },
  { name: 'two', path: '/b' },
]

describeCosts([
  ...kindsWithRows.flatMap(({ kind, costs }) => (costs ? [{ ...costs, kind }] : [])),
  overHttp(
    { kind: 'http' },
    pages(() => ({ '/': {} })),
    (origin) => ({
      plain: { url: `${origin}/` },
      token: { url: `${origin}/`, token: password },
      password: { url: `${origin}/`, username: 'monitor', password },
    }),
  ),
  overHttp(
    { kind: 'svc' },
    (_, response) => void response.end(JSON.stringify({ Status: 'Success', MonitorSummaries: [] })),
    (origin) => ({
      plain: { url: origin },
      token: { url: origin, token: password },
    }),
  ),
  overHttp(
    { kind: 'deployment' },
    pages(() => ({ '/version': { version: '1' } })),
    (origin) => ({
      url: { url: `${origin}/version`, versionKey: 'version', expected: '1' },
    }),
  ),
  overHttp(
    { kind: 'http-steps' },
    pages(() => ({ '/a': {}, '/b': {} })),
    (origin) => ({
      one: { url: origin, steps: steps.slice(0, 1) },
      'two and a cleanup': {
        url: origin,
        steps: [{ ...steps[0], method: 'POST' }, steps[1]],
        allowWrites: true,
        cleanup: [{ name: 'three', undoes: 'one', path: '/a' }],
      },
      'a sign-in': {
        url: origin,
        token: password,
        steps: [{ ...steps[0], signIn: true, authorization: `Bearer \${token}` }],
      },
    }),
  ),
  {
    kind: 'sftp',
    start: async () => {
      const server = await startSftpServer({ password: word, files: {} })
      const tapped = await tap(server.port)
      const at = { host, port: tapped.port, hostKey: [server.hostKey] }
      return {
        cases: {
          plain: at,
          account: { ...at, username: 'monitor', password },
          'a folder': { ...at, username: 'monitor', password, folder: '/home' },
          writes: { ...at, username: 'monitor', password, allowWrites: true, probeFolder: '/home' },
        },
        counted: async () => {
          await tapped.idle()
          return { connections: tapped.sent().length, requests: server.requests(), signIns: server.tries() }
        },
        stop: async () => {
          await tapped.close()
          await server.close()
        },
      }
    },
  },
  {
    kind: 'grpc',
    start: async () => {
      let [requests, signIns] = [0, 0]
      const server = await checkServer((metadata) => {
        requests += 1
        if (metadata.get('authorization').length > 0) signIns += 1
        return undefined
      })
      const tapped = await tap(server.port)
      const at = { host, port: tapped.port }
      return {
        cases: { plain: at, token: { ...at, token: password }, services: { ...at, services: ['orders', 'stock'] } },
        counted: async () => {
          await tapped.idle()
          return { connections: tapped.sent().length, requests, signIns }
        },
        stop: async () => {
          await tapped.close()
          await server[Symbol.asyncDispose]()
        },
      }
    },
  },
  {
    kind: 'oidc',
    start: async () => {
      const server = await startOidc()
      return {
        cases: {
          plain: { issuer: server.issuer, insecureHttp: true },
          client: {
            issuer: server.issuer,
            insecureHttp: true,
            clientId: client.clientId,
            clientSecret: secret(client.clientSecret),
            audience: resource,
            resource,
          },
        },
        counted: () => ({
          connections: server.accepted(),
          requests: server.requests().length,
          signIns: server.withCredentials(),
        }),
        stop: () => server.close(),
      }
    },
  },
  {
    kind: 'postgres',
    start: async () => {
      const log = ['log_connections=on', 'log_disconnections=on', 'log_statement=all', 'log_line_prefix=%u|']
      const server = await startPostgres(log)
      await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor`)
      const tapped = await tap(server.port)
      const times = (what: RegExp): number => server.log().match(what)?.length ?? 0
      const at = { url: `postgres://monitor@${host}:${tapped.port}/postgres`, password }
      const query = { name: 'one', sql: 'SELECT 1 AS answer', depth: 'Standard', rows: { limit: 1 } }
      return {
        cases: {
          plain: at,
          'one query': { ...at, queries: [query] },
          'two queries': { ...at, queries: [query, { ...query, name: 'two' }] },
        },
        counted: async () => {
          await tapped.idle()
          await until(() => times(/^monitor\|LOG: {2}disconnection/gm) === tapped.sent().length)
          return {
            connections: times(/^monitor\|LOG: {2}disconnection/gm),
            requests: times(/^monitor\|LOG: {2}(?:statement|execute [^:]+):/gm),
            signIns: times(/^monitor\|LOG: {2}connection authorized/gm),
          }
        },
        stop: async () => {
          await tapped.close()
          await server.remove()
        },
      }
    },
  },
  {
    kind: 'ftp',
    start: async () => {
      const server = await startFtpServer(word)
      const tapped = await tap(server.port)
      const at = { host, port: tapped.port, tls: 'off' }
      const account = { ...at, username: 'monitor', password }
      return {
        cases: {
          plain: at,
          account,
          'a folder': { ...account, folder: '/' },
          writes: { ...account, allowWrites: true, probeFolder: '/' },
        },
        counted: async () => {
          await tapped.idle()
          const lines = tapped.sent().flatMap((bytes) => bytes.toString('latin1').split('\r\n').slice(0, -1))
          // Each transfer that the server announces has a connection of its own, which does not pass here.
          const transfers =
            tapped
              .received()
              .toString('latin1')
              .match(/^1[25]\d/gm) ?? []
          return {
            connections: tapped.sent().length + transfers.length,
            requests: lines.length,
            signIns: lines.filter((line) => line.startsWith('PASS ')).length,
          }
        },
        stop: async () => {
          await tapped.close()
          await server.remove()
        },
      }
    },
  },
  {
    kind: 'mongo',
    simulated: 'MongoDB',
    start: async () => {
      const users = { monitor: word }
      const server = await mongoPeer({ users, hello: hello.primary, answer: answers() })
      const tapped = await tap(server.port)
      return {
        cases: {
          account: { url: `mongodb://monitor@${host}:${tapped.port}/`, password },
        },
        counted: async () => {
          await tapped.idle()
          const messages = tapped.sent().reduce((sum, bytes) => sum + mongoMessages(bytes), 0)
          return { connections: tapped.sent().length, requests: messages, signIns: server.signIns().right }
        },
        stop: async () => {
          await tapped.close()
          await server.close()
        },
      }
    },
  },
  {
    kind: 'sqlserver',
    simulated: 'SQL Server',
    start: async () => {
      const server = await tdsPeer({
        answer: sqlAnswers({
          'AS answer': { rows: [{ answer: 1 }] },
          "IS_SRVROLEMEMBER('sysadmin')": { rows: [{ sysadmin: 0 }] },
        }),
      })
      const tapped = await tap(server.port)
      const at = { url: `sqlserver://monitor@${host}:${tapped.port}/orders`, password }
      const query = { name: 'one', sql: 'SELECT 1 AS answer', depth: 'Standard', rows: { limit: 1 } }
      return {
        cases: {
          plain: at,
          'one query': { ...at, queries: [query] },
          'two queries': { ...at, queries: [query, { ...query, name: 'two' }] },
        },
        counted: async () => {
          await tapped.idle()
          return {
            connections: tapped.sent().length,
            requests: server.batches().length,
            signIns: server.logins().length,
          }
        },
        stop: async () => {
          await tapped.close()
          await server.close()
        },
      }
    },
  },
  {
    kind: 'host',
    simulated: 'time server',
    start: async () => {
      const ports = new Set<number>()
      let requests = 0
      const socket = createSocket('udp4').bind(0, host)
      await once(socket, 'listening')
      socket.on('message', (request, from) => {
        requests += 1
        ports.add(from.port)
        socket.send(timeAnswer(request), from.port, from.address)
      })
      return {
        cases: { plain: {}, clock: { clock: { reference: `${host}:${socket.address().port}`, offset: {} } } },
        // Whether this machine is in order is not the question here.
        checks: ['clock'],
        counted: () => ({ connections: ports.size, requests, signIns: 0 }),
        stop: async () => void socket.close(),
      }
    },
  },
])

/** The messages of a MongoDB client: each begins with its length. */
function mongoMessages(bytes: Buffer): number {
  let count = 0
  for (let at = 0; at + 4 <= bytes.length; at += Math.max(16, bytes.readInt32LE(at))) count += 1
  return count
}

suiteWith(opensslMissing(), 'the cost of servers with TLS', () => {
  describeCosts([
    {
      kind: 'smtp',
      start: async () => {
        const { good, caFile, remove } = makeCertificates()
        const commands: string[] = []
        const quiet = (): void => {}
        const debug = (_: unknown, prefix: string, line: string): void => {
          if (prefix === 'C:') commands.push(line)
        }
        const logger = { debug, trace: quiet, info: quiet, warn: quiet, error: quiet, fatal: quiet, level: quiet }
        const server = await startSmtp({ ...good, logger: logger as never })
        const tapped = await tap(server.port)
        const at = { host, port: tapped.port, servername: 'svc.test', caFile }
        return {
          cases: {
            plain: at,
            account: { ...at, username: smtpAccount.username, password: secret(smtpAccount.password) },
            recipient: { ...at, recipient: 'accepted@svc.test' },
          },
          counted: async () => {
            await tapped.idle()
            await hungUp(server)
            const signIns = commands.filter((line) => line.startsWith('AUTH ')).length
            return { connections: tapped.sent().length, requests: commands.length, signIns }
          },
          stop: async () => {
            await tapped.close()
            await server[Symbol.asyncDispose]()
            remove()
          },
        }
      },
    },
    {
      kind: 'tls',
      start: async () => {
        const { good, caFile, remove } = makeCertificates()
        const server = await peer(blackHole, { tls: good })
        const tapped = await tap(server.port)
        return {
          cases: { plain: { host, port: tapped.port, servername: 'svc.test', caFile } },
          counted: async () => {
            await tapped.idle()
            return { connections: tapped.sent().length, requests: 0, signIns: 0 }
          },
          stop: async () => {
            await tapped.close()
            await server.close()
            remove()
          },
        }
      },
    },
  ])
})
