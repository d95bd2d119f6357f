import { randomUUID } from 'node:crypto'
import type { Data } from '../store/index.ts'
import { readState } from './attempts.ts'
import type { Passwords } from './passwords.ts'
import { newToken } from './tokens.ts'

/**
 * Performs all reads of a sign-in, for a name and a session that do not exist. Writes nothing: no failure is counted or
 * audited. Throws the store's errors.
 */
export async function probeUserLookup(data: Data, now: () => number): Promise<void> {
  const name = `nobody-${randomUUID()}`
  await readState({ data, now }, name, '192.0.2.1')
  await data.users.find(name)
  await data.sessions.find(newToken('session').hash)
}

/**
 * Hashes a random password like a new one, and checks it and a wrong one against the hash. Throws Fault Unavailable
 * while too many sign-ins wait (P3).
 */
export async function probePasswordHash(passwords: Passwords, signal: AbortSignal): Promise<boolean> {
  const [right, wrong] = [randomUUID(), randomUUID()]
  const stored = await passwords.hash(right, signal)
  const [first, second] = await passwords.inTurn(
    async () => [await passwords.check(right, stored), await passwords.check(wrong, stored)] as const,
    signal,
  )
  return first.right && !first.outdated && !second.right
}
