import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { isLoopbackHost } from '../loopback.ts'
import { connectTcp } from '../net/connect.ts'
import { sanitize } from '../net/text.ts'
import type { OpenPort } from './ports.ts'

/**
 * How to recognize a service: by what it sends unprompted, or by its reply to the smallest harmless greeting of its
 * protocol. No greeting signs in or changes anything.
 */
export type Speaker = {
  readonly what: string
  /** Ports on which this protocol is tried first. */
  readonly usual: readonly number[]
  /** Absent when the service speaks first. */
  readonly greeting?: Buffer
  /** `reply` is the first bytes it sent. */
  readonly is: (reply: Buffer, port: number) => boolean
}

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex')
const begins = (text: string) => (reply: Buffer) => reply.toString('latin1').startsWith(text)
const line = (reply: Buffer): string => reply.toString('latin1').split(/\r?\n/, 1)[0] ?? ''

/** PostgreSQL's SSLRequest: the server replies with one letter before anything else. */
const sslRequest = bytes('00000008 04d2162f')
/** MongoDB's `hello` to `admin`, as OP_MSG. */
const mongoHello = bytes(
  '34000000 01000000 00000000 dd070000 00000000 00 1f000000 10 68656c6c6f00 01000000 02 24646200 06000000 61646d696e00 00',
)
/** An anonymous LDAP search of the root DSE that requests no attributes (`1.1`). */
const rootDse = bytes(
  '30 2a 020101 63 25 0400 0a0100 0a0100 020100 020105 0101ff 87 0b 6f626a656374436c617373 3005 0403 312e31',
)
/** Message 1 with an entry or the end of the results: never an echo of the request. */
const ldapMarks = [bytes('02010164'), bytes('02010165')]
/** A question for the name servers of the root, over TCP. */
const rootServers = bytes('0011 7376 0000 0001 0000 0000 0000 00 0002 0001')
/** The smallest PRELOGIN of TDS: a version, no encryption. */
const prelogin = bytes('12 01 001a 0000 00 00 00 000b 0006 01 0011 0001 ff 000000000000 02')

export const speakers: readonly Speaker[] = [
  { what: 'ssh', usual: [22], is: begins('SSH-') },
  {
    what: 'ftp',
    usual: [21],
    is: (reply, port) => /^220[ -]/.test(line(reply)) && (/ftp|filezilla/i.test(line(reply)) || port === 21),
  },
  {
    what: 'smtp',
    usual: [25, 587],
    is: (reply, port) => /^220[ -]/.test(line(reply)) && (/smtp|mail/i.test(line(reply)) || [25, 587].includes(port)),
  },
  // A handshake of protocol 10, or the error for too many hosts or connections.
  {
    what: 'mysql',
    usual: [3306],
    is: (reply) => reply.length > 4 && reply[3] === 0 && (reply[4] === 10 || reply[4] === 255),
  },
  {
    what: 'http',
    usual: [80, 8080, 8676, 15_672],
    greeting: Buffer.from('HEAD / HTTP/1.0\r\n\r\n'),
    is: begins('HTTP/'),
  },
  { what: 'postgres', usual: [5432], greeting: sslRequest, is: (reply) => /^[SN]$/.test(reply.toString('latin1')) },
  {
    what: 'redis',
    usual: [6379],
    greeting: Buffer.from('PING\r\n'),
    is: (reply) => /^(?:\+PONG|-NOAUTH|-DENIED)/.test(line(reply)),
  },
  {
    what: 'mongo',
    usual: [27_017],
    greeting: mongoHello,
    is: (reply) => reply.length >= 16 && reply.readUInt32LE(8) === 1 && reply.readUInt32LE(12) === 2013,
  },
  {
    what: 'ldap',
    usual: [389, 636, 3268, 3269],
    greeting: rootDse,
    is: (reply) => reply[0] === 0x30 && ldapMarks.some((start) => reply.subarray(2, 12).includes(start)),
  },
  {
    what: 'amqp',
    usual: [5672],
    greeting: Buffer.from('AMQP\0\0\x09\x01', 'latin1'),
    is: (reply) => reply[0] === 1 && reply[1] === 0 && reply[2] === 0,
  },
  {
    what: 'dns',
    usual: [53],
    greeting: rootServers,
    is: (reply) => reply.length >= 14 && reply.readUInt16BE(2) === 0x7376 && (reply[4] ?? 0) >= 0x80,
  },
  { what: 'sqlserver', usual: [1433], greeting: prelogin, is: (reply) => reply[0] === 4 && reply.length > 8 },
]

/** The service at a port, as far as it was recognized. */
export type Identified = OpenPort & {
  /** The protocol: a row of `speakers`, or `unknown`. */
  readonly what: string
  /** Present if TLS begins with the first byte. */
  readonly tls?: IdentifiedTls | undefined
  /** True when it offers to begin TLS after its banner (AUTH TLS, STARTTLS). */
  readonly startTls?: boolean | undefined
  /** True for a Redis Sentinel, which monitors other servers. */
  readonly sentinel?: boolean | undefined
  /** The first line it sent, or an HTTP `Server` header; sanitized. */
  readonly product?: string | undefined
  /** True when it requires a sign-in before anything else. */
  readonly guarded?: boolean | undefined
  /** The path to which an HTTP service redirects from its root, within its own origin. */
  readonly landing?: string | undefined
}

/** The certificate of a service. */
export type IdentifiedTls = {
  /** Whether this machine trusts it for the address, which certificates seldom contain. */
  readonly trusted: boolean
  /** Whether this machine trusts its chain, regardless of names and dates. */
  readonly chainTrusted: boolean
  readonly expired: boolean
  /** The first name that it is valid for, if that is a host name. */
  readonly name: string | undefined
  /** SHA-256, as the setting `fingerprint` takes it. */
  readonly fingerprint: string
}

/** Milliseconds. Local services answer at once; slower ones are not queried further. */
const bannerMs = 300
const answerMs = 700
const maxReply = 4_096

/** Identifies the service at a port of this machine. Signs in nowhere. Rejects only when the signal aborts. */
export async function identify(at: OpenPort, signal: AbortSignal): Promise<Identified> {
  const banner = await ask(at, undefined, signal)
  if (banner && banner.length > 0) {
    const first = speakers.find((speaker) => speaker.greeting === undefined && speaker.is(banner, at.port))
    const what = first?.what ?? 'unknown'
    const question = extensions[what]
    const reply = question && (await askAfterBanner(at, question, signal))
    const startTls = reply && /^.{0,4}[ \t]{0,8}(?:AUTH TLS|STARTTLS)\b/im.test(reply.toString('latin1'))
    return { ...at, what, product: versionText(banner), ...(startTls ? { startTls } : {}) }
  }
  const silent = speakers.filter((speaker) => speaker.greeting !== undefined)
  const likely = (speaker: Speaker): number => (speaker.usual.includes(at.port) ? 0 : 1)
  for (const speaker of silent.toSorted((a, b) => likely(a) - likely(b))) {
    const reply = await ask(at, speaker.greeting, signal)
    if (!reply || reply.length === 0 || !speaker.is(reply, at.port)) continue
    const product = speaker.what === 'http' ? serverOf(reply) : undefined
    // Apache and nginx answer plain HTTP on a TLS port too: with 400.
    const secured = speaker.what === 'http' && isBadRequest(reply) ? await overTls(at, signal) : undefined
    if (secured && secured.what !== 'unknown') return secured
    const guarded = reply.toString('latin1').startsWith('-NOAUTH')
    const info =
      speaker.what === 'redis' && !guarded ? await ask(at, Buffer.from('INFO server\r\n'), signal) : undefined
    const sentinel = info?.includes('redis_mode:sentinel')
    const landing = speaker.what === 'http' ? landingOf(reply, at, 'http:') : undefined
    return { ...at, what: speaker.what, product, guarded, landing, ...(sentinel ? { sentinel } : {}) }
  }
  return (await overTls(at, signal)) ?? { ...at, what: 'unknown' }
}

/** Questions about extensions, which need no sign-in. */
const extensions: Readonly<Record<string, Buffer>> = {
  ftp: Buffer.from('FEAT\r\n'),
  smtp: Buffer.from('EHLO localhost\r\n'),
}

const isBadRequest = (reply: Buffer): boolean => /^HTTP\/1\.[01] 400 /.test(line(reply))

/** What the service sends after a greeting, or unprompted. Undefined when nothing listens any more. */
async function ask(at: OpenPort, greeting: Buffer | undefined, signal: AbortSignal): Promise<Buffer | undefined> {
  const patience = AbortSignal.any([signal, AbortSignal.timeout(answerMs + bannerMs)])
  try {
    const socket = await connectTcp(at.host, at.port, patience)
    if (greeting) socket.write(greeting)
    return await receiveFrom(socket, greeting ? answerMs : bannerMs)
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}

/** The last line of a reply with a code: its code is followed by a space (RFC 959, RFC 5321). */
const hasLastLine = (reply: string): boolean =>
  reply
    .split('\n')
    .slice(0, -1)
    .some((line) => /^\d{3} /.test(line))

/**
 * The reply to a question that is sent once the banner has arrived, because mail servers turn away those that talk too
 * soon. Undefined without a whole banner and a whole reply in time.
 */
async function askAfterBanner(at: OpenPort, question: Buffer, signal: AbortSignal): Promise<Buffer | undefined> {
  const patience = AbortSignal.any([signal, AbortSignal.timeout(answerMs + bannerMs)])
  try {
    const socket = await connectTcp(at.host, at.port, patience)
    let reply = Buffer.alloc(0)
    let isSent = false
    try {
      for await (const part of socket) {
        reply = Buffer.concat([reply, part as Buffer]).subarray(0, maxReply)
        const isWhole = hasLastLine(reply.toString('latin1'))
        if (isSent && (isWhole || reply.length >= maxReply)) return reply
        if (isSent || !isWhole) continue
        isSent = true
        reply = Buffer.alloc(0)
        socket.write(question)
      }
    } finally {
      socket.destroy()
    }
  } catch {
    signal.throwIfAborted()
  }
  return undefined
}

/** The first bytes that arrive in time. Ends the socket. */
function receiveFrom(socket: Socket, ms: number): Promise<Buffer> {
  return new Promise((resolve) => {
    let reply = Buffer.alloc(0)
    const done = (): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(reply)
    }
    const timer = setTimeout(done, ms)
    socket.once('close', done)
    socket.on('data', (part: Buffer) => {
      reply = Buffer.concat([reply, part.subarray(0, maxReply - reply.length)])
      // Wait for the whole head of an HTTP response; otherwise the first bytes are enough.
      const http = reply.toString('latin1', 0, 5) === 'HTTP/'
      if (reply.length >= maxReply || !http || reply.includes('\r\n\r\n')) done()
    })
  })
}

/** The protocols that are tried under TLS, besides those whose services speak first. */
const underTls = new Set(['http', 'ldap', 'redis', 'mongo', 'amqp'])

/** The service under TLS, or undefined if the port does not speak TLS. */
async function overTls(at: OpenPort, signal: AbortSignal): Promise<Identified | undefined> {
  const likely = (speaker: Speaker): number => (speaker.usual.includes(at.port) ? 0 : 1)
  const first = await askOverTls(at, undefined, signal)
  if (!first) return undefined
  const { tls } = first
  const banner = speakers.find((speaker) => speaker.greeting === undefined && speaker.is(first.reply, at.port))
  if (first.reply.length > 0) return { ...at, what: banner?.what ?? 'unknown', tls, product: versionText(first.reply) }
  const candidates = speakers.filter(({ what }) => underTls.has(what))
  for (const speaker of candidates.toSorted((a, b) => likely(a) - likely(b))) {
    const exchange = await askOverTls(at, speaker.greeting, signal)
    if (!exchange || exchange.reply.length === 0 || !speaker.is(exchange.reply, at.port)) continue
    const product = speaker.what === 'http' ? serverOf(exchange.reply) : undefined
    const guarded = exchange.reply.toString('latin1').startsWith('-NOAUTH')
    const landing = speaker.what === 'http' ? landingOf(exchange.reply, at, 'https:') : undefined
    return { ...at, what: speaker.what, tls, product, guarded, landing }
  }
  return { ...at, what: 'unknown', tls }
}

/** Like `ask`, under TLS, with the certificate. The connection is only inspected: nothing secret is sent over it. */
async function askOverTls(
  at: OpenPort,
  greeting: Buffer | undefined,
  signal: AbortSignal,
): Promise<{ readonly reply: Buffer; readonly tls: IdentifiedTls } | undefined> {
  const { connect } = process.getBuiltinModule('node:tls')
  const patience = AbortSignal.any([signal, AbortSignal.timeout(2 * answerMs)])
  let plain: Socket | undefined
  try {
    plain = await connectTcp(at.host, at.port, patience)
    const socket = connect({ socket: plain, host: at.host, rejectUnauthorized: false })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    socket
      .once('secureConnect', resolve)
      .once('error', reject)
      .once('close', () => reject(new Error('closed')))
    await promise
    const tls = certificateOf(socket)
    socket.on('error', () => {})
    if (greeting) socket.write(greeting)
    return { reply: await receiveFrom(socket, greeting ? answerMs : bannerMs), tls }
  } catch {
    signal.throwIfAborted()
    return undefined
  } finally {
    plain?.destroy()
  }
}

/** Verification errors of a chain that is trusted otherwise. */
const aboutNamesAndDates = new Set(['ERR_TLS_CERT_ALTNAME_INVALID', 'CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])

function certificateOf(socket: TLSSocket): IdentifiedTls {
  const own = socket.getPeerX509Certificate()
  const error = socket.authorizationError as unknown
  const [, name] = /(?:^|, )DNS:([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)(?:,|$)/i.exec(own?.subjectAltName ?? '') ?? []
  return {
    trusted: socket.authorized,
    chainTrusted: socket.authorized || (typeof error === 'string' && aboutNamesAndDates.has(error)),
    expired: own !== undefined && own.validToDate.getTime() < Date.now(),
    name,
    fingerprint: own?.fingerprint256 ?? '',
  }
}

const versionText = (reply: Buffer): string | undefined => {
  const first = reply.toString('latin1').split(/\r?\n/, 1)[0] ?? ''
  return /^[\x20-\x7e]+$/.test(first) ? sanitize(first, 60) : undefined
}

/** The goal of a redirect within the same origin, without its query, which may contain anything. */
function landingOf(reply: Buffer, { host, port }: OpenPort, scheme: 'http:' | 'https:'): string | undefined {
  const head = reply.toString('latin1')
  const [, location] = /^HTTP\/1\.[01] 30[12378] [\s\S]*?\r\nLocation: *([\x21-\x7e]{1,500})\r\n/i.exec(head) ?? []
  const base = URL.parse(`${scheme}//${host.includes(':') ? `[${host}]` : host}:${port}/`)
  const goal = location === undefined || base === null ? null : URL.parse(location, base.href)
  if (base === null || goal === null) return undefined
  // Many servers name themselves localhost in a redirect.
  const isSame = goal.origin === base.origin || (isLoopbackHost(goal.hostname) && goal.port === base.port)
  return isSame && goal.protocol === scheme && goal.pathname !== '/' ? goal.pathname : undefined
}

const serverOf = (reply: Buffer): string | undefined => {
  const [, server] = /\r\nServer: *([\x20-\x7e]{1,60})/i.exec(reply.toString('latin1')) ?? []
  return server === undefined ? undefined : sanitize(server.trim(), 60)
}
