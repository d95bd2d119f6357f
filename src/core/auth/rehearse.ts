import { randomUUID } from 'node:crypto'
import type { Data } from '../store/index.ts'
import { beginAttempt } from './attempts.ts'
import type { Passwords } from './passwords.ts'
import { newToken } from './tokens.ts'

/**
 * Reads all that a sign-in reads, for a name and a session that nobody has. Writes nothing: no
 * failure is counted and none is audited. Throws what the store throws.
 */
export async function probeUserLookup(data: Data, now: () => number): Promise<void> {
  const name = `nobody-${randomUUID()}`
  const attempt = await beginAttempt(data, now, name, { kind: 'local', account: '-' }, new AbortController().signal)
  await data.users.find(name)
  await attempt.locked()
  await data.sessions.find(newToken('session').hash)
}

/**
 * Hashes a password made up for this, as a new one would be, and checks it and another one against
 * the hash. Throws Fault Unavailable while too many sign-ins wait (P3).
 */
export async function probePasswordHash(passwords: Passwords, signal: AbortSignal): Promise<boolean> {
  const [right, wrong] = [randomUUID(), randomUUID()]
  const stored = await passwords.hash(right, signal)
  const [first, second] = [await passwords.check(right, stored, signal), await passwords.check(wrong, stored, signal)]
  return first.right && !first.outdated && !second.right
}
