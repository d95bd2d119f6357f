import type { Socket } from 'node:net'
import { bareHost, isLoopback } from '../../../base/loopback.ts'
import type { PeerAddress } from '../../../base/net/addresses.ts'
import { type Chain, whyDistrusted } from '../../../base/net/certificates.ts'
import { connectTcp } from '../../../base/net/connect.ts'
import { CodedReplyReader, RequestReplyConnection } from '../../../base/net/request-reply.ts'
import { createRedactor, quote, type Redact } from '../../../base/net/text.ts'
import { connectTls } from '../../../base/net/tls-connect.ts'
import { readTrust, type TlsTrust, trustSettings } from '../../../base/net/trust.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { hostMistake, type SettingsSpec, type Values } from '../../../base/settings/index.ts'
import { closeTimeoutMs, settleWithin } from '../../database/index.ts'
import {
  type AddressTurn,
  type CheckContext,
  type Connection,
  checksOn,
  includes,
  latencySetting,
} from '../../engine/index.ts'

/** One reply of an SMTP server: the text of each line, without its code. */
export type SmtpReply = { readonly code: number; readonly lines: readonly string[] }

export class SmtpReplyReader extends CodedReplyReader<SmtpReply> {
  constructor(address: string, redact: Redact) {
    const make = (code: number, lines: readonly string[]): SmtpReply => ({
      code,
      lines: lines.map((line) => line.slice(4)),
    })
    super({ name: 'SMTP', kinds: '2-5', free: false, make }, address, redact)
  }
}

/** The extensions that a server offers (EHLO): names in upper case, with their parameters. */
export type Extensions = ReadonlyMap<string, readonly string[]>

/** An SMTP session over a socket that the caller destroys. STARTTLS begins a new session. */
export class SmtpSession {
  readonly address: string
  readonly #redact: Redact
  readonly #exchange: RequestReplyConnection<SmtpReply>

  constructor(socket: Socket, address: string, redact: Redact) {
    this.address = address
    this.#redact = redact
    this.#exchange = new RequestReplyConnection(socket, address, new SmtpReplyReader(address, redact), {
      lastWords: (reply) => (reply.code >= 400 ? this.quote(reply) : undefined),
    })
  }

  /** False if no further command can be answered. */
  get usable(): boolean {
    return this.#exchange.usable
  }

  /** A reply in quotation marks, without secrets and control characters. */
  quote({ code, lines }: SmtpReply): string {
    return quote(this.#redact(`${code} ${lines.join(' ')}`), 200)
  }

  /** The banner, whatever its code. Throws like `ask`, except for a 421. */
  greeting(): Promise<SmtpReply> {
    return this.#exchange.next()
  }

  /**
   * Sends one line and returns the reply. `name` replaces the line in messages. Throws ProbeError: `refused` for a 421,
   * with which a server may end a session after any command; otherwise like `RequestReplyConnection.ask`.
   */
  async ask(line: string, name = line.split(' ', 1)[0] ?? ''): Promise<SmtpReply> {
    if (/[\r\n\0]/.test(line)) throw new ProbeError('data', `the argument of ${name} contains a line break`)
    const unsolicited = this.#exchange.unasked[0]
    const reply = await this.#exchange.ask(`${line}\r\n`, name)
    if (reply.code === 421) {
      throw new ProbeError('refused', `${this.address} closed the session: ${this.quote(reply)}`)
    }
    if (unsolicited) throw new ProbeError('protocol', `${this.address} sent an unexpected reply: ${this.quote(reply)}`)
    return reply
  }

  /** Sends EHLO. Throws ProbeError `protocol` if the server does not support it. */
  async hello(name: string): Promise<Extensions> {
    const reply = await this.ask(`EHLO ${name}`)
    if (reply.code !== 250) {
      throw new ProbeError('protocol', `${this.address} rejected EHLO ${name}: ${this.quote(reply)}`)
    }
    // The first line contains the server's name and greeting.
    return new Map(
      reply.lines.slice(1).map((line) => {
        const [extension = '', ...parameters] = line.toUpperCase().split(/[ =]+/)
        return [extension, parameters]
      }),
    )
  }

  /**
   * Sends STARTTLS and returns the socket on which TLS may begin. Throws ProbeError `tls` for a refusal, and `protocol`
   * if the server sent more than its reply: under TLS, that data would pass as authentic.
   */
  async startTls(): Promise<Socket> {
    const reply = await this.ask('STARTTLS')
    if (reply.code !== 220) throw new ProbeError('tls', `${this.address} refused STARTTLS: ${this.quote(reply)}`)
    return this.#exchange.detach()
  }

  /** Sends QUIT, so that the server does not log a lost connection. Never throws. */
  async quit(): Promise<void> {
    if (this.usable) await settleWithin(this.ask('QUIT'), closeTimeoutMs)
  }
}

/** The threshold of connecting and reading the banner. */
export const connectLatency = latencySetting(
  { warn: 1_000, limit: 3_000 },
  'Maximum time to connect and to receive the banner',
)

export const usernameSetting = {
  type: 'text',
  doc: 'Account to sign in with, from Standard on and only over TLS',
} as const satisfies SettingsSpec[string]

/** The settings for the connection and the credentials. */
export const connectSettings = {
  host: { type: 'text', observed: true, required: true, mistake: hostMistake, doc: 'Host name or address' },
  port: {
    type: 'integer',
    observed: true,
    default: 25,
    min: 1,
    max: 65_535,
    doc: 'TCP port: 25, 587 (submission) or 465 (implicit TLS)',
  },
  tls: {
    type: 'choice',
    values: ['auto', 'starttls', 'implicit', 'off'],
    default: 'auto',
    doc: '`implicit`: TLS from the first byte; `starttls`: STARTTLS is required; `off`: no TLS; `auto`: implicit on port 465, otherwise STARTTLS if offered, with a warning if not',
  },
  ...trustSettings,
  hello: {
    type: 'text',
    pattern: /^[A-Za-z0-9.:[\]-]{1,255}$/,
    doc: 'Host name that svc sends in EHLO; default: its own address in brackets',
  },
  username: usernameSetting,
  password: { type: 'secret', doc: 'Password of the account' },
  latency: connectLatency,
} as const satisfies SettingsSpec
export type SmtpConnectSettings = Values<typeof connectSettings>

/** Whether TLS begins with the first byte. */
export const isImplicit = ({ tls, port }: Pick<SmtpConnectSettings, 'tls' | 'port'>): boolean =>
  tls === 'implicit' || (tls === 'auto' && port === 465)

/** The banner as received, and the milliseconds from the start of connecting until it arrived. */
export type SmtpBanner = { readonly code: number; readonly text: string; readonly ms: number }

/** The certificates of the server, and why it is not trusted; undefined if it is. */
export type SmtpEncryption = { readonly chain: Chain; readonly distrust: string | undefined }

type Credentials = { readonly username: string; readonly password: string }
type Route = {
  readonly settings: SmtpConnectSettings
  readonly trust: TlsTrust
  readonly redact: Redact
  readonly credentials: Credentials | undefined
}

/**
 * A conversation with a mail server, which the checks advance. The first error ends it: after a refused command, the
 * state of the session is undefined, and the next command would prove nothing.
 */
export class SmtpConnection implements Connection {
  readonly address: string
  readonly loopback: boolean
  /** Whether TLS begins with the first byte. */
  readonly implicit: boolean
  readonly tls: SmtpConnectSettings['tls']
  /** Whether the port is one at which clients submit mail (RFC 6409, RFC 8314). */
  readonly isSubmission: boolean
  /** The credentials; undefined if neither the settings nor the mode ask for a sign-in. */
  readonly credentials: Credentials | undefined
  readonly #at: PeerAddress
  readonly #route: Route
  readonly #context: Pick<CheckContext, 'now' | 'date'>
  readonly #startedAt: number
  readonly #sockets = new Set<Socket>()
  #session: SmtpSession | undefined
  #name = ''
  #ended = false
  #banner: SmtpBanner | undefined
  #encryption: SmtpEncryption | undefined
  #extensions: Extensions | undefined
  #extensionsInClear: Extensions | undefined

  constructor(at: PeerAddress, route: Route, context: Pick<CheckContext, 'now' | 'date'>) {
    this.address = at.address
    this.loopback = isLoopback(at.ip)
    this.implicit = isImplicit(route.settings)
    this.tls = route.settings.tls
    this.isSubmission = route.settings.port === 465 || route.settings.port === 587
    this.credentials = route.credentials
    this.#at = at
    this.#route = route
    this.#context = context
    this.#startedAt = context.now()
  }

  get usable(): boolean {
    return !this.#ended && (this.#session?.usable ?? true)
  }

  /** The banner, once received. */
  get banner(): SmtpBanner | undefined {
    return this.#banner
  }

  /** Undefined until TLS is established. */
  get encryption(): SmtpEncryption | undefined {
    return this.#encryption
  }

  /** The extensions that the server offered before STARTTLS; undefined if STARTTLS was not used. */
  get extensionsInClear(): Extensions | undefined {
    return this.#extensionsInClear
  }

  /** Connects, with TLS first if it is implicit. Throws the errors of sockets and TLS. */
  connect(): Promise<void> {
    return this.#advance(async () => {
      const socket = this.implicit ? await this.#encrypt(() => this.#reach()) : await this.#reach()
      this.#name = this.#route.settings.hello ?? addressLiteral(socket)
      this.#session = this.#begin(socket)
    })
  }

  /** Reads the banner. Any code but 220 ends the conversation. */
  greeting(): Promise<SmtpBanner> {
    return this.#advance(async (session) => {
      const reply = await session.greeting()
      this.#ended = reply.code !== 220
      this.#banner = { code: reply.code, text: session.quote(reply), ms: this.#context.now() - this.#startedAt }
      return this.#banner
    })
  }

  /** The server's extensions; sends EHLO unless the server has already answered it. */
  extensions(): Promise<Extensions> {
    return this.#advance(async (session) => {
      this.#extensions ??= await session.hello(this.#name)
      return this.#extensions
    })
  }

  /**
   * Starts TLS. An untrusted server ends the conversation. Throws ProbeError `tls` if the server does not offer
   * STARTTLS.
   */
  startTls(): Promise<SmtpEncryption> {
    return this.#advance(async (session) => {
      const inClear = this.#extensions
      if (!inClear?.has('STARTTLS')) throw new ProbeError('tls', `${this.address} does not offer STARTTLS`)
      let first: Socket | undefined = await session.startTls()
      const socket = await this.#encrypt(async () => {
        const prepared = first
        first = undefined
        // With other roots, the chain is read over a second connection, which needs its own STARTTLS.
        return prepared ?? (await this.#reachAgain())
      })
      this.#extensionsInClear = inClear
      this.#extensions = undefined
      this.#session = this.#begin(socket)
      return this.#encryption as SmtpEncryption
    })
  }

  /** Sends one line and returns the reply. Throws like `SmtpSession.ask`. */
  ask(line: string, name?: string): Promise<SmtpReply> {
    return this.#advance((session) => session.ask(line, name))
  }

  /** A reply in quotation marks, without secrets and control characters. */
  quote(reply: SmtpReply): string {
    return this.#activeSession().quote(reply)
  }

  /** Stops sending commands because of this cause, and returns it. */
  end<C>(cause: C): C {
    this.#ended = true
    return cause
  }

  async close(): Promise<void> {
    if (this.usable && !this.#at.signal.aborted) await this.#session?.quit()
    for (const socket of this.#sockets) socket.destroy()
  }

  #begin(socket: Socket): SmtpSession {
    return new SmtpSession(socket, this.address, this.#route.redact)
  }

  #activeSession(): SmtpSession {
    if (!this.#session) throw new Error('the conversation has not begun')
    return this.#session
  }

  /** Runs one step of the conversation; an error ends the conversation. */
  async #advance<T>(step: (session: SmtpSession) => Promise<T>): Promise<T> {
    try {
      return await step(this.#session as SmtpSession)
    } catch (cause) {
      throw this.end(cause)
    }
  }

  async #encrypt(open: () => Promise<Socket>): Promise<Socket> {
    const { settings, trust } = this.#route
    const host = settings.servername ?? bareHost(settings.host)
    const { socket, chain } = await connectTls(this.#at, {
      host,
      ...trust,
      verify: true,
      date: this.#context.date,
      open,
    })
    this.#sockets.add(socket)
    const distrust = whyDistrusted(chain)
    this.#encryption = { chain, distrust }
    this.#ended = distrust !== undefined
    return socket
  }

  async #reach(): Promise<Socket> {
    const { ip, port, signal } = this.#at
    const socket = await connectTcp(ip, port, signal)
    this.#sockets.add(socket)
    return socket
  }

  /** Opens another connection and advances it to the point where TLS may begin. */
  async #reachAgain(): Promise<Socket> {
    const session = this.#begin(await this.#reach())
    const banner = await session.greeting()
    if (banner.code !== 220) throw new ProbeError('refused', `${this.address} sent ${session.quote(banner)}`)
    await session.hello(this.#name)
    return await session.startTls()
  }
}

/** A client without a host name identifies itself by its address (RFC 5321, 4.1.3). */
function addressLiteral({ localAddress = '127.0.0.1' }: Socket): string {
  return localAddress.includes(':') ? `[IPv6:${localAddress}]` : `[${localAddress}]`
}

export const base64 = (text: string): string => Buffer.from(text, 'utf8').toString('base64')

/** The argument of AUTH PLAIN (RFC 4616). */
export const plainCredentials = ({ username, password }: Credentials): string => base64(`\0${username}\0${password}`)

/** Gives the checks of smtp their types. */
export const onSmtp = checksOn<SmtpConnection>()

/** Connects and reads the banner, unless TLS comes first. Throws the errors of secrets, files, sockets and TLS. */
export async function openSmtp(
  at: AddressTurn,
  settings: SmtpConnectSettings,
  context: CheckContext,
): Promise<SmtpConnection> {
  const { username } = settings
  const signsIn = username !== undefined && includes(context.mode, 'Standard')
  const password = signsIn ? await settings.password?.reveal(context.files) : undefined
  const credentials = username === undefined || password === undefined ? undefined : { username, password }
  const secrets = credentials ? [credentials.password, base64(credentials.password), plainCredentials(credentials)] : []
  const trust = await readTrust(settings, context.files)
  const smtp = new SmtpConnection(at, { settings, trust, redact: createRedactor(secrets), credentials }, context)
  if (smtp.implicit) at.step('TLS')
  try {
    await smtp.connect()
    if (!smtp.implicit) await smtp.greeting()
    return smtp
  } catch (cause) {
    await smtp.close()
    throw cause
  }
}
