import type { Socket } from 'node:net'
import type { PeerAddress } from '../../../base/net/addresses.ts'
import { isLocal } from '../../../base/net/addresses.ts'
import { type Chain, whyDistrusted } from '../../../base/net/certificates.ts'
import { connectTcp, listConnections } from '../../../base/net/connect.ts'
import { RequestReplyConnection } from '../../../base/net/request-reply.ts'
import { createRedactor, quote, type Redact, sanitize } from '../../../base/net/text.ts'
import { connectTls } from '../../../base/net/tls-connect.ts'
import { readTrust, type TlsTrust, trustSettings, unusedTrust } from '../../../base/net/trust.ts'
import { hostOf, portOf } from '../../../base/net/url.ts'
import { type FaultClass, MissingPrivilegeError, ProbeError, refusedSignIn } from '../../../base/probe-error.ts'
import type { SettingsSpec, Values } from '../../../base/settings/index.ts'
import { limitsOn } from '../../assert/limit-check.ts'
import {
  type AddressTurn,
  type CheckContext,
  type Connection,
  checksOn,
  latencySetting,
  signInSettings,
  socketSettings,
} from '../../engine/index.ts'
import { encode, isError, type RedisReply, RespReader } from './resp.ts'

/** The threshold of connecting, PING and the round trip. */
export const connectLatency = latencySetting(
  { warn: 1_000, limit: 3_000 },
  'Maximum time to connect and sign in, to answer PING, and for the round trip, each',
)

/** The settings of the connection. */
export const connectSettings = {
  ...signInSettings(
    ['redis', 'rediss'],
    'redis://user@host:port/database, or rediss:// with TLS; without a password. User and database are optional',
    'Password of the user, or of the server (requirepass)',
  ),
  insecure: { type: 'flag', default: false, doc: 'Send the password over redis:// even to another machine' },
  ...trustSettings,
  ...socketSettings,
  latency: connectLatency,
} as const satisfies SettingsSpec
type ConnectSettings = Values<typeof connectSettings>

const decoded = (part: string): string | undefined => {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

/** The server and the account in a URL that `validateUrl` accepts. */
function targetOf({ url: written }: Pick<ConnectSettings, 'url'>) {
  const url = new URL(written)
  return {
    host: hostOf(url),
    port: portOf(url),
    user: url.username === '' ? undefined : decoded(url.username),
    database: Number(url.pathname.slice(1)),
    tls: url.protocol === 'rediss:',
  }
}

/** Why url, password and the TLS settings cannot be combined, or undefined. */
export function validateUrl(settings: ConnectSettings): string | undefined {
  const url = new URL(settings.url)
  if (!/^\/?\d{0,5}$/.test(url.pathname)) return 'url must end with the number of a database, as in redis://host:6379/0'
  if (url.search !== '')
    return 'url has query parameters, which are not supported: use rediss:// for TLS and settings for the rest'
  if (url.username !== '' && decoded(url.username) === undefined) {
    return 'url has a "%" that is not followed by two hexadecimal digits'
  }
  if (url.username !== '' && settings.password === undefined) return 'url names a user, but no password is set'
  return url.protocol === 'redis:' ? unusedTrust(settings, 'rediss://') : undefined
}

type Peer = {
  readonly address: string
  readonly user: string | undefined
  /** The database number in the URL. */
  readonly database: number
  /** The chain of the server's certificate; undefined without TLS. */
  readonly chain: Chain | undefined
  /** Redacts svc's own secrets from text of the server. */
  readonly redact: Redact
}

/**
 * A connection to a Redis server. svc does not use the driver: the driver accepts no socket that is already connected,
 * so names and certificates could not be verified as everywhere else, and it buffers as much of an answer as the peer
 * sends.
 */
export class RedisConnection implements Connection {
  readonly address: string
  readonly database: number
  readonly chain: Chain | undefined
  readonly redact: Redact
  /** A Sentinel monitors other servers and has no data. Undefined until INFO has been read. */
  isSentinel: boolean | undefined
  readonly #user: string | undefined
  readonly #socket: Socket
  readonly #exchange: RequestReplyConnection<RedisReply>

  constructor(socket: Socket, { address, user, database, chain, redact }: Peer) {
    this.address = address
    this.database = database
    this.chain = chain
    this.redact = redact
    this.#user = user
    this.#socket = socket
    this.#exchange = new RequestReplyConnection(socket, address, new RespReader(address, redact))
  }

  /** False if no further command can be answered. */
  get usable(): boolean {
    return this.#exchange.usable
  }

  /**
   * Sends a command and returns its reply, which may be an error of the server. A server that is full or that denies
   * access sends its error unsolicited; that error is then the reply. Throws like `RequestReplyConnection.ask`.
   */
  send(...command: readonly [name: string, ...string[]]): Promise<RedisReply> {
    return this.#exchange.ask(encode(command), command[0])
  }

  /** Like `send`, but throws ProbeError for an error of the server. */
  async ask(...command: readonly [name: string, ...string[]]): Promise<Exclude<RedisReply, { error: string }>> {
    const reply = await this.send(...command)
    if (isError(reply)) throw this.meaningOf(reply.error)
    return reply
  }

  /** Explains an error of this server to an operator. */
  meaningOf(error: string): ProbeError {
    return redisError(error, { address: this.address, redact: this.redact, user: this.#user })
  }

  /** Stops sending commands because of this cause, and returns it. */
  end<C>(cause: C): C {
    return this.#exchange.end(cause)
  }

  close(): void {
    this.#socket.destroy()
  }

  /** `signed in to 10.0.0.5:6379 as monitor over TLSv1.3`, or `connected to 10.0.0.5:6379` without a sign-in. */
  describeSignIn(signedIn: boolean): string {
    const tls = this.chain === undefined ? '' : ` over ${this.chain.protocol}`
    if (!signedIn) return `connected to ${this.address}${tls}`
    return `signed in to ${this.address} as ${sanitize(this.#user ?? 'default', 64)}${tls}`
  }
}

/** Gives the checks of redis their types. */
export const onRedis = checksOn<RedisConnection>()
export const limitOnRedis = limitsOn<RedisConnection>()

/** Reads the secret and the CA file, which all addresses share. Throws their errors. */
export async function prepareRedis(settings: ConnectSettings, { files }: CheckContext) {
  const target = targetOf(settings)
  const password = await settings.password?.reveal(files)
  return {
    target,
    password,
    redact: createRedactor(password === undefined ? [] : [password]),
    trust: await readTrust(settings, files),
  }
}
type Prepared = Awaited<ReturnType<typeof prepareRedis>>

/** Connects and, if there is a password, signs in. Throws ProbeError, or a socket's error. */
export async function openRedis(
  at: AddressTurn,
  { insecure, servername }: ConnectSettings,
  context: CheckContext,
  { target, password, redact, trust }: Prepared,
): Promise<RedisConnection> {
  const { address } = at
  const { user, database } = target
  if (password !== undefined && !target.tls && !insecure && !isLocal(at.ip)) {
    const advice = 'use rediss://, or insecure: true if the network is trusted'
    throw new ProbeError('data', `the password is not sent to ${address} without TLS: ${advice}`)
  }
  const tls = target.tls ? { host: servername ?? target.host, ...trust, date: context.date } : undefined
  const { socket, chain } = await openSocket(at, tls)
  try {
    // Tries no other address from here on, so that a refused sign-in is not repeated there.
    at.commit()
    const redis = new RedisConnection(socket, { address, user, database, chain, redact })
    if (password !== undefined) await signIn(redis, user, password)
    return redis
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** With TLS, throws ProbeError `tls` for a server that is not trusted. */
async function openSocket(
  at: PeerAddress,
  tls: (TlsTrust & { readonly host: string; readonly date: () => Date }) | undefined,
): Promise<{ readonly socket: Socket; readonly chain: Chain | undefined }> {
  if (tls === undefined) return { socket: await connectTcp(at.ip, at.port, at.signal), chain: undefined }
  const link = await connectTls(at, { ...tls, verify: true })
  const why = whyDistrusted(link.chain)
  if (why === undefined) return link
  link.socket.destroy()
  throw new ProbeError('tls', why)
}

/** Throws ProbeError `auth` if the server refuses the sign-in. */
async function signIn(redis: RedisConnection, user: string | undefined, password: string): Promise<void> {
  const reply = await (user === undefined ? redis.ask('AUTH', password) : redis.ask('AUTH', user, password))
  if (reply !== 'OK') {
    throw new ProbeError('protocol', `${redis.address} answered the sign-in with something other than OK`)
  }
}

/** The server that answered with an error, and the user it answered. */
type Answerer = { readonly address: string; readonly redact: Redact; readonly user: string | undefined }

const onOtherNode = ['data', 'does not have that key: it is on another node of the cluster'] as const
/** The meanings of errors by their codes; each continues the address of the server. */
const meanings: Readonly<Record<string, readonly [fault: FaultClass, what: string, ...next: string[]]>> = {
  NOAUTH: ['auth', 'requires a sign-in: set password (and the user in url)'],
  LOADING: ['data', 'is still loading its data after a start and serves no requests yet'],
  MASTERDOWN: ['data', 'is a replica that has lost its primary and serves no requests until it is back'],
  BUSY: ['data', 'is busy with a script or function and serves no other requests', 'next: SCRIPT KILL ends the script'],
  DENIED: ['refused', 'is in protected mode: without a password it accepts only local clients'],
  MISCONF: [
    'data',
    'accepts no writes: its last save to disk failed',
    'check its log, the disk and the owner of its folder',
  ],
  OOM: ['data', 'accepts no writes: its memory is full (maxmemory)'],
  NOREPLICAS: ['data', 'accepts no writes: it has too few healthy replicas (min-replicas-to-write)'],
  READONLY: ['data', 'accepts no writes: it is a replica'],
  CLUSTERDOWN: ['data', 'serves no requests: its cluster is down', 'inspect: CLUSTER INFO'],
  MOVED: onOtherNode,
  ASK: onOtherNode,
}

/**
 * Explains an error of the server to an operator.
 *
 * The first word of an error is its code. Servers before Redis 6 use `ERR` for almost all errors.
 */
function redisError(error: string, { address, redact, user }: Answerer): ProbeError {
  const text = sanitize(redact(error), 200)
  const who = quote(user ?? 'default', 64)
  const problem = (fault: FaultClass, message: string, ...next: string[]): ProbeError =>
    new ProbeError(fault, message, [...next, text])
  const refused = (reason: string): ProbeError => refusedSignIn(address, who, reason, [text])
  const code = /^[A-Z]+/.exec(error)?.[0] ?? ''
  const meaning = meanings[code]
  if (meaning) {
    const [fault, what, ...next] = meaning
    return problem(fault, `${address} ${what}`, ...next)
  }
  if (code === 'WRONGPASS') return refused('wrong password, or the user does not exist or is disabled')
  if (code === 'NOPERM')
    return missingPermission(`ACL SETUSER ${sanitize(user ?? 'default', 64)} ${missingRule(error)}`, who, text)
  if (/max number of clients/i.test(error)) {
    return problem(
      'refused',
      `${address} has reached its maximum number of clients (maxclients)`,
      listConnections(address),
    )
  }
  if (/invalid password/i.test(error)) return refused('wrong password')
  if (/no password is set|without any password configured/i.test(error)) {
    return problem(
      'data',
      `${address} has no password although one is configured here: anyone who can reach it can use it`,
    )
  }
  if (user !== undefined && /wrong number of arguments for 'auth'/i.test(error)) {
    return problem('data', `${address} is older than Redis 6 and does not support users: remove ${who} from the url`)
  }
  return new ProbeError('protocol', `${address} answered ${quote(text, 200)}`)
}

const missingPermission = (grant: string, who: string, text: string): MissingPrivilegeError =>
  new MissingPrivilegeError(`${who} lacks a permission for this check, which ${grant} grants`, [grant, text])

/** The rule that an ACL lacks, according to the error of the server. Redis before 7 does not name all commands. */
function missingRule(error: string): string {
  if (/\bkeys?\b/.test(error.slice(0, 300))) return '~<key>'
  const [, command] = /'([\w|-]{1,64})'/.exec(error.slice(0, 300)) ?? []
  return command === undefined ? '+<command>' : `+${command.toLowerCase()}`
}
