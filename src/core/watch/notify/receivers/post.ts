import { showBytes } from '../../../base/format.ts'
import { isLoopback, isLoopbackHost } from '../../../base/loopback.ts'
import type { PeerAddress } from '../../../base/net/addresses.ts'
import { Conversations, resolveHost, withConversations } from '../../../base/net/connect.ts'
import { call } from '../../../base/net/http/call.ts'
import { open } from '../../../base/net/http/route.ts'
import { connectByProxy } from '../../../base/net/proxy.ts'
import { createRedactor, quote, type Redact } from '../../../base/net/text.ts'
import type { TlsTrust } from '../../../base/net/trust.ts'
import { hostOf, portOf } from '../../../base/net/url.ts'
import { type FaultClass, ProbeError } from '../../../base/probe-error.ts'
import { classify } from '../../../checks/engine/index.ts'
import type { Delivery } from '../receiver.ts'
import type { ReceiverContext } from './kind.ts'

/** Milliseconds for one request, with its connection. */
const answerMs = 10_000
/** Milliseconds for a connection to one of several addresses of a host. */
const connectMs = 4_000
/** Bytes of an answer that are read to explain a refusal. */
const maxAnswer = 8 * 1_024
/** Milliseconds that a receiver may ask to be left alone. */
export const maxPause = 3_600_000
/** Characters of an answer in a message. */
export const maxQuoted = 200

/** Where requests go. */
export type PostTarget = {
  readonly url: URL
  /** Credentials and the like; sent to this place only. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether the URL or the headers hold a credential, which leaves this machine only under TLS. */
  readonly isSecret: boolean
  readonly trust: TlsTrust
  readonly servername?: string | undefined
  /** With its account. Undefined: no proxy. */
  readonly proxy?: URL | undefined
  readonly redact: Redact
}

/** The answer of the server, or why there is no answer. Texts are safe to show. */
export type HttpReply =
  | {
      readonly status: number
      readonly headers: Readonly<Record<string, string>>
      /** The beginning of the body of a refusal, quoted; empty for none. */
      readonly quoted: string
      /** The whole body of a 2xx answer, and the beginning of that of any other, if the request has `maxBody`. */
      readonly body?: string | undefined
      /** Milliseconds since 1970. */
      readonly sentAt: number
      readonly receivedAt: number
    }
  | Extract<Delivery, { readonly what: 'later' }>

/** A URL as lists, logs and messages show it: scheme and host. Its path and query may be secret. */
export const shownPlace = (url: URL): string => `${url.protocol}//${url.host}`

/** The secrets besides the credentials that must not appear in any text: the parts of a URL that may be secret. */
export const secretsOf = (url: URL): readonly string[] => {
  const { username, password } = url
  const parts = [...url.pathname.split('/'), ...url.searchParams.values()].filter((part) => part.length >= 8)
  const written = [url.href, `${url.pathname}${url.search}`, username, password, ...parts]
  return [...new Set([...written, ...written.map(decoded)])].filter((text) => text !== '/')
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Removes secrets from the texts of a server, also percent-encoded and in base64. */
export const redactorOf = (url: URL, secrets: readonly string[]): Redact =>
  createRedactor([...secrets, ...secretsOf(url)].flatMap(formsOf))

const formsOf = (secret: string): readonly string[] => {
  const bytes = Buffer.from(secret)
  const base64 = bytes.toString('base64')
  return [
    ...new Set([
      secret,
      encodeURIComponent(secret),
      base64,
      base64.replace(/={1,2}$/, ''),
      bytes.toString('base64url'),
    ]),
  ]
}

export type HttpAsk = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** Bytes of a 2xx answer that are read. A longer one is a failure. Absent: the status is enough. */
  readonly maxBody?: number | undefined
}

/**
 * Sends one request over a connection of its own, with TLS as monitors use it. Follows no redirect and reads a bounded
 * part of the answer. Never rejects.
 */
export async function request(
  place: PostTarget,
  ask: HttpAsk,
  stop: AbortSignal,
  now: () => number,
): Promise<HttpReply> {
  const { url } = place
  const origin = shownPlace(url)
  const since = performance.now()
  const signal = AbortSignal.any([stop, AbortSignal.timeout(answerMs)])
  let isSent = false
  try {
    const socket = await connect(place, signal)
    const sentAt = now()
    isSent = true
    try {
      const headers = { Host: url.host, ...ask.headers, ...place.headers, Connection: 'close' }
      const path = `${url.pathname}${url.search}`
      const head = await call(socket, origin, { method: ask.method, path, headers, body: ask.body }, place.redact)
      const receivedAt = now()
      const isAccepted = head.status >= 200 && head.status < 300
      if (isAccepted && ask.maxBody !== undefined) {
        const { bytes, more } = await head.read(ask.maxBody)
        if (more) throw new ProbeError('protocol', `${origin} sent more than ${showBytes(ask.maxBody)}`)
        const whole = new TextDecoder().decode(bytes)
        return { status: head.status, headers: head.headers, quoted: '', body: whole, sentAt, receivedAt }
      }
      // The status is the receipt: a body that breaks off changes nothing.
      const body = isAccepted ? undefined : await head.read(maxAnswer).catch(() => undefined)
      const text = body === undefined ? '' : place.redact(body.bytes).trim()
      const quoted = text === '' ? '' : quote(text, maxQuoted)
      const raw = ask.maxBody === undefined || body === undefined ? {} : { body: new TextDecoder().decode(body.bytes) }
      return { status: head.status, headers: head.headers, quoted, ...raw, sentAt, receivedAt }
    } finally {
      socket.destroy()
    }
  } catch (error) {
    const { proxy } = place
    // What the proxy says may repeat its password.
    const ofProxy = createRedactor(proxy ? [proxy.password, decoded(proxy.password)] : [])
    const redact: Redact = (text) => ofProxy(place.redact(text))
    return failureOf(error, { origin, isSent, stop, signal, ms: performance.now() - since, redact })
  }
}

/** How a receiver sends: a preview shows the request instead, and takes it as accepted. */
export const sendingBy = ({ show }: Pick<ReceiverContext, 'show'>): typeof request =>
  show === undefined
    ? request
    : async ({ url, headers: common }, { method, headers, body = '' }, _, now) => {
        const lines = Object.entries({ Host: url.host, ...headers, ...common }).map(
          ([name, value]) => `${name}: ${value}`,
        )
        show([`${method} ${url.href}`, ...lines, '', body].join('\n'))
        return { status: 200, headers: {}, quoted: '', sentAt: now(), receivedAt: now() }
      }

/** A connection to the first address that accepts one. */
async function connect({ url, isSecret, trust, servername, redact, proxy }: PostTarget, signal: AbortSignal) {
  const origin = shownPlace(url)
  // The proxy resolves the name.
  const addresses = proxy ? [hostOf(url)] : await resolveHost(hostOf(url), signal)
  const conversations = new Conversations(proxy ? { byProxy: connectByProxy(proxyOf(proxy, signal)) } : {})
  const route = {
    url,
    method: 'POST',
    common: {},
    own: {},
    signsIn: false,
    insecureHttp: false,
    redirects: 0,
    verify: true,
    trust,
    servername,
    redact,
  } as const
  let first: unknown
  for (const ip of addresses) {
    if (isSecret && url.protocol === 'http:' && (proxy !== undefined || !isLoopback(ip))) {
      const why = proxy ? 'is reached by a proxy' : 'is not on loopback'
      throw new ProbeError('data', `${origin} ${why}: credentials are not sent without TLS; use https://`)
    }
    const limited = addresses.length === 1 ? signal : AbortSignal.any([signal, AbortSignal.timeout(connectMs)])
    const at: PeerAddress = { ip, port: portOf(url), address: origin, signal: limited, step: () => {} }
    try {
      const link = await withConversations(conversations, () => open(at, url, route, { ...netContext, signal }))
      return link.socket
    } catch (error) {
      if (signal.aborted) throw error
      first ??= limited.aborted ? new ProbeError('timeout', `${origin} accepts no connection`) : error
    }
  }
  throw first ?? new ProbeError('dns', `${origin} has no address`)
}

/** The account of a proxy is in its URL. */
const proxyOf = (url: URL, signal: AbortSignal): Parameters<typeof connectByProxy>[0] => ({
  url,
  account: url.username === '' ? undefined : { username: decoded(url.username), password: decoded(url.password) },
  resolve: (host) => resolveHost(host, signal),
})

/** `open` uses the date alone. */
const netContext = {
  msLeft: () => answerMs,
  now: () => performance.now(),
  date: () => new Date(),
  resolve: async () => [],
  lookup: () => {},
}

type Failing = {
  readonly origin: string
  readonly isSent: boolean
  readonly stop: AbortSignal
  readonly signal: AbortSignal
  readonly ms: number
  readonly redact: Redact
  /** Milliseconds after which the signal ends an attempt. */
  readonly limitMs?: number
}

/** Why a server did not answer. */
export function failureOf(
  error: unknown,
  { origin, isSent, stop, signal, ms, redact, limitMs = answerMs }: Failing,
): Extract<Delivery, { what: 'later' }> {
  const later = (fault: FaultClass, message: string) =>
    ({ what: 'later', message: redact(message), isPerhapsReceived: isSent, fault }) as const
  if (stop.aborted) return later('timeout', `svc was stopped while it sent to ${origin}`)
  if (signal.aborted) return later('timeout', `${origin} did not answer within ${limitMs / 1_000} s`)
  const { fault, message } = classify(error, origin, ms)
  return later(fault, message)
}

/** The delivery that follows from a status. `what`: continues the address, as in `refuses the alerts`. */
export function deliveryOf(answer: HttpReply, url: URL, now: () => number, what = 'refuses the message'): Delivery {
  if ('what' in answer) return answer
  const { status, headers, quoted } = answer
  const origin = shownPlace(url)
  const says = quoted === '' ? '' : `: ${quoted}`
  if (status >= 200 && status < 300) return { what: 'accepted' }
  if (status >= 300 && status < 400) {
    const target = URL.parse(headers['location'] ?? '', url.href)
    const to = target === null ? '' : ` to ${shownPlace(target)}`
    const message = `${origin} redirects${to} (${status}): redirects are not followed, set the final URL`
    return { what: 'refused', message, fault: 'protocol' }
  }
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const afterMs = pauseIn(headers['retry-after'], now)
    // A server that limits requests has not processed this one.
    const isPerhapsReceived = status !== 429 && status !== 425
    const message = `${origin} answered ${status}${says}`
    return {
      what: 'later',
      message,
      isPerhapsReceived,
      fault: 'protocol',
      ...(afterMs === undefined ? {} : { afterMs }),
    }
  }
  if (status === 401 || status === 403) {
    return {
      what: 'refused',
      message: `${origin} answered ${status} and refuses the credentials${says}`,
      fault: 'auth',
    }
  }
  return { what: 'refused', message: `${origin} answered ${status} and ${what}${says}`, fault: 'data' }
}

/** The milliseconds of a Retry-After header: seconds or a date. */
function pauseIn(header: string | undefined, now: () => number): number | undefined {
  if (header === undefined) return undefined
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header.slice(0, 64)) - now()
  return Number.isFinite(ms) && ms > 0 ? Math.min(ms, maxPause) : undefined
}

/** Why a URL of a receiver cannot be used, or undefined: the message completes the path of the setting. */
export function placeMistake(written: string): string | undefined {
  const url = URL.parse(written)
  if (url === null || !/^https?:\/\/[^/]/i.test(written)) return 'is not a URL: write it like https://host:port'
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://'
  if (url.username !== '' || url.password !== '') {
    return 'contains a user or a password: remove them, and refer to secrets with {env: NAME} or {file: /path}'
  }
  return url.hash === '' ? undefined : 'contains a fragment (#), which is never sent: remove it'
}

/** Why a credential may not go to a URL, or undefined: the message completes the path of the setting. */
export const clearTextMistake = (written: string): string | undefined => {
  const url = URL.parse(written)
  return url?.protocol === 'http:' && !isLoopbackHost(hostOf(url))
    ? 'begins with http://, but credentials leave this machine only under TLS: use https://'
    : undefined
}

/** The URL that a secret contains. Throws ProbeError, without repeating it. */
export function secretUrl(written: string, origin: string): URL {
  const url = URL.parse(written)
  const isHttp = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (url === null || !isHttp)
    throw new ProbeError('internal', `the secret ${origin} is not a URL that begins with https://`)
  if (clearTextMistake(written) !== undefined) {
    throw new ProbeError(
      'internal',
      `the URL of ${origin} begins with http://: a secret URL beyond loopback needs https://`,
    )
  }
  return url
}
