import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isLoopback, isLoopbackHost } from '../loopback.ts'

/** One address of a peer to connect to. */
export type PeerAddress = {
  readonly ip: string
  readonly port: number
  /** `ip:port`, for messages. */
  readonly address: string
  /** Aborts at the deadline, or when it is the next address's turn. */
  readonly signal: AbortSignal
  /** Names the current step, and its address if that is another one, as after a redirect. */
  readonly step: (check: string, address?: string) => void
}

export type AddressFamily = 'ipv4' | 'ipv6'
export const familyOf = (ip: string): AddressFamily => (isIP(ip) === 6 ? 'ipv6' : 'ipv4')
/** As texts name a family. */
export const familyName = { ipv4: 'IPv4', ipv6: 'IPv6' } as const

/** Whether a connection stays on this machine: to loopback, or to a Unix socket, which has its path as its address. */
export const isLocal = (ip: string): boolean => ip.startsWith('/') || isLoopback(ip)
/** The addresses of this machine's interfaces. */
export const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address))

type Networks = readonly (readonly [network: string, prefix: number])[]
const lists = new Map<Networks, BlockList>()

/** Whether an address is in one of the networks. Their list is made on first use, which loads node:net. */
function isIn(networks: Networks, ip: string, type: AddressFamily): boolean {
  let list = lists.get(networks)
  if (list === undefined) {
    list = new BlockList()
    for (const [network, prefix] of networks) list.addSubnet(network, prefix, familyOf(network))
    lists.set(networks, list)
  }
  return list.check(ip, type)
}

/** Outside the public Internet: private, local, shared, documentation, multicast and reserved networks. */
const closed: Networks = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
  // Teredo and 6to4 addresses contain arbitrary IPv4 addresses.
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]
const global6: Networks = [['2000::', 3]]
const linkLocal: Networks = [
  ['169.254.0.0', 16],
  ['fe80::', 10],
]
/** "Every address": a connection to it reaches this machine. */
const unspecified: Networks = [
  ['0.0.0.0', 32],
  ['::', 128],
]

/**
 * How near an address is: on this machine, on its link (without a router between), or beyond. Behind a proxy, a name
 * stands for its address.
 *
 * @example
 * ```ts
 * reachOf('127.0.0.1') // 'machine'
 * reachOf('fe80::1') // 'link'
 * reachOf('10.0.0.7') // 'routed'
 * ```
 */
export function reachOf(ip: string): 'machine' | 'link' | 'routed' {
  const type = familyOf(ip)
  if (isLocal(ip) || isLoopbackHost(ip) || isIn(unspecified, ip, type)) return 'machine'
  return isIn(linkLocal, ip, type) ? 'link' : 'routed'
}

const reaches = ['routed', 'link', 'machine'] as const

/**
 * Whether an address named by a peer is nearer to us than the peer: on this machine or its link for a remote peer, on
 * this machine for one on the link. A peer must not direct requests there.
 */
export const leadsNearer = (from: string, to: string): boolean =>
  reaches.indexOf(reachOf(to)) > reaches.indexOf(reachOf(from))

/**
 * Whether an address belongs to the public Internet. IPv4-mapped IPv6 addresses do not.
 *
 * @example
 * ```ts
 * isPublic('10.0.0.7') // false
 * isPublic('9.9.9.9') // true
 * ```
 */
export function isPublic(ip: string): boolean {
  if (isIP(ip) === 4) return !isIn(closed, ip, 'ipv4')
  return isIP(ip) === 6 && isIn(global6, ip, 'ipv6') && !isIn(closed, ip, 'ipv6')
}
