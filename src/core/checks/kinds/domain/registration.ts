import { hostPort } from '../../../base/net/connect.ts'
import { open, type Route, travel } from '../../../base/net/http/route.ts'
import { readJson } from '../../../base/net/json.ts'
import { createRedactor, quote, safeUrl, sanitize } from '../../../base/net/text.ts'
import { readTrust } from '../../../base/net/trust.ts'
import { hostOf, portOf } from '../../../base/net/url.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { type CheckContext, orAborted } from '../../engine/index.ts'

declare module '../../engine/index.ts' {
  interface Services {
    /** The answers of RDAP servers as text, which outlive the process. Neither function rejects. */
    readonly rdapAnswers: {
      readonly read: (key: string) => Promise<string | undefined>
      readonly write: (key: string, text: string) => Promise<void>
    }
  }
}

/** The part of an answer that svc keeps. Times are milliseconds since 1970. */
export type Registration = {
  readonly at: number
  /** Why the answer tells nothing about the domain. */
  readonly problem?: string
  /** The server has no such domain. */
  readonly isMissing?: boolean
  readonly expires?: number | undefined
  /** Undefined if the answer has none. */
  readonly status?: readonly string[] | undefined
  /** The names of its name servers. Undefined if the answer has none. */
  readonly nameServers?: readonly string[] | undefined
}

const keptMs = 6 * 3_600_000
/** An answer has some kilobytes, at a depth of less than ten. */
const maxBytes = 256 * 1_024
const deepest = 32
const maxItems = 64

const requests = new WeakMap<object, Map<string, Promise<Registration>>>()

/** The answer of the server, whatever it is: the same one for 6 h. Throws ProbeError, or a socket's error, without one. */
export async function registrationOf(server: string, domain: string, context: CheckContext): Promise<Registration> {
  const { rdapAnswers } = context.services
  const key = `${server} ${domain}`
  // An answer from the future comes from a clock that has been set back.
  const counts = (one: Registration | null | undefined): one is Registration => {
    const age = context.date().getTime() - (one?.at ?? Number.NaN)
    return age >= 0 && age < keptMs
  }
  const shared = requests.get(context.services) ?? new Map<string, Promise<Registration>>()
  requests.set(context.services, shared)
  const own = shared.get(key)
  // Another monitor's request may have ended with its deadline, which is not that of this one.
  const latest = own && (await orAborted(own, context.signal).catch(() => undefined))
  if (counts(latest)) return latest
  if (shared.get(key) !== own) return await registrationOf(server, domain, context)
  const request = (async () => {
    const note = readJson((await rdapAnswers?.read(key)) ?? '', deepest)
    const before = 'json' in note ? (note.json as Registration | null) : undefined
    if (counts(before)) return before
    const registration = await ask(new URL(`domain/${domain}`, server.replace(/\/?$/, '/')), domain, context)
    await rdapAnswers?.write(key, JSON.stringify(registration))
    return registration
  })()
  shared.set(key, request)
  return await request
}

async function ask(url: URL, domain: string, context: CheckContext): Promise<Registration> {
  const { signal, step } = context
  const [ip] = await context.resolve(hostOf(url))
  if (ip === undefined) throw new ProbeError('dns', `${hostOf(url)} has no address`)
  const at = { ip, port: portOf(url), address: hostPort(ip, portOf(url)), signal, step }
  const common = { 'User-Agent': 'svc', Accept: 'application/rdap+json' }
  const trust = await readTrust({}, context.files)
  const redact = createRedactor([])
  const bare = { common, own: {}, signsIn: false, insecureHttp: false, verify: true, trust, redact }
  const route: Route = { url, method: 'GET', redirects: 3, ...bare }
  const { head, socket, url: last, receivedAt } = await travel(await open(at, url, route, context), at, route, context)
  try {
    if (last.protocol !== url.protocol) throw new ProbeError('protocol', `redirects to ${safeUrl(last)}, without TLS`)
    const { bytes, more } = await head.read(maxBytes)
    const about = more
      ? { problem: 'answered with more than 256 KiB' }
      : answerIn(head.status, bytes.toString(), domain)
    return { at: receivedAt.getTime(), ...about }
  } finally {
    socket.destroy()
  }
}

type Json = Readonly<Record<string, unknown>>
const objectOf = (value: unknown): Json => Object(value) as Json
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value.slice(0, maxItems) : [])
const nameOf = (value: unknown): string => sanitize(String(value), 255).toLowerCase().replace(/\.$/, '')

/** Reads an answer about a domain (RFC 9083). */
export function answerIn(status: number, text: string, domain: string): Omit<Registration, 'at'> {
  const read = readJson(text, deepest)
  const json = objectOf('json' in read ? read.json : {})
  if (status === 404 && json['errorCode'] === 404) return { isMissing: true }
  if (status !== 200) return { problem: `answered ${status}${status === 429 ? ' (too many requests)' : ''}` }
  if (json['objectClassName'] !== 'domain') return { problem: 'answered with something else than a domain' }
  if (nameOf(json['ldhName']) !== domain) return { problem: `answered about ${quote(nameOf(json['ldhName']))}` }
  const dates = listOf(json['events'])
    .map(objectOf)
    .filter(({ eventAction }) => eventAction === 'expiration')
  const expires = Math.min(...dates.map(({ eventDate }) => Date.parse(String(eventDate))))
  const nameServers = listOf(json['nameservers']).map((one) => nameOf(objectOf(one)['ldhName']))
  return {
    nameServers: nameServers.length === 0 ? undefined : nameServers,
    expires: Number.isFinite(expires) ? expires : undefined,
    status: Array.isArray(json['status']) ? listOf(json['status']).map((one) => sanitize(String(one), 64)) : undefined,
  }
}
