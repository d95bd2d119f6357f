import type { BlockList } from 'node:net'

let list: BlockList | undefined

/** Made, and node:net loaded, when the first address needs it: most are spelled as `isLoopback` knows them. */
function loopback(): BlockList {
  if (list) return list
  list = new (process.getBuiltinModule('node:net').BlockList)()
  list.addSubnet('127.0.0.0', 8, 'ipv4')
  list.addAddress('::1', 'ipv6')
  return list
}

/**
 * Whether an IP address is loopback: 127.0.0.0/8 (RFC 1122, 3.2.1.3), ::1 (RFC 4291, 2.5.3), or one of the former
 * mapped into IPv6 (::ffff:127.0.0.0/104); in any spelling, with or without brackets. What is sent there never leaves
 * this machine, so that it may go in clear.
 *
 * Every other address counts as another machine: link-local (169.254.0.0/16, fe80::/10), unspecified (0.0.0.0, ::),
 * private, and this machine's own address on its network. False too for an address with a zone, because loopback has
 * none, and for a text that is not an address. For names see `isLoopbackHost`.
 */
export function isLoopback(address: string): boolean {
  if (address === '127.0.0.1' || address === '::1') return true
  const bare = /^\[.*\]$/.test(address) ? address.slice(1, -1) : address
  const family = process.getBuiltinModule('node:net').isIP(bare)
  // A list ignores the zone, and takes an IPv4 address that is mapped into IPv6 for what it is.
  return family !== 0 && !bare.includes('%') && loopback().check(bare, family === 4 ? 'ipv4' : 'ipv6')
}

/**
 * Whether a host, written as an address or a name, is loopback: a loopback address, `localhost`, or a name below it
 * (RFC 6761, 6.3). No other name is, whatever it resolves to. A resolver may still lead such a name to another machine:
 * before a credential follows, judge the address of the connection by `isLoopback`.
 */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase()
  return name === 'localhost' || name.endsWith('.localhost') || isLoopback(host)
}
