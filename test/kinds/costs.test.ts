import type { RequestListener } from 'node:http'
import type { Cost } from '../../src/core/plan/costs.ts'
import { type CostRow, describeCosts, type Tap, tap } from '../support/engine/costs.ts'
import { secret } from '../support/engine/run-kind.ts'
import { echo, peer } from '../support/faults/faults.ts'
import { client, resource, startOidc } from '../support/openid/oidc.ts'
import { healthServer } from '../support/servers/grpc.ts'
import { startPostgres } from '../support/servers/postgres.ts'
import { startSftpServer } from '../support/servers/sftp-server.ts'
import { type HttpPeer, httpPeer, pages } from '../support/simulated/http-peer.ts'

const host = '127.0.0.1'
const word = 'correct horse'
const password = secret(word)

/** What has come to an HTTP server behind a tap. A sign-in is a request with credentials. */
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
    kind: 'tcp',
    start: async () => {
      const server = await peer(echo)
      const tapped = await tap(server.port)
      const at = { host, port: tapped.port }
      return {
        cases: { plain: at, send: { ...at, send: 'PING', expect: 'PING' } },
        counted: async () => {
          await tapped.idle()
          const sent = tapped.sent()
          return { connections: sent.length, requests: sent.filter((one) => one.length > 0).length, signIns: 0 }
        },
        stop: async () => {
          await tapped.close()
          await server.close()
        },
      }
    },
  },
  {
    kind: 'sftp',
    start: async () => {
      const server = await startSftpServer({ password: word, files: {} })
      const tapped = await tap(server.port)
      const at = { host, port: tapped.port, hostKey: [server.hostKey] }
      return {
        cases: { plain: at, account: { ...at, username: 'monitor', password } },
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
      const server = await healthServer({ '': 'SERVING', orders: 'SERVING', stock: 'SERVING' })
      const tapped = await tap(server.port)
      const at = { host, port: tapped.port }
      const calls = (): number => tapped.sent().reduce((sum, bytes) => sum + headersFrames(bytes), 0)
      return {
        cases: { plain: at, services: { ...at, services: ['orders', 'stock'] } },
        counted: async () => {
          await tapped.idle()
          return { connections: tapped.sent().length, requests: calls(), signIns: 0 }
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
      const server = await startPostgres([
        'log_connections=on',
        'log_disconnections=on',
        'log_statement=all',
        'log_line_prefix=%u|',
      ])
      await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor`)
      const times = (what: RegExp): number => server.log().match(what)?.length ?? 0
      const at = { url: server.url('monitor'), password }
      const query = { name: 'one', sql: 'SELECT 1 AS answer', depth: 'Standard', rows: { limit: 1 } }
      return {
        cases: {
          plain: at,
          'one query': { ...at, queries: [query] },
          'two queries': { ...at, queries: [query, { ...query, name: 'two' }] },
        },
        counted: () => ({
          connections: times(/^monitor\|LOG: {2}connection authenticated/gm),
          requests: times(/^monitor\|LOG: {2}(?:statement|execute [^:]+):/gm),
          signIns: times(/^monitor\|LOG: {2}connection authorized/gm),
        }),
        stop: () => server.remove(),
      }
    },
  },
])

/** The HEADERS frames (RFC 9113) of a client, one for each call. */
function headersFrames(bytes: Buffer): number {
  let count = 0
  for (let at = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'.length; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    if (bytes[at + 3] === 1) count += 1
  }
  return count
}
