import type { MongoClient, MongoClientOptions } from 'mongodb'
import {
  closeTimeoutMs,
  type DatabaseTarget,
  settleWithin,
  statementMs,
  type TlsChoice,
  tlsChoice,
  whyUnpinned,
} from '../../database/index.ts'
import type { ConfiguredFiles } from '../../files/index.ts'
import { hostPort } from '../../net/connect.ts'
import { optionalDriver } from '../../net/driver.ts'
import { createRedactor, type Redact, sanitize } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { type MongoPlace, mongoFault } from './errors.ts'
import { wires } from './wire.ts'

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

export const loadMongodb = () => optionalDriver('mongodb', () => import('mongodb'))

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
    ...(target.user === ''
      ? {}
      : { auth: { username: target.user, password }, authSource: target.database || 'admin' }),
    ...(tls
      ? {
          tls: true,
          ...(tls.ca === undefined ? {} : { ca: tls.ca }),
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
