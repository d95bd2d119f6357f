import { networkInterfaces } from 'node:os'
import { queryMessage } from './dns-query.ts'

/** Milliseconds that a name server may take to refuse another query. */
const refusalMs = 1_000

const noRoute: ReadonlySet<string> = new Set(['ENETUNREACH', 'EHOSTUNREACH', 'ENETDOWN', 'EHOSTDOWN', 'EADDRNOTAVAIL'])
const notPermitted: ReadonlySet<string> = new Set(['EACCES', 'EPERM'])

type Place = { readonly host: string; readonly port: number }

/**
 * Why queries to name servers failed for which c-ares reports ECONNREFUSED: it does so for every error of a socket.
 * Returns the code of that error if all servers have the same kind of obstacle on the way to them, and ECONNREFUSED in
 * any other case. Sends a query to each of them again; rejects only when the signal aborts.
 */
export async function refusalCode(servers: readonly Place[], name: string, signal: AbortSignal): Promise<string> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(refusalMs)])
  const codes = await Promise.all(servers.map((server) => socketCode(server, name, limit)))
  signal.throwIfAborted()
  const [code = ''] = codes
  return [noRoute, notPermitted].some((group) => codes.every((one) => group.has(one))) && code !== ''
    ? code
    : 'ECONNREFUSED'
}

/** The code of the error that a query meets, or an empty text. */
async function socketCode({ host: ip, port }: Place, name: string, signal: AbortSignal): Promise<string> {
  try {
    await queryMessage({ ip, port, name, type: 'SOA', signal })
    return ''
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? ''
  }
}

/**
 * A sentence about a code of `refusalCode` other than ECONNREFUSED, undefined for that. `servers` are those that were
 * asked, as messages show them.
 */
export function obstacleText(code: string, servers: string, interfaces = networkInterfaces()): string | undefined {
  if (notPermitted.has(code)) {
    return `this machine does not let queries to ${servers} out (${code}): its firewall or its routes forbid them`
  }
  if (!noRoute.has(code)) return undefined
  const hasNetwork = Object.values(interfaces).some((addresses) => addresses?.some(({ internal }) => !internal))
  return hasNetwork
    ? `no route to ${servers}: network or firewall, not the name server`
    : `no route to ${servers}: this machine has no network, because no interface but loopback has an address`
}
