import { CodedReplyReader } from '../../net/coded-reply.ts'
import type { Hide } from '../../net/text.ts'

/** One reply of an FTP server: `text` is all of it, its code in front, as it was said. */
export type Reply = { readonly code: number; readonly text: string }

export class ReplyReader extends CodedReplyReader<Reply> {
  constructor(address: string, hide: Hide) {
    const make = (code: number, lines: readonly string[]): Reply => ({ code, text: lines.join('\n') })
    super({ name: 'FTP', kinds: '1-5', free: true, make }, address, hide)
  }
}
