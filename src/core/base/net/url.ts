import { isIP } from 'node:net'
import { bareHost } from '../loopback.ts'
import { hostMistake, type Target } from '../settings/index.ts'

/** Default ports of schemes. Database kinds state their own. */
const usualPorts: Readonly<Record<string, number>> = {
  'http:': 80,
  'https:': 443,
  'ldap:': 389,
  'ldaps:': 636,
  'redis:': 6_379,
  'rediss:': 6_379,
}

/**
 * The host for sockets and certificates: IPv6 without brackets.
 *
 * @example
 * ```ts
 * hostOf(new URL('https://[::1]:8443/')) // '::1'
 * ```
 */
export const hostOf = (url: URL): string => bareHost(url.hostname)

/**
 * The default port of a URL's scheme.
 *
 * @example
 * ```ts
 * usualPort(new URL('https://db1/')) // 443
 * ```
 */
export const usualPort = (url: URL): number => usualPorts[url.protocol] ?? 0

/**
 * The port of a URL, `usual` if it has none.
 *
 * @example
 * ```ts
 * portOf(new URL('https://db1/')) // 443
 * portOf(new URL('https://db1:8443/')) // 8443
 * ```
 */
export const portOf = (url: URL, usual = usualPort(url)): number => Number(url.port) || usual

/**
 * The user in a URL, as written there; empty if there is none.
 *
 * @example
 * ```ts
 * userIn('postgres://monitor@db1/orders') // 'monitor'
 * ```
 */
export const userIn = (url: string): string => URL.parse(url)?.username ?? ''

/** The `target` of a kind with a URL. An invalid URL has no target. */
export function urlTarget(settings: { readonly url: string }): Target {
  const url = URL.parse(settings.url)
  return url === null ? {} : { host: hostOf(url), port: portOf(url) }
}

/** The `target` of a database kind. The engine runs only one monitor of a database at a time. */
export function databaseSlot(settings: { readonly url: string }, usual?: number): Target {
  const url = URL.parse(settings.url)
  if (url === null) return {}
  const [host, port] = [hostOf(url), portOf(url, usual)]
  return { host, port, database: `${host}:${port}` }
}

/**
 * `host`, `host:port` or `[v6]:port`, with `usual` as the port of the others. Undefined for anything else.
 *
 * @example
 * ```ts
 * parseHostPort('ntp1.example.com', 123) // { host: 'ntp1.example.com', port: 123 }
 * ```
 */
export function parseHostPort(
  text: string,
  usual: number,
): { readonly host: string; readonly port: number } | undefined {
  if (isIP(text) === 6) return { host: text, port: usual }
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = bracketed ?? plain
  const number = port === undefined ? usual : Number(port)
  if (!host || number < 1 || number > 65_535 || (bracketed !== undefined && isIP(bracketed) !== 6)) return undefined
  return hostMistake(host) === undefined ? { host, port: number } : undefined
}

/** The message for a text that `parseHostPort` cannot read, or undefined. */
export const hostPortMistake = (text: string): string | undefined =>
  parseHostPort(text, 1) ? undefined : 'is neither a host nor host:port: write a name, 10.0.0.7:53 or [fd00::7]:53'
