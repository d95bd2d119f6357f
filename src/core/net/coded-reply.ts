import { ProbeError } from '../probe-error.ts'
import { quote, type Redact } from './text.ts'

/** What differs between the replies of FTP (RFC 959, 4.2) and SMTP (RFC 5321, 4.2). */
type Grammar<R> = {
  readonly name: 'FTP' | 'SMTP'
  /** The allowed first digits of a code. */
  readonly kinds: '1-5' | '2-5'
  /**
   * Whether the lines within a reply may be any text and empty lines may separate replies. Otherwise each line has the
   * code.
   */
  readonly free: boolean
  /** Builds a reply from its lines. */
  readonly make: (code: number, lines: readonly string[]) => R
}

/** Characters. A banner of several lines fits; a flood does not. */
const maxReply = 16 * 1024

/** The code at the start of a line, and what follows it. */
const starts = { '1-5': /^([1-5]\d\d)(?:([ -])|$)/, '2-5': /^([2-5]\d\d)(?:([ -])|$)/ } as const

/** Assembles replies from bytes as they arrive. Throws ProbeError `protocol` for malformed ones. */
export class CodedReplyReader<R> {
  readonly #grammar: Grammar<R>
  readonly #start: RegExp
  readonly #address: string
  readonly #redact: Redact
  readonly #decoder = new TextDecoder()
  #rest = ''
  #open: { readonly code: string; readonly lines: string[] } | undefined
  #length = 0

  constructor(grammar: Grammar<R>, address: string, redact: Redact) {
    this.#grammar = grammar
    this.#start = starts[grammar.kinds]
    this.#address = address
    this.#redact = redact
  }

  /** True when a reply has begun but not ended. */
  get started(): boolean {
    return this.#rest !== '' || this.#open !== undefined
  }

  push(chunk: Uint8Array): readonly R[] {
    // Only new data is searched: a peer may send a long line one byte at a time.
    const [first = '', ...others] = this.#decoder.decode(chunk, { stream: true }).split('\n')
    const lines = [this.#rest + first, ...others]
    this.#rest = lines.pop() ?? ''
    const replies = lines.flatMap((line) => this.#line(line.replace(/\r$/, '')))
    this.#bound(this.#rest)
    return replies
  }

  #line(line: string): readonly R[] {
    const { name, free, make } = this.#grammar
    this.#bound(line)
    if (free && !this.#open && line.trim() === '') return []
    const [, code = '', mark] = this.#start.exec(line) ?? []
    const fits = this.#open ? free || code === this.#open.code : code !== ''
    if (!fits) throw this.#protocolError(`does not speak ${name}: it sent ${quote(this.#redact(line), 80)}`)
    this.#open ??= { code, lines: [] }
    const { lines, code: started } = this.#open
    lines.push(line)
    // Count the line feed too: empty lines are also a flood.
    this.#length += line.length + 1
    if (code !== started || mark === '-') return []
    this.#open = undefined
    this.#length = 0
    return [make(Number(started), lines)]
  }

  #bound(more: string): void {
    if (this.#length + more.length > maxReply) throw this.#protocolError('sent a reply without an end')
  }

  #protocolError(how: string): ProbeError {
    return new ProbeError('protocol', `${this.#address} ${how}`)
  }
}
