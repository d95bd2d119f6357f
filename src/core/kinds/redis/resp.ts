import { type Hide, quoted } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'

/** What Redis answers: RESP2, which every version and every relative of it speaks until asked for more. */
export type Reply = string | number | null | RespError | readonly Reply[]
/** An error as the server words it: `WRONGPASS invalid username-password pair`. */
export type RespError = { readonly error: string }

export const isError = (reply: Reply): reply is RespError =>
  typeof reply === 'object' && reply !== null && 'error' in reply

export const textOf = (reply: Reply | undefined): string => (typeof reply === 'string' ? reply : '')
export const figureOf = (reply: Reply | undefined): number | undefined =>
  typeof reply === 'number' ? reply : undefined
export const listOf = (reply: Reply | undefined): readonly Reply[] =>
  Array.isArray(reply) ? (reply as readonly Reply[]) : []

/** Bytes of one reply: INFO has a few thousand. */
const largestReply = 1024 * 1024
/** Bytes of a line: an error, a status, a length. */
const longestLine = 8 * 1024
const mostItems = 10_000
const deepest = 4

/** A command as an array of strings: no argument can become a second command. */
export function encode(args: readonly string[]): Buffer {
  const parts = args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`)
  return Buffer.from(`*${args.length}\r\n${parts.join('')}`)
}

/** A reply is larger than is read: nothing more can be said to that peer. */
export class TooLargeError extends ProbeError {}

type Open = { readonly items: Reply[]; readonly length: number }

/**
 * Puts replies together from bytes as they come. What a peer announces reserves no memory and is
 * refused when it is too large, too many or too deep. Throws ProbeError `protocol`.
 */
export class RespReader {
  readonly #address: string
  readonly #hide: Hide
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

  constructor(address: string, hide: Hide) {
    this.#address = address
    this.#hide = hide
  }

  push(chunk: Uint8Array): readonly Reply[] {
    if (this.#taken + this.#end - this.#start + chunk.length > largestReply)
      throw this.#tooLarge('sent more than 1 MiB')
    this.#append(chunk)
    const replies: Reply[] = []
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
    const held = this.#end - this.#start
    if (this.#end + chunk.length > this.#bytes.length) {
      const room = Buffer.alloc(Math.max(2 * (held + chunk.length), 4096))
      this.#bytes.copy(room, 0, this.#start, this.#end)
      this.#bytes = room
      this.#searched -= this.#start
      this.#start = 0
      this.#end = held
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
  #value(): { readonly reply: Reply } | undefined {
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
          if (length > largestReply) throw this.#tooLarge('announces a string of more than 1 MiB')
          this.#bulk = length
          break
        }
        case '*': {
          const length = this.#number(rest, line)
          if (length < 0) return { reply: null }
          if (length === 0) return { reply: [] }
          if (length > mostItems) throw this.#wrong(`announces a list of more than ${mostItems}`)
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
    const found = this.#bytes.subarray(0, this.#end).indexOf(0x0a, this.#searched)
    const length = (found < 0 ? this.#end : found) - this.#start
    // What does not begin as a reply will not end as one.
    if (length > 0 && !'+-:$*'.includes(String.fromCharCode(this.#bytes[this.#start] ?? 0))) {
      throw this.#foreign(this.#bytes.subarray(this.#start, Math.min(this.#end, this.#start + 200)))
    }
    if (length > longestLine) throw this.#wrong('sent a line that does not end')
    if (found < 0) {
      this.#searched = this.#end
      return undefined
    }
    const line = this.#bytes.toString('utf8', this.#start, found).replace(/\r$/, '')
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
  #close(value: Reply): Reply | undefined {
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

  #foreign(heard: string | Uint8Array): ProbeError {
    // A TLS alert: what a TLS port says to who does not begin with TLS.
    const alert = typeof heard !== 'string' && heard[0] === 0x15
    const hint = alert ? ['the port seems to want TLS: rediss:// instead of redis://'] : []
    const what = alert ? 'a TLS alert' : quoted(this.#hide(heard), 80)
    return new ProbeError('protocol', `${this.#address} does not answer as Redis does: it said ${what}`, hint)
  }

  #wrong(how: string): ProbeError {
    return new ProbeError('protocol', `${this.#address} ${how}`)
  }

  #tooLarge(how: string): TooLargeError {
    return new TooLargeError('protocol', `${this.#address} ${how}`)
  }
}
