import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Fault } from '../errors.ts'
import type { Runtime, ServeOptions, Service } from '../service.ts'
import type { CallerOf } from './caller.ts'
import type { Connections } from './connections.ts'
import type { DescribedInterface } from './documents.ts'
import type { HealthJson } from './health-json.ts'
import type { HostCheck } from './hosts.ts'
import type { ServerLimits } from './limits.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { RequestTarget } from './target.ts'

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
