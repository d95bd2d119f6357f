import type { PasswordPolicyValue } from 'ldapts'
import { count } from '../../../base/format.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { atLeast, atMost, fail, notChecked, ok, type Result } from '../../engine/index.ts'
import { type LdapConnection, limitOnLdap, onLdap } from './connection.ts'
import type { LdapEntry } from './session.ts'

/** Only Active Directory, Samba's included, names its own service in the root entry. */
const isDomainController = ({ root }: LdapConnection): boolean => (root?.attributes.dsservicename ?? []).length > 0

/** Milliseconds from 1601, where the dates of Windows begin, to 1970. */
const windowsEpochMs = 11_644_473_600_000

/** Parses the generalized time of the root entry, e.g. `20261122160440.0Z`. */
export function generalizedTime(written: string): number | undefined {
  const [, y, mo, d, h, mi, s] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.\d+)?Z$/.exec(written) ?? []
  const time = Date.parse(`${y}-${mo}-${d}T${h}:${mi}:${s}Z`)
  return Number.isNaN(time) ? undefined : time
}

export const clock = limitOnLdap({
  depth: 'Standard',
  provesNoReading: true,
  check: 'clock',
  proves: 'The clock of a domain controller agrees with that of this machine: Kerberos allows 5 minutes',
  setting: 'clock',
  unit: 'duration',
  default: { warn: 60_000, limit: 300_000 },
  doc: 'Maximum difference between the clocks of a domain controller and of this machine, in either direction',
  applies: isDomainController,
  observe: ({ address, root, rootAt }) => {
    const time = generalizedTime(root?.attributes.currenttime?.[0] ?? '')
    return Promise.resolve({ address, ahead: time === undefined ? undefined : time - rootAt })
  },
  evaluate: ({ address, ahead }, compare) =>
    compare({
      what: `${address} is ${(ahead ?? 0) > 0 ? 'ahead of' : 'behind'} this machine by`,
      value: ahead === undefined ? undefined : Math.abs(ahead),
    }),
})

/** The value for "never", and the one for "must be changed now". */
const never = '9223372036854775807'
const expiryAttribute = 'msDS-UserPasswordExpiryTimeComputed'

export const passwordExpiry = limitOnLdap({
  depth: 'Standard',
  check: 'password expiry',
  proves:
    'The password of `username` remains valid long enough: in Active Directory always, elsewhere once the password policy of the server warns',
  setting: 'passwordExpiry',
  unit: 'duration',
  default: { warn: 14 * 86_400_000, limit: 3 * 86_400_000 },
  doc: 'Minimum time until the password of `username` expires. OpenLDAP (ppolicy) and 389-ds report it within the warning time of their policy',
  bound: 'atLeast',
  privilege: 'dsacls "<account>" /G "SELF:RP;msDS-UserPasswordExpiryTimeComputed"',
  applies: (ldap) => (isDomainController(ldap) && ldap.user !== undefined) || ldap.passwordPolicy !== undefined,
  observe: async (ldap, _, { date }): Promise<Expiry> => {
    if (!isDomainController(ldap)) {
      return {
        address: ldap.address,
        user: ldap.user ?? '',
        written: undefined,
        policy: ldap.passwordPolicy,
        now: date().getTime(),
      }
    }
    const account = await ownAccount(ldap)
    const written = account?.attributes[expiryAttribute.toLowerCase()]?.[0]
    return { address: ldap.address, user: ldap.user ?? '', written, now: date().getTime() }
  },
  evaluate: ({ address, user, written, policy, now }: Expiry, compare, { passwordExpiry: threshold }) => {
    const who = quote(user, 120)
    if (policy) return evaluatePolicy(policy, who, now, threshold)
    if (written === undefined || !/^\d{1,19}$/.test(written)) {
      const grant = `dsacls "<account>" /G "SELF:RP;${expiryAttribute}"`
      const why = `${address} does not show ${who} when its password expires: ${grant}`
      return notChecked('password expiry', 'permission', why)
    }
    if (written === never) return ok('password expiry', `the password of ${who} does not expire`)
    // 100 ns since 1601. 0 means that the password must be changed at the next sign-in.
    const at = new Date(Number(BigInt(written) / 10_000n) - windowsEpochMs)
    return compare({ what: `the password of ${who} expires in`, value: at.getTime() - now, at })
  },
})

type Expiry = {
  readonly address: string
  readonly user: string
  /** As Active Directory writes it. */
  readonly written: string | undefined
  readonly policy?: PasswordPolicyValue | undefined
  readonly now: number
}

/** The result for a password policy at a sign-in; nothing as long as there is no reason to warn. */
function evaluatePolicy(
  { timeBeforeExpiration: seconds, graceAuthNsRemaining: grace }: PasswordPolicyValue,
  who: string,
  now: number,
  threshold: Parameters<typeof atLeast>[0]['threshold'],
): Result<'password expiry'> | [] {
  if (grace !== undefined) {
    const left = grace === 0 ? 'this was the last sign-in with it' : `${count(grace, 'more sign-in')} with it`
    return fail('password expiry', 'auth', `the password of ${who} has expired: ${left}`)
  }
  if (seconds === undefined) return []
  const value = seconds * 1_000
  const what = `the password of ${who} expires in`
  return atLeast({ check: 'password expiry', what, value, unit: 'duration', threshold, at: new Date(now + value) })
}

/** The entry of the account that is signed in, by the name with which it signed in; undefined if it is not unique. */
async function ownAccount(ldap: LdapConnection): Promise<LdapEntry | undefined> {
  const { user = '', root } = ldap
  const session = await ldap.session()
  if (user.includes('=')) return await session.read(user, [expiryAttribute], user)
  const base = root?.attributes.defaultnamingcontext?.[0]
  if (base === undefined) return undefined
  const short = user.includes('\\') ? user.slice(user.indexOf('\\') + 1) : user.replace(/@[^@]*$/, '')
  const names = [['userPrincipalName', user] as const, ['sAMAccountName', short] as const]
  const [account, other] = await session.find(base, names, [expiryAttribute], user)
  return other ? undefined : account
}

/** A partner from which a domain controller receives changes, for one naming context. */
type Partner = NonNullable<ReturnType<typeof parseRepsFrom>>

/** Maximum number of naming contexts that are read; a domain has five, and few have more. */
const maxContexts = 20
/** Maximum number of partners that are reported. */
const maxPartners = 50

/**
 * Parses a value of repsFrom (REPS_FROM, MS-DRSR 5.170): the failures in a row, the last success in seconds since 1601,
 * the code of the last attempt, and the object GUID of the partner. Undefined for another version or a shorter value.
 */
export function parseRepsFrom(value: Buffer, context: string) {
  const end = 176
  const version = value.length < end ? 0 : value.readUInt32LE(0)
  if (version !== 1 && version !== 2) return undefined
  const seconds = value.readBigUInt64LE(16)
  const guid = value.subarray(160, end)
  const parts = [guid.readUInt32LE(0), guid.readUInt16LE(4), guid.readUInt16LE(6)] as const
  const hex = (number: number, digits: number): string => number.toString(16).padStart(digits, '0')
  const tail = guid.toString('hex', 8)
  return {
    guid: `${hex(parts[0], 8)}-${hex(parts[1], 4)}-${hex(parts[2], 4)}-${tail.slice(0, 4)}-${tail.slice(4)}`,
    context,
    /** Milliseconds since 1970; undefined if no replication has succeeded yet. */
    succeededAt: seconds === 0n ? undefined : Number(seconds) * 1_000 - windowsEpochMs,
    failures: value.readUInt32LE(12),
    code: value.readUInt32LE(32),
  }
}

export const replication = onLdap({
  depth: 'Advanced',
  results: {
    'replication <partner>':
      'A domain controller receives the changes of each of its partners, in every naming context',
    replication: 'Reported instead if there are no partners, or if the account may not see them',
  },
  settings: {
    replication: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 3_600_000, limit: 86_400_000 },
      doc: 'Maximum time since a domain controller last received the changes of a partner',
    },
  },
  privilege: 'dsacls "<naming context>" /G "<account>:RP;repsFrom"',
  applies: (ldap) => isDomainController(ldap) && ldap.user !== undefined,
  observe: async (ldap, _, { date }) => {
    const { address, root, user } = ldap
    const session = await ldap.session()
    const contexts = root?.attributes.namingcontexts ?? []
    const partners: Partner[] = []
    for (const context of contexts.slice(0, maxContexts)) {
      const values = await session.readBytes(context, 'repsFrom', user)
      partners.push(...values.flatMap((value) => parseRepsFrom(value, context) ?? []))
    }
    const byPartner = [...Map.groupBy(partners, ({ guid }) => guid)].slice(0, maxPartners)
    const servers: { readonly name: string; readonly contexts: readonly Partner[] }[] = []
    for (const [guid, its] of byPartner) servers.push({ name: await partnerName(ldap, guid), contexts: its })
    const base = root?.attributes.configurationnamingcontext?.[0]
    const needsCount = servers.length === 0 && base !== undefined
    const controllers = needsCount ? await session.count(base, '(objectClass=nTDSDSA)', 100, user) : 0
    return { address, user: user ?? '', partners: servers, controllers, now: date().getTime() }
  },
  evaluate: ({ address, user, partners, controllers, now }, { replication: threshold }) => {
    if (partners.length === 0 && controllers === 1)
      return ok('replication', `${address} is the only domain controller, so it has no partners`)
    if (partners.length === 0) {
      const grant = `dsacls "<naming context>" /G "${sanitize(user, 120)}:RP;repsFrom"`
      const others = `${address} shows no partner, and the domain has ${count(controllers, 'domain controller')}`
      const why = `${others}: it receives nothing from the others, or the account may not see that: ${grant}`
      return notChecked('replication', 'permission', why)
    }
    return partners.map(({ name, contexts }) => evaluatePartner(name, contexts, now, threshold))
  },
})

function evaluatePartner(
  name: string,
  contexts: readonly Partner[],
  now: number,
  threshold: Parameters<typeof atMost>[0]['threshold'],
): Result<`replication ${string}`> {
  const [oldest] = contexts.toSorted((a, b) => (a.succeededAt ?? 0) - (b.succeededAt ?? 0))
  const check = `replication ${name}` as const
  const details = contexts
    .filter(({ failures }) => failures > 0)
    .map(
      ({ context, failures, code }) =>
        `${sanitize(context, 120)}: ${count(failures, 'failure')} in a row, code ${code}`,
    )
  const where = quote(oldest?.context ?? '', 120)
  if (oldest?.succeededAt === undefined) {
    const message = `${where} has never been received`
    return { check, status: 'failed', fault: 'data', message, details }
  }
  const failing = oldest.failures > 0 ? `, ${count(oldest.failures, 'failed attempt')} since then` : ''
  return atMost({
    check,
    what: `${where} last received${failing}`,
    value: Math.max(0, now - oldest.succeededAt),
    after: 'ago',
    unit: 'duration',
    at: new Date(oldest.succeededAt),
    threshold,
    details,
  })
}

/** The name of the server whose settings have this GUID, or the GUID if this account may not read it. */
async function partnerName(ldap: LdapConnection, guid: string): Promise<string> {
  try {
    const entry = await (await ldap.session()).read(`<GUID=${guid}>`, ['1.1'], ldap.user)
    const [, server] = /^CN=NTDS Settings,CN=([^,]{1,64}),/i.exec(entry?.name ?? '') ?? []
    return server ?? guid
  } catch (cause) {
    if (!(cause instanceof ProbeError) || cause.fault !== 'data') throw cause
    return guid
  }
}
