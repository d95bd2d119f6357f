import { createHash } from 'node:crypto'
import { machine } from '../io/process.ts'

/** The address of a keychain entry: a service and a user. */
type KeychainPlace = { readonly service: string; readonly user: string }
export type KeychainQuestion = KeychainPlace & {
  /** `prove` writes, reads and removes a test entry. */
  readonly does: 'read' | 'write' | 'remove' | 'prove'
  readonly secret?: string | undefined
  /** Characters that one entry can hold. Longer secrets are stored in parts. Absent: no limit. */
  readonly maxLength?: number | undefined
}

export type ProblemKind = 'absent' | 'locked' | 'denied' | 'too large' | 'timed out' | 'failed'
export type KeychainProblem = { readonly kind: ProblemKind; readonly message: string }
/** The single line that the child replies with. `secret` is null if the keychain has no entry. */
export type KeychainAnswer =
  | { readonly secret: string | null }
  | { readonly removed: boolean }
  | { readonly problem: KeychainProblem }

/** The part of the keyring library that svc uses. */
export type Keyring = {
  readonly Entry: new (
    service: string,
    user: string,
    options: { readonly linux: { readonly store: 'secret-service' } },
  ) => {
    readonly getPassword: () => string | null
    readonly setPassword: (secret: string) => void
    readonly deletePassword: () => boolean
  }
}

/** Answers one request. Every failure becomes a problem, and none quotes a secret. */
export function answerQuestion(keyring: Keyring, question: KeychainQuestion): KeychainAnswer {
  // The store is fixed: by default the library uses the kernel's keyring, which a restart of the machine clears (K1).
  const entry = (place: KeychainPlace) =>
    new keyring.Entry(place.service, place.user, { linux: { store: 'secret-service' } })
  try {
    switch (question.does) {
      case 'read':
        return { secret: read(question) }
      case 'write':
        write(question, question.secret ?? '', question.maxLength)
        return { secret: null }
      case 'remove':
        return { removed: remove(question) }
      case 'prove': {
        const probe = { ...question, user: `${question.user}-${machine.pid}` }
        write(probe, 'this is only a probe', undefined)
        if (!remove(probe)) throw new Error('a new entry disappeared immediately')
        return { secret: null }
      }
    }
  } catch (error) {
    return { problem: problemOf(error, question.secret) }
  }

  function read(place: KeychainPlace): string | null {
    const text = entry(place).getPassword()
    const [, count, digest] = /^parts:(\d{1,3}):([0-9a-f]{64})$/.exec(text ?? '') ?? []
    if (count === undefined) return text
    const whole = Array.from({ length: Number(count) }, (_, at) => entry(part(place, at + 1)).getPassword() ?? '')
    // A write was interrupted: the entry counts as missing.
    return sha256(whole.join('')) === digest ? whole.join('') : null
  }

  function write(place: KeychainPlace, secret: string, maxLength: number | undefined): void {
    const before = maxLength === undefined ? 0 : countOf(place)
    let last = secret
    let count = 0
    if (maxLength !== undefined && secret.length > maxLength) {
      count = Math.ceil(secret.length / maxLength)
      for (let at = 0; at < count; at += 1) {
        entry(part(place, at + 1)).setPassword(secret.slice(at * maxLength, (at + 1) * maxLength))
      }
      last = `parts:${count}:${sha256(secret)}`
    }
    // The entry itself is written last. Until then it refers to no parts, or to parts that do not match.
    entry(place).setPassword(last)
    for (let at = count; at < before; at += 1) entry(part(place, at + 1)).deletePassword()
    if (read(place) !== secret) throw new Error('the entry could not be read back')
  }

  function remove(place: KeychainPlace): boolean {
    const count = countOf(place)
    const removed = entry(place).deletePassword()
    for (let at = 0; at < count; at += 1) entry(part(place, at + 1)).deletePassword()
    return removed
  }

  function countOf(place: KeychainPlace): number {
    return Number(/^parts:(\d{1,3}):/.exec(entry(place).getPassword() ?? '')?.[1] ?? 0)
  }
}

const part = ({ service, user }: KeychainPlace, number: number): KeychainPlace => ({
  service,
  user: `${user}#${number}`,
})
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Messages of the library and the platforms, by remedy. The first match wins. */
const patterns: readonly (readonly [ProblemKind, RegExp])[] = [
  ['too large', /too (?:long|large)|longer than|exceeds/i],
  ['denied', /access ?denied|not allowed|authorization|auth(?:entication)? failed|user canceled/i],
  ['locked', /lock|dismissed|no result found|interaction/i],
  ['absent', /connect|dbus|d-bus|no such file|not provided by any|serviceunknown|no default store|no storage/i],
]

function problemOf(error: unknown, secret: string | undefined): KeychainProblem {
  const text = String((error as { message?: unknown } | undefined)?.message ?? error)
  const line = text.replace(/\s+/g, ' ').trim().slice(0, 200)
  const message = secret !== undefined && secret !== '' && line.includes(secret.slice(0, 12)) ? '' : line
  return { kind: patterns.find(([, pattern]) => pattern.test(text))?.[0] ?? 'failed', message }
}
