import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { connectTcp } from '../../base/net/connect.ts'
import { sanitize } from '../../base/net/text.ts'
import { type KindName, registered, type StandardPorts } from '../kinds/index.ts'
import {
  firstLine,
  type IdentifiedTls,
  type Machine,
  type OpenPort,
  type Recognition,
  type RecognizedServer,
} from '../recognition/index.ts'

/** A protocol that discovery recognizes, and the standard ports of the kind that declares it. */
export type CandidateProtocol = { readonly ports: StandardPorts; readonly recognition: Recognition }

/** The protocols of all kinds. Loads the kinds, and no driver. */
export async function candidatesOf(
  kinds: Readonly<Record<string, (typeof registered)[KindName]>> = registered,
): Promise<readonly CandidateProtocol[]> {
  const declared = await Promise.all(
    Object.values(kinds).map(async ({ load, ports = {} }) => {
      const { recognition = 'none' } = (await load()).default
      return recognition === 'none' ? [] : recognition.map((one) => ({ ports, recognition: one }))
    }),
  )
  return declared.flat()
}

/** A service that no kind recognizes. */
export type Unrecognized = OpenPort & {
  readonly what: 'unknown'
  /** Present if TLS begins with the first byte. */
  readonly tls?: IdentifiedTls | undefined
  /** The first line that it sent, sanitized. */
  readonly product?: string | undefined
}
export type Recognized = CandidateProtocol & { readonly server: RecognizedServer }
/** The service at a port, as far as it was recognized. */
export type Identified = Recognized | Unrecognized

/** Milliseconds. Local services answer at once; slower ones are not queried further. */
const bannerMs = 300
const answerMs = 700
const maxReply = 4_096

/** Whether a port is a standard port of the kind. */
const isStandard = ({ ports }: CandidateProtocol, port: number): boolean =>
  Object.values(ports).some((services) => Object.hasOwn(services, port))

const isText = ({ greeting }: Recognition): boolean => greeting?.at(-1) === 0x0a

/**
 * The protocols that a port may speak, in the order in which they are tried: those whose standard port it is, then
 * protocols of text. A server of text answers a binary greeting only when it has waited for the end of a line, and a
 * server of a binary protocol ends the connection at once.
 */
function inOrder(candidates: readonly CandidateProtocol[], port: number): readonly CandidateProtocol[] {
  const rank = (candidate: CandidateProtocol): number =>
    isStandard(candidate, port) ? 0 : isText(candidate.recognition) ? 1 : 2
  return candidates
    .filter((candidate) => candidate.recognition.onlyAtStandardPorts !== true || isStandard(candidate, port))
    .toSorted((a, b) => rank(a) - rank(b))
}

const sendsFirst = ({ recognition }: CandidateProtocol): boolean => recognition.greeting === undefined

const recognizes = (candidate: CandidateProtocol, reply: Buffer, port: number): boolean =>
  reply.length > 0 && candidate.recognition.is(reply, isStandard(candidate, port))

/**
 * Identifies the service at a port of this machine by the protocols that kinds declare. Signs in nowhere. Rejects only
 * when the signal aborts.
 */
export async function identify(
  at: OpenPort,
  candidates: readonly CandidateProtocol[],
  machine: Machine,
  signal: AbortSignal,
): Promise<Identified> {
  const ordered = inOrder(candidates, at.port)
  const server = (reply: Buffer): RecognizedServer => ({
    ...at,
    reply,
    machine,
    signal,
    ask: (question, isWhole) => ask(at, question, signal, isWhole),
    askAfterBanner: (question) => askAfterBanner(at, question, signal),
  })
  const banner = await ask(at, undefined, signal)
  if (banner && banner.length > 0) {
    const first = ordered.filter(sendsFirst).find((candidate) => recognizes(candidate, banner, at.port))
    return first ? { ...first, server: server(banner) } : { ...at, what: 'unknown', product: versionText(banner) }
  }
  for (const candidate of ordered.filter((one) => !sendsFirst(one))) {
    const { greeting, expectsTls, isWhole } = candidate.recognition
    const reply = await ask(at, greeting, signal, isWhole)
    if (!reply || !recognizes(candidate, reply, at.port)) continue
    const secured = expectsTls?.(reply) ? await overTls(at, ordered, machine, signal) : undefined
    return secured && 'recognition' in secured ? secured : { ...candidate, server: server(reply) }
  }
  return (await overTls(at, ordered, machine, signal)) ?? { ...at, what: 'unknown' }
}

/**
 * The bytes that the service sends after a greeting, or unprompted. Undefined when nothing listens any more. `isWhole`
 * says whether a reply is complete.
 */
async function ask(
  at: OpenPort,
  greeting: Buffer | undefined,
  signal: AbortSignal,
  isWhole?: (reply: Buffer) => boolean,
): Promise<Buffer | undefined> {
  const patience = AbortSignal.any([signal, AbortSignal.timeout(answerMs + bannerMs)])
  try {
    const socket = await connectTcp(at.host, at.port, patience)
    if (greeting) socket.write(greeting)
    return await receiveFrom(socket, greeting ? answerMs : bannerMs, isWhole)
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

/** The bytes that arrive in time until the reply is whole. Ends the socket. */
function receiveFrom(socket: Socket, ms: number, isWhole?: (reply: Buffer) => boolean): Promise<Buffer> {
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
      if (reply.length >= maxReply || (isWhole?.(reply) ?? true)) done()
    })
  })
}

/** The service under TLS, or undefined if the port does not speak TLS. */
async function overTls(
  at: OpenPort,
  ordered: readonly CandidateProtocol[],
  machine: Machine,
  signal: AbortSignal,
): Promise<Identified | undefined> {
  const first = await askOverTls(at, undefined, signal)
  if (!first) return undefined
  const { tls, reply: banner } = first
  const server = (reply: Buffer): RecognizedServer => ({
    ...at,
    tls,
    reply,
    machine,
    signal,
    ask: async (question, isWhole) => (await askOverTls(at, question, signal, isWhole))?.reply,
    askAfterBanner: (question) => askAfterBanner(at, question, signal),
  })
  if (banner.length > 0) {
    const match = ordered.filter(sendsFirst).find((candidate) => recognizes(candidate, banner, at.port))
    return match ? { ...match, server: server(banner) } : { ...at, what: 'unknown', tls, product: versionText(banner) }
  }
  for (const candidate of ordered.filter(({ recognition }) => recognition.underTls)) {
    const { greeting, isWhole } = candidate.recognition
    const exchange = await askOverTls(at, greeting, signal, isWhole)
    if (exchange && recognizes(candidate, exchange.reply, at.port)) {
      return { ...candidate, server: { ...server(exchange.reply), tls: exchange.tls } }
    }
  }
  return { ...at, what: 'unknown', tls }
}

/** Like `ask`, under TLS, with the certificate. The connection is only inspected: nothing secret is sent over it. */
async function askOverTls(
  at: OpenPort,
  greeting: Buffer | undefined,
  signal: AbortSignal,
  isWhole?: (reply: Buffer) => boolean,
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
    return { reply: await receiveFrom(socket, greeting ? answerMs : bannerMs, isWhole), tls }
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

/** A banner that is text, sanitized. */
const versionText = (reply: Buffer): string | undefined => {
  const first = firstLine(reply)
  return /^[\x20-\x7e]+$/.test(first) ? sanitize(first, 60) : undefined
}
