import { isIP, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { showBytes, showDuration } from '../../../base/format.ts'
import { connectTcp, hostPort } from '../../../base/net/connect.ts'
import { secureContextFor } from '../../../base/net/secure-context.ts'
import { tie } from '../../../base/net/tls-connect.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { deadlineSignal } from '../../engine/index.ts'
import { type FtpLink, type FtpReply, type LinkTls, wait } from './control.ts'
import { faultOf } from './sign-in.ts'

export type Passive = 'EPSV' | 'PASV'

/** The address at which the server expects the data connection. */
export type PassiveEndpoint = {
  readonly mode: Passive
  readonly ip: string
  readonly port: number
  /** True if the control connection goes to a different address. */
  readonly foreign: boolean
}
export type PassiveRefusal = { readonly reply: FtpReply; readonly why: 'not offered' | 'unusable' }

/** Timeout of connecting, in milliseconds: a slower data connection counts as unusable. */
const connectMs = 3_000

/** Codes of a server that does not support a command, or not on this connection (RFC 2428). */
const notOffered = new Set([500, 501, 502, 504, 522])

/** Requests the endpoint of a data connection. */
export async function requestPassive(link: FtpLink, mode: Passive): Promise<PassiveEndpoint | PassiveRefusal> {
  const { control, target, context } = link
  const reply = await control.ask(mode, wait(context))
  if (notOffered.has(reply.code)) return { reply, why: 'not offered' }
  const there = mode === 'EPSV' ? extended(reply) : classic(reply)
  if (there === undefined || there.port === 0) return { reply, why: 'unusable' }
  const ip = there.ip ?? target.ip
  return { mode, ip, port: there.port, foreign: ip !== target.ip.replace(/^::ffff:/, '') && ip !== target.ip }
}

function extended({ code, text }: FtpReply): { ip?: string; port: number } | undefined {
  const port = Number(/\(([!-~])\1\1(\d{1,5})\1\)/.exec(text)?.[2] ?? 0)
  return code === 229 && port < 65_536 ? { port } : undefined
}

function classic({ code, text }: FtpReply): { ip: string; port: number } | undefined {
  const six = /(\d{1,3}),(\d{1,3}),(\d{1,3}),(\d{1,3}),(\d{1,3}),(\d{1,3})/.exec(text)?.slice(1).map(Number)
  if (code !== 227 || six === undefined || six.some((one) => one > 255)) return undefined
  const [high = 0, low = 0] = six.slice(4)
  const ip = six.slice(0, 4).join('.')
  // Rejects unspecified, multicast, reserved and broadcast addresses.
  return isIP(ip) === 4 && !/^(?:0|22[4-9]|2[3-5]\d)\./.test(ip) ? { ip, port: high * 256 + low } : undefined
}

export type Reached =
  | { readonly socket: Socket }
  | { readonly failed: 'timed out' | 'refused' | 'no route' | 'broke'; readonly ms: number }

/** Connects to the endpoint that the server named. Returns a failure to connect; throws only at the deadline. */
export async function reach(link: FtpLink, ip: string, port: number, most = connectMs): Promise<Reached> {
  const { target, context } = link
  const start = context.now()
  const limit = deadlineSignal(target.signal, Math.min(most, context.msLeft() / 2))
  try {
    // The limit applies to connecting only; the transfer has its own.
    return { socket: link.keep(await connectTcp(ip, port, limit.signal)) }
  } catch (error) {
    target.signal.throwIfAborted()
    const code = (error as { readonly code?: unknown }).code
    const ms = context.now() - start
    if (limit.signal.aborted || code === 'ETIMEDOUT') return { failed: 'timed out', ms }
    if (code === 'ECONNREFUSED') return { failed: 'refused', ms }
    if (code === 'EHOSTUNREACH' || code === 'ENETUNREACH') return { failed: 'no route', ms }
    return { failed: 'broke', ms }
  } finally {
    limit.clear()
  }
}

export type Transferred = {
  readonly bytes: Uint8Array /** The peer had more to send than `max`. */
  readonly cut: boolean
}

/**
 * Runs one transfer over an open data connection and closes it. Sends `send`, or otherwise receives at most `max`
 * bytes. Throws ProbeError.
 */
export async function transfer(
  link: FtpLink,
  command: string,
  raw: Socket,
  { send, max = 0 }: { readonly send?: Uint8Array; readonly max?: number },
): Promise<Transferred> {
  const { control, target, context } = link
  const name = command.split(' ', 1)[0] ?? ''
  const ms = send === undefined ? wait(context) : context.msLeft() / 2
  const ends = context.now() + ms
  const limit = deadlineSignal(target.signal, ms)
  const end = (): void => void raw.destroy()
  limit.signal.addEventListener('abort', end, { once: true })
  try {
    const data = link.tls ? encrypted(raw, link.tls, control.address) : { socket: raw, ready: Promise.resolve() }
    const moved = send === undefined ? receive(data, max) : give(data, send)
    // Awaited below. This handler prevents an unhandled rejection until then.
    moved.catch(() => {})
    const started = await control.ask(command, ms)
    if (started.code >= 300) throw troubleOf(control.address, name, started, control.display(started))
    const outcome =
      started.code < 200
        ? await awaitTransfer(moved, control.reply(Math.max(1, ends - context.now())))
        : { reply: started, moved: await moved }
    const { reply } = outcome
    if (reply !== undefined && reply.code >= 300 && !outcome.moved?.cut) {
      throw troubleOf(control.address, name, reply, control.display(reply))
    }
    if (outcome.moved) return outcome.moved
    throw brokenOff(control.address, name, outcome.cause, limit.signal.aborted, ms)
  } finally {
    limit.signal.removeEventListener('abort', end)
    limit.clear()
    raw.destroy()
  }
}

type Outcome = { readonly reply: FtpReply; readonly moved?: Transferred; readonly cause?: unknown }

/**
 * Waits for both ends of a transfer. The server's own error report takes precedence over the error of the data
 * connection.
 */
async function awaitTransfer(moved: Promise<Transferred>, last: Promise<FtpReply>): Promise<Outcome> {
  const [data, reply] = await Promise.allSettled([moved, last])
  if (reply.status === 'rejected') throw reply.reason
  return data.status === 'fulfilled'
    ? { reply: reply.value, moved: data.value }
    : { reply: reply.value, cause: data.reason }
}

function troubleOf(address: string, name: string, reply: FtpReply, description: string): ProbeError {
  if (reply.code === 425)
    return new ProbeError('refused', `${address} did not receive our data connection: ${description}`)
  if (reply.code === 521 || reply.code === 522 || reply.code === 534)
    return new ProbeError('tls', `${address} did not accept the encryption of the data connection: ${description}`)
  if (reply.code === 426) {
    const full = name === 'STOR' ? ': often a full disk or quota' : ''
    return new ProbeError('protocol', `${address} aborted the transfer: ${description}${full}`)
  }
  const full = name === 'STOR' && writeFailures.has(reply.code) ? ': often a full disk or quota' : ''
  return new ProbeError(faultOf(reply), `${address} answered ${name} with ${description}${full}`)
}

/** Replies to a file that the server could not store; few servers name the cause. */
const writeFailures = new Set([450, 451, 452, 552])

function brokenOff(address: string, name: string, cause: unknown, late: boolean, ms: number): ProbeError {
  if (late)
    return new ProbeError(
      'timeout',
      `the data connection of ${name} with ${address} was silent for ${showDuration(ms)}`,
    )
  if (cause instanceof ProbeError) return cause
  const code = (cause as { readonly code?: unknown } | undefined)?.code
  return new ProbeError(
    'protocol',
    `the data connection of ${name} with ${address} broke`,
    typeof code === 'string' ? [code] : [],
  )
}

type Data = { readonly socket: Socket; readonly ready: Promise<void> }

/**
 * Starts TLS on a data connection. Resumes the TLS session of the control connection, which many servers require, or at
 * least demands the same certificate.
 */
function encrypted(raw: Socket, tls: LinkTls, address: string): Data {
  const { connect } = process.getBuiltinModule('node:tls')
  const session = tls.session()
  const socket = connect({
    socket: raw,
    // Without a host, Node uses `localhost`, and does not resume a session of another name.
    host: tls.host,
    ...(isIP(tls.host) ? {} : { servername: tls.host }),
    ...(session === undefined ? {} : { session }),
    secureContext: secureContextFor({ ...tls.client?.pem }),
    // The control connection already verified the certificate; the code below verifies that this is the same server.
    rejectUnauthorized: false,
    checkServerIdentity: () => undefined,
  })
  socket.on('error', () => {})
  tie(raw, socket)
  const ready = new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.once('close', () =>
      reject(new ProbeError('tls', `${address} closed the data connection during its TLS handshake`)),
    )
    socket.once('secureConnect', () => {
      if (socket.isSessionReused() || isSame(socket, tls)) resolve()
      else reject(new ProbeError('tls', `the data connection of ${address} presents a different certificate`))
    })
  })
  ready.catch(() => raw.destroy())
  return { socket, ready }
}

const isSame = (socket: TLSSocket, { chain }: LinkTls): boolean =>
  chain.fingerprint !== undefined && socket.getPeerX509Certificate()?.fingerprint256 === chain.fingerprint

async function receive({ socket, ready }: Data, max: number): Promise<Transferred> {
  await ready
  return await new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let length = 0
    const done = (cut: boolean): void => resolve({ bytes: Buffer.concat(chunks).subarray(0, max), cut })
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      length += chunk.length
      if (length <= max) return
      done(true)
      socket.destroy()
    })
    socket.once('end', () => {
      done(false)
      socket.end()
    })
    socket.once('error', reject)
    socket.once('close', () =>
      reject(new ProbeError('protocol', `the data connection broke after ${showBytes(length)}`)),
    )
  })
}

async function give({ socket, ready }: Data, bytes: Uint8Array): Promise<Transferred> {
  await ready
  return await new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('close', () => reject(new ProbeError('protocol', 'the data connection broke while svc was writing')))
    // Reads and discards incoming data; otherwise the end of the server's side would go unnoticed.
    socket.resume()
    socket.end(bytes, () => resolve({ bytes: new Uint8Array(), cut: false }))
  })
}

/** `EPSV returned port 50021` or `PASV returned 10.0.0.5:50021`: the endpoint as the server reported it. */
export const describeEndpoint = ({ mode, ip, port }: PassiveEndpoint): string =>
  mode === 'EPSV' ? `EPSV returned port ${port}` : `PASV returned ${hostPort(ip, port)}`
