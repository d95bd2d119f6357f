import type { RequestContext } from './exchange.ts'
import { plainAddress } from './hosts.ts'
import type { ServerContext } from './site.ts'

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
