import { randomBytes } from 'node:crypto'
import { askByDatagram } from './datagrams.ts'
import { sanitize } from './text.ts'

/** Where chronyd answers questions about its state by default. Only the superuser can listen on this port. */
export const chronyAddress = '127.0.0.1'
export const chronyPort = 323

/** The state of chrony. Times are milliseconds; dates are milliseconds since 1970. */
export type Tracking = {
  readonly isSynchronized: boolean
  /**
   * The source of its time: the address of a time server, the name of a reference clock. Undefined: the clock of this
   * machine itself.
   */
  readonly source: string | undefined
  readonly stratum: number
  /** When it last corrected the clock by its source. */
  readonly correctedAt: number
  /** The largest error that the clock may have by chrony's own estimate. */
  readonly maxError: number
}

// The protocol of chronyc, version 6 (chrony 2.2 and later). A request is as long as its reply, so that it amplifies nothing.
const version = 6
const trackingCommand = 33
const trackingReply = 5
const packetBytes = 104
const at = {
  sequence: 16,
  referenceId: 28,
  address: 32,
  family: 48,
  stratum: 52,
  leap: 54,
  seconds: 56,
  nanoseconds: 64,
  correction: 68,
  rootDelay: 92,
  rootDispersion: 96,
} as const

/** A request for the state. The reply repeats the sequence number, 4 bytes. */
export function trackingRequest(sequence: Uint8Array): Buffer {
  const packet = Buffer.alloc(packetBytes)
  packet[0] = version
  packet[1] = 1
  packet.writeUInt16BE(trackingCommand, 4)
  packet.set(sequence, 8)
  return packet
}

/** Reads a reply; `unreadable` is one that says something else. Undefined: it answers another request. */
export function readTracking(reply: Buffer, sequence: Uint8Array): Tracking | 'unreadable' | undefined {
  if (reply.length < 28) return 'unreadable'
  if (!reply.subarray(at.sequence, at.sequence + 4).equals(sequence)) return undefined
  const isTracking =
    reply.length >= packetBytes &&
    reply[0] === version &&
    reply[1] === 2 &&
    reply.readUInt16BE(4) === trackingCommand &&
    reply.readUInt16BE(6) === trackingReply &&
    reply.readUInt16BE(8) === 0
  if (!isTracking) return 'unreadable'
  const stratum = reply.readUInt16BE(at.stratum)
  const high = reply.readUInt32BE(at.seconds)
  const seconds = (high === noHighSeconds ? 0 : high) * 2 ** 32 + reply.readUInt32BE(at.seconds + 4)
  const error = Math.abs(float(reply, at.correction)) + float(reply, at.rootDelay) / 2 + float(reply, at.rootDispersion)
  return {
    isSynchronized: reply.readUInt16BE(at.leap) !== unsynchronized && stratum > 0 && stratum < 16,
    source: sourceOf(reply),
    stratum,
    correctedAt: seconds * 1_000 + reply.readUInt32BE(at.nanoseconds) / 1e6,
    maxError: error * 1_000,
  }
}

/** The leap status of a clock without a source. */
const unsynchronized = 3
/** Stands for the upper half of the seconds where the server has only 32 bits. */
const noHighSeconds = 0x7f_ff_ff_ff
/** The reference of a server that follows its own clock (`local`). */
const ownClock = 0x7f_7f_01_01
const families = { v4: 1, v6: 2 } as const

function sourceOf(reply: Buffer): string | undefined {
  const id = reply.readUInt32BE(at.referenceId)
  if (id === ownClock) return undefined
  const family = reply.readUInt16BE(at.family)
  if (family === families.v4) return [...reply.subarray(at.address, at.address + 4)].join('.')
  if (family === families.v6) {
    const groups = Array.from({ length: 8 }, (_, index) => reply.readUInt16BE(at.address + 2 * index).toString(16))
    return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
  }
  // The name of a reference clock, such as GPS or PPS.
  return sanitize(reply.toString('latin1', at.referenceId, at.referenceId + 4).replace(/[^ -~]/g, ''), 4)
}

/** A floating-point number of 7 bits of exponent and 25 bits of coefficient, both signed. */
function float(reply: Buffer, place: number): number {
  const bits = reply.readInt32BE(place)
  return ((bits << 7) >> 7) * 2 ** ((bits >> 25) - 25)
}

const tries = 3
const timeoutMs = 1_000
/** Milliseconds after which a chrony that does not answer counts as silent. */
export const chronySilenceMs = tries * timeoutMs

/** Asks the chrony of this machine. `absent`: nothing listens there. Throws only at the deadline, or the socket's error. */
export async function askChrony(signal: AbortSignal): Promise<Tracking | 'absent' | 'silent' | 'unreadable'> {
  const sequence = randomBytes(4)
  const silence = new Error('chrony does not answer')
  try {
    return await askByDatagram(
      chronyAddress,
      chronyPort,
      {
        tries,
        timeoutMs,
        packet: () => trackingRequest(sequence),
        read: (reply) => readTracking(reply, sequence),
        unanswered: () => silence,
      },
      signal,
    )
  } catch (error) {
    signal.throwIfAborted()
    if (error === silence) return 'silent'
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return 'absent'
    throw error
  }
}
