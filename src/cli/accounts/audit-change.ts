import type { AuditFacts } from '../../core/service.ts'
import { names } from '../render/table.ts'

/**
 * What an audit entry changed, for people: `+Ops −Deploy` for lists before and after, else the facts. Entries of
 * another form are shown as stored.
 */
export function auditChange({ before, after, reason }: Pick<AuditFacts, 'before' | 'after' | 'reason'>): string {
  const [was, whole] = [factsOf(before), factsOf(after)]
  const { warning, ...is } = whole ?? {}
  const change =
    was && whole && Object.keys(was).join() === Object.keys(is).join()
      ? Object.keys(is).flatMap((name) => difference(was[name], is[name]))
      : [
          before === undefined ? '' : `was ${describe(was, before)}`,
          after === undefined ? '' : describe(whole && is, after),
        ]
  const warned = typeof warning === 'string' ? `warning: ${warning}` : ''
  return [...change, reason === undefined ? '' : `(${reason})`, warned].filter((part) => part !== '').join(' ')
}

type Facts = Readonly<Record<string, unknown>>

function factsOf(text: string | undefined): Facts | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '')
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Facts) : undefined
  } catch {
    return undefined
  }
}

const textsOf = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined

function difference(was: unknown, is: unknown): readonly string[] {
  const [old, now] = [textsOf(was), textsOf(is)]
  if (!old || !now) return was === is ? [] : [`${plain(was)} → ${plain(is)}`]
  const gained = now.filter((item) => !old.includes(item)).map((item) => `+${names([item])}`)
  const lost = old.filter((item) => !now.includes(item)).map((item) => `-${names([item])}`)
  return [...gained, ...lost]
}

/** `user deploy, roles Ops`, without empty and null facts. */
function describe(facts: Facts | undefined, written: string): string {
  if (!facts) return written
  const parts = Object.entries(facts).flatMap(([name, value]) => {
    const list = textsOf(value)
    if (value === null || value === '' || list?.length === 0) return []
    return [`${name} ${list ? names(list) : plain(value)}`]
  })
  return parts.length > 0 ? parts.join(', ') : 'nothing'
}

const plain = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
