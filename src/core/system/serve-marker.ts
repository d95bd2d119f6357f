import { networkInterfaces } from 'node:os'
import { isLoopbackHost } from '../loopback.ts'

/** What `svc serve` writes beside its store: its process id and its URL. */
export type ServeMarker = { readonly pid: number; readonly url: URL }

export const markerPath = (storePath: string): string => `${storePath}.serve.json`
export const markerBytes = 4096

/**
 * Parses a marker, which an attacker might have written: a process id, and the origin of an http or https URL.
 * Undefined for anything else.
 */
export function parseMarker(content: string): ServeMarker | undefined {
  let value: unknown
  try {
    value = JSON.parse(content)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { pid, url } = value as { readonly pid?: unknown; readonly url?: unknown }
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1 || pid > 2 ** 31) return undefined
  const parsed = typeof url === 'string' && url.length <= 2048 ? URL.parse(url) : null
  if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.hostname === '') return undefined
  return { pid, url: new URL(parsed.origin) }
}

/** The addresses of this machine's interfaces. */
export const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address))

/**
 * The URL to connect to: the URL itself when it names this machine by loopback or by one of `own`, with loopback in
 * place of "every address". Undefined when it leads elsewhere.
 */
export function onThisMachine(url: URL, own: readonly string[]): URL | undefined {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (host === '0.0.0.0' || host === '::') {
    const here = new URL(url)
    here.hostname = host === '::' ? '[::1]' : '127.0.0.1'
    return here
  }
  return isLoopbackHost(host) || own.includes(host) ? url : undefined
}
