import { classify } from '../classify.ts'
import { fail, ok, warn } from '../judge.ts'
import type { Finding } from '../monitor.ts'
import { statusAllowed, unmet } from './expectation.ts'
import { judgeAssertions } from './http-content.ts'
import { codeOf, type LinkEntry, type LinkFault } from './link-settings.ts'
import type { LinkSeen } from './link-walk.ts'
import { count, quoted, said } from './text.ts'

/** Judges what became of one link. */
export function judgeLink(seen: LinkSeen, entries: readonly LinkEntry[] = []): readonly Finding[] {
  const entry = entries[seen.entry]
  if (!entry) return []
  const name = said(entry.name, 64)
  const code = codeOf(entry.codes)
  const where = seen.url === '' ? name : `${name} ${seen.url}`
  const wrong = (
    fault: LinkFault,
    kind: NonNullable<Finding['fault']>,
    message: string,
    more: Partial<Finding> = {},
  ) => [fail('links', kind, `${code(fault)}${message}`, more)]
  switch (seen.is) {
    case 'none':
      return [ok('links', `${name}: none in the answer`)]
    case 'left':
      return [
        warn('links', `${name}: ${count(seen.count, 'more')} not asked (most: ${entry.most})`.replace('mores', 'more')),
      ]
    case 'refused':
      return wrong('refused', 'data', `${name}: ${seen.why}`)
    case 'loop':
      return wrong('loop', 'protocol', `${where} leads back to an answer that led to it`)
    case 'deep':
      return wrong('deep', 'protocol', `${where} would be more than ${entry.levels} deep`)
    case 'failed': {
      const { fault, message, details } = classify(seen.cause, seen.url, seen.afterMs)
      return wrong(fault === 'timeout' ? 'timeout' : 'unreachable', fault, `${where}: ${message}`, { details })
    }
    case 'answered':
      return judgeAnswered(seen, entry, where)
  }
}

function judgeAnswered(
  seen: Extract<LinkSeen, { is: 'answered' }>,
  entry: LinkEntry,
  where: string,
): readonly Finding[] {
  const { address, status } = seen
  const code = codeOf(entry.codes)
  const more = { address, observed: status }
  const said = `${where}: ${address} answered ${status}`
  if (status === 401 && seen.signedIn) {
    return [fail('links', 'auth', `${code('status')}${said}: the sign-in of this monitor was refused`, more)]
  }
  try {
    if (!statusAllowed(status, entry.status)) {
      return [fail('links', 'data', `${code('status')}${said} (expected ${entry.status.join(', ')})`, more)]
    }
  } catch (error) {
    return [fail('links', 'data', `${said}, which cannot be judged: ${(error as RangeError).message}`, more)]
  }
  const type = (seen.type ?? '').replace(/;.*$/s, '').trim().toLowerCase()
  for (const wanted of [entry.type, seen.wanted]) {
    if (wanted === undefined) continue
    // What the document wants of a type is the peer's word: a text, never a pattern of its choice.
    const problem = wanted === entry.type ? unmet(type, wanted) : type === wanted.trim().toLowerCase() ? undefined : ''
    if (problem === undefined) continue
    const told = problem === '' ? `is ${quoted(type, 80)}, expected ${quoted(wanted, 80)}` : problem
    return [fail('links', 'data', `${code('type')}${said}, whose type ${told}`, more)]
  }
  const fine = ok('links', `${said}${type === '' ? '' : `, ${quoted(type, 80)}`}`, more)
  return seen.content ? [fine, ...judgeAssertions(seen.content, entry, entry.levels > 1)] : [fine]
}
