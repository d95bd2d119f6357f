import { randomBytes } from 'node:crypto'
import { ProbeError } from '../probe-error.ts'
import { hostPort } from './connect.ts'
import { askByDatagram } from './datagrams.ts'

/** Seconds between 1900 and 1970, RFC 5905. */
const era = 2_208_988_800
const packetBytes = 48

/** Milliseconds. A positive offset means that this machine's clock is behind the reference. */
export type ClockReading = { readonly offset: number; readonly roundTrip: number; readonly stratum: number }

/**
 * A client request (RFC 5905, mode 3, version 4). The transmit time is random: the server copies it into its reply,
 * which proves that the reply belongs to this request.
 */
export function question(nonce: Buffer): Buffer {
  const packet = Buffer.alloc(packetBytes)
  packet[0] = 0b00_100_011
  nonce.copy(packet, 40, 0, 8)
  return packet
}

/** Reads a reply, given the wall clock when it was requested and received. Throws ProbeError `protocol`. */
export function readAnswer(answer: Buffer, nonce: Buffer, sentAt: number, answeredAt: number): ClockReading {
  if (answer.length < packetBytes) throw new ProbeError('protocol', `the answer has ${answer.length} bytes, not 48`)
  const first = answer[0] ?? 0
  const stratum = answer[1] ?? 0
  if ((first & 0b111) !== 4) throw new ProbeError('protocol', 'the answer does not come from a time server')
  if (!answer.subarray(24, 32).equals(nonce))
    throw new ProbeError('protocol', 'the answer belongs to a different request')
  if (stratum === 0) {
    const code = answer.toString('latin1', 12, 16).replace(/[^A-Z0-9]/g, '')
    throw new ProbeError('protocol', `the time server refuses to answer${code ? ` (${code})` : ''}`)
  }
  if (first >> 6 === 3 || stratum > 15) throw new ProbeError('data', 'the time server is itself not synchronised')
  if (answer.readUInt32BE(40) === 0) throw new ProbeError('protocol', 'the answer contains no time')
  const received = timestamp(answer, 32, answeredAt)
  const sent = timestamp(answer, 40, answeredAt)
  return {
    offset: (received - sentAt + (sent - answeredAt)) / 2,
    roundTrip: Math.max(0, answeredAt - sentAt - (sent - received)),
    stratum,
  }
}

/** Milliseconds since 1970. The 32 bits of seconds wrap in 2036; the era nearest to our clock is assumed. */
function timestamp(packet: Buffer, at: number, near: number): number {
  const turn = 2 ** 32
  const seconds = packet.readUInt32BE(at) - era
  const turns = Math.round((near / 1_000 - seconds) / turn)
  return (seconds + turns * turn) * 1_000 + (packet.readUInt32BE(at + 4) / turn) * 1_000
}

/** Packet loss is normal: the number of tries, and the timeout of each. */
const tries = 3
const timeoutMs = 1_000

/**
 * Queries one time server by address, and retries when a packet is lost. Throws ProbeError; ends with the signal.
 * `wallClock` returns milliseconds since 1970.
 */
export async function askTime(
  address: string,
  port: number,
  wallClock: () => number,
  signal: AbortSignal,
): Promise<ClockReading> {
  const sent = new Map<string, number>()
  const packet = (): Buffer => {
    const nonce = randomBytes(8)
    sent.set(nonce.toString('latin1'), wallClock())
    return question(nonce)
  }
  const read = (reply: Buffer): ClockReading | undefined => {
    const nonce = reply.toString('latin1', 24, 32)
    const sentAt = sent.get(nonce)
    return sentAt === undefined ? undefined : readAnswer(reply, Buffer.from(nonce, 'latin1'), sentAt, wallClock())
  }
  const unanswered = (): ProbeError => {
    const waited = (tries * timeoutMs) / 1_000
    return new ProbeError('timeout', `${hostPort(address, port)} did not answer within ${waited} s`)
  }
  return await askByDatagram(address, port, { tries, timeoutMs, packet, read, unanswered }, signal)
}
