import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { onTestFinished } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { type HealthCheckRequest, type HealthCheckResponse, operations } from '../../src/core/protocol/index.ts'
import { type Call, type Runtime, type Service, serveDefaults } from '../../src/core/protocol/service/service.ts'
import { type LogEntry, type RunningServer, type StartOptions, startServer } from '../../src/core/server/index.ts'
import { runtimeFacts } from '../support/page/facts.ts'
import { farMs } from '../support/suite/until.ts'

const startedAt = new Date('2026-01-02T03:04:05.678Z')

/** A health answer with one monitor, which passes or fails. */
export const healthy = (call: Call, over: Partial<HealthCheckResponse> = {}): HealthCheckResponse => ({
  Status: 'Success',
  StatusMessage: 'Sql is healthy: 1 monitor passed',
  CorrelationId: call.correlationId,
  FailedMonitorCount: 0,
  MonitorSummaries: [
    {
      MonitorName: 'postgres orders',
      Status: 'Success',
      Results: [
        {
          MonitoringName: 'round trip',
          Status: 'Success',
          StatusMessage: '14 ms (warn 1 s, fail 3 s)',
          ErrorMessages: [],
        },
      ],
      ErrorMessages: [],
    },
  ],
  ExecutionMetrics: { StartDateTime: startedAt, EndDateTime: startedAt, Duration: 15.1 },
  ...over,
})
export const failing = (call: Call): HealthCheckResponse =>
  healthy(call, {
    Status: 'Failure',
    StatusMessage: 'Sql is unhealthy: 1 of 1 monitor failed: postgres orders connect: refused in 2 ms',
    FailedMonitorCount: 1,
    MonitorSummaries: [
      {
        MonitorName: 'postgres orders',
        Status: 'Failure',
        Results: [
          {
            MonitoringName: 'connect',
            Status: 'Failure',
            StatusMessage: 'refused in 2 ms',
            ErrorMessages: ['fault: refused'],
          },
        ],
        ErrorMessages: [],
      },
    ],
  })

const absent = async (): Promise<never> => {
  throw new Fault('NotImplemented', 'Not in this version')
}

type Health = (request: HealthCheckRequest, call: Call) => Promise<HealthCheckResponse>

export type Site = {
  readonly server: RunningServer
  readonly port: number
  readonly log: LogEntry[]
  /** The calls that reached the Service. */
  readonly calls: { readonly operation: string; readonly request: unknown; readonly call: Call }[]
}

export type SiteOptions = {
  readonly health?: Health
  readonly service?: Partial<Service>
  readonly runtime?: Partial<Runtime>
  readonly options?: Partial<StartOptions['options']>
  readonly limits?: StartOptions['limits']
  readonly host?: string
  readonly port?: number
  readonly tls?: StartOptions['tls']
}

/** Limits that a busy machine does not reach. */
const far = { headersMs: farMs, requestMs: farMs, readyMs: farMs, cancelAfterMs: farMs, closeAfterMs: farMs }

/** Starts a server on a free port, with a Service that answers as configured and records its requests. */
export async function startSite(over: SiteOptions = {}): Promise<Site> {
  const log: LogEntry[] = []
  const calls: Site['calls'] = []
  const health: Health = over.health ?? (async (_request, call) => healthy(call))
  const parts = {
    ...Object.fromEntries(Object.keys(operations).map((operation) => [operation, absent])),
    healthCheck: health,
    ...over.service,
  } as Service
  const remembered = Object.fromEntries(
    Object.entries(parts).map(([operation, method]) => [
      operation,
      (request: never, call: Call) => {
        calls.push({ operation, request, call })
        return method(request, call)
      },
    ]),
  ) as unknown as Service
  const runtime: Runtime = {
    version: '9.8.7',
    ready: async () => {},
    facts: runtimeFacts(),
    anyAdmin: async () => false,
    recent: async () => [],
    viewOf: async () => () => 'full',
    close: async () => {},
    ...over.runtime,
  }
  const server = await startServer({
    service: remembered,
    runtime,
    options: { ...serveDefaults, ...over.options },
    host: over.host ?? '127.0.0.1',
    port: over.port ?? 0,
    tls: over.tls,
    log: (entry) => log.push(entry),
    // No balancer watches a test.
    limits: { lingerMs: 200, drainDelayMs: 0, quietMs: 100, ...far, ...over.limits },
  })
  return { server, port: server.port, log, calls }
}

/** Starts a site that stops at the end of the test. */
export async function openSite(over: SiteOptions): Promise<Site> {
  const site = await startSite(over)
  onTestFinished(() => site.server.stop())
  return site
}

/** Starts a site for a part of a test. */
export async function withSite(over: SiteOptions, use: (site: Site) => Promise<void>): Promise<void> {
  const site = await startSite(over)
  try {
    await use(site)
  } finally {
    await site.server.stop()
  }
}

export type Got = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON. */
  readonly json: {
    readonly Status?: string
    readonly CorrelationId?: string
    readonly ResponseStatus?: {
      readonly ErrorCode: string
      readonly Message: string
      readonly StackTrace?: string
      readonly Errors: readonly { readonly ErrorCode: string; readonly FieldName: string; readonly Message: string }[]
    }
  } & Record<string, unknown>
}

/** One request on a connection of its own. */
export function ask(
  port: number,
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string | Buffer; host?: string } = {},
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      {
        host: options.host ?? '127.0.0.1',
        port,
        path,
        method: options.method ?? 'GET',
        headers: options.headers ?? {},
        agent: false,
      },
      (incoming) => {
        const chunks: Buffer[] = []
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.on('error', reject)
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            text,
            get json() {
              return JSON.parse(text) as Got['json']
            },
          })
        })
      },
    )
    outgoing.on('error', reject)
    outgoing.end(options.body)
  })
}

/** Sends bytes as they are and gives everything that came back until the server closed, or `forMs` passed. */
export function raw(port: number, bytes: string | Buffer, forMs = farMs): Promise<{ text: string; closed: boolean }> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect({ host: '127.0.0.1', port })
    const done = (closed: boolean) => () => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ text: Buffer.concat(chunks).toString(), closed })
    }
    const timer = setTimeout(done(false), forMs)
    socket.on('connect', () => socket.write(bytes))
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('end', done(true))
    socket.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNRESET' ? done(true)() : reject(error)))
  })
}

export const question = '/healthcheck?ExecutionMode=Basic&ServerType=Sql'
