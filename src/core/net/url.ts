import type { Target } from '../settings/index.ts'

/** The ports of schemes whose port may be left out; databases name theirs themselves. */
const usualPorts: Readonly<Record<string, number>> = {
  'http:': 80,
  'https:': 443,
  'ldap:': 389,
  'ldaps:': 636,
  'redis:': 6_379,
  'rediss:': 6_379,
}

/** The host as sockets and certificates take it: IPv6 without brackets. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1')

/** The port of a URL's scheme. */
export const usualPort = (url: URL): number => usualPorts[url.protocol] ?? 0

/** The port that a URL leads to, `usual` where it names none. */
export const portOf = (url: URL, usual = usualPort(url)): number => Number(url.port) || usual

/** `target` of a kind that asks a URL. A text that is none has no target. */
export function urlTarget(settings: { readonly url: string }): Target {
  const url = URL.parse(settings.url)
  return url === null ? {} : { host: hostOf(url), port: portOf(url) }
}

/** `target` of a kind that asks a database: of monitors of one database, the engine runs one at a time. */
export function databaseSlot(settings: { readonly url: string }, usual?: number): Target {
  const url = URL.parse(settings.url)
  if (url === null) return {}
  const [host, port] = [hostOf(url), portOf(url, usual)]
  return { host, port, database: `${host}:${port}` }
}
