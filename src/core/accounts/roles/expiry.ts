import { Fault, type FieldFault, invalidField } from '../../base/errors.ts'
import { expiresKey, isExpiresKey, neverExpires } from '../../protocol/index.ts'
import { readDate, readDuration } from '../../protocol/wire/index.ts'

/** When what an assignment grants ends (O8). */
export type Expiry = {
  /** As the caller wrote it, for the answer. */
  readonly text: string
  /** Milliseconds since 1970. */
  readonly endsAt: number | 'never'
}

const field = `Meta.${expiresKey}`
/** Durations of more than a hundred years are a mistake. */
const maxMs = 36_525 * 86_400_000
/** Without a zone, a text means a different instant in each time zone. */
const hasZone = /^[^T]{1,16}T[^TZ]{0,24}(?:Z|[+-]\d\d:?\d\d)$/i

/**
 * The end in the Meta of an assignment: an instant in ISO 8601 with a zone, a duration in ISO 8601 from now, or
 * `never`. Throws Fault BadRequest for anything else, and for an end that has passed. Neither letter case nor blanks
 * around the key matter: otherwise, such a key would grant permanently.
 *
 * @example
 * ```ts
 * expiryOf({ expires: 'PT2H' }, 1_000) // { text: 'PT2H', endsAt: 7_201_000 }
 * expiryOf({ reason: 'INC-1' }, 1_000) // undefined
 * ```
 */
export function expiryOf(meta: Readonly<Record<string, string>> | undefined, at: number): Expiry | undefined {
  const [first, second] = entriesOf(meta)
  if (first === undefined) return undefined
  if (second !== undefined) throw refused('is there twice, in different spelling')
  const text = first.trim()
  const endsAt = endOf(text, at)
  if (endsAt === undefined) {
    throw refused(
      `must be an instant such as 2026-11-28T18:00:00Z, a duration such as PT2H, or ${neverExpires}${
        readDate(text) && !hasZone.test(text) ? '; this one lacks a time or a time zone' : ''
      }`,
    )
  }
  if (endsAt !== 'never' && endsAt <= at) throw refused(`has passed: it is ${new Date(at).toISOString()} here`)
  return { text: first, endsAt }
}

/** Throws Fault BadRequest if the Meta of another role change has an end: only an assignment can have one. */
export function refuseExpiry(meta: Readonly<Record<string, string>> | undefined): void {
  if (entriesOf(meta).length === 0) return
  throw refused('has a meaning for AssignRoles only: assign the role with the time at which it is to end')
}

const entriesOf = (meta: Readonly<Record<string, string>> | undefined): readonly string[] =>
  meta === undefined ? [] : Object.keys(meta).flatMap((key) => (isExpiresKey(key) ? [meta[key] ?? ''] : []))

function endOf(text: string, at: number): number | 'never' | undefined {
  if (text.toLowerCase() === neverExpires) return 'never'
  if (text.startsWith('P')) {
    const ms = readDuration(text)
    return ms !== undefined && ms > 0 && ms <= maxMs ? at + Math.round(ms) : undefined
  }
  return hasZone.test(text) && /^\d{4}-/.test(text) ? readDate(text)?.getTime() : undefined
}

/** The error for an invalid value. */
export function refused(what: string): Fault {
  const fault: FieldFault = invalidField(field, what)
  return new Fault('BadRequest', fault.Message, { errorCode: 'ValidationException', fields: [fault] })
}
