import { quote, type Redact } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'

/** What Redis answers: RESP2, which every version and every relative of it speaks until asked for more. */
export type RedisReply = string | number | null | RespError | readonly RedisReply[]
/** An error as the server words it: `WRONGPASS invalid username-password pair`. */
export type RespError = { readonly error: string }

export const isError = (reply: RedisReply): reply is RespError =>
  typeof reply === 'object' && reply !== null && 'error' in reply

export const textOf = (reply: RedisReply | undefined): string => (typeof reply === 'string' ? reply : '')
export const figureOf = (reply: RedisReply | undefined): number | undefined =>
  typeof reply === 'number' ? reply : undefined
export const listOf = (reply: RedisReply | undefined): readonly RedisReply[] =>
  Array.isArray(reply) ? (reply as readonly RedisReply[]) : []

/** Bytes of one reply: INFO has a few thousand. */
const maxReply = 1024 * 1024
/** Bytes of a line: an error, a status, a length. */
const maxLine = 8 * 1024
const maxItems = 10_000
const deepest = 4

/** A command as an array of strings: no argument can become a second command. */
export function encode(args: readonly string[]): Buffer {
  const parts = args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`)
  return Buffer.from(`*${args.length}\r\n${parts.join('')}`)
}

/** A reply is larger than is read: nothing more can be said to that peer. */
export class TooLargeError extends ProbeError {}

type Open = { readonly items: RedisReply[]; readonly length: number }

/**
 * Puts replies together from bytes as they come. What a peer announces reserves no memory and is
 * refused when it is too large, too many or too deep. Throws ProbeError `protocol`.
 */
export class RespReader {
  readonly #address: string
  readonly #redact: Redact
  #bytes = Buffer.alloc(4096)
  #start = 0
  #end = 0
  /** Where the search for the end of a line goes on. */
  #searched = 0
  /** The length of the string under way. */
  #bulk: number | undefined
  #stack: Open[] = []
  /** Bytes of the reply under way that have been read already. */
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
      const room = Buffer.alloc(Math.max(2 * (length + chunk.length), 4096))
      this.#bytes.copy(room, 0, this.#start, this.#end)
      this.#bytes = room
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

  /** The next value that is no array with items, or undefined until more has come. */
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
          if (length > maxReply) throw this.#tooLarge('announces a string of more than 1 MiB')
          this.#bulk = length
          break
        }
        case '*': {
          const length = this.#number(rest, line)
          if (length < 0) return { reply: null }
          if (length === 0) return { reply: [] }
          if (length > maxItems) throw this.#wrong(`announces a list of more than ${maxItems}`)
          if (this.#stack.length >= deepest) throw this.#wrong('nests lists too deep')
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
    // What does not begin as a reply will not end as one.
    if (length > 0 && !'+-:$*'.includes(String.fromCharCode(this.#bytes[this.#start] ?? 0))) {
      throw this.#foreign(this.#bytes.subarray(this.#start, Math.min(this.#end, this.#start + 200)))
    }
    if (length > maxLine) throw this.#wrong('sent a line that does not end')
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

  /** Puts a value into the lists that are open; the whole reply once the outermost is full. */
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
    // A TLS alert: what a TLS port says to who does not begin with TLS.
    const alert = typeof text !== 'string' && text[0] === 0x15
    const hint = alert ? ['the port seems to want TLS: rediss:// instead of redis://'] : []
    const what = alert ? 'a TLS alert' : quote(this.#redact(text), 80)
    return new ProbeError('protocol', `${this.#address} does not answer as Redis does: it said ${what}`, hint)
  }

  #wrong(how: string): ProbeError {
    return new ProbeError('protocol', `${this.#address} ${how}`)
  }

  #tooLarge(how: string): TooLargeError {
    return new TooLargeError('protocol', `${this.#address} ${how}`)
  }
}
