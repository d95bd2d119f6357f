import type { Exchange } from './exchange.ts'
import { plainAddress } from './hosts.ts'
import type { Site } from './site.ts'

/** The server's address as this caller knows it: its Host header has been checked against the allow-list. */
export function baseUrl(site: Site, { request }: Exchange): string {
  const { host = '', 'x-forwarded-proto': outside } = request.headers
  const secure =
    site.secure || (outside === 'https' && site.isTrusted(plainAddress(request.socket.remoteAddress ?? '')))
  return `${secure ? 'https' : 'http'}://${host}`
}

/** The same as browsers write it in Origin: no default port, lower case. */
export function ownOrigin(site: Site, exchange: Exchange): string {
  const base = baseUrl(site, exchange)
  // A port beyond 65535 passes for one in a Host header.
  return URL.canParse(base) ? new URL(base).origin : base
}
