import { ProbeError } from '../monitor.ts'
import { type Hide, quoted } from '../probe/text.ts'

/** One reply of an FTP server (RFC 959, 4.2): `text` is all of it on one line, its code in front, as it was said. */
export type Reply = { readonly code: number; readonly text: string }

/** Characters: a banner of several lines fits, a flood does not. */
const longestReply = 16 * 1024
/** Replies that wait although nobody asked for them. */
const mostReplies = 50
const start = /^([1-5]\d\d)(?:([ -])(.*))?$/

/** Puts replies together from bytes as they come. Throws ProbeError `protocol` for what is no FTP. */
export class ReplyReader {
  readonly #address: string
  readonly #hide: Hide
  readonly #decoder = new TextDecoder()
  #rest = ''
  #open: { readonly code: string; readonly lines: string[] } | undefined
  #length = 0

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
    const replies: Reply[] = []
    for (const line of lines) {
      const reply = this.#line(line.replace(/\r$/, ''))
      if (reply) replies.push(reply)
      if (replies.length > mostReplies) throw this.#wrong('answers more than it is asked')
    }
    if (this.#length + this.#rest.length > longestReply) throw this.#wrong('sends a reply that does not end')
    return replies
  }

  #line(line: string): Reply | undefined {
    this.#length += line.length
    if (this.#open) {
      this.#open.lines.push(line)
      if (this.#length > longestReply) throw this.#wrong('sends a reply that does not end')
      if (line !== this.#open.code && !line.startsWith(`${this.#open.code} `)) return undefined
      const { code, lines } = this.#open
      this.#open = undefined
      this.#length = 0
      return { code: Number(code), text: lines.join('\n') }
    }
    this.#length = 0
    if (line.trim() === '') return undefined
    const [, code, more] = start.exec(line) ?? []
    if (code === undefined) throw this.#wrong(`does not answer as FTP does: it said ${quoted(this.#hide(line), 80)}`)
    if (more !== '-') return { code: Number(code), text: line }
    this.#open = { code, lines: [line] }
    this.#length = line.length
    return undefined
  }

  #wrong(how: string): ProbeError {
    return new ProbeError('protocol', `${this.#address} ${how}`)
  }
}
