import type { IncomingMessage, ServerResponse } from 'node:http'
import { performance } from 'node:perf_hooks'
import { Fault } from '../errors.ts'
import type { HttpCaller } from './caller.ts'
import { correlationOf } from './correlation.ts'
import type { Site, UnderWay } from './site.ts'

/** One request on its way to its answer. */
export type Exchange = UnderWay & {
  /** For the Service: aborts when the exchange is cancelled. */
  readonly signal: AbortSignal
  /** Rejects what the exchange waits for at the moment. */
  waiting: ((reason: Fault) => void) | undefined
  /** From the monotonic clock, milliseconds. */
  readonly started: number
  readonly correlationId: string
  readonly caller: HttpCaller
  /** The caller waits for `100 Continue` before it sends the body. */
  readonly expects: boolean
  /** What the log and the metrics say; filled in as it becomes known. */
  readonly told: {
    method: string
    path: string
    label: string
    runId: string | undefined
    /** Of a defect. */
    stack: string | undefined
  }
}

export function begin(site: Site, request: IncomingMessage, response: ServerResponse, expects: boolean): Exchange {
  const calls = new AbortController()
  const exchange: Exchange = {
    request,
    response,
    started: performance.now(),
    correlationId: correlationOf(request.headers),
    caller: site.callerOf(request.socket.remoteAddress, request.headers),
    signal: calls.signal,
    expects,
    told: {
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
      exchange.waiting?.(reason)
    },
  }
  site.open.add(exchange)
  const { socket } = request
  site.openOn.set(socket, (site.openOn.get(socket) ?? 0) + 1)
  response.on('close', () => {
    site.open.delete(exchange)
    site.openOn.set(socket, (site.openOn.get(socket) ?? 1) - 1)
    if (!response.writableFinished) exchange.cancel(new Fault('Interrupted', 'The caller went away'))
  })
  return exchange
}

/** Settles with the promise, or rejects as soon as the exchange is cancelled, whether or not the promise heeds it. */
export function orCancelled<T>(exchange: Exchange, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    if (exchange.signal.aborted) reject(exchange.signal.reason as Error)
    exchange.waiting = reject
    promise.then(resolve, reject)
  })
}
