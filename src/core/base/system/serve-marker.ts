import { lstatSync, readFileSync } from 'node:fs'
import { bareHost, isLoopbackHost } from '../loopback.ts'

/** The content of the file that `svc serve` writes beside its store. */
export type ServeMarker = {
  readonly pid: number
  readonly url: URL
  /** The ticks of `startTicks`. Undefined on other systems than Linux, and from older versions. */
  readonly started?: number | undefined
  /** When it began to use the store, as an ISO time. Undefined from older versions. */
  readonly since?: string | undefined
  /** The files of the store that it has opened, and its lock, by name. Undefined from older versions. */
  readonly files?: Readonly<Record<string, string>> | undefined
}

/**
 * The file beside the store in which `svc serve` writes where it listens.
 *
 * @example
 * ```ts
 * markerPath('/var/lib/svc/svc.db') // '/var/lib/svc/svc.db.serve.json'
 * ```
 */
export const markerPath = (storePath: string): string => `${storePath}.serve.json`
export const markerBytes = 4096

/**
 * Parses a marker, which an attacker might have written: a process id, the origin of an http or https URL, and the
 * identities of files. Undefined for anything else.
 */
export function parseMarker(content: string): ServeMarker | undefined {
  let value: unknown
  try {
    value = JSON.parse(content)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { pid, url, started, since, files } = value as Readonly<Record<string, unknown>>
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1 || pid > 2 ** 31) return undefined
  const parsed = typeof url === 'string' && url.length <= 2048 ? URL.parse(url) : null
  if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.hostname === '') return undefined
  return {
    pid,
    url: new URL(parsed.origin),
    ...(typeof started === 'number' ? { started } : {}),
    ...(isTime(since) ? { since } : {}),
    ...(isTexts(files) ? { files } : {}),
  }
}

const isTime = (value: unknown): value is string =>
  typeof value === 'string' && /^\d{4}-\d{2}-\d{2}T[\d:.]{8,12}Z$/.test(value)

const isTexts = (value: unknown): value is Readonly<Record<string, string>> =>
  typeof value === 'object' && value !== null && Object.values(value).every((one) => typeof one === 'string')

/** Reads the marker of a store. Undefined when there is none that svc could have written. */
export function readMarker(storePath: string): ServeMarker | undefined {
  const path = markerPath(storePath)
  try {
    const stat = lstatSync(path)
    return stat.isFile() && stat.size <= markerBytes ? parseMarker(readFileSync(path, 'utf8')) : undefined
  } catch {
    return undefined
  }
}

/**
 * The URL to connect to: the URL itself when it names this machine by loopback or by one of `own`, with loopback in
 * place of "every address". Undefined when it leads elsewhere.
 */
export function onThisMachine(url: URL, own: readonly string[]): URL | undefined {
  const host = bareHost(url.hostname)
  if (host === '0.0.0.0' || host === '::') {
    const here = new URL(url)
    here.hostname = host === '::' ? '[::1]' : '127.0.0.1'
    return here
  }
  return isLoopbackHost(host) || own.includes(host) ? url : undefined
}
