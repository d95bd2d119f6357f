import { BlockList, isIP } from 'node:net'

/** What is not the public Internet: private, local, shared, documentation, multicast and reserved ranges. */
const closed = new BlockList()
for (const [network, prefix] of [
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
] as const) {
  closed.addSubnet(network, prefix, 'ipv4')
}
// Teredo and 6to4 carry IPv4 addresses of anybody's choice inside.
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  closed.addSubnet(network, prefix, 'ipv6')
}
const global6 = new BlockList()
global6.addSubnet('2000::', 3, 'ipv6')

/** Whether an address belongs to the public Internet. IPv4 written as IPv6 does not. */
export function isPublic(ip: string): boolean {
  if (isIP(ip) === 4) return !closed.check(ip, 'ipv4')
  return isIP(ip) === 6 && global6.check(ip, 'ipv6') && !closed.check(ip, 'ipv6')
}
