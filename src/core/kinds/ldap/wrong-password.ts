import type { Socket } from 'node:net'
import { ProbeError } from '../../probe-error.ts'
import type { Secret } from '../../settings/index.ts'
import { otherReason } from './codes.ts'
import type { LdapSession } from './session.ts'

type Dedicated = { readonly user: string; readonly password?: Secret | undefined }
type Enter = () => Promise<{ readonly socket: Socket; readonly open: (secret: string) => Promise<LdapSession> }>

export type Refusal = {
  readonly user: string
  /** `accepted` is the bad one; `unproved`: refused, but not because of the password. */
  readonly wrong: 'refused' | 'accepted' | 'unproved'
  readonly why?: string | undefined
  /** Whether its right password was shown, and let in. */
  readonly right: boolean
}

/**
 * Shows a wrong password, and then the right one where it is known: the account was then refused
 * because of the password. Each on a connection of its own: servers may hang up on a refusal.
 */
export async function refusalOf(enter: Enter, { user, password }: Dedicated, wrong: string): Promise<Refusal> {
  const refused = await bound(enter, user, wrong)
  if (refused === undefined) return { user, wrong: 'accepted', right: false }
  const right = await password?.reveal()
  if (right !== undefined) {
    const problem = await bound(enter, user, right)
    if (problem) throw problem
    return { user, wrong: 'refused', right: true }
  }
  const why = otherReason(refused.details.join(' '))
  return why === undefined ? { user, wrong: 'refused', right: false } : { user, wrong: 'unproved', why, right: false }
}

/** What the server said against a sign-in; undefined when it let the account in. Any other trouble is thrown. */
async function bound(enter: Enter, user: string, password: string): Promise<ProbeError | undefined> {
  const { socket, open } = await enter()
  try {
    const session = await open(password)
    try {
      await session.bind(user, password)
      return undefined
    } catch (error) {
      if (error instanceof ProbeError && error.fault === 'auth') return error
      throw error
    } finally {
      await session.close()
    }
  } finally {
    socket.destroy()
  }
}
