import type { CheckContext } from '../../engine/index.ts'
import { hostPort } from '../../net/connect.ts'
import { asksPeerAt, hostOf, portOf } from '../../net/http/route.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { isPublic, leadsNearer, reachOf } from '../../net/public-address.ts'
import { safeUrl } from '../../net/text.ts'

export type Gate = {
  /** The monitor's own URL: its origin may always be asked. */
  readonly home: URL
  /** Where that was asked. */
  readonly target: PeerAddress
  /** `host`, `host:port` or `*.domain`: nobody else, when given; else public addresses on the usual ports. */
  readonly hosts: readonly string[] | undefined
  readonly plainHttp: boolean
}
type Admission = { readonly target: PeerAddress } | { readonly refusal: string }

/**
 * Decides whether a URL that a peer chose is asked, and where. A hostile answer must not make svc
 * ask machines that only this network reaches, nor try the ports of others. The address that is
 * judged is the one that is connected to, so that a name cannot change its mind in between.
 */
export async function admit(
  url: URL,
  gate: Gate,
  context: Pick<CheckContext, 'resolve' | 'calledByPeer'>,
): Promise<Admission> {
  const { home, target } = gate
  const refused = (why: string): Admission => ({ refusal: `${safeUrl(url)} is not asked: ${why}` })
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return refused('it is neither https nor http')
  if (context.calledByPeer && asksPeerAt(url)) return refused('another svc asked for this run')
  if (url.origin === home.origin) return { target }
  if (url.protocol === 'http:' && !gate.plainHttp) return refused('it is not https')
  const listed = gate.hosts?.some((entry) => matches(entry, url))
  if (listed === false) return refused('its host is not in linkHosts')
  if (!listed && url.port !== '') return refused('its port is not the usual one: name host:port in linkHosts')
  const [ip] = await context.resolve(hostOf(url))
  if (ip === undefined) return refused('its host has no address')
  if (!listed && !isPublic(ip)) return refused('its address is not a public one: name the host in linkHosts')
  if (listed && leadsNearer(target.ip, ip)) {
    return refused(`it leads to ${reachOf(ip) === 'machine' ? '' : 'the link of '}this machine`)
  }
  const port = portOf(url)
  return { target: { ...target, ip, port, address: hostPort(ip, port) } }
}

function matches(entry: string, url: URL): boolean {
  const wanted = entry.toLowerCase()
  if (wanted === url.host || wanted === `${url.hostname}:${portOf(url)}`) return true
  // A bare name stands for all its ports, `*.` for every name below a domain.
  if (wanted.startsWith('*.')) return url.hostname.endsWith(wanted.slice(1)) && url.hostname.length > wanted.length - 1
  return wanted === url.hostname || wanted === hostOf(url)
}

/** Why an entry of linkHosts cannot be read, or undefined. */
export const hostProblem = (entry: string): string | undefined =>
  /^(?:\*\.)?[\w.-]+(?::\d{1,5})?$|^\[[\da-f:.]+\](?::\d{1,5})?$|^[\da-f:.]+$/i.test(entry) &&
  !(entry.startsWith('*.') && !/^\*\.[\w-]+\.[\w.-]+$/.test(entry))
    ? undefined
    : 'linkHosts takes cdn.example.com, cdn.example.com:8443 or *.cdn.example.com'
