import type { RawAnswer } from '../core/client/index.ts'
import { safeLine, safeText } from './safe-text.ts'

/** The bytes to write for an answer, and what to say beside it. */
export type Shown = { readonly bytes: Buffer; readonly note: string | undefined }

/**
 * Into a pipe or file: the server's bytes, untouched (C3). A terminal would obey what they hold, so it gets text without
 * escapes and controls, and nothing of what is no text.
 */
export function showAnswer(answer: RawAnswer, how: { readonly include: boolean; readonly terminal: boolean }): Shown {
  const head = how.include ? headOf(answer) : ''
  if (!how.terminal) return { bytes: Buffer.concat([Buffer.from(head, 'latin1'), answer.bytes]), note: undefined }
  const shownHead = head === '' ? '' : `${head.trimEnd().split('\r\n').map(safeLine).join('\n')}\n\n`
  const text = textOf(answer.bytes)
  if (text === undefined) {
    const size = `${answer.bytes.length} bytes${answer.contentType === '' ? '' : ` of ${safeLine(answer.contentType)}`}`
    return { bytes: Buffer.from(shownHead), note: `${size} that are no text are not shown: svc api … > FILE` }
  }
  const safe = safeText(text)
  return { bytes: Buffer.from(`${shownHead}${safe}${safe === '' || safe.endsWith('\n') ? '' : '\n'}`), note: undefined }
}

/** The status line and the headers, without the values of cookies: they are as good as a password. */
function headOf({ status, reason, rawHeaders }: RawAnswer): string {
  const lines = [`HTTP/1.1 ${status}${reason === '' ? '' : ` ${reason}`}`]
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2)
    const cookie = /^set-cookie2?$/i.test(name)
    lines.push(`${name}: ${cookie ? value.replace(/^([^=;]*=)?[^;]*/, '$1***') : value}`)
  }
  return `${lines.join('\r\n')}\r\n\r\n`
}

function textOf(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
