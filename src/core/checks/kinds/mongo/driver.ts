import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { MongoClient, MongoClientOptions } from 'mongodb'
import type { ConfiguredFiles } from '../../../base/files/index.ts'
import { hostPort, noteConnection, wayOut } from '../../../base/net/connect.ts'
import { createRedactor, type Redact, sanitize } from '../../../base/net/text.ts'
import { type FaultClass, ProbeError, refusedSignIn } from '../../../base/probe-error.ts'
import {
  closeTimeoutMs,
  type DatabaseTarget,
  pemOf,
  settleWithin,
  statementMs,
  type TlsChoice,
  tlsChoice,
  whyUnpinned,
  withoutTls,
} from '../../database/index.ts'
import { loadDriver } from '../../drivers/index.ts'

type MongoPlace = {
  readonly target: DatabaseTarget
  readonly address: string
  readonly phase: 'sign-in' | 'check'
  readonly redact: Redact
}

/** The account or the type of server prevents a check from observing: no failure of the database. */
export class UnavailableError extends ProbeError {
  readonly why: 'permission' | 'absent'
  constructor(why: 'permission' | 'absent', message: string, details: readonly string[]) {
    super('data', message, details)
    this.why = why
  }
}

/** Explains an error of the driver or of the server. Leaves errors that `classify` handles unchanged. */
function mongoFault(error: unknown, where: MongoPlace): unknown {
  const root = rootOf(error)
  if (root) return root
  const { name, code, message } = error as Record<'name' | 'code' | 'message', unknown>
  const reason = sanitize(where.redact(typeof message === 'string' ? message : ''))
  if (typeof code === 'number') return fromServer(code, reason, where)
  return fromDriver(String(name), reason, where)
}

/** The driver wraps socket errors. */
function rootOf(error: unknown): unknown {
  let one = error
  for (let depth = 0; depth < 6 && one instanceof Error; depth += 1) {
    if (one instanceof ProbeError) return one
    const { code } = one as { readonly code?: unknown }
    if (typeof code === 'string' && !/^ERR_(?!TLS|SSL)/.test(code)) return one
    one = one.cause
  }
  return undefined
}

type Meaning = 'refused sign-in' | 'may not' | 'absent' | 'too long' | 'no longer' | 'down' | 'no majority'
const meaning: Readonly<Record<number, Meaning>> = {
  11: 'refused sign-in',
  18: 'refused sign-in',
  8000: 'refused sign-in',
  13: 'may not',
  59: 'absent',
  76: 'absent',
  115: 'absent',
  238: 'absent',
  26: 'absent',
  50: 'too long',
  262: 'too long',
  89: 'too long',
  189: 'no longer',
  10107: 'no longer',
  13435: 'no longer',
  13436: 'no longer',
  11602: 'no longer',
  91: 'down',
  11600: 'down',
  64: 'no majority',
  79: 'no majority',
  100: 'no majority',
}

function fromServer(code: number, reason: string, { address, target, phase }: MongoPlace): ProbeError {
  const probeError = (fault: FaultClass, message: string, ...details: string[]): ProbeError =>
    new ProbeError(fault, message, [...details, `error ${code}`])
  const user = target.user === '' ? 'a client without a sign-in' : `"${sanitize(target.user, 64)}"`
  switch (meaning[code]) {
    case 'refused sign-in':
      return refusedSignIn(address, user, reason, [
        `the user is looked up in the database ${sanitize(target.database || 'admin', 64)}; the url can name another one`,
        `error ${code}`,
      ])
    case 'may not':
      return new UnavailableError('permission', `${user} lacks a privilege: ${reason}`, [`error ${code}`])
    case 'absent':
      return new UnavailableError('absent', `this server does not report this: ${reason}`, [`error ${code}`])
    case 'too long':
      return probeError('timeout', `the server aborted the command, which took too long: ${reason}`)
    case 'no longer':
      return probeError('data', `${address} is not a primary (any more, or yet): ${reason}`)
    case 'down':
      return probeError('refused', `${address} is shutting down: ${reason}`)
    case 'no majority':
      return probeError('timeout', `no majority acknowledged the write in time: ${reason}`)
    default:
      return probeError(
        'protocol',
        phase === 'sign-in' ? `${address} refused the connection: ${reason}` : `the command failed: ${reason}`,
      )
  }
}

/** For example `connection 3 to 10.0.0.1:27017 closed` or `Socket closed`. */
function isAboutClosing(reason: string): boolean {
  const connection = reason.indexOf('connection ')
  return (
    reason.includes('Socket closed') ||
    (connection >= 0 && reason.includes(' closed', connection + 'connection '.length))
  )
}

function fromDriver(name: string, reason: string, { address, target }: MongoPlace): ProbeError {
  const details = reason === '' ? [] : [reason]
  if (name === 'MongoNetworkTimeoutError')
    return new ProbeError('timeout', `${address} did not answer in time`, details)
  if (isAboutClosing(reason)) {
    const maybe = target.tls.mode === 'off' ? ['if the server accepts only TLS, set tls: {mode: verify}'] : [withoutTls]
    return new ProbeError('protocol', `${address} closed the connection before it answered`, maybe)
  }
  if (name === 'MongoCompatibilityError') {
    return new ProbeError('protocol', `${address} speaks no version that the driver supports`, details)
  }
  if (/signature|nonce|iteration count|SCRAM|conversation/i.test(reason)) {
    return new ProbeError(
      'protocol',
      `${address} did not prove that it knows the user: check that it is the right server`,
      details,
    )
  }
  return new ProbeError('protocol', `${address} does not answer as MongoDB does`, details)
}

/** Maximum bytes received over all connections of one run. */
const maxBytes = 8 * 1024 * 1024
const headerBytes = 16
/** OP_REPLY and OP_MSG. svc requests no other operations, and no compression. */
const opCodes = new Set([1, 2_013])
/** Maximum rounds of PBKDF2. Servers request 10,000 to 15,000, and the computation cannot be interrupted. */
const maxRounds = 1_000_000

/** Tracks the sockets that a driver opens on its own, so that svc can guard them and destroy them at once. */
type Wires = {
  /** Runs `act`, and tracks the sockets that are opened within it, even later. */
  readonly run: <T>(act: () => T) => T
  /** Destroys all tracked sockets, including later ones. */
  readonly end: () => void
  /** Stops tracking, once the driver opens no more sockets. */
  readonly forget: () => void
}

type Verify = (secure: TLSSocket) => Error | undefined

const opened = 'net.client.socket'

/** `verify` tells why the server at the other end of a new TLS socket is not trusted. */
function wires(verify: Verify = () => undefined): Wires {
  const mine = new AsyncLocalStorage<true>()
  const sockets = new Set<Socket>()
  let taken = 0
  let ended = false
  const take = (message: unknown): void => {
    if (mine.getStore() !== true) return
    const { socket } = message as { readonly socket: Socket }
    socket.on('error', () => {})
    // Deferred, because a socket that is destroyed before it connects stays alive.
    if (ended) {
      queueMicrotask(() => void socket.destroy())
      return
    }
    sockets.add(socket)
    socket.once('connect', () => {
      const { remoteAddress = '', remotePort = 0 } = socket
      noteConnection(socket, hostPort(remoteAddress, remotePort))
    })
    socket.once('close', () => sockets.delete(socket))
    const count = (bytes: number): boolean => {
      taken += bytes
      return taken <= maxBytes
    }
    guard(socket, count, verify)
  }
  subscribe(opened, take)
  return {
    run: (act) => mine.run(true, act),
    end: () => {
      ended = true
      for (const socket of sockets) socket.destroy()
    },
    forget: () => void unsubscribe(opened, take),
  }
}

/**
 * Passes on only complete messages within limits. The driver itself accepts messages of any length, loops for ever on
 * one of length 0, decompresses any data, and computes as many rounds as the server requests.
 */
function guard(socket: Socket, count: (bytes: number) => boolean, verify: Verify): void {
  const pass = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean
  const refuse = (what: string): boolean => {
    socket.destroy(new ProbeError('protocol', what))
    return true
  }
  let buffered: Buffer[] = []
  let have = 0
  const emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (event === 'secureConnect') {
      const why = verify(socket as TLSSocket)
      if (why) {
        // The driver begins the sign-in when it learns of the connection.
        socket.destroy(why)
        return true
      }
    }
    if (event !== 'data') return pass(event, ...args)
    const chunk = args[0] as Buffer
    if (!count(chunk.length)) return refuse('the peer sent more than 8 MiB')
    buffered.push(chunk)
    have += chunk.length
    while (have >= headerBytes) {
      if ((buffered[0]?.length ?? 0) < headerBytes) buffered = [Buffer.concat(buffered)]
      const [first] = buffered
      if (!first) break
      const length = first.readInt32LE(0)
      if (length < headerBytes || length > maxBytes) return refuse('the peer does not answer as MongoDB does')
      if (!opCodes.has(first.readInt32LE(12))) return refuse('the peer answered in a form that svc did not request')
      if (length > have) break
      const all = buffered.length === 1 ? first : Buffer.concat(buffered)
      const message = all.subarray(0, length)
      buffered = length < all.length ? [all.subarray(length)] : []
      have -= length
      if (asksTooMuch(message)) return refuse('the peer requests too many rounds of hashing')
      try {
        pass('data', message)
      } catch {
        return refuse('the peer sent an unreadable answer')
      }
      if (socket.destroyed) break
    }
    return true
  }
  socket.emit = emit
}

/** Searches for the `i=` of a SCRAM challenge in the same way as the driver. */
const asksTooMuch = (message: Buffer): boolean =>
  message.includes('i=') &&
  [...message.toString('latin1').matchAll(/i=([^,]{1,64})/g)].some(
    ([, rounds]) => Number.parseInt(rounds ?? '', 10) > maxRounds,
  )

export type Doc = Readonly<Record<string, unknown>>

export const part = (doc: Doc | undefined, name: string): Doc => {
  const value = doc?.[name]
  return typeof value === 'object' && value !== null ? (value as Doc) : {}
}
export const parts = (doc: Doc | undefined, name: string): readonly Doc[] => {
  const value = doc?.[name]
  return Array.isArray(value) ? value.map((one) => part({ one }, 'one')) : []
}
export const moment = (doc: Doc, name: string): number | undefined => {
  const value = doc[name]
  return value instanceof Date && !Number.isNaN(value.getTime()) ? value.getTime() : undefined
}

/** Runs one command, with a time limit on the server. Throws ProbeError, or a socket's error. */
export type Command = (command: Doc, database?: string) => Promise<Doc>

export type MongoWay = {
  readonly ip: string
  readonly address: string
  readonly signal: AbortSignal
  /** Milliseconds left until the deadline. */
  readonly msLeft: () => number
  readonly files: ConfiguredFiles
}
export type MongoSession = {
  readonly command: Command
  readonly encrypted: boolean
  readonly redact: Redact
  readonly close: () => Promise<void>
}

/** Milliseconds after the deadline at which the driver would give up on its own. */
const pastDeadlineMs = 1_000
/** Milliseconds, longer than any run: disables the driver's periodic monitoring. */
const never = 3_600_000

export const loadMongodb = async () => loadDriver('mongo')

/**
 * Connects to one node, whatever its role, and signs in. When the signal aborts, destroys every socket of the driver.
 * The server then ends the commands of the disconnected client, at the latest at the deadline. Throws ProbeError, or a
 * socket's error.
 */
export async function openMongo(target: DatabaseTarget, way: MongoWay): Promise<MongoSession> {
  const { ip, address, signal, msLeft, files } = way
  const password = (await target.password?.reveal(files)) ?? ''
  if (target.user !== '' && password === '') {
    throw new ProbeError(
      'auth',
      `the url names ${sanitize(target.user, 64)}, but no password is configured: add \`password:\``,
    )
  }
  const redact = createRedactor([password])
  const at = (phase: MongoPlace['phase']): MongoPlace => ({ target, address, phase, redact })
  const tls = await tlsChoice(target, ip, files)
  const { MongoClient: Client } = await loadMongodb()
  // Checked here, because nothing listened to the signal while the driver was loaded.
  signal.throwIfAborted()
  const wire = wires((secure) => whyUnpinned(secure, target, address))
  const end = (): void => wire.end()
  signal.addEventListener('abort', end, { once: true })
  let client: MongoClient | undefined
  const close = async (): Promise<void> => {
    signal.removeEventListener('abort', end)
    const closing = Promise.resolve(wire.run(() => client?.close()))
    // Ends the sessions on the server if there is still time.
    if (!signal.aborted) await settleWithin(closing, closeTimeoutMs)
    wire.end()
    await settleWithin(closing, closeTimeoutMs)
    closing.then(wire.forget, wire.forget)
  }
  try {
    const options = optionsFor(target, tls, password, msLeft())
    const made = wire.run(() => new Client(`mongodb://${hostPort(ip, target.port)}/`, options))
    client = made
    await wire.run(() => connected(made))
    const command: Command = async (document, database = 'admin') => {
      signal.throwIfAborted()
      try {
        const limited = { ...document, maxTimeMS: statementMs(msLeft()) }
        return cleanup(await wire.run(() => made.db(database).command(limited)), redact) as Doc
      } catch (error) {
        throw mongoFault(error, at('check'))
      }
    }
    return { command, encrypted: tls !== undefined, redact, close }
  } catch (error) {
    await close()
    throw mongoFault(error, at('sign-in'))
  }
}

function optionsFor(
  target: DatabaseTarget,
  tls: TlsChoice | undefined,
  password: string,
  msLeft: number,
): MongoClientOptions {
  return {
    // Connects only to this node: its report on other nodes is evaluated, but svc never connects to them because of it.
    directConnection: true,
    ...(wayOut().source === undefined ? {} : { localAddress: wayOut().source }),
    ...(target.user === ''
      ? {}
      : { auth: { username: target.user, password }, authSource: target.database || 'admin' }),
    ...(tls
      ? {
          tls: true,
          ...pemOf(tls),
          ...(tls.servername === undefined ? {} : { servername: tls.servername }),
          rejectUnauthorized: tls.rejectUnauthorized,
          checkServerIdentity: tls.checkServerIdentity,
        }
      : {}),
    appName: 'svc-health',
    // Never retries, least of all a refused sign-in.
    retryReads: false,
    retryWrites: false,
    maxPoolSize: 1,
    serverMonitoringMode: 'poll',
    heartbeatFrequencyMS: never,
    // The engine's deadline applies instead: the driver's own timeout would not give a reason.
    serverSelectionTimeoutMS: msLeft + pastDeadlineMs,
    connectTimeoutMS: 0,
  }
}

/**
 * Rejects after the driver's first failed attempt to reach the node; the driver would keep trying until the deadline.
 */
async function connected(client: MongoClient): Promise<void> {
  const { promise: failed, reject } = Promise.withResolvers<never>()
  failed.catch(() => {})
  client.on('serverHeartbeatFailed', ({ failure }) => reject(failure))
  const connecting = client.connect()
  connecting.catch(() => {})
  await Promise.race([connecting, failed])
}

const deepest = 12
const widest = 1_000

/** Redacts an answer, and limits its depth and width. */
function cleanup(value: unknown, redact: Redact, depth = 0): unknown {
  if (typeof value === 'string') return redact(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth >= deepest) return undefined
  if (Array.isArray(value)) return value.slice(0, widest).map((one) => cleanup(one, redact, depth + 1))
  if (value instanceof Date || '_bsontype' in value) return value
  const object = Object.create(null) as Record<string, unknown>
  for (const [key, one] of Object.entries(value).slice(0, widest)) object[key] = cleanup(one, redact, depth + 1)
  return object
}
