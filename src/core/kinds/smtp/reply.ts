import { CodedReplyReader } from '../../net/coded-reply.ts'
import type { Hide } from '../../net/text.ts'

/** One reply of an SMTP server: the text of each line, without its code. */
export type Reply = { readonly code: number; readonly lines: readonly string[] }

export class ReplyReader extends CodedReplyReader<Reply> {
  constructor(address: string, hide: Hide) {
    const make = (code: number, lines: readonly string[]): Reply => ({
      code,
      lines: lines.map((line) => line.slice(4)),
    })
    super({ name: 'SMTP', kinds: '2-5', free: false, make }, address, hide)
  }
}
