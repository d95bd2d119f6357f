import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { performance } from 'node:perf_hooks'
import type { Duplex } from 'node:stream'
import { Fault } from '../errors.ts'
import type { Runtime, ServeOptions, Service } from '../service.ts'
import type { Connections } from './connections.ts'
import type { DescribedInterface } from './documents.ts'
import type { HealthJson } from './health-json.ts'
import { type CallerOf, type HostCheck, type HttpCaller, plainAddress } from './hosts.ts'
import type { ServerLimits } from './limits.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { RequestTarget } from './routes.ts'

const sane = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
/** W3C Trace Context: version 00 has exactly four parts, later ones may have more; ff is not a version. */
const trace =
  /^(?:00-([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}|(?!00|ff)[0-9a-f]{2}-([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?)$/
const noTrace = '0'.repeat(32)

/** H6: the caller's own id, or its trace's, when it is one that a log can hold; else a new one. */
export function correlationOf(headers: IncomingHttpHeaders): string {
  const header = headers['x-correlation-id']
  if (typeof header === 'string' && sane.test(header)) return header
  const { traceparent } = headers
  if (typeof traceparent === 'string') {
    const match = trace.exec(traceparent)
    const id = match?.[1] ?? match?.[2]
    if (id !== undefined && id !== noTrace) return id
  }
  return randomUUID()
}

/** One request on its way to its answer. */
export type RequestContext = UnderWay & {
  /** For the Service: aborts when the request is cancelled. */
  readonly signal: AbortSignal
  /** Rejects what the request waits for at the moment. */
  waiting: ((reason: Fault) => void) | undefined
  /** From the monotonic clock, milliseconds. */
  readonly started: number
  readonly correlationId: string
  readonly caller: HttpCaller
  /** The caller waits for `100 Continue` before it sends the body. */
  readonly expects: boolean
  /** What the log and the metrics say; filled in as it becomes known. */
  readonly logFields: {
    method: string
    path: string
    label: string
    runId: string | undefined
    /** Of a defect. */
    stack: string | undefined
  }
}

export function createRequestContext(
  server: ServerContext,
  request: IncomingMessage,
  response: ServerResponse,
  expects: boolean,
): RequestContext {
  const calls = new AbortController()
  const context: RequestContext = {
    request,
    response,
    started: performance.now(),
    correlationId: correlationOf(request.headers),
    caller: server.callerOf(request.socket.remoteAddress, request.headers),
    signal: calls.signal,
    expects,
    logFields: {
      method: request.method ?? '',
      path: '',
      label: 'other',
      runId: undefined,
      stack: undefined,
    },
    // Node's parser passes over what follows a request to upgrade, although nobody upgrades here.
    last: request.headers.upgrade !== undefined,
    waiting: undefined,
    cancel: (reason) => {
      calls.abort(reason)
      context.waiting?.(reason)
    },
  }
  server.open.add(context)
  const { socket } = request
  server.openOn.set(socket, (server.openOn.get(socket) ?? 0) + 1)
  response.on('close', () => {
    server.open.delete(context)
    server.openOn.set(socket, (server.openOn.get(socket) ?? 1) - 1)
    if (!response.writableFinished) context.cancel(new Fault('Interrupted', 'The caller went away'))
  })
  return context
}

/** Settles with the promise, or rejects as soon as the request is cancelled, whatever the promise does. */
export function orCancelled<T>(context: RequestContext, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    if (context.signal.aborted) reject(context.signal.reason as Error)
    context.waiting = reject
    promise.then(resolve, reject)
  })
}

/** A request whose answer has not left yet. */
export type UnderWay = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Cancels what is done for it, and settles what waits for that. Only the first reason counts. */
  readonly cancel: (reason: Fault) => void
  /** No further request is answered on this connection. */
  last: boolean
}

/** What every request of one running server needs: made once, handed down. */
export type ServerContext = {
  readonly service: Service
  readonly runtime: Runtime
  readonly options: ServeOptions
  readonly limits: ServerLimits
  readonly log: Log
  /** True over TLS. */
  readonly secure: boolean
  readonly readTarget: (url: string) => RequestTarget
  readonly checkHost: HostCheck
  readonly callerOf: CallerOf
  /** Whether an address is one of a trusted proxy. */
  readonly isTrusted: (address: string) => boolean
  readonly origins: ReadonlySet<string>
  readonly metrics: Metrics
  readonly healthJson: HealthJson
  readonly described: DescribedInterface
  readonly open: Set<UnderWay>
  readonly connections: Connections
  /** How many of the open requests came on each connection. */
  readonly openOn: WeakMap<object, number>
  /** Connections on which nothing further is believed or answered. */
  readonly silenced: WeakSet<object>
  /** True from the moment the server was told to stop. */
  draining: boolean
  /** Answers wait for this, where there is one, before they are sent. */
  hold: Promise<void> | undefined
}

/** The request that came last on a connection, while it is not answered yet. */
export function latestOn(server: ServerContext, socket: Duplex): UnderWay | undefined {
  let latest: UnderWay | undefined
  for (const one of server.open) if (one.request.socket === socket) latest = one
  return latest
}

/** The server's address as this caller knows it: its Host header has been checked against the allow-list. */
export function baseUrl(server: ServerContext, { request }: RequestContext): string {
  const { host = '', 'x-forwarded-proto': outside } = request.headers
  const secure =
    server.secure || (outside === 'https' && server.isTrusted(plainAddress(request.socket.remoteAddress ?? '')))
  return `${secure ? 'https' : 'http'}://${host}`
}

/** The same as browsers write it in Origin: no default port, lower case. */
export function ownOrigin(server: ServerContext, context: RequestContext): string {
  const base = baseUrl(server, context)
  // A port beyond 65535 passes for one in a Host header.
  return URL.canParse(base) ? new URL(base).origin : base
}
