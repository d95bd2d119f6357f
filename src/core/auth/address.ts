import { isIPv4, isIPv6 } from 'node:net'

/** What one subscriber has: an IPv4 address, or the /64 of an IPv6 address. Anything else is as it is. */
export function addressPrefix(address: string): string {
  const [plain = ''] = address.split('%')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1]
  if (mapped !== undefined && isIPv4(mapped)) return mapped
  if (!isIPv6(plain)) return plain
  return `${groups(plain)
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}

/** All eight groups; an IPv4 tail stands for the last two, of which the prefix needs none. */
function groups(address: string): readonly string[] {
  const [head = '', tail] = address.replace(/\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$/, '0:0').split('::')
  const left = head === '' ? [] : head.split(':')
  if (tail === undefined) return left
  const right = tail === '' ? [] : tail.split(':')
  return [...left, ...Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0'), ...right]
}
