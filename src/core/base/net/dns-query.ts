import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { ProbeError } from '../probe-error.ts'
import { connectTcp, hostPort, wayOut } from './connect.ts'
import { type DnsMessage, readMessage, typeNumbers } from './dns-message.ts'

/** The number of a signature among the types of records. */
export const rrsigType = 46

/** A signature over the records of one type (RFC 4034, 3). */
export type Signature = {
  /** The number of the type that it covers. */
  readonly covers: number
  readonly from: Date
  readonly to: Date
  readonly keyTag: number
}

type Query = {
  readonly ip: string
  readonly port: number
  readonly name: string
  readonly type: keyof typeof typeNumbers
  readonly signal: AbortSignal
  /** Whether the server shall ask others. Default: true. */
  readonly recursion?: boolean
  /** Whether it is sent without EDNS (RFC 6891). Default: false. */
  readonly isPlain?: boolean
  /** Whether it is sent over TCP only. Default: false. */
  readonly overTcp?: boolean
}

const classIn = 1
const optType = 41
/** The bit that requests signatures (RFC 3225). */
const dnssecOk = 0x8000
const recursionDesired = 0x0100
/** Bytes that fit into a datagram without fragments (DNS flag day 2020). */
const maxDatagram = 1_232
const headerBytes = 12

/**
 * The signatures in the answer to a question, asked with the bit DO. Empty for an answer that is not signed. Uses TCP,
 * because signed answers seldom fit into a datagram. Throws ProbeError, or a socket's error.
 */
export const querySignatures = async (query: Query): Promise<readonly Signature[]> =>
  signaturesIn(await ask(query), hostPort(query.ip, query.port))

/** The response code (RFC 1035, 4.1.1) of the answer to a question, asked over TCP. Throws ProbeError, or a socket's error. */
export const queryCode = async (query: Query): Promise<number> => (await ask(query)).readUInt16BE(2) & 15

/**
 * The answer to a question, by datagram or, if it does not fit, over TCP. Throws ProbeError `timeout` or `protocol`, or a
 * socket's error.
 */
export async function queryMessage(query: Query): Promise<DnsMessage> {
  const first = await (query.overTcp ? ask(query) : askByDatagram(query))
  try {
    return readMessage(isCut(first) && !query.overTcp ? await ask(query) : first)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new ProbeError('protocol', `${hostPort(query.ip, query.port)} sent an unreadable answer`)
  }
}

/** Whether the server answers by datagram, and its answer is cut off. */
export const needsTcp = (query: Query): Promise<boolean> =>
  askByDatagram(query).then(isCut, () => {
    query.signal.throwIfAborted()
    return false
  })
const isCut = (datagram: Buffer): boolean => (datagram.readUInt8(2) & 2) !== 0

/** How often a question is sent, and how many milliseconds svc waits for each answer: a datagram may get lost. */
const datagrams = { sent: 3, waitMs: 1_000 }

async function askByDatagram(query: Query): Promise<Buffer> {
  const { ip, port, signal } = query
  const { createSocket } = process.getBuiltinModule('node:dgram')
  const { id, message } = messageOf(query)
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const socket = createSocket(isIP(ip) === 6 ? 'udp6' : 'udp4')
  const abort = (): void => reject(signal.reason as Error)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  let sent = 0
  const send = (): void => {
    if (sent >= datagrams.sent) {
      reject(new ProbeError('timeout', `${hostPort(ip, port)} did not answer by datagram`, ['ETIMEOUT']))
      return
    }
    sent += 1
    socket.send(message)
  }
  const timer = setInterval(send, datagrams.waitMs)
  socket.on('error', reject)
  socket.on('message', (answer) => {
    if (answer.length >= headerBytes && answer.readUInt16BE(0) === id) resolve(answer)
  })
  try {
    const { source } = wayOut()
    if (source !== undefined) socket.bind(0, source)
    // A connected socket takes answers of this server only, and learns that nothing listens there.
    // Without a route to the server, the callback gets the error, and the socket emits none.
    socket.connect(port, ip, (...[error]: readonly (Error | undefined)[]) => (error ? reject(error) : send()))
    return await promise
  } finally {
    clearInterval(timer)
    signal.removeEventListener('abort', abort)
    socket.close()
  }
}

/** A question as it is sent. */
function messageOf({ name, type, recursion = true, isPlain = false }: Query): {
  readonly id: number
  readonly message: Buffer
} {
  const id = Math.floor(Math.random() * 65_536)
  const question = Buffer.concat([encodeName(name), u16(typeNumbers[type], classIn)])
  const extended = Buffer.concat([Buffer.from([0]), u16(optType, maxDatagram, 0, dnssecOk, 0)])
  // One question, one additional record.
  const header = u16(id, recursion ? recursionDesired : 0, 1, 0, 0, isPlain ? 0 : 1)
  return { id, message: Buffer.concat([header, question, ...(isPlain ? [] : [extended])]) }
}

/** The answer to a question over TCP, at least its header. */
async function ask(query: Query): Promise<Buffer> {
  const { ip, port, signal } = query
  const address = hostPort(ip, port)
  const { id, message } = messageOf(query)
  const socket = await connectTcp(ip, port, signal)
  try {
    socket.write(Buffer.concat([u16(message.length), message]))
    const chunks: Buffer[] = []
    let length = 0
    // The number of bytes at which there is something to read: a peer may send single bytes.
    let needed = 2
    for await (const chunk of socket) {
      chunks.push(chunk as Buffer)
      length += (chunk as Buffer).length
      if (length < needed) continue
      const received = Buffer.concat(chunks.splice(0))
      chunks.push(received)
      needed = received.readUInt16BE(0) + 2
      if (length < needed) continue
      const answer = received.subarray(2, needed)
      if (answer.length < headerBytes || answer.readUInt16BE(0) !== id)
        throw new ProbeError('protocol', `${address} answered another question`)
      return answer
    }
    throw new ProbeError('refused', `${address} closed the connection without an answer`)
  } finally {
    socket.destroy()
  }
}

const u16 = (...numbers: readonly number[]): Buffer => Buffer.from(numbers.flatMap((n) => [(n >> 8) & 255, n & 255]))

function encodeName(name: string): Buffer {
  const labels = name.replace(/\.$/, '').split('.')
  const bytes = labels.map((label) => Buffer.from(label, 'latin1'))
  if (bytes.some(({ length }) => length === 0 || length > 63))
    throw new ProbeError('data', 'the name to look up is not a valid DNS name')
  return Buffer.concat([...bytes.flatMap((label) => [Buffer.from([label.length]), label]), Buffer.from([0])])
}

/** The RRSIG records of the answer section. Throws ProbeError `protocol` for a message that ends early. */
export function signaturesIn(answer: Buffer, address: string): readonly Signature[] {
  try {
    const [questions, records] = [answer.readUInt16BE(4), answer.readUInt16BE(6)]
    let at = headerBytes
    for (let index = 0; index < questions; index += 1) at = afterName(answer, at) + 4
    const signatures: Signature[] = []
    for (let index = 0; index < records; index += 1) {
      at = afterName(answer, at)
      const type = answer.readUInt16BE(at)
      const length = answer.readUInt16BE(at + 8)
      const data = at + 10
      if (data + length > answer.length) throw new RangeError('record')
      if (type === rrsigType) {
        signatures.push({
          covers: answer.readUInt16BE(data),
          to: new Date(answer.readUInt32BE(data + 8) * 1_000),
          from: new Date(answer.readUInt32BE(data + 12) * 1_000),
          keyTag: answer.readUInt16BE(data + 16),
        })
      }
      at = data + length
    }
    return signatures
  } catch (error) {
    if (error instanceof RangeError) throw new ProbeError('protocol', `${address} sent an unreadable answer`)
    throw error
  }
}

/** The offset after a name, which ends with an empty label or with a pointer (RFC 1035, 4.1.4). */
function afterName(answer: Buffer, from: number): number {
  let at = from
  for (;;) {
    const length = answer.readUInt8(at)
    if (length >= 0xc0) return at + 2
    if (length === 0) return at + 1
    at += length + 1
  }
}

/** Milliseconds that a name server may take to refuse another query. */
const refusalMs = 1_000

const noRoute: ReadonlySet<string> = new Set(['ENETUNREACH', 'EHOSTUNREACH', 'ENETDOWN', 'EHOSTDOWN', 'EADDRNOTAVAIL'])
const notPermitted: ReadonlySet<string> = new Set(['EACCES', 'EPERM'])

type Place = { readonly host: string; readonly port: number }

/**
 * Why queries to name servers failed for which c-ares reports ECONNREFUSED: it does so for every error of a socket.
 * Returns the code of that error if all servers have the same kind of obstacle on the way to them, and ECONNREFUSED in
 * any other case. Sends a query to each of them again; rejects only when the signal aborts.
 */
export async function refusalCode(servers: readonly Place[], name: string, signal: AbortSignal): Promise<string> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(refusalMs)])
  const codes = await Promise.all(servers.map((server) => socketCode(server, name, limit)))
  signal.throwIfAborted()
  const [code = ''] = codes
  return [noRoute, notPermitted].some((group) => codes.every((one) => group.has(one))) && code !== ''
    ? code
    : 'ECONNREFUSED'
}

/** The code of the error that a query meets, or an empty text. */
async function socketCode({ host: ip, port }: Place, name: string, signal: AbortSignal): Promise<string> {
  try {
    await queryMessage({ ip, port, name, type: 'SOA', signal })
    return ''
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? ''
  }
}

/**
 * A sentence about a code of `refusalCode` other than ECONNREFUSED, undefined for that. `servers` are those that were
 * asked, as messages show them.
 */
export function obstacleText(code: string, servers: string, interfaces = networkInterfaces()): string | undefined {
  if (notPermitted.has(code)) {
    return `this machine does not let queries to ${servers} out (${code}): its firewall or its routes forbid them`
  }
  if (!noRoute.has(code)) return undefined
  const hasNetwork = Object.values(interfaces).some((addresses) => addresses?.some(({ internal }) => !internal))
  return hasNetwork
    ? `no route to ${servers}: network or firewall, not the name server`
    : `no route to ${servers}: this machine has no network, because no interface but loopback has an address`
}
