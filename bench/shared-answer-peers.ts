/**
 * One server of the shared-answer bench, in a process of its own: `node shared-answer-peers.ts NAME`,
 * started with an IPC channel. Says its port, and its CPU time whenever it is asked.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Run } from '../src/core/checks/engine/index.ts'
import { rememberDocuments } from '../src/core/checks/reports/index.ts'
import { ExecutionMode, HealthCheckResponse, ServerType } from '../src/core/protocol/index.ts'
import { type Runtime, type Service, serveDefaults } from '../src/core/protocol/service/service.ts'
import { encodeJson } from '../src/core/protocol/wire/index.ts'
import { startServer } from '../src/core/server/index.ts'
import { localService } from '../src/core/service/local.ts'
import { runtimeFacts } from '../test/support/page/facts.ts'

const result = (check: string, message: string) => ({ check, status: 'ok' as const, message })
const report = (name: string, results: Run['monitors'][number]['results']): Run['monitors'][number] => ({
  name,
  kind: name.split(' ')[0] ?? name,
  depth: 'Basic',
  runsOn: 'network',
  host: false,
  checks: [],
  results,
  durationMs: 14,
  attempts: 1,
})

/** A finished run such as a database host gives: three monitors, eight results, 1.6 KB of JSON. */
const run: Run = {
  id: randomUUID(),
  mode: 'Standard',
  startedAt: new Date(),
  endedAt: new Date(),
  durationMs: 41.5,
  monitors: [
    report('postgres orders', [
      result('connect', 'connected to 10.1.2.3:5432 in 3 ms (warn 1 s, fail 3 s)'),
      result('query', 'SELECT 1 took 1 ms (warn 1 s, fail 3 s)'),
      result('connections', '41 of 97 usable (warn 80 %, fail 95 %)'),
      result('longest transaction', '0.2 s (warn 2 min, fail 5 min)'),
    ]),
    report('host db1', [
      result('disk /var/lib/postgresql', '61 % free (warn below 20 %, fail below 10 %)'),
      result('memory', '43 % available (warn below 10 %)'),
      result('cpu', '12 % used over 500 ms (warn 80 %)'),
    ]),
    report('tls db1.internal:5432', [result('chain', 'valid for 61 more days (warn 20, limit 3)')]),
  ],
  serverState: { ServerName: 'db1', TotalRamInMb: 65_536, AvailableRamInMb: 28_000, UsedCpuPercent: 12.5 },
}

/** The Service as it is, with one run that is shared with everyone who asks. */
const service = localService({
  documentsOf: rememberDocuments(),
  details: 'signed-in',
  history: async () => ({}),
  impact: async () => ({}),
  nodes: { getNodes: async () => ({}), forgetNode: async () => ({}) },
  drills: async () => ({ start: async () => ({}), get: async () => ({}), open: async () => ({}) }),
  serverTypes: () => ({ types: [], configured: false }),
  plan: async () => [],
  run: async () => run,
  shared: async (_mode, _type, call) => {
    call.signal.throwIfAborted()
    return { run, ageMs: 12 }
  },
})
const runtime: Runtime = {
  version: '0',
  ready: async () => {},
  facts: runtimeFacts({ ownTypes: [] }),
  anyAdmin: async () => false,
  recent: async () => [],
  viewOf: async () => () => 'full',
  close: async () => {},
}

const sample = await service.healthCheck(
  { ExecutionMode: 'Standard', ServerType: 'Sql' },
  {
    caller: { kind: 'http', address: '127.0.0.1', loopback: true },
    correlationId: randomUUID(),
    signal: new AbortController().signal,
  },
)
const body = encodeJson(HealthCheckResponse, sample)
const [before = '', after = ''] = body.split(sample.CorrelationId ?? '')

/** The least that a server on this runtime can do: the same bytes every time. */
function raw(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, ['Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(body.length)])
  response.end(body)
}

const headersFor = (id: string): string[] => [
  'X-Correlation-Id',
  id,
  'Vary',
  'Accept',
  'Cache-Control',
  'no-store',
  'X-Content-Type-Options',
  'nosniff',
  'Content-Security-Policy',
  "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy',
  'no-referrer',
  'Content-Type',
  'application/json; charset=utf-8',
  'Age',
  '0',
]

/** Checks a request before its answer, in as little code as possible; undefined: refused. */
function checked(request: IncomingMessage): string | undefined {
  const { url = '', rawHeaders, headers } = request
  if (rawHeaders.length > 128 || url[0] !== '/' || url[1] === '/') return undefined
  if (/[^\x21-\x5b\x5d-\x7e]|%(?:[01][0-9a-f]|7f)/i.test(url)) return undefined
  const names = new Set<string>()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase()
    if (name !== 'host' && name !== 'authorization' && name !== 'content-type') continue
    if (names.has(name)) return undefined
    names.add(name)
  }
  if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) return undefined
  if (!/^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/.test(headers.host ?? '')) return undefined
  if (headers['sec-fetch-site'] === 'cross-site') return undefined
  const { pathname, searchParams } = new URL(url, 'http://localhost')
  if (pathname.toLowerCase() !== '/healthcheck') return undefined
  const modes: readonly string[] = ExecutionMode.values
  const types: readonly string[] = ServerType.values
  if (!modes.includes(searchParams.get('ExecutionMode') ?? '')) return undefined
  if (!types.includes(searchParams.get('ServerType') ?? '')) return undefined
  return headers['x-correlation-id']?.toString() ?? randomUUID()
}

function rawChecked(request: IncomingMessage, response: ServerResponse): void {
  const id = checked(request)
  if (id === undefined) {
    response.writeHead(400).end()
    return
  }
  const text = before + id + after
  response.writeHead(200, [...headersFor(id), 'Content-Length', String(Buffer.byteLength(text))])
  response.end(text)
}

async function withFastify(): Promise<number> {
  const { default: fastify } = await import('fastify')
  const app = fastify({ bodyLimit: 1_048_576 })
  app.addHook('onRequest', async (request, reply) => {
    const id = checked(request.raw)
    if (id === undefined) return await reply.code(400).send()
    const headers = headersFor(id)
    for (let i = 0; i < headers.length; i += 2) reply.header(headers[i] ?? '', headers[i + 1])
    return undefined
  })
  app.get('/healthcheck', async (_request, reply) => before + String(reply.getHeader('X-Correlation-Id')) + after)
  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as AddressInfo).port
}

function listening(handler: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
  const server = createServer(handler)
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

async function ours(served: Service): Promise<number> {
  const options = { ...serveDefaults }
  const server = await startServer({ service: served, runtime, options, host: '127.0.0.1', port: 0, log: () => {} })
  return server.port
}

/** Hands out what was shaped once, under each caller's own id: what is left is the cost of HTTP. */
const shaped: Service = {
  ...service,
  async healthCheck(_request, call) {
    call.signal.throwIfAborted()
    call.note?.({ ageSeconds: 0, runId: run.id })
    return { ...sample, CorrelationId: call.correlationId }
  },
}

const peers: Readonly<Record<string, () => Promise<number>>> = {
  raw: () => listening(raw),
  checked: () => listening(rawChecked),
  svc: () => ours(service),
  http: () => ours(shaped),
  fastify: withFastify,
}

const startedAt = performance.now()
const port = await peers[process.argv[2] ?? '']?.()
process.send?.({ port, startMs: performance.now() - startedAt })
process.on('message', () => process.send?.({ cpu: process.cpuUsage(), rss: process.memoryUsage().rss }))
process.on('disconnect', () => process.exit())
