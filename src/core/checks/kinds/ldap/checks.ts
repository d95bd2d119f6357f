import { randomBytes } from 'node:crypto'
import type { ConfiguredFiles } from '../../../base/files/index.ts'
import { count, showDuration } from '../../../base/format.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { Secret, Threshold } from '../../../base/settings/index.ts'
import {
  atMost,
  certificateCheck,
  certificateSetting,
  fail,
  includes,
  notChecked,
  ok,
  type Result,
  warn,
  withThreshold,
} from '../../engine/index.ts'
import { otherReason, policyReason } from './codes.ts'
import { connectLatency, isRefusal, type LdapConnection, limitOnLdap, onLdap, userSetting } from './connection.ts'
import { baseOf, baseSetting, newestChange } from './provider.ts'
import type { LdapEntry } from './session.ts'

const timed = <const Name extends string>(check: Name, what: string, value: number, threshold: Threshold) =>
  atMost({ check, what, value, unit: 'duration', threshold })

export function evaluateConnect(
  { address, chain }: Pick<LdapConnection, 'address' | 'chain'>,
  ms: number,
  limit: Threshold,
) {
  return timed('connect', `${address} accepted${chain === undefined ? '' : ` with ${chain.protocol}`} in`, ms, limit)
}

const rootAttributes = [
  'objectClass',
  'supportedLDAPVersion',
  'namingContexts',
  'defaultNamingContext',
  'vendorName',
  'vendorVersion',
  'dnsHostName',
  'isSynchronized',
  'supportedControl',
  // Only OpenLDAP with a monitor database has it.
  'monitorContext',
  // Only Active Directory has these.
  'dsServiceName',
  'currentTime',
  'configurationNamingContext',
]

type Root = {
  readonly address: string
  readonly entry: LdapEntry | undefined
  /** Why the server hides the entry from anonymous callers, if that is not a fault. */
  readonly hidden?: string
}

/** Basic does not sign in, and a server may hide everything from anonymous callers. */
export const rootEntry = onLdap({
  depth: 'Basic',
  provesNoReading: true,
  results: { rootDSE: 'The root entry is readable; without a sign-in, the server may refuse it' },
  privilege: 'access to dn.base="" by * read',
  settings: { username: userSetting },
  observe: async (ldap, _, { mode, date }): Promise<Root> => {
    const { address, user } = ldap
    try {
      const entry = await (await ldap.session()).read('', rootAttributes, user)
      ldap.root = entry
      ldap.rootAt = date().getTime()
      if (entry || user !== undefined) return { address, entry }
      return { address, entry, hidden: 'the server shows nothing without a sign-in' }
    } catch (cause) {
      // The server would refuse every other search for the same reason.
      if (!isRefusal(cause) || includes(mode, 'Standard')) throw ldap.end(cause)
      return { address, entry: undefined, hidden: cause.message }
    }
  },
  evaluate: ({ address, entry, hidden }, { username: user }): Result<'rootDSE'> => {
    if (hidden !== undefined) return ok('rootDSE', 'not shown without a sign-in', { details: [hidden] })
    if (!entry) {
      const who = user === undefined ? 'without a sign-in' : `to ${quote(user, 120)}`
      return fail('rootDSE', 'data', `${address} does not show its root entry ${who}: check its access rules`)
    }
    return evaluateRoot(address, entry)
  },
})

function evaluateRoot(address: string, { attributes }: LdapEntry): Result<'rootDSE'> {
  const versions = attributes.supportedldapversion ?? []
  const [vendor, version] = [attributes.vendorname?.[0], attributes.vendorversion?.[0]]
  const server = [vendor, version].filter((part) => part !== undefined)
  const contexts = attributes.namingcontexts ?? []
  const about = [
    sanitize(server.join(' ') || (attributes.dnshostname?.[0] ?? ''), 80),
    versions.length > 0 ? `LDAP ${sanitize(versions.join(', '), 20)}` : '',
    contexts.length > 0 ? sanitize(contexts.join(', '), 120) : '',
  ].filter((part) => part !== '')
  const message = `${address} shows its root entry${about.length > 0 ? `: ${about.join('; ')}` : ''}`
  const more = version === undefined ? {} : { facts: { version: sanitize(server.join(' '), 80) } }
  return versions.length > 0 && !versions.includes('3')
    ? warn('rootDSE', `${message}: version 3 is missing`, more)
    : ok('rootDSE', message, more)
}

export const certificate = certificateCheck({
  depth: 'Standard',
  setting: certificateSetting,
  chain: ({ chain }: LdapConnection) => chain,
  first: true,
})

export const bind = onLdap({
  depth: 'Standard',
  provesNoReading: true,
  results: { bind: 'With `username`: the account can sign in, in time' },
  privilege: 'access to attrs=userPassword by anonymous auth',
  settings: { username: userSetting, latency: connectLatency },
  when: ['username'],
  first: true,
  gate: true,
  observe: async (ldap, { username: user = '' }, { now }) => {
    const signIn = await ldap.prepareSignIn(user)
    const since = now()
    await signIn()
    return { address: ldap.address, user, policy: ldap.passwordPolicy, ms: now() - since }
  },
  evaluate: ({ address, user, policy, ms }, { latency }) => {
    // The server accepts the password, and refuses every request except for a change of it.
    const why = policyReason(policy?.error)
    if (why !== undefined) {
      return fail('bind', 'auth', `${address} restricts the account ${quote(user, 120)}: ${why}`, { refusal: why })
    }
    return timed('bind', `signed in to ${address} as ${quote(user, 120)} in`, ms, latency)
  },
})

export const search = onLdap({
  depth: 'Standard',
  results: { search: '`base`, or the first naming context of the server, is found in time' },
  privilege:
    'access to dn.base="<base>" attrs=entry,objectClass by dn.exact="<user>" read; 389-ds, in the base: aci: (targetattr="objectClass")(version 3.0; acl "svc"; allow (read, search) userdn="ldap:///<user>";)',
  settings: { base: baseSetting, latency: connectLatency },
  observe: async (ldap, settings, { now }) => {
    const { address, user } = ldap
    const base = baseOf(ldap, settings.base)
    if (base === undefined) return { address, base, exists: false, ms: 0 }
    const since = now()
    const entry = await (await ldap.session()).read(base, ['1.1'], user)
    return { address, base, exists: entry !== undefined, ms: now() - since }
  },
  evaluate: ({ address, base, exists, ms }, { latency }) => {
    if (base === undefined) return warn('search', `${address} reports no naming context: set base`)
    if (exists) return timed('search', `${quote(base, 120)} found in`, ms, latency)
    return fail('search', 'data', `${address} shows nothing of ${quote(base, 120)}: check its access rules`)
  },
})

export const entry = onLdap({
  depth: 'Advanced',
  results: { entry: 'With `entry`: the search finds enough entries' },
  privilege: 'access to dn.subtree="<base>" attrs=entry,<attributes of the filter> by dn.exact="<user>" read',
  settings: {
    base: baseSetting,
    entry: {
      type: 'group',
      doc: 'A search that must find entries (Advanced)',
      fields: {
        filter: { type: 'text', observed: true, required: true, doc: 'RFC 4515, e.g. (uid=alice)' },
        base: { type: 'text', observed: true, doc: 'Entry at which the search begins; by default `base`' },
        atLeast: { type: 'integer', default: 1, min: 1, max: 1_000, doc: 'Minimum number of entries found' },
      },
    },
  },
  when: ['entry'],
  observe: async (ldap, settings) => {
    const { filter = '', atLeast = 1, base: own } = settings.entry ?? {}
    const base = own ?? baseOf(ldap, settings.base)
    if (base === undefined) throw new ProbeError('data', 'the server reports no naming context: set base')
    const number = await (await ldap.session()).count(base, filter, atLeast, ldap.user)
    return { address: ldap.address, base, number }
  },
  evaluate: ({ address, base, number }, settings) => {
    const { filter = '', atLeast = 1 } = settings.entry ?? {}
    const many = number === 0 ? 'nothing' : count(number, 'entry', 'entries')
    const finds = `${address} finds ${many} for ${quote(filter, 80)} in ${quote(base, 120)}`
    const message = withThreshold(finds, { limit: atLeast }, 'count', 'atLeast')
    const measurement = { value: number, unit: 'count', limit: atLeast, bound: 'atLeast' } as const
    return number >= atLeast ? ok('entry', message, { measurement }) : fail('entry', 'data', message, { measurement })
  },
})

/** Only Active Directory reports this, in its root entry. */
export const synchronized = onLdap({
  depth: 'Advanced',
  results: { synchronized: 'A domain controller has completed its initial replication' },
  observe: ({ address, root }) => Promise.resolve({ address, state: root?.attributes.issynchronized?.[0] }),
  evaluate: ({ address, state }): Result<'synchronized'> | [] => {
    if (state === undefined) return []
    return state.toUpperCase() === 'TRUE'
      ? ok('synchronized', `${address} has completed its initial replication`)
      : fail('synchronized', 'data', `${address} has not completed its initial replication`)
  },
})

export const lastChange = limitOnLdap({
  depth: 'Advanced',
  check: 'last change',
  proves: 'With `lastChange`: the age of the newest change',
  privilege: 'access to dn.base="<base>" attrs=entry,objectClass,contextCSN by dn.exact="<user>" read',
  setting: 'lastChange',
  unit: 'duration',
  doc: 'Maximum age of the newest change (contextCSN of `base`): a replica that receives nothing falls behind. Without this setting, the check does not run',
  settings: { base: baseSetting },

  observe: async (ldap, settings, { date }) => {
    const base = baseOf(ldap, settings.base)
    if (base === undefined) return { address: ldap.address, hasBase: false, newest: undefined, now: 0 }
    const entry = await (await ldap.session()).read(base, ['contextCSN'], ldap.user)
    const newest = newestChange(entry?.attributes.contextcsn ?? [])
    return { address: ldap.address, hasBase: true, newest, now: date().getTime() }
  },
  evaluate: ({ address, hasBase, newest, now }, compare) => {
    if (!hasBase) return notChecked('last change', 'missing', `${address} reports no naming context: set base`)
    if (newest === undefined) {
      const why = 'it does not replicate, or this account may not read it'
      return notChecked('last change', 'permission', `${address} shows no contextCSN: ${why}`)
    }
    const ahead = newest - now
    if (ahead > clockToleranceMs) {
      const message = `${address}: the newest change is dated ${showDuration(ahead)} in the future, so its age is unknown`
      return warn('last change', `${message}: compare the clocks of its servers and of this machine`)
    }
    const what = `${address}: age of the newest change`
    const [value, at] = [Math.max(0, now - newest), new Date(newest)]
    return compare({ what, value, at })
  },
})

/** Milliseconds by which the clocks of two machines may differ without a remark. */
const clockToleranceMs = 60_000

type Dedicated = { readonly username: string; readonly password?: Secret | undefined }

type Refusal = {
  readonly user: string
  /**
   * `accepted`: the server accepted the wrong password. `unproved`: it refused for another reason than the password, e.g.
   * because the account has none (result 48).
   */
  readonly attempt: 'refused' | 'accepted' | 'unproved'
  readonly why?: string | undefined
  /** True if the correct password was sent and accepted. */
  readonly right: boolean
}

export const passwordRefusal = onLdap({
  depth: 'Advanced',
  results: { 'wrong password': 'With `refusesWrongPassword`: a wrong password of that account is refused' },
  settings: {
    refusesWrongPassword: {
      type: 'group',
      doc: 'In Advanced, the server must refuse a wrong password. Use a dedicated account, because the server may lock it',
      fields: {
        username: { type: 'text', required: true, doc: 'The dedicated account, never that of `username`' },
        password: {
          type: 'secret',
          doc: 'Its correct password, sent after the wrong one: the server must accept it, which also resets the count of failures',
        },
      },
    },
  },
  when: ['refusesWrongPassword'],
  observe: async (ldap, { refusesWrongPassword: dedicated = { username: '' } }, { files }) => {
    // Each attempt opens its own connection, because servers may disconnect after a refusal.
    await ldap.close()
    return { address: ldap.address, ...(await observeRefusal(ldap, dedicated, files)) }
  },
  evaluate: ({ address, right, why, attempt, user }) => {
    const account = quote(user, 120)
    if (attempt === 'accepted') {
      const message = `${address} accepted a wrong password for ${account}: anyone can sign in as anyone`
      return fail('wrong password', 'data', message)
    }
    if (attempt === 'unproved') {
      return warn('wrong password', `${address} refused ${account}, but not because of the password: ${why}`)
    }
    const after = right ? ', and accepted the correct one' : ''
    return ok('wrong password', `${address} refused a wrong password for ${account}${after}`)
  },
})

/**
 * Sends a wrong password, and then the correct one if it is configured. If that is accepted, the refusal was due to the
 * wrong password.
 */
async function observeRefusal(
  ldap: LdapConnection,
  { username: user, password }: Dedicated,
  files: ConfiguredFiles,
): Promise<Refusal> {
  // A random password, so that it is nobody's real one.
  const refusal = await refusalOf(ldap, user, randomBytes(18).toString('base64url'))
  if (refusal === undefined) return { user, attempt: 'accepted', right: false }
  const right = await password?.reveal(files)
  if (right !== undefined) {
    const problem = await refusalOf(ldap, user, right)
    if (problem) throw problem
    return { user, attempt: 'refused', right: true }
  }
  const why = otherReason(refusal)
  return why === undefined
    ? { user, attempt: 'refused', right: false }
    : { user, attempt: 'unproved', why, right: false }
}

/** The refusal of a sign-in; undefined if the server accepted it. Throws any other error. */
async function refusalOf(ldap: LdapConnection, user: string, password: string): Promise<ProbeError | undefined> {
  try {
    await ldap.signInElsewhere(user, password)
    return undefined
  } catch (error) {
    if (error instanceof ProbeError && error.fault === 'auth') return error
    throw error
  }
}
