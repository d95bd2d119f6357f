import { isIP } from 'node:net'
import { isLoopback } from '../loopback.ts'
import { hostOf, portOf } from '../net/url.ts'
import { ownAddresses } from './serve-marker.ts'

/** Whether this process itself listens at an address and port; `url` is its announced URL. */
export function isOwnProcess(ip: string, port: number, url: string | undefined): boolean {
  const own = url === undefined ? null : URL.parse(url)
  if (own === null || portOf(own) !== port) return false
  const host = hostOf(own)
  // It listens at one address only.
  if (isIP(host) !== 0 && host !== '0.0.0.0' && host !== '::') return ip === host
  return isLoopback(ip) || ownAddresses().includes(ip)
}
