import { ProbeError } from '../monitor.ts'
import { type Hide, quoted } from '../probe/text.ts'

/** One reply of an SMTP server (RFC 5321, 4.2): the text of each line, without its code. */
export type Reply = { readonly code: number; readonly lines: readonly string[] }

/** Bytes: RFC 5321 allows 512 a line, and servers have been seen with more. */
const longestLine = 4 * 1024
const mostLines = 200
const form = /^([2-5]\d\d)(?:([ -])(.*))?$/

/** Puts replies together from bytes as they come. Throws ProbeError `protocol` for what is no SMTP. */
export class ReplyReader {
  readonly #address: string
  readonly #hide: Hide
  readonly #decoder = new TextDecoder()
  #rest = ''
  #open: { readonly code: string; readonly lines: string[] } | undefined

  constructor(address: string, hide: Hide) {
    this.#address = address
    this.#hide = hide
  }

  /** True when a reply has begun that has not ended. */
  get begun(): boolean {
    return this.#rest !== '' || this.#open !== undefined
  }

  push(chunk: Uint8Array): readonly Reply[] {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split('\n')
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length > longestLine) throw this.#wrong('sends a line that does not end')
    return lines.flatMap((line) => this.#line(line.replace(/\r$/, '')))
  }

  #line(line: string): readonly Reply[] {
    if (line.length > longestLine) throw this.#wrong('sends a line that does not end')
    const [, code, dash, text = ''] = form.exec(line) ?? []
    if (code === undefined || (this.#open && this.#open.code !== code)) {
      throw this.#wrong(`does not answer as SMTP does: it said ${quoted(this.#hide(line), 80)}`)
    }
    this.#open ??= { code, lines: [] }
    this.#open.lines.push(text)
    if (this.#open.lines.length > mostLines) throw this.#wrong('sends a reply that does not end')
    if (dash === '-') return []
    const { lines } = this.#open
    this.#open = undefined
    return [{ code: Number(code), lines }]
  }

  #wrong(how: string): ProbeError {
    return new ProbeError('protocol', `${this.#address} ${how}`)
  }
}
