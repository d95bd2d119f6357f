import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { timeAnswer } from '../../prove/leak-datagrams.ts'
import { behindTap, type CostRow, describeCosts } from '../../support/engine/costs.ts'
import { kindsWithRows } from '../../support/engine/kind-rows.ts'
import { secret } from '../../support/engine/run-kind.ts'
import { messagesTo, peer, talk } from '../../support/faults/faults.ts'
import { client, resource, startOidc } from '../../support/openid/oidc.ts'
import { makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { startFtpServer } from '../../support/servers/ftp-server.ts'
import { checkServer } from '../../support/servers/grpc.ts'
import { startPostgres } from '../../support/servers/postgres.ts'
import { startSftpServer } from '../../support/servers/sftp-server.ts'
import { smtpAccount, startSmtp } from '../../support/servers/smtp.ts'
import { httpPeer, pages } from '../../support/simulated/http-peer.ts'
import { mongoPeer } from '../../support/simulated/mongo.ts'
import { answers, hello } from '../../support/simulated/mongo-node.ts'
import { answers as sqlAnswers } from '../../support/simulated/sqlserver.ts'
import { tdsPeer } from '../../support/simulated/tds.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { hungUp, until } from '../../support/suite/until.ts'

const host = '127.0.0.1'
const word = 'correct horse'
const password = secret(word)

/** The start of an HTTP server. A sign-in is a request with credentials. */
const overHttp = (
  listener: RequestListener,
  cases: (origin: string) => Readonly<Record<string, Readonly<Record<string, unknown>>>>,
): CostRow['start'] =>
  behindTap(
    () => httpPeer(listener),
    (server, tapped) => ({
      cases: cases(`http://${host}:${tapped.port}`),
      counted: () => {
        const signIns = server.requests().filter(({ headers }) => headers.authorization !== undefined)
        return { requests: server.requests().length, signIns: signIns.length }
      },
    }),
  )

const steps = [
  { name: 'one', path: '/a' },
  { name: 'two', path: '/b' },
]

describeCosts([
  ...kindsWithRows.flatMap(({ kind, costs }) => (costs ? [{ ...costs, kind }] : [])),
  {
    kind: 'http',
    start: async () => {
      // The provider is another server: a request for a token costs the checked one nothing.
      const provider = await httpPeer((_, response) => void response.end('{"access_token": "t", "expires_in": 600}'))
      const oauth2 = { tokenUrl: `http://${host}:${provider.port}/token`, clientId: 'svc', clientSecret: password }
      const start = overHttp(
        pages(() => ({ '/': {} })),
        (origin) => ({
          plain: { url: `${origin}/` },
          token: { url: `${origin}/`, token: password },
          password: { url: `${origin}/`, username: 'monitor', password },
          oauth2: { url: `${origin}/`, oauth2 },
        }),
      )
      const counting = await start()
      const stop = async () => await Promise.all([counting.stop(), provider[Symbol.asyncDispose]()])
      return { ...counting, stop }
    },
  },
  {
    kind: 'svc',
    start: overHttp(
      (_, response) => void response.end(JSON.stringify({ Status: 'Success', MonitorSummaries: [] })),
      (origin) => ({ plain: { url: origin }, token: { url: origin, token: password } }),
    ),
  },
  {
    kind: 'deployment',
    start: overHttp(
      pages(() => ({ '/version': { version: '1' } })),
      (origin) => ({ url: { url: `${origin}/version`, versionKey: 'version', expected: '1' } }),
    ),
  },
  {
    kind: 'http-steps',
    start: overHttp(
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
  },
  {
    kind: 'sftp',
    start: behindTap(
      () => startSftpServer({ password: word, files: {} }),
      (server, tapped) => {
        const at = { host, port: tapped.port, hostKey: [server.hostKey] }
        return {
          cases: {
            plain: at,
            account: { ...at, username: 'monitor', password },
            'a folder': { ...at, username: 'monitor', password, folder: '/home' },
            writes: { ...at, username: 'monitor', password, allowWrites: true, probeFolder: '/home' },
          },
          counted: () => ({ requests: server.requests(), signIns: server.tries() }),
        }
      },
    ),
  },
  {
    kind: 'grpc',
    start: behindTap(
      async () => {
        const calls: boolean[] = []
        const server = await checkServer((metadata) => {
          calls.push(metadata.get('authorization').length > 0)
          return undefined
        })
        return { ...server, calls }
      },
      ({ calls }, { port }) => ({
        cases: {
          plain: { host, port },
          token: { host, port, token: password },
          services: { host, port, services: ['orders', 'stock'] },
        },
        counted: () => ({ requests: calls.length, signIns: calls.filter((isSigned) => isSigned).length }),
      }),
    ),
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
    start: behindTap(
      async () => {
        const server = await startPostgres([
          'log_connections=on',
          'log_disconnections=on',
          'log_statement=all',
          'log_line_prefix=%u|',
        ])
        await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor`)
        return server
      },
      (server, tapped) => {
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
            await until(() => times(/^monitor\|LOG: {2}disconnection/gm) === tapped.sent().length)
            return {
              connections: times(/^monitor\|LOG: {2}disconnection/gm),
              requests: times(/^monitor\|LOG: {2}(?:statement|execute [^:]+):/gm),
              signIns: times(/^monitor\|LOG: {2}connection authorized/gm),
            }
          },
        }
      },
    ),
  },
  {
    kind: 'ftp',
    start: behindTap(
      () => startFtpServer(word),
      (_server, tapped) => {
        const at = { host, port: tapped.port, tls: 'off' }
        const account = { ...at, username: 'monitor', password }
        return {
          cases: {
            plain: at,
            account,
            'a folder': { ...account, folder: '/' },
            writes: { ...account, allowWrites: true, probeFolder: '/' },
          },
          counted: () => {
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
        }
      },
    ),
  },
  {
    kind: 'mongo',
    simulated: 'MongoDB',
    start: behindTap(
      () => mongoPeer({ users: { monitor: word }, hello: hello.primary, answer: answers() }),
      (server, tapped) => ({
        cases: { account: { url: `mongodb://monitor@${host}:${tapped.port}/`, password } },
        counted: () => {
          const messages = tapped.sent().reduce((sum, bytes) => sum + mongoMessages(bytes), 0)
          return { requests: messages, signIns: server.signIns().right }
        },
      }),
    ),
  },
  {
    kind: 'sqlserver',
    simulated: 'SQL Server',
    start: behindTap(
      () =>
        tdsPeer({
          answer: sqlAnswers({
            'AS answer': { rows: [{ answer: 1 }] },
            "IS_SRVROLEMEMBER('sysadmin')": { rows: [{ sysadmin: 0 }] },
          }),
        }),
      (server, tapped) => {
        const at = { url: `sqlserver://monitor@${host}:${tapped.port}/orders`, password }
        const query = { name: 'one', sql: 'SELECT 1 AS answer', depth: 'Standard', rows: { limit: 1 } }
        return {
          cases: {
            plain: at,
            'one query': { ...at, queries: [query] },
            'two queries': { ...at, queries: [query, { ...query, name: 'two' }] },
          },
          counted: () => ({ requests: server.batches().length, signIns: server.logins().length }),
        }
      },
    ),
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
      start: behindTap(
        async () => {
          const { good, caFile, remove } = makeCertificates()
          const commands: string[] = []
          const quiet = (): void => {}
          const debug = (_: unknown, prefix: string, line: string): void => {
            if (prefix === 'C:') commands.push(line)
          }
          const logger = { debug, trace: quiet, info: quiet, warn: quiet, error: quiet, fatal: quiet, level: quiet }
          const server = await startSmtp({ ...good, logger: logger as never })
          return { ...server, caFile, commands, remove: () => server[Symbol.asyncDispose]().then(remove) }
        },
        (server, { port }) => {
          const at = { host, port, servername: 'svc.test', caFile: server.caFile }
          return {
            cases: {
              plain: at,
              account: { ...at, username: smtpAccount.username, password: secret(smtpAccount.password) },
              recipient: { ...at, recipient: 'accepted@svc.test' },
            },
            counted: async () => {
              await hungUp(server)
              const signIns = server.commands.filter((line) => line.startsWith('AUTH ')).length
              return { requests: server.commands.length, signIns }
            },
          }
        },
      ),
    },
    {
      kind: 'tls',
      start: behindTap(
        async () => {
          const { good, caFile, remove } = makeCertificates()
          const server = await peer(talk, { tls: good })
          return { ...server, caFile, remove: () => server.close().then(remove) }
        },
        ({ caFile, input }, { port }) => ({
          cases: {
            plain: { host, port, servername: 'svc.test', caFile },
            send: { host, port, servername: 'svc.test', caFile, send: 'PING', expect: 'PING' },
            sendHex: { host, port, servername: 'svc.test', caFile, sendHex: '50494e47', expect: 'PING' },
            dialogue: {
              ...{ host, port, servername: 'svc.test', caFile },
              dialogue: [
                { send: 'PING 1\r\n', expect: 'PING 1' },
                { send: 'PING 2\r\n', expect: 'PING 2' },
              ],
            },
            protocol: { host, port, servername: 'svc.test', caFile, protocol: 'imap' },
          },
          counted: () => ({ requests: messagesTo(input()) }),
        }),
      ),
    },
  ])
})
