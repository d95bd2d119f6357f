import type { BlockList } from 'node:net'

let list: BlockList | undefined

/** Made on first use, which also loads node:net: `isLoopback` recognizes the usual spellings without it. */
function loopback(): BlockList {
  if (list) return list
  list = new (process.getBuiltinModule('node:net').BlockList)()
  list.addSubnet('127.0.0.0', 8, 'ipv4')
  list.addAddress('::1', 'ipv6')
  return list
}

/**
 * A host without the brackets that an IPv6 address has in a URL.
 *
 * @example
 * ```ts
 * bareHost('[::1]') // '::1'
 * ```
 */
export const bareHost = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')

/**
 * Whether an IP address is loopback: 127.0.0.0/8 (RFC 1122, 3.2.1.3), ::1 (RFC 4291, 2.5.3), or the former mapped into
 * IPv6 (::ffff:127.0.0.0/104). Accepts any spelling, with or without brackets. Traffic to such an address never leaves
 * this machine, so it may be unencrypted.
 *
 * All other addresses count as other machines: link-local (169.254.0.0/16, fe80::/10), unspecified (0.0.0.0, ::),
 * private, and this machine's own network address. Also false for an address with a zone, because loopback has none,
 * and for text that is not an address. For names see `isLoopbackHost`.
 *
 * @example
 * ```ts
 * isLoopback('127.8.0.1') // true
 * isLoopback('::ffff:127.0.0.1') // true
 * isLoopback('10.0.0.7') // false
 * ```
 */
export function isLoopback(address: string): boolean {
  if (address === '127.0.0.1' || address === '::1') return true
  const bare = bareHost(address)
  const family = process.getBuiltinModule('node:net').isIP(bare)
  // A BlockList ignores the zone and matches IPv4-mapped IPv6 addresses.
  return family !== 0 && !bare.includes('%') && loopback().check(bare, family === 4 ? 'ipv4' : 'ipv6')
}

/**
 * Whether a host, given as an address or a name, is loopback: a loopback address, `localhost`, or a name below it (RFC
 * 6761, 6.3). No other name is, whatever it resolves to. A resolver may still map such a name to another machine:
 * before sending a credential, check the address of the connection with `isLoopback`.
 *
 * @example
 * ```ts
 * isLoopbackHost('localhost') // true
 * ```
 */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase()
  return name === 'localhost' || name.endsWith('.localhost') || isLoopback(host)
}
