import { evaluateAssertions } from '../../assert/content.ts'
import { statusAllowed, unmet } from '../../assert/expectation.ts'
import { codeOf, type LinkEntry, type LinkFault } from '../../assert/link-settings.ts'
import { classify, fail, ok, type Result, warn } from '../../engine/index.ts'
import { count, quoted, said } from '../../net/text.ts'
import type { LinkSeen } from './link-walk.ts'

/** Judges what became of one link. */
export function evaluateLink(seen: LinkSeen, entries: readonly LinkEntry[] = []): readonly Result[] {
  const entry = entries[seen.entry]
  if (!entry) return []
  const name = said(entry.name, 64)
  const code = codeOf(entry.codes)
  const where = seen.url === '' ? name : `${name} ${seen.url}`
  const wrong = (fault: LinkFault, kind: NonNullable<Result['fault']>, message: string, more: Partial<Result> = {}) => [
    fail('links', kind, `${code(fault)}${message}`, more),
  ]
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
      return evaluateAnswered(seen, entry, where)
  }
}

function evaluateAnswered(
  seen: Extract<LinkSeen, { is: 'answered' }>,
  entry: LinkEntry,
  where: string,
): readonly Result[] {
  const { address, status } = seen
  const code = codeOf(entry.codes)
  const more: Partial<Result> = { address, measurement: { value: status, unit: 'count' } }
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
  return seen.content ? [fine, ...evaluateAssertions(seen.content, entry, entry.levels > 1)] : [fine]
}
