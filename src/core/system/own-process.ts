import { isIP } from 'node:net'
import { isLoopback } from '../loopback.ts'
import { hostOf, portOf } from '../net/url.ts'
import { ownAddresses } from './serve-marker.ts'

/** Whether an address and port are where this very process answers; `url` is what it said of that. */
export function isOwnProcess(ip: string, port: number, url: string | undefined): boolean {
  const own = url === undefined ? null : URL.parse(url)
  if (own === null || portOf(own) !== port) return false
  const host = hostOf(own)
  // It answers at one address alone.
  if (isIP(host) !== 0 && host !== '0.0.0.0' && host !== '::') return ip === host
  return isLoopback(ip) || ownAddresses().includes(ip)
}
