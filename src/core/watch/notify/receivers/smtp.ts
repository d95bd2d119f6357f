import type { Socket } from 'node:net'
import { isLoopback } from '../../../base/loopback.ts'
import type { PeerAddress } from '../../../base/net/addresses.ts'
import { whyDistrusted } from '../../../base/net/certificates.ts'
import { connectTcp, hostPort, resolveHost } from '../../../base/net/connect.ts'
import { CodedReplyReader, RequestReplyConnection } from '../../../base/net/request-reply.ts'
import { noRedaction, quote } from '../../../base/net/text.ts'
import { connectTls } from '../../../base/net/tls-connect.ts'
import type { TlsTrust } from '../../../base/net/trust.ts'
import { ProbeError } from '../../../base/probe-error.ts'

/** A mail server and what is needed to trust it. */
export type MailServer = {
  /** `mail.internal:587`, for messages. */
  readonly origin: string
  readonly host: string
  readonly port: number
  /** TLS from the first byte. */
  readonly isImplicit: boolean
  /** Whether a password or the settings of trust demand TLS. On loopback, only the latter do. */
  readonly signsIn: boolean
  readonly hasTrust: boolean
  readonly trust: TlsTrust
  readonly servername?: string | undefined
}

type Reply = { readonly code: number; readonly lines: readonly string[] }

/**
 * A connection at which the server is about to greet: under TLS wherever the server offers it, and trusted as monitors trust
 * servers. On loopback, nothing leaves this machine, so TLS is used there only if the settings name a trust. Throws
 * ProbeError, or the error of the socket.
 */
export async function connectMail(server: MailServer, signal: AbortSignal): Promise<Socket> {
  const [ip] = await resolveHost(server.host, signal)
  if (ip === undefined) throw new ProbeError('dns', `${server.origin} has no address`)
  const at: PeerAddress = { ip, port: server.port, address: server.origin, signal, step: () => {} }
  if (server.isImplicit) return await secured(at, server)
  const isLocal = isLoopback(ip)
  if (isLocal && !server.hasTrust) return await connectTcp(ip, server.port, signal)
  const socket = await offered(at)
  if (socket === undefined) {
    if (server.signsIn && !isLocal) {
      throw new ProbeError('tls', `${server.origin} does not offer STARTTLS: the password is not sent without TLS`)
    }
    if (server.hasTrust) throw new ProbeError('tls', `${server.origin} does not offer STARTTLS`)
    return await connectTcp(ip, server.port, signal)
  }
  let first: Socket | undefined = socket
  const encrypted = await secured(at, server, async () => {
    const prepared = first
    first = undefined
    // With other roots, the chain is read over a second connection, which needs its own STARTTLS.
    return prepared ?? (await demanded(at))
  })
  // Under TLS the server waits for EHLO. Clients of mail expect its greeting first.
  encrypted.unshift(Buffer.from('220 STARTTLS\r\n'))
  return encrypted
}

async function secured(
  at: PeerAddress,
  { host, servername, trust }: MailServer,
  open?: () => Promise<Socket>,
): Promise<Socket> {
  const { socket, chain } = await connectTls(at, {
    host: servername ?? host,
    ca: trust.ca,
    pinned: trust.pinned,
    verify: true,
    date: () => new Date(),
    ...(open ? { open } : {}),
  })
  const why = whyDistrusted(chain)
  if (why === undefined) return socket
  socket.destroy()
  throw new ProbeError('tls', why)
}

async function demanded(at: PeerAddress): Promise<Socket> {
  const socket = await offered(at)
  if (socket === undefined) throw new ProbeError('tls', `${at.address} does not offer STARTTLS any more`)
  return socket
}

/** A socket on which TLS may begin, or undefined if the server does not offer STARTTLS. */
async function offered({ ip, port, address, signal }: PeerAddress): Promise<Socket | undefined> {
  const socket = await connectTcp(ip, port, signal)
  const isReady = await upgrade(socket, address).catch((error: unknown) => {
    socket.destroy()
    throw error
  })
  if (isReady) return socket
  socket.destroy()
  return undefined
}

async function upgrade(socket: Socket, address: string): Promise<boolean> {
  const make = (code: number, lines: readonly string[]): Reply => ({ code, lines })
  const reader = new CodedReplyReader<Reply>({ name: 'SMTP', kinds: '2-5', free: false, make }, address, noRedaction)
  const exchange = new RequestReplyConnection<Reply>(socket, address, reader)
  const demand = ({ code, lines }: Reply, expected: number): void => {
    if (code === expected) return
    const fault = code === 421 || code === 554 ? 'refused' : 'protocol'
    throw new ProbeError(fault, `${address} answered ${quote(lines.join(' '), 200)}`)
  }
  demand(await exchange.next(), 220)
  const own = socket.localAddress ?? '127.0.0.1'
  const hello = await exchange.ask(`EHLO [${own.includes(':') ? `IPv6:${own}` : own}]\r\n`, 'EHLO')
  demand(hello, 250)
  if (!hello.lines.some((line) => /^\d{3}[ -]STARTTLS\b/i.test(line))) return false
  demand(await exchange.ask('STARTTLS\r\n', 'STARTTLS'), 220)
  exchange.detach()
  return true
}

/** `mail.internal:587` */
export const mailAddress = (host: string, port: number): string => hostPort(host, port)
