import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { performance } from 'node:perf_hooks'
import type { Duplex } from 'node:stream'
import { Fault } from '../base/errors.ts'
import type { LiveSeries } from '../checks/reports/index.ts'
import type { Runtime, ServeOptions, Service, SignedRequest } from '../protocol/service/service.ts'
import type { Connections } from './connections.ts'
import type { DescribedInterface } from './documents.ts'
import type { HealthJson } from './health-json.ts'
import { type CallerOf, type HostCheck, type HttpCaller, type PeerCheck, plainAddress } from './hosts.ts'
import type { ServerLimits } from './limits.ts'
import type { LocalSocket } from './local-socket.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { ProbeConnections } from './probes.ts'
import type { RequestTarget } from './routes.ts'
import type { Pipelines } from './turns.ts'
import type { WaitingAnswers } from './waiting.ts'

/** For how many readers texts are kept. */
const readersAtMost = 8

type Entry = { readonly reader: string; readonly of: readonly unknown[]; readonly series: LiveSeries }

/** Keeps the latest series of each reader with their text, which takes long to write and much memory. */
export class KeptSeries {
  /** Those of the latest reader first. */
  #entries: readonly Entry[] = []

  /**
   * The series of these objects and values, which `make` makes unless it made those of the identical ones for this reader
   * last. `reader`: equal for all who see the same in the same format.
   */
  async of(reader: string, parts: readonly unknown[], make: () => Promise<LiveSeries>): Promise<LiveSeries> {
    const before = this.#entries.find((entry) => entry.reader === reader)
    const isSame = before?.of.length === parts.length && before.of.every((part, at) => part === parts[at])
    const entry = before && isSame ? before : { reader, of: parts, series: await make() }
    this.#entries = [entry, ...this.#entries.filter((other) => other.reader !== reader)].slice(0, readersAtMost)
    return entry.series
  }
}

const sane = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
/** W3C Trace Context: version 00 has exactly four parts, later versions may have more. `ff` is not a version. */
const trace =
  /^(?:00-([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}|(?!00|ff)[0-9a-f]{2}-([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?)$/
const noTrace = '0'.repeat(32)

/** The caller's correlation id, or its trace id, when it is safe to log; otherwise a new id (H6). */
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

/** A request that is being answered. */
export type RequestContext = UnderWay & {
  /** For the Service: aborts when the request is cancelled. */
  readonly signal: AbortSignal
  /** Rejects the promise that the request currently waits for. */
  waiting: ((reason: Fault) => void) | undefined
  /** Monotonic milliseconds. */
  readonly started: number
  readonly correlationId: string
  readonly caller: HttpCaller
  /** The caller waits for `100 Continue` before it sends the body. */
  readonly expects: boolean
  /** Fields for the log and the metrics, filled in as they become known. */
  readonly logFields: {
    method: string
    path: string
    label: string
    runId: string | undefined
    /** The stack of a defect. */
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
    caller: server.callerOf(request),
    signal: calls.signal,
    expects,
    logFields: {
      method: request.method ?? '',
      path: '',
      label: 'other',
      runId: undefined,
      stack: undefined,
    },
    // Node's parser skips whatever follows an upgrade request, although this server never upgrades.
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
    if (!response.writableFinished) context.cancel(new Fault('Interrupted', 'The client disconnected'))
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

/** A request whose answer has not been sent yet. */
export type UnderWay = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Cancels the work for the request and rejects the promise that waits for it. Only the first reason counts. */
  readonly cancel: (reason: Fault) => void
  /** True when the connection closes after this request. */
  last: boolean
}

/** The parts of a running server that every request needs. Made once and passed down. */
export type ServerContext = {
  readonly service: Service
  readonly runtime: Runtime
  readonly options: ServeOptions & { readonly jsonp: boolean }
  readonly limits: ServerLimits
  readonly log: Log
  /** True over TLS. */
  readonly secure: boolean
  /** The value of Strict-Transport-Security. Absent: no answer carries it. */
  strictTransport: string | undefined
  readonly readTarget: (url: string) => RequestTarget
  checkHost: HostCheck
  readonly checkPeer: PeerCheck
  readonly callerOf: CallerOf
  /** Whether an address is one of a trusted proxy. */
  readonly isTrusted: (address: string) => boolean
  readonly origins: ReadonlySet<string>
  readonly metrics: Metrics
  readonly keptSeries: KeptSeries
  readonly healthJson: HealthJson
  readonly described: DescribedInterface
  readonly open: Set<UnderWay>
  readonly connections: Connections
  readonly probes: ProbeConnections
  readonly pipelines: Pipelines
  readonly waiting: WaitingAnswers
  /** The number of open requests per connection. */
  readonly openOn: WeakMap<object, number>
  /** Connections on which no further request is accepted. */
  readonly silenced: WeakSet<object>
  /** Undefined without `serve.socket`. */
  localSocket: LocalSocket | undefined
  /** Undefined in a server that checks something. */
  readonly rehearsal: ServerRehearsal | undefined
  /** True once the server has begun to stop. */
  draining: boolean
  /** When set, answers wait for this promise before they are sent. */
  hold: Promise<void> | undefined
}

/** The changes that a rehearsal makes: every answer is marked, none is a success, and some fail as its script says. */
export type ServerRehearsal = {
  /** The fault that every request gets now instead of its answer. `over`: the script has ended. */
  readonly fault: () => '503' | 'hang' | 'reset' | 'over' | undefined
  /** Called for each request when it comes. */
  readonly noteRequest: (request: {
    readonly address: string
    /** The `User-Agent`, cut and without control characters. */
    readonly agent: string
    readonly method: string
    /** Without the query, and without what may be a secret. */
    readonly path: string
  }) => void
}

/** The latest request on a connection, unless it is answered already. */
export function latestOn(server: ServerContext, socket: Duplex): UnderWay | undefined {
  let latest: UnderWay | undefined
  for (const one of server.open) if (one.request.socket === socket) latest = one
  return latest
}

/** The request that a digest must be for (A12). Undefined where digest is off. */
export const signedRequest = (
  { runtime }: Pick<ServerContext, 'runtime'>,
  { request: { method = '', url = '' } }: Pick<RequestContext, 'request'>,
): SignedRequest | undefined => (runtime.digestChallenges ? { method, target: url } : undefined)

/** The server's address as this caller knows it. The Host header has passed the allow-list. */
export function baseUrl(server: ServerContext, { request }: RequestContext): string {
  const { host = '', 'x-forwarded-proto': outside } = request.headers
  const secure =
    server.secure || (outside === 'https' && server.isTrusted(plainAddress(request.socket.remoteAddress ?? '')))
  return `${secure ? 'https' : 'http'}://${host}`
}

/** The same address as browsers write it in Origin: lower case, without a default port. */
export function ownOrigin(server: ServerContext, context: RequestContext): string {
  const base = baseUrl(server, context)
  // A Host header may hold a port above 65535, which a URL may not.
  return URL.canParse(base) ? new URL(base).origin : base
}
