import { answerOf, type Content } from '../../assert/content.ts'
import { select } from '../../assert/document.ts'
import { parseJsonPath, readJsonPath } from '../../assert/json-path.ts'
import { said } from '../../net/text.ts'
import type { CookieJar } from './cookies.ts'
import { longestValue } from './values.ts'

/** `held` is what may be shown as little as a value that was captured. */
export type Captured = { readonly value: string } | { readonly problem: string; readonly held?: string }

/** What an answer holds at `$.path`, `/xml/path`, `header:Name` or `cookie:Name`; else why it cannot be used. */
export function captured(from: string, content: Content, jar: CookieJar): Captured {
  const found = valueAt(from, content, jar)
  if ('problem' in found) return found
  if (found.value === '') return { problem: `has an empty ${said(from, 64)}` }
  if (found.value.length > longestValue) {
    return {
      held: found.value.slice(0, longestValue),
      problem: `has a ${said(from, 64)} of ${found.value.length} characters, more than the ${longestValue} that are taken`,
    }
  }
  return found
}

function valueAt(from: string, content: Content, jar: CookieJar): Captured {
  const lacks = { problem: `has no ${said(from, 64)}` }
  const [, source, name = ''] = /^(header|cookie):(.*)$/s.exec(from) ?? []
  if (source !== undefined) {
    const header = name.toLowerCase()
    const inHeader = Object.hasOwn(content.headers, header) ? content.headers[header] : undefined
    const value = source === 'cookie' ? jar.get(name) : inHeader
    return value === undefined ? lacks : { value }
  }
  const steps = parseJsonPath(from)
  if (steps === undefined) {
    const items = select(answerOf(content), from)
    if ('problem' in items) return { problem: `cannot be read: ${items.problem}` }
    const [first] = items
    return first === undefined ? lacks : { value: first.text }
  }
  const read = answerOf(content).json()
  if ('problem' in read) return { problem: `cannot be read: ${read.problem}` }
  const found = readJsonPath(read.value, steps)?.value
  if (found === undefined) return lacks
  const isPlain = typeof found === 'string' || typeof found === 'number' || typeof found === 'boolean'
  return isPlain ? { value: String(found) } : { problem: `has a ${said(from, 64)} that is no text and no number` }
}
