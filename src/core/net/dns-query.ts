import { ProbeError } from '../probe-error.ts'
import { connectTcp, hostPort } from './connect.ts'

/** Numbers of record types (RFC 1035, RFC 4034), for queries that the resolver of Node does not support. */
export const typeNumbers = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  CAA: 257,
} as const
const rrsigType = 46

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
}

const classIn = 1
const optType = 41
/** The bit that requests signatures (RFC 3225). */
const dnssecOk = 0x8000
const headerBytes = 12

/**
 * The signatures in the answer to a question, asked with the bit DO. Empty for an answer that is not signed. Uses TCP,
 * because signed answers seldom fit into a datagram. Throws ProbeError, or a socket's error.
 */
export const querySignatures = async (query: Query): Promise<readonly Signature[]> =>
  signaturesIn(await ask(query), hostPort(query.ip, query.port))

/** The response code (RFC 1035, 4.1.1) of the answer to a question, asked over TCP. Throws ProbeError, or a socket's error. */
export const queryCode = async (query: Query): Promise<number> => (await ask(query)).readUInt16BE(2) & 15

/** The answer to a question, at least its header. */
async function ask({ ip, port, name, type, signal }: Query): Promise<Buffer> {
  const address = hostPort(ip, port)
  const id = Math.floor(Math.random() * 65_536)
  const question = Buffer.concat([encodeName(name), u16(typeNumbers[type], classIn)])
  const extended = Buffer.concat([Buffer.from([0]), u16(optType, 4_096, 0, dnssecOk, 0)])
  // Recursion desired, one question, one additional record.
  const message = Buffer.concat([u16(id, 0x0100, 1, 0, 0, 1), question, extended])
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
