import { quote, type Redact } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'

/** A reply of Redis in RESP2, which all versions and compatible servers speak by default. */
export type RedisReply = string | number | null | RespError | readonly RedisReply[]
/** An error in the server's words: `WRONGPASS invalid username-password pair`. */
export type RespError = { readonly error: string }

export const isError = (reply: RedisReply): reply is RespError =>
  typeof reply === 'object' && reply !== null && 'error' in reply

export const textOf = (reply: RedisReply | undefined): string => (typeof reply === 'string' ? reply : '')
export const figureOf = (reply: RedisReply | undefined): number | undefined =>
  typeof reply === 'number' ? reply : undefined
export const listOf = (reply: RedisReply | undefined): readonly RedisReply[] =>
  Array.isArray(reply) ? (reply as readonly RedisReply[]) : []

/** Maximum bytes of one reply; INFO has a few thousand. */
const maxReply = 1024 * 1024
/** Maximum bytes of a line: an error, a status or a length. */
const maxLine = 8 * 1024
const maxItems = 10_000
const deepest = 4

/** Encodes a command as an array of strings, so that no argument can become a second command. */
export function encode(args: readonly string[]): Buffer {
  const parts = args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`)
  return Buffer.from(`*${args.length}\r\n${parts.join('')}`)
}

/** Thrown for a reply above the size limit. The connection is then unusable. */
export class TooLargeError extends ProbeError {}

type Open = { readonly items: RedisReply[]; readonly length: number }

/**
 * Assembles replies from the received bytes. Reserves no memory for announced lengths, and rejects replies that are too
 * large, have too many items or nest too deep. Throws ProbeError `protocol`.
 */
export class RespReader {
  readonly #address: string
  readonly #redact: Redact
  #bytes = Buffer.alloc(4096)
  #start = 0
  #end = 0
  /** The index at which the search for the end of a line continues. */
  #searched = 0
  /** The length of the string that is being read. */
  #bulk: number | undefined
  #stack: Open[] = []
  /** Bytes of the current reply that have been read already. */
  #taken = 0

  constructor(address: string, redact: Redact) {
    this.#address = address
    this.#redact = redact
  }

  push(chunk: Uint8Array): readonly RedisReply[] {
    if (this.#taken + this.#end - this.#start + chunk.length > maxReply) throw this.#tooLarge('sent more than 1 MiB')
    this.#append(chunk)
    const replies: RedisReply[] = []
    for (;;) {
      const value = this.#value()
      if (value === undefined) return replies
      const whole = this.#close(value.reply)
      if (whole === undefined) continue
      replies.push(whole)
      this.#taken = 0
    }
  }

  #append(chunk: Uint8Array): void {
    const length = this.#end - this.#start
    if (this.#end + chunk.length > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(2 * (length + chunk.length), 4096))
      this.#bytes.copy(larger, 0, this.#start, this.#end)
      this.#bytes = larger
      this.#searched -= this.#start
      this.#start = 0
      this.#end = length
    }
    this.#bytes.set(chunk, this.#end)
    this.#end += chunk.length
  }

  #take(length: number): void {
    this.#start += length
    this.#taken += length
    this.#searched = this.#start
  }

  /** The next value other than a non-empty array, or undefined until more bytes arrive. */
  #value(): { readonly reply: RedisReply } | undefined {
    for (;;) {
      if (this.#bulk !== undefined) return this.#string(this.#bulk)
      const line = this.#line()
      if (line === undefined) return undefined
      const rest = line.slice(1)
      switch (line[0]) {
        case '+':
          return { reply: rest }
        case '-':
          return { reply: { error: rest } }
        case ':':
          return { reply: this.#number(rest, line) }
        case '$': {
          const length = this.#number(rest, line)
          if (length < 0) return { reply: null }
          if (length > maxReply) throw this.#tooLarge('announced a string of more than 1 MiB')
          this.#bulk = length
          break
        }
        case '*': {
          const length = this.#number(rest, line)
          if (length < 0) return { reply: null }
          if (length === 0) return { reply: [] }
          if (length > maxItems) throw this.#protocolError(`announced a list of more than ${maxItems} items`)
          if (this.#stack.length >= deepest) throw this.#protocolError('nested lists too deeply')
          this.#stack.push({ items: [], length })
          break
        }
        default:
          throw this.#foreign(line)
      }
    }
  }

  #line(): string | undefined {
    const index = this.#bytes.subarray(0, this.#end).indexOf(0x0a, this.#searched)
    const length = (index < 0 ? this.#end : index) - this.#start
    // Rejects data that does not begin like a reply without waiting for the end of the line.
    if (length > 0 && !'+-:$*'.includes(String.fromCharCode(this.#bytes[this.#start] ?? 0))) {
      throw this.#foreign(this.#bytes.subarray(this.#start, Math.min(this.#end, this.#start + 200)))
    }
    if (length > maxLine) throw this.#protocolError('sent a line without an end')
    if (index < 0) {
      this.#searched = this.#end
      return undefined
    }
    const line = this.#bytes.toString('utf8', this.#start, index).replace(/\r$/, '')
    this.#take(length + 1)
    return line
  }

  #string(length: number): { readonly reply: string } | undefined {
    if (this.#end - this.#start < length + 2) return undefined
    const reply = this.#bytes.toString('utf8', this.#start, this.#start + length)
    this.#take(length + 2)
    this.#bulk = undefined
    return { reply }
  }

  #number(digits: string, line: string): number {
    if (!/^[+-]?\d{1,20}$/.test(digits)) throw this.#foreign(line)
    return Number(digits)
  }

  /** Adds a value to the innermost open list. Returns the whole reply once the outermost list is complete. */
  #close(value: RedisReply): RedisReply | undefined {
    let reply = value
    for (;;) {
      const open = this.#stack.at(-1)
      if (open === undefined) return reply
      open.items.push(reply)
      if (open.items.length < open.length) return undefined
      this.#stack.pop()
      reply = open.items
    }
  }

  #foreign(text: string | Uint8Array): ProbeError {
    // A TLS alert: a TLS port sends it to a client that does not begin with TLS.
    const alert = typeof text !== 'string' && text[0] === 0x15
    const hint = alert ? ['the port seems to require TLS: use rediss:// instead of redis://'] : []
    const what = alert ? 'a TLS alert' : quote(this.#redact(text), 80)
    return new ProbeError('protocol', `${this.#address} does not speak the Redis protocol: it sent ${what}`, hint)
  }

  #protocolError(how: string): ProbeError {
    return new ProbeError('protocol', `${this.#address} ${how}`)
  }

  #tooLarge(how: string): TooLargeError {
    return new TooLargeError('protocol', `${this.#address} ${how}`)
  }
}
