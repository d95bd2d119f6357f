import { isIPv6, type Socket } from 'node:net'
import type { PasswordPolicyValue } from 'ldapts'
import { showDuration } from '../../../base/format.ts'
import { isLoopback } from '../../../base/loopback.ts'
import type { PeerAddress } from '../../../base/net/addresses.ts'
import { type Chain, whyDistrusted } from '../../../base/net/certificates.ts'
import { connectTcp } from '../../../base/net/connect.ts'
import { createRedactor, noRedaction } from '../../../base/net/text.ts'
import { connectTls } from '../../../base/net/tls-connect.ts'
import { readTrust, type TlsTrust, trustSettings } from '../../../base/net/trust.ts'
import { hostOf, urlTarget } from '../../../base/net/url.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { SettingsSpec, Values } from '../../../base/settings/index.ts'
import { listen } from '../../assert/conversation.ts'
import { limitsOn } from '../../assert/limit-check.ts'
import {
  type AddressTurn,
  type CheckContext,
  type Connection,
  checksOn,
  deadlineSignal,
  includes,
  latencySetting,
} from '../../engine/index.ts'
import { resultFault } from './codes.ts'
import { LdapFrames, resultOf } from './message.ts'
import { type LdapEntry, type LdapSession, type Offered, openLdap } from './session.ts'

/** The threshold of the connection, the sign-in and each search. */
export const connectLatency = latencySetting(
  { warn: 1_000, limit: 3_000 },
  'How long the connection, the sign-in and each search may take',
)

export const userSetting = {
  type: 'text',
  doc: 'Account to sign in with from Standard on, with password: a distinguished name; for Active Directory also user@domain. Without it, svc does not sign in',
} as const satisfies SettingsSpec[string]

/** The settings for the connection and the credentials. */
export const connectSettings = {
  url: {
    type: 'url',
    protocols: ['ldap', 'ldaps'],
    required: true,
    doc: 'ldaps://host or ldap://host:port, without a path',
  },
  startTls: { type: 'flag', default: false, doc: 'Upgrade an ldap:// connection to TLS before any other request' },
  ...trustSettings,
  insecureLdap: { type: 'flag', default: false, doc: 'Send a password over plain ldap:// to other machines too' },
  username: userSetting,
  password: { type: 'secret', doc: "The user's password" },
  latency: connectLatency,
} as const satisfies SettingsSpec
export type LdapConnectSettings = Values<typeof connectSettings>

export const isLdaps = ({ url }: Pick<LdapConnectSettings, 'url'>): boolean => new URL(url).protocol === 'ldaps:'

type Link = { readonly socket: Socket; readonly chain: Chain | undefined }
type Route = { readonly settings: LdapConnectSettings; readonly trust: TlsTrust; readonly context: CheckContext }

/** A directory at one address. The checks sign in and search over it. */
export class LdapConnection implements Connection {
  readonly address: string
  /** The chain of the server's certificate; undefined without TLS. */
  readonly chain: Chain | undefined
  /** The account that signs in in this mode; undefined for anonymous requests. */
  readonly user: string | undefined
  /** The root entry, once read; undefined if the server hides it. */
  root: LdapEntry | undefined
  /** Our own clock when the server answered with its root entry, in milliseconds since 1970. */
  rootAt = 0
  /** The password policy of the server for `user`, after the sign-in. */
  passwordPolicy: PasswordPolicyValue | undefined
  readonly #at: PeerAddress
  readonly #route: Route
  readonly #link: Link
  #session: Promise<LdapSession> | undefined
  #offered: Promise<Offered> | undefined
  #ended = false

  constructor(at: PeerAddress, link: Link, route: Route) {
    this.address = at.address
    this.chain = link.chain
    this.user = includes(route.context.mode, 'Standard') ? route.settings.username : undefined
    this.#at = at
    this.#route = route
    this.#link = link
  }

  get usable(): boolean {
    return !this.#ended && !this.#link.socket.destroyed
  }

  /**
   * The controls that the server offers, read once and before the sign-in: some servers end at a control that they do not
   * know. A server that shows nothing without a sign-in offers nothing.
   */
  #offers(session: LdapSession): Promise<Offered> {
    this.#offered ??= Promise.resolve(this.root ?? session.read('', ['supportedControl'], undefined)).then(
      (root) => new Set(root?.attributes.supportedcontrol),
      (error: unknown) => {
        if (isRefusal(error)) return new Set<string>()
        throw error
      },
    )
    return this.#offered
  }

  /** The session that the checks share; anonymous until `signIn`. */
  session(): Promise<LdapSession> {
    this.#session ??= this.#open(this.#link, '')
    return this.#session
  }

  /**
   * Reads the password of `user`, unless it would travel in clear text, and returns a function that signs in with it.
   * Throws ProbeError `data`, or the error of reading the secret. The function throws ProbeError `auth` if the server
   * refuses.
   */
  async prepareSignIn(user: string): Promise<() => Promise<void>> {
    refuseReadable(this.#link, this.#at, this.#route.settings)
    const { settings, context } = this.#route
    const password = (await settings.password?.reveal(context.files)) ?? ''
    this.#session = this.#open(this.#link, password)
    const session = await this.#session
    const offered = await this.#offers(session)
    return async () => {
      this.passwordPolicy = await session.bind(user, password, offered)
    }
  }

  /** Signs in over a connection of its own that protects the password. Throws ProbeError: `auth` for a refusal. */
  async signInElsewhere(user: string, password: string): Promise<void> {
    const { settings, trust, context } = this.#route
    const link = await openSocket(this.#at, settings, trust, context)
    try {
      refuseReadable(link, this.#at, settings)
      const session = await this.#open(link, password)
      try {
        await session.bind(user, password, await this.#offers(session))
      } finally {
        await session.close()
      }
    } finally {
      link.socket.destroy()
    }
  }

  /**
   * Connects to another server and signs in there with the account of this connection, if it has one. Throws the errors
   * of connecting, and ProbeError.
   */
  async openElsewhere(url: string): Promise<ElsewhereSession> {
    const { settings, trust, context } = this.#route
    const { host = '', port = 0 } = urlTarget({ url })
    const [ip = ''] = await context.resolve(host)
    const limit = deadlineSignal(this.#at.signal, context.msLeft() / 2)
    const target = { ...this.#at, ip, port, address: `${isIPv6(ip) ? `[${ip}]` : ip}:${port}`, signal: limit.signal }
    // Names and fingerprints belong to the certificate of this server.
    const own = { ...settings, url, servername: undefined, startTls: settings.startTls && !url.startsWith('ldaps:') }
    const link = await openSocket(target, own, { ...trust, pinned: [] }, context)
    limit.signal.addEventListener('abort', () => link.socket.destroy(), { once: true })
    const close = async (session?: LdapSession): Promise<void> => {
      limit.clear()
      await session?.close()
      link.socket.destroy()
    }
    try {
      if (this.user !== undefined) refuseReadable(link, target, settings)
      const password = this.user === undefined ? '' : ((await settings.password?.reveal(context.files)) ?? '')
      const session = await openLdap({
        socket: link.socket,
        address: target.address,
        redact: createRedactor([password]),
        msLeft: context.msLeft,
      })
      if (this.user !== undefined) await session.bind(this.user, password, new Set())
      return { session, address: target.address, close: () => close(session) }
    } catch (error) {
      await close()
      if (!limit.signal.aborted || this.#at.signal.aborted) throw error
      throw new ProbeError('timeout', `${target.address} accepted the connection and did not answer the sign-in`)
    }
  }

  /** Stops sending requests because of this cause, and returns it. */
  end<C>(cause: C): C {
    this.#ended = true
    return cause
  }

  async close(): Promise<void> {
    const { socket } = this.#link
    try {
      if (this.#at.signal.aborted) socket.destroy()
      await (await this.#session)?.close()
    } finally {
      socket.destroy()
    }
  }

  #open({ socket }: Link, password: string): Promise<LdapSession> {
    const { msLeft } = this.#route.context
    return openLdap({ socket, address: this.address, redact: createRedactor([password]), msLeft })
  }
}

export type ElsewhereSession = {
  readonly session: LdapSession
  readonly address: string
  readonly close: () => Promise<void>
}

/** Whether a server has refused an operation, and goes on. */
export const isRefusal = (error: unknown): error is ProbeError =>
  error instanceof ProbeError && (error.fault === 'data' || error.fault === 'auth')

/** Gives the checks of ldap their types. */
export const onLdap = checksOn<LdapConnection>()
export const limitOnLdap = limitsOn<LdapConnection>()

/** Reads the CA file, which all addresses share. Throws its errors. */
export const prepareLdap = async (settings: LdapConnectSettings, { files }: CheckContext) => ({
  trust: await readTrust(settings, files),
})

export async function connectLdap(
  at: AddressTurn,
  settings: LdapConnectSettings,
  context: CheckContext,
  { trust }: Awaited<ReturnType<typeof prepareLdap>>,
): Promise<LdapConnection> {
  return new LdapConnection(at, await openSocket(at, settings, trust, context), { settings, trust, context })
}

/** Connects, with TLS as configured. An untrusted server receives nothing but the handshake. */
async function openSocket(
  target: PeerAddress,
  settings: LdapConnectSettings,
  trust: TlsTrust,
  context: CheckContext,
): Promise<Link> {
  const { ip, port, signal } = target
  if (!isLdaps(settings) && !settings.startTls) return { socket: await connectTcp(ip, port, signal), chain: undefined }
  const host = settings.servername ?? hostOf(new URL(settings.url))
  const { socket, chain } = await connectTls(target, {
    host,
    ...trust,
    verify: true,
    date: context.date,
    ...(settings.startTls ? { open: () => startTls(target, context) } : {}),
  })
  const why = whyDistrusted(chain)
  if (why === undefined) return { socket, chain }
  socket.destroy()
  throw new ProbeError('tls', why)
}

/** ExtendedRequest 1.3.6.1.4.1.1466.20037 (RFC 4511, 4.14), as message 1. */
const startTlsRequest = Buffer.concat([
  Buffer.from('301d02010177188016', 'hex'),
  Buffer.from('1.3.6.1.4.1.1466.20037', 'latin1'),
])
const extendedResponse = 0x78
/** Maximum bytes of the answer to StartTLS, which is short. */
const maxResponse = 4_096

/** Returns a socket on which TLS may begin. */
async function startTls({ ip, port, address, signal }: PeerAddress, context: CheckContext): Promise<Socket> {
  const socket = await connectTcp(ip, port, signal)
  try {
    socket.write(startTlsRequest)
    const ms = Math.max(1, context.msLeft() - 150, context.msLeft() / 2)
    const reply = await listen(socket, isWhole, maxResponse, ms)
    const protocol = (why: string): ProbeError => new ProbeError('protocol', `${address} ${why}`)
    if (reply.ended === 'silent') {
      const why = `accepted the connection and did not answer StartTLS within ${showDuration(ms)}`
      throw new ProbeError('timeout', `${address} ${why}`)
    }
    const frames = new LdapFrames(address)
    const [message, ...more] = frames.take(reply.bytes)
    if (reply.ended === 'closed' && !message) throw protocol('closed the connection instead of beginning TLS')
    const result = message && resultOf(message)
    if (result?.tag !== extendedResponse) throw protocol('did not answer StartTLS')
    if (result.code !== 0) {
      throw resultFault(result, { address, doing: 'StartTLS', user: undefined, redact: noRedaction })
    }
    // An attacker may have injected unencrypted data after the answer.
    if (more.length > 0 || !frames.empty) throw protocol('continued unencrypted after it had agreed to StartTLS')
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** True if a message is complete, or can never become complete. */
function isWhole(bytes: Buffer): boolean {
  try {
    return new LdapFrames('').take(bytes).length > 0
  } catch {
    return true
  }
}

/** Throws ProbeError `data` if a password would travel to another machine in clear text. */
export function refuseReadable(
  link: Pick<Link, 'chain'>,
  target: Pick<PeerAddress, 'ip' | 'address'>,
  { insecureLdap }: Pick<LdapConnectSettings, 'insecureLdap'>,
): void {
  if (link.chain !== undefined || insecureLdap || isLoopback(target.ip)) return
  const advice = 'use ldaps://, startTls, or insecureLdap'
  throw new ProbeError('data', `the password is not sent to ${target.address} over plain ldap: ${advice}`)
}
