import { showBytes } from '../../format.ts'
import { ProbeError } from '../../probe-error.ts'

/** A HealthCheckResponse has 2 bytes; the rest leaves room for fields of later versions, which are skipped. */
const maxMessageBytes = 4 * 1024

/**
 * The prefix of a gRPC frame: one byte for the compression flag and four for the message length. The message follows.
 */
const frameHeadBytes = 5

/** `HealthCheckRequest { string service = 1 }` in a frame. An empty name asks about the server as a whole. */
export function healthRequest(service: string): Buffer {
  const name = Buffer.from(service)
  const field = name.length === 0 ? [] : [0x0a, ...varint(name.length)]
  const head = Buffer.alloc(frameHeadBytes)
  head.writeUInt32BE(field.length + name.length, 1)
  return Buffer.concat([head, Buffer.from(field), name])
}

function varint(value: number): readonly number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)]
}

/** Assembles the single message of an answer. Never buffers more than the maximum size of a message. */
export class MessageReader {
  readonly #address: string
  #bytes = Buffer.alloc(0)

  constructor(address: string) {
    this.#address = address
  }

  /** Throws ProbeError `protocol` as soon as the bytes cannot form one uncompressed message. */
  push(chunk: Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    const flag = this.#bytes[0]
    if (flag === 1) throw this.#problem('compressed its message, although svc offers no compression')
    if (flag !== undefined && flag !== 0) throw this.#problem(`began its message with ${flag}, which is not gRPC`)
    const length = this.#length
    if (length === undefined) return
    if (length > maxMessageBytes) {
      throw this.#problem(`announced a message of ${showBytes(length)} (limit ${showBytes(maxMessageBytes)})`)
    }
    if (this.#bytes.length > frameHeadBytes + length) throw this.#problem('sent more than one message')
  }

  /** Returns the message after the end of the answer. Throws ProbeError `protocol` if it is missing or incomplete. */
  end(): Buffer {
    const length = this.#length
    if (this.#bytes.length === 0) throw this.#problem('answered OK without a message')
    if (length === undefined) throw this.#problem(`cut its message short, after ${showBytes(this.#bytes.length)}`)
    const message = this.#bytes.subarray(frameHeadBytes)
    if (message.length === length) return message
    throw this.#problem(`cut its message short, after ${showBytes(message.length)} of ${showBytes(length)}`)
  }

  /** The announced length; undefined until the frame prefix is complete. */
  get #length(): number | undefined {
    return this.#bytes.length < frameHeadBytes ? undefined : this.#bytes.readUInt32BE(1)
  }

  #problem(what: string): ProbeError {
    return new ProbeError('protocol', `${this.#address} ${what}`)
  }
}

/**
 * Reads `status` from `HealthCheckResponse { ServingStatus status = 1 }`. Returns 0 if it is absent, because proto3
 * omits UNKNOWN. Skips other fields. Returns undefined for bytes that are not such a message.
 */
export function servingStatus(message: Uint8Array): number | undefined {
  let status = 0
  let at = 0
  const readVarint = (): number | undefined => {
    let value = 0
    for (let index = 0; index < 10; index += 1) {
      const byte = message[at]
      if (byte === undefined) return undefined
      at += 1
      value += (byte & 0x7f) * 2 ** (7 * index)
      if (byte < 0x80) return value
    }
    return undefined
  }
  while (at < message.length) {
    const tag = readVarint()
    if (tag === undefined || tag < 8) return undefined
    const [field, wireType] = [Math.floor(tag / 8), tag % 8]
    if (wireType === 0) {
      const value = readVarint()
      if (value === undefined) return undefined
      if (field === 1) status = value
      continue
    }
    if (field === 1) return undefined
    const size = wireType === 1 ? 8 : wireType === 5 ? 4 : wireType === 2 ? readVarint() : undefined
    if (size === undefined) return undefined
    at += size
  }
  return at === message.length ? status : undefined
}
