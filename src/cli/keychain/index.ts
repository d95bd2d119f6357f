import type { Environment } from '../variable.ts'
import { askKeychain } from './ask.ts'
import { keychainFault, noSessionBus, type Purpose, type What } from './faults.ts'
import type { Answer, Question } from './question.ts'

export { askKeychain } from './ask.ts'

/** Characters that an entry of the Windows Credential Manager holds for certain (K1). */
const longestOnWindows = 1_200

export type Keychain = {
  readonly read: () => Promise<string | undefined>
  /** Read back before it resolves. */
  readonly write: (secret: string) => Promise<void>
  /** True when there was an entry. */
  readonly remove: () => Promise<boolean>
  /** Writes, reads and removes an entry beside it. */
  readonly prove: () => Promise<void>
}

/**
 * One entry of the OS keychain: a server's, for one user, or a secret's, by its name. Every method rejects with
 * `Fault` NoKeychain, in words for what is kept.
 */
export function keychainEntry(server: string, user: string, env: Environment, what: What = 'token'): Keychain {
  // Without a blank: GNOME Keyring finds no entry whose service has one.
  const place = { service: `svc:${server}`, user }
  const longest = process.platform === 'win32' ? longestOnWindows : undefined
  const ask = async (question: Pick<Question, 'does' | 'secret'>, purpose: Purpose): Promise<Answer> => {
    if (process.platform === 'linux' && !env['DBUS_SESSION_BUS_ADDRESS']) throw noSessionBus(purpose, what)
    const answer = await askKeychain({ ...place, ...question, longest }, env)
    if ('problem' in answer) throw keychainFault(answer.problem, purpose, what)
    return answer
  }
  return {
    read: async () => {
      const answer = await ask({ does: 'read' }, 'use')
      return 'secret' in answer && answer.secret !== null ? answer.secret : undefined
    },
    write: async (secret) => void (await ask({ does: 'write', secret }, 'keep')),
    remove: async () => {
      const answer = await ask({ does: 'remove' }, 'forget')
      return 'removed' in answer && answer.removed
    },
    prove: askProbe,
  }

  async function askProbe(): Promise<void> {
    if (process.platform === 'linux' && !env['DBUS_SESSION_BUS_ADDRESS']) throw noSessionBus('prove', what)
    const answer = await askKeychain({ does: 'prove', service: 'svc:probe', user: 'probe' }, env)
    if ('problem' in answer) throw keychainFault(answer.problem, 'prove', what)
  }
}
