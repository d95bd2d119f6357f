import { randomBytes } from 'node:crypto'
import { fail, ok, warn } from '../../engine/index.ts'
import { quoted } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import type { Secret } from '../../settings/index.ts'
import { otherReason } from './codes.ts'
import { type LdapConnection, onLdap } from './connection.ts'

type Dedicated = { readonly user: string; readonly password?: Secret | undefined }

type Refusal = {
  readonly user: string
  /** `accepted` is the bad one; `unproved`: refused, but not because of the password. */
  readonly wrong: 'refused' | 'accepted' | 'unproved'
  readonly why?: string | undefined
  /** Whether its right password was sent, and let in. */
  readonly right: boolean
}

export const wrongPassword = onLdap({
  depth: 'Advanced',
  results: { 'wrong password': 'With `refusesWrongPassword`: a wrong password of that account is refused' },
  settings: {
    refusesWrongPassword: {
      type: 'group',
      doc: 'In Advanced, a wrong password must be refused. Only with an account made for this: it may get locked',
      fields: {
        user: { type: 'text', required: true, doc: 'The dedicated account, never that of `user`' },
        password: {
          type: 'secret',
          doc: 'Its right password, shown after the wrong one: it must be let in, which also resets its count of failures',
        },
      },
    },
  },
  when: ['refusesWrongPassword'],
  observe: async (ldap, { refusesWrongPassword: dedicated = { user: '' } }) => {
    // Each attempt has a connection of its own: servers may hang up on a refusal.
    await ldap.close()
    return { address: ldap.address, ...(await observeRefusal(ldap, dedicated)) }
  },
  evaluate: ({ address, right, why, wrong, user }) => {
    const account = quoted(user, 120)
    if (wrong === 'accepted') {
      const message = `${address} let ${account} in with a wrong password: anybody may be anybody`
      return fail('wrong password', 'data', message)
    }
    if (wrong === 'unproved') {
      return warn('wrong password', `${address} refused ${account}, but not for the password: ${why}`)
    }
    const after = right ? ', and let the right one in' : ''
    return ok('wrong password', `${address} refused a wrong password of ${account}${after}`)
  },
})

/** Sends a wrong password, and then the right one where it is known: the refusal was because of the password then. */
async function observeRefusal(ldap: LdapConnection, { user, password }: Dedicated): Promise<Refusal> {
  // Nobody's real password: unlike any that a person may have chosen.
  const refusal = await refusalOf(ldap, user, randomBytes(18).toString('base64url'))
  if (refusal === undefined) return { user, wrong: 'accepted', right: false }
  const right = await password?.reveal()
  if (right !== undefined) {
    const problem = await refusalOf(ldap, user, right)
    if (problem) throw problem
    return { user, wrong: 'refused', right: true }
  }
  const why = otherReason(refusal.details.join(' '))
  return why === undefined ? { user, wrong: 'refused', right: false } : { user, wrong: 'unproved', why, right: false }
}

/** What the server answered against a sign-in; undefined when it let the account in. Throws any other trouble. */
async function refusalOf(ldap: LdapConnection, user: string, password: string): Promise<ProbeError | undefined> {
  try {
    await ldap.signInElsewhere(user, password)
    return undefined
  } catch (error) {
    if (error instanceof ProbeError && error.fault === 'auth') return error
    throw error
  }
}
