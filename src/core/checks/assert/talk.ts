import type { Socket } from 'node:net'
import { showBytes } from '../../base/format.ts'
import { isLoopback } from '../../base/loopback.ts'
import { whyDistrusted } from '../../base/net/certificates.ts'
import { connectTcp } from '../../base/net/connect.ts'
import { createRedactor, noRedaction, quote, type Redact } from '../../base/net/text.ts'
import { ProbeError } from '../../base/probe-error.ts'
import type { AddressTurn, CheckContext } from '../engine/index.ts'
import { listen, type TalkingConnection } from './conversation.ts'
import {
  type DialogueEnding,
  type DialogueSettings,
  type DialogueStep,
  faultOf,
  placeholder,
  type ReadyProtocol,
  type StartTlsProtocol,
} from './dialogue-settings.ts'
import { groupFinder, isPattern } from './expectation.ts'
import { withNonce } from './nonce.ts'

/**
 * One step of a ready dialogue: what to send, the answer, and that of a server that refuses. Patterns read every byte as
 * one character.
 */
type Exchange = readonly [send: string, expect?: RegExp, refused?: RegExp]

const hex = (digits: string): string => Buffer.from(digits.replaceAll(' ', ''), 'hex').toString('latin1')

/** Answers that only a server that serves gives, by protocol. */
const ready: Readonly<Record<ReadyProtocol, readonly Exchange[]>> = {
  imap: [
    ['', /^\* (?:OK|PREAUTH) .*\r?\n/, /^\* BYE/],
    ['a1 CAPABILITY\r\n', /^a1 OK/m, /^a1 (?:NO|BAD)/m],
    ['a2 LOGOUT\r\n', /^a2 OK/m],
  ],
  pop3: [
    ['', /^\+OK.*\r?\n/, /^-ERR/],
    ['QUIT\r\n', /^\+OK/, /^-ERR/],
  ],
  // The protocol header of 0-9-1; connection.start is the method 10 of class 10 on channel 0.
  amqp: [[hex('414d5150 00000901'), /^\x01\0\0.{4}\0\x0a\0\x0a/s, /^AMQP/]],
  // CONNECT of 3.1.1 without an account, whose refusal is an answer too (codes 4 and 5).
  mqtt: [[hex('100c 0004 4d515454 04 02 003c 0000'), /^\x20\x02[\0\x01][\0\x04\x05]/, /^\x20\x02../s]],
  nats: [['', /^INFO \{.*\r?\n/, /^-ERR/]],
  memcached: [['version\r\n', /^VERSION /, /^(?:CLIENT_|SERVER_)?ERROR/]],
  beanstalkd: [['list-tube-used\r\n', /^USING /, /^[A-Z_]+\r\n/]],
  // A server without a quorum answers that it does not serve.
  zookeeper: [['srvr', /^Zookeeper version:.*\nMode: /s, /^This ZooKeeper|not in the whitelist/]],
  // ApiVersions 0, with the correlation id 1; an answer without an error.
  kafka: [[hex('0000000a 0012 0000 00000001 ffff'), /^.{4}\0\0\0\x01\0\0/s, /^.{4}\0\0\0\x01../s]],
}

const refusal = /^[45]\d\d[ -].*\r?\n/m

/** How a client gets to TLS, by protocol. `{host}` is the name in the certificate. */
const starts: Readonly<Record<StartTlsProtocol, readonly Exchange[]>> = {
  smtp: [
    ['', /^220 .*\r?\n/m, refusal],
    ['EHLO svc-health.invalid\r\n', /^250 .*\r?\n/m, refusal],
    ['STARTTLS\r\n', /^220 .*\r?\n/m, refusal],
  ],
  imap: [
    ['', /^\* OK.*\r?\n/, /^\* (?:BYE|PREAUTH)/],
    ['a1 STARTTLS\r\n', /^a1 OK.*\r?\n/m, /^a1 (?:NO|BAD)/m],
  ],
  pop3: [
    ['', /^\+OK.*\r?\n/, /^-ERR/],
    ['STLS\r\n', /^\+OK.*\r?\n/, /^-ERR/],
  ],
  ftp: [
    ['', /^220 .*\r?\n/m, refusal],
    ['AUTH TLS\r\n', /^234.*\r?\n/m, refusal],
  ],
  // The extended request of RFC 4511, 4.14; its response with the result code 0, or another.
  ldap: [
    [
      `${hex('301d 020101 7718 8016')}1.3.6.1.4.1.1466.20037`,
      /^0.{1,5}?\x02\x01\x01x.{1,5}?\x0a\x01\0/s,
      /^0.{1,5}?\x02\x01\x01x.{1,5}?\x0a\x01/s,
    ],
  ],
  xmpp: [
    [
      "<?xml version='1.0'?><stream:stream to='{host}' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>",
      /<starttls/,
      /<stream:error|<\/stream:(?:features|stream)>/,
    ],
    ["<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>", /<proceed[^<>]*>/, /<failure/],
  ],
  postgres: [[hex('00000008 04d2162f'), /^S/, /^[NE]/]],
  // The whole greeting (an error packet begins with ff), then a request for TLS with protocol 4.1; no answer follows.
  mysql: [['', /^...\0\x0a[^\0]*\0.{20}/s, /^....\xff/s], [hex(`20000001 008a0000 00000001 21 ${'00'.repeat(23)}`)]],
}

/** Bytes of an answer. */
const maxAnswer = 8 * 1024
/** How often a line that has not ended is looked at: a peer that sends single bytes must not trigger one for each. */
const maxLooks = 64
/** Bytes of a captured value. */
const maxValue = 256
/** Milliseconds before the deadline at which waiting ends, so that there is time to say what was missing. */
const reserveMs = 150

const waitMs = ({ msLeft }: Pick<CheckContext, 'msLeft'>): number => Math.max(msLeft() - reserveMs, msLeft() / 2)

/** Sends the steps of a ready dialogue, and listens for their answers. Returns the first step that goes wrong. */
async function follow(
  socket: Socket,
  steps: readonly Exchange[],
  context: Pick<CheckContext, 'msLeft'>,
): Promise<Pick<DialogueEnding, 'ended' | 'message' | 'step'>> {
  for (const [index, [send, expect, refused]] of steps.entries()) {
    socket.write(send, 'latin1')
    if (expect === undefined) continue
    let isRefused = false
    const isOver = (received: Buffer): boolean => {
      const text = received.toString('latin1')
      const isMet = expect.test(text)
      isRefused = !isMet && refused?.test(text) === true
      return isRefused || isMet
    }
    const answer = await listen(socket, isOver, maxAnswer, waitMs(context))
    const ended = isRefused ? 'refused' : answer.ended
    if (ended !== 'met') return { ended, step: index + 1, message: saying[ended](excerpt(answer.bytes, noRedaction)) }
  }
  return { ended: 'met', step: steps.length, message: '' }
}

const excerpt = (bytes: Buffer, redact: Redact): string => (bytes.length === 0 ? 'nothing' : quote(redact(bytes)))

const saying: Readonly<Record<Exclude<DialogueEnding['ended'], 'met'>, (text: string) => string>> = {
  refused: (text) => `answered ${text}`,
  closed: (text) => `sent ${text} and closed the connection`,
  silent: (text) => `sent ${text} and nothing more`,
  full: (text) => `sent more than ${showBytes(maxAnswer)}: ${text}`,
  unjudged: (text) => text,
}

/** Connects, and gets a server to the point where TLS begins. Throws ProbeError for a server that does not go along. */
export async function openForTls(
  protocol: StartTlsProtocol,
  { ip, port, address, signal }: AddressTurn,
  { host, context }: { readonly host: string; readonly context: Pick<CheckContext, 'msLeft'> },
): Promise<Socket> {
  const socket = await connectTcp(ip, port, signal)
  // The host goes into an attribute of XML.
  const steps = starts[protocol].map(
    ([send, ...rest]): Exchange => [send.replace('{host}', host.replaceAll(/[^\w.:-]/g, '')), ...rest],
  )
  try {
    const { ended, message } = await follow(socket, steps, context)
    if (ended === 'met') return socket
    throw new ProbeError(faultOf[ended], `${address} ${message}: it did not begin TLS as ${protocol} does`)
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Runs the dialogue of the settings. Throws ProbeError where a secret may not be sent, and the errors of the socket. */
export async function converse(
  connection: TalkingConnection,
  settings: DialogueSettings,
  context: CheckContext,
): Promise<DialogueEnding> {
  connection.hasTalked = true
  connection.demandTrust?.()
  const { protocol, dialogue = [] } = settings
  if (protocol === undefined) {
    const values = new Map<string, string>()
    for (const [name, secret] of Object.entries(settings.values ?? {}))
      values.set(name, await secret.reveal(context.files))
    return await new Dialogue(connection, dialogue, { context, values, secrets: new Set(values.keys()) }).run()
  }
  const { message, ...ending } = await follow(connection.socket, ready[protocol], context)
  return { ...ending, steps: ready[protocol].length, message: `${message}: it does not serve ${protocol}` }
}

/** A dialogue of svc.yaml on one connection. */
class Dialogue {
  readonly #connection: TalkingConnection
  readonly #steps: readonly DialogueStep[]
  readonly #means: Means
  /** Bytes that came after the line of the last step. */
  #early: Buffer = Buffer.alloc(0)

  constructor(connection: TalkingConnection, steps: readonly DialogueStep[], means: Means) {
    this.#connection = connection
    this.#steps = steps
    this.#means = means
  }

  async run(): Promise<DialogueEnding> {
    const steps = this.#steps.length
    for (const [index, step] of this.#steps.entries()) {
      if (step.send !== undefined) this.#connection.socket.write(this.#filled(step.send))
      const problem = step.expect === undefined ? undefined : await this.#await(step.expect, step.capture ?? [])
      if (problem) return { ...problem, step: index + 1, steps }
      if (step.starttls) await this.#beginTls(this.#steps.slice(0, index + 1))
    }
    return { ended: 'met', step: steps, steps, message: '' }
  }

  #filled(template: string): string {
    const { values, secrets } = this.#means
    return withNonce(template, this.#connection.nonce).replaceAll(placeholder, (_, name: string) => {
      if (secrets.has(name)) this.#demandPrivacy()
      return values.get(name) ?? ''
    })
  }

  /** Throws where a secret may not be sent. */
  #demandPrivacy(): void {
    const { chain, ip, address } = this.#connection
    const why = chain && whyDistrusted(chain)
    if (why !== undefined) throw new ProbeError('tls', why)
    if (chain || isLoopback(ip)) return
    const advice = 'use tls: true, or a step with starttls: true before it'
    throw new ProbeError('data', `secrets are not sent to ${address} without TLS: ${advice}`)
  }

  async #await(
    expected: string,
    names: readonly string[],
  ): Promise<Pick<DialogueEnding, 'ended' | 'message'> | undefined> {
    const expect = withNonce(expected, this.#connection.nonce).trimEnd()
    const early = this.#early
    let received = early
    const find = isPattern(expect) ? groupFinder(expect) : (line: string) => (line.includes(expect) ? [] : undefined)
    let from = 0
    let looks = 0
    let groups: readonly string[] | undefined
    let problem: string | undefined
    const isOver = (more: Buffer): boolean => {
      received = Buffer.concat([early, more])
      for (;;) {
        const end = received.indexOf(10, from)
        // A value that is still on its way must not be cut.
        if (end < 0 && (names.length > 0 || from === received.length || looks > maxLooks)) return false
        if (end < 0) looks += 1
        const line = received.toString('utf8', from, end < 0 ? received.length : end).replace(/\r$/, '')
        const match = find(line)
        if (typeof match === 'string') problem = match
        else groups = match
        if (problem !== undefined || groups || end >= 0) from = end < 0 ? received.length : end + 1
        if (problem !== undefined || groups) return true
        if (end < 0) return false
      }
    }
    const isMet = isOver(Buffer.alloc(0))
    const { ended } = isMet
      ? { ended: 'met' as const }
      : await listen(this.#connection.socket, isOver, maxAnswer, waitMs(this.#means.context))
    this.#early = received.subarray(from)
    if (problem !== undefined) return { ended: 'unjudged', message: `sent a line that ${problem}` }
    if (ended === 'met') return this.#capture(names, groups ?? [])
    const text = excerpt(received, createRedactor([...this.#means.values.values()]))
    return { ended, message: `${saying[ended](text)}, expected ${quote(expect, 80)}` }
  }

  #capture(names: readonly string[], groups: readonly string[]): Pick<DialogueEnding, 'ended' | 'message'> | undefined {
    for (const [index, name] of names.entries()) {
      const value = groups[index] ?? ''
      const size = Buffer.byteLength(value)
      if (size > maxValue || /[\r\n\0]/.test(value)) {
        const what = size > maxValue ? `has ${size} bytes, more than ${maxValue}` : 'contains a line break or NUL'
        return { ended: 'refused', message: `sent a value for ${name} that ${what}` }
      }
      this.#means.values.set(name, value)
    }
    return undefined
  }

  /**
   * Text that came before TLS does not count within it. Where the chain is read again with other roots, the steps that
   * lead to TLS are repeated on a new connection.
   */
  async #beginTls(before: readonly DialogueStep[]): Promise<void> {
    this.#early = Buffer.alloc(0)
    const clear = before.map((step) => ({ ...step, starttls: false }))
    await this.#connection.beginTls?.(async (socket) => {
      const { ended, message } = await new Dialogue({ ...this.#connection, socket }, clear, this.#means).run()
      if (ended !== 'met') throw new ProbeError('protocol', `${this.#connection.address} ${message}`)
    })
  }
}

type Means = {
  readonly context: CheckContext
  /** The secrets, and what has been captured so far. */
  readonly values: Map<string, string>
  readonly secrets: ReadonlySet<string>
}
