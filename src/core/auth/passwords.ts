import type { HashQueue } from './hash-queue.ts'
import { dummyPhc, hashPassword, matches, outdated, readPhc } from './password-hash.ts'
import { longest } from './password-policy.ts'

export type Passwords = {
  /**
   * Whether the password is the one of the stored hash, and whether that hash is to be made anew. For
   * no hash, or one that cannot be read, the same work is done and the answer is no (P2).
   */
  readonly check: (
    password: string,
    stored: string | undefined,
    signal: AbortSignal,
  ) => Promise<{ readonly right: boolean; readonly outdated: boolean }>
  readonly hash: (password: string, signal: AbortSignal) => Promise<string>
}

/** Passwords hashed in a queue of their own, made once a process (P3). */
export function passwords(queue: HashQueue): Passwords {
  return {
    async check(password, stored, signal) {
      const phc = stored === undefined ? undefined : readPhc(stored)
      // P4: nobody has such a password. Its bytes must not cost more than another's.
      const possible = password.isWellFormed() && Buffer.byteLength(password) <= longest
      const real = phc !== undefined && possible
      const same = await queue.run(() => matches(possible ? password : '', real ? phc : dummyPhc()), signal)
      return { right: real && same, outdated: real && outdated(phc) }
    },
    hash: (password, signal) => queue.run(() => hashPassword(password), signal),
  }
}
