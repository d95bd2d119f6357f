import { setTimeout as pause } from 'node:timers/promises'
import { count } from '../../../base/format.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import { urlTarget } from '../../../base/net/url.ts'
import type { SettingsSpec } from '../../../base/settings/index.ts'
import { atMost, classify, fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { type LdapConnection, onLdap } from './connection.ts'
import { is389, visible } from './databases.ts'
import type { LdapEntry, LdapSession } from './session.ts'

/** The direction in which 389 Directory Server sends changes to another server. */
type Agreement = ReturnType<typeof agreementOf>

/** Maximum number of agreements that are read and reported. */
const maxAgreements = 50

export const agreementsGrant =
  'aci: (targetattr="cn || objectClass || nsDS5ReplicaRoot || nsds50ruv || nsDS5ReplicaHost || nsDS5ReplicaPort || nsds5ReplicaEnabled || nsds5replicaLastUpdateStatus || nsds5replicaLastUpdateStatusJSON")(version 3.0; acl "svc"; allow (read, search) userdn="ldap:///<user>";)'

/** `Error (49) Problem connecting to replica`: 0 is a success, and 1 a replica that is busy with another supplier. */
function stateOf(json: string, status: string): string {
  const state = /"state": ?"([a-z]{1,10})"/.exec(json)?.[1]
  if (state !== undefined) return state
  const code = /^Error \((-?\d{1,10})\)/.exec(status)?.[1]
  if (code === undefined) return 'unknown'
  return code === '0' ? 'green' : code === '1' ? 'amber' : 'red'
}

function agreementOf({ attributes }: LdapEntry) {
  const text = (name: string): string => attributes[name]?.[0] ?? ''
  const status = text('nsds5replicalastupdatestatus')
  return {
    name: text('cn'),
    consumer: `${text('nsds5replicahost')}:${text('nsds5replicaport')}`,
    isEnabled: text('nsds5replicaenabled').toLowerCase() !== 'off',
    /** How the server judges its last attempt. Versions before 1.4.1 give a code only. */
    state: stateOf(text('nsds5replicalastupdatestatusjson'), status),
    status,
  }
}

export const agreements = onLdap({
  depth: 'Standard',
  results: {
    'agreement <name>': '389-ds: the server sends its changes to the consumer of the replication agreement',
    agreements: 'With `agreements`: 389-ds has enough replication agreements',
  },
  settings: {
    agreements: {
      type: 'integer',
      min: 1,
      max: maxAgreements,
      doc: 'Minimum number of replication agreements of 389-ds that the account must see. Those that it sees are checked in any case',
    },
  },
  privilege: `389-ds, in cn=mapping tree,cn=config: ${agreementsGrant}`,
  applies: (ldap, settings) => is389(ldap) || settings.agreements !== undefined,
  observe: async (ldap) => {
    const session = await ldap.session()
    const at = {
      base: 'cn=mapping tree,cn=config',
      scope: 'sub',
      filter: '(objectClass=nsds5replicationagreement)',
    } as const
    const attributes = [
      'cn',
      'nsDS5ReplicaHost',
      'nsDS5ReplicaPort',
      'nsds5ReplicaEnabled',
      'nsds5replicaLastUpdateStatus',
      'nsds5replicaLastUpdateStatusJSON',
    ]
    const entries = await visible(() => session.list(at, attributes, maxAgreements, ldap.user))
    return { address: ldap.address, list: entries.map(agreementOf) }
  },
  evaluate: ({ address, list }, settings): readonly Result<'agreements' | `agreement ${string}`>[] => {
    const results = list.map(evaluateAgreement)
    const { agreements: atLeast } = settings
    if (atLeast === undefined || list.length >= atLeast) return results
    const shows = `${address} shows ${count(list.length, 'replication agreement')} (at least ${atLeast})`
    const missing =
      list.length === 0
        ? notChecked('agreements', 'permission', `${shows}: ${agreementsGrant}`)
        : fail('agreements', 'data', shows)
    return [missing, ...results]
  },
})

function evaluateAgreement({ name, consumer, isEnabled, state, status }: Agreement): Result<`agreement ${string}`> {
  const check = `agreement ${sanitize(name, 64)}` as const
  const to = sanitize(consumer, 120)
  if (!isEnabled) return warn(check, `${to} receives no changes: the replication agreement is disabled`)
  const text = quote(status, 160)
  if (state === 'red') return fail(check, 'data', `${to} receives no changes: ${text}`)
  if (state !== 'green' && state !== 'amber')
    return warn(check, `${to}: the state of the replication is unknown: ${text}`)
  return ok(check, `the last replication to ${to}: ${text}`)
}

export const baseSetting = {
  type: 'text',
  observed: true,
  doc: 'Entry that must be found, e.g. dc=example,dc=org. By default the first naming context of the server',
} as const satisfies SettingsSpec[string]

/** The base entry of searches: the configured one, or the first that the server names. */
export const baseOf = ({ root }: Pick<LdapConnection, 'root'>, base: string | undefined): string | undefined =>
  base ??
  [...(root?.attributes.defaultnamingcontext ?? []), ...(root?.attributes.namingcontexts ?? [])].find(
    (name) => name !== '',
  )

/** The newest change (CSN) of each server that accepts changes, by its id in hexadecimal. */
type Csns = ReadonlyMap<string, string>

/**
 * When a change was made, in milliseconds since 1970: `20260731120000.123456Z#000000#000#000000` at OpenLDAP, and
 * `6b04b10b000200010000` at 389-ds, which begins with seconds.
 */
function csnTime(csn: string): number | undefined {
  if (/^[0-9a-f]{20}$/.test(csn)) return Number.parseInt(csn.slice(0, 8), 16) * 1_000
  const [, y, mo, d, h, mi, s] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.\d+)?Z#/.exec(csn) ?? []
  const time = Date.parse(`${y}-${mo}-${d}T${h}:${mi}:${s}Z`)
  return Number.isNaN(time) ? undefined : time
}

/** Values of contextCSN, one for each server. CSNs of one server are ordered as texts. */
export const csnsOf = (values: readonly string[]): Csns =>
  new Map(
    values.flatMap((csn) => {
      const id = /^[\d.]+Z#[0-9a-f]+#([0-9a-f]+)#[0-9a-f]+$/.exec(csn)?.[1]
      return id === undefined || csnTime(csn) === undefined ? [] : [[id, csn] as const]
    }),
  )

/** Values of nsds50ruv of 389-ds: `{replica 1 ldap://a:389} 6b04b10b000000010000 6b04b10b000200010000`. */
const csnsOfRuv = (values: readonly string[]): Csns =>
  new Map(
    values.flatMap((value) => {
      const [, id, csn] = /^\{replica (\d{1,5})[^}]*\} [0-9a-f]{20} ([0-9a-f]{20})$/.exec(value) ?? []
      return id === undefined || csn === undefined ? [] : [[id, csn] as const]
    }),
  )

/** The date of the newest change. */
export function newestChange(values: readonly string[]): number | undefined {
  const times = values.flatMap((value) => csnTime(value) ?? [])
  return times.length === 0 ? undefined : Math.max(...times)
}

/** Names are equal regardless of letter case and of spaces around commas and equals signs. */
export const isSameName = (one: string, other: string): boolean => plainName(one) === plainName(other)
const plainName = (name: string): string =>
  name
    .trim()
    .toLowerCase()
    .split(/([,=+])/)
    .map((part) => part.trim())
    .join('')

/** The newest change that each server accepted, as the replica and its provider know it. */
type Comparison = {
  readonly address: string
  readonly provider: string
  readonly base: string
  readonly own: Csns
  readonly its: Csns
  /** The oldest change that the replica lacks, in milliseconds since 1970; undefined if the provider shows none. */
  readonly oldestMissing: number | undefined
  readonly now: number
}
type Observed = Comparison | { readonly obstacle: string; readonly isPermission: boolean }

/** Maximum number of entries of the provider that are examined for the oldest change that the replica lacks. */
const maxEntries = 100
/** A change that is on its way arrives within this time, so that a busy pair is not taken for a broken one. */
const arrivalMs = 1_000

const hostPort = (url: string): string => {
  const { host = '', port = 0 } = urlTarget({ url })
  return `${host}:${port}`
}

type Reader = (session: LdapSession, base: string, user: string | undefined) => Promise<Csns>

const readCsns: Reader = async (session, base, user) =>
  csnsOf((await session.read(base, ['contextCSN'], user))?.attributes.contextcsn ?? [])

/** The same of 389-ds, from the replica of the suffix. */
const readRuv: Reader = async (session, base, user) => {
  const at = { base: 'cn=mapping tree,cn=config', scope: 'sub', filter: '(objectClass=nsds5replica)' } as const
  const replicas = await visible(() => session.list(at, ['nsDS5ReplicaRoot', 'nsds50ruv'], maxEntries, user))
  const its = replicas.find(({ attributes }) => isSameName(attributes.nsds5replicaroot?.[0] ?? '', base))
  return csnsOfRuv(its?.attributes.nsds50ruv ?? [])
}

/** The servers whose newest change one side lacks: their ids. */
const lacking = (side: Csns, other: Csns): readonly string[] =>
  [...other].flatMap(([id, csn]) => ((side.get(id) ?? '') < csn ? [id] : []))

async function oldestMissing(
  session: LdapSession,
  { base, own, its }: Pick<Comparison, 'base' | 'own' | 'its'>,
  user: string | undefined,
): Promise<number | undefined> {
  const times: number[] = []
  for (const id of lacking(own, its)) {
    const since = own.get(id) ?? `00000101000000.000000Z#000000#${id}#000000`
    const at = { base, scope: 'sub', filter: `(entryCSN>=${since})` } as const
    const entries = await session.list(at, ['entryCSN'], maxEntries, user)
    for (const csn of entries.flatMap(({ attributes }) => attributes.entrycsn ?? [])) {
      const [time] = csn > since && csn.split('#')[2] === id ? [csnTime(csn)] : []
      if (time !== undefined) times.push(time)
    }
  }
  return times.length === 0 ? undefined : Math.min(...times)
}

export const provider = onLdap({
  depth: 'Standard',
  results: { provider: 'With `provider`: the replica has the changes of its provider' },
  privilege:
    'access to dn.subtree="<base>" attrs=entry,objectClass,contextCSN,entryCSN by dn.exact="<user>" read; 389-ds: the ACI of agreements',
  settings: {
    base: baseSetting,
    provider: {
      type: 'url',
      protocols: ['ldap', 'ldaps'],
      doc: 'The server from which this one receives its changes (syncrepl, or a replication agreement of 389-ds): its contextCSN or nsds50ruv is compared. svc signs in there with the same account',
    },
    replicationLag: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 60_000, limit: 600_000 },
      doc: 'With `provider`: maximum age of the oldest change that the replica has not received',
    },
  },
  when: ['provider'],
  observe: async (ldap, settings, { date, now, signal }): Promise<Observed> => {
    const { address, user } = ldap
    const base = baseOf(ldap, settings.base)
    if (base === undefined) {
      return { obstacle: `${address} reports no naming context: set base`, isPermission: false }
    }
    const session = await ldap.session()
    const since = now()
    const from = await ldap.openElsewhere(settings.provider ?? '').catch((cause: unknown) => {
      if (signal.aborted) throw cause
      return { cause }
    })
    if ('cause' in from) {
      const { message } = classify(from.cause, hostPort(settings.provider ?? ''), now() - since)
      return { obstacle: `the provider of ${address} does not answer: ${message}`, isPermission: false }
    }
    try {
      const { session: there, address: itsAddress } = from
      const read = is389(ldap) ? readRuv : readCsns
      const its = await read(there, base, user)
      let own = await read(session, base, user)
      const blank = own.size === 0 && its.size > 0 ? undefined : [own, its].find(({ size }) => size === 0)
      if (blank !== undefined) {
        const who = its.size === 0 ? itsAddress : address
        const why = 'it does not replicate, or this account may not read it'
        return {
          obstacle: `${who} shows no ${is389(ldap) ? 'nsds50ruv' : 'contextCSN'} of ${quote(base, 120)}: ${why}`,
          isPermission: true,
        }
      }
      if (lacking(own, its).length > 0) {
        await pause(arrivalMs, undefined, { signal })
        own = await read(session, base, user)
      }
      // 389-ds gives its entries no CSN to search for.
      const oldest = is389(ldap) ? undefined : await oldestMissing(there, { base, own, its }, user)
      return { address, provider: itsAddress, base, own, its, oldestMissing: oldest, now: date().getTime() }
    } finally {
      await from.close()
    }
  },
  evaluate: (observed, { replicationLag: threshold }) =>
    'obstacle' in observed
      ? notChecked('provider', observed.isPermission ? 'permission' : 'missing', observed.obstacle)
      : evaluateComparison(observed, threshold),
})

export function evaluateComparison(
  { address, provider: from, base, own, its, oldestMissing: oldest, now }: Comparison,
  threshold: Parameters<typeof atMost>[0]['threshold'],
): Result<'provider'> {
  if (own.size === 0) {
    return fail('provider', 'data', `${address} has received nothing of ${quote(base, 120)} from ${from}`)
  }
  const missing = lacking(own, its)
  const newest = Math.max(...missing.map((id) => csnTime(its.get(id) ?? '') ?? 0))
  if (missing.length === 0) return ok('provider', `${address} has all changes of ${from}`)
  // The provider shows no entry for a change that removed one.
  const at = oldest ?? newest
  return atMost({
    check: 'provider',
    what: `${address} lacks changes of ${from}, the oldest from`,
    value: Math.max(0, now - at),
    after: 'ago',
    unit: 'duration',
    at: new Date(at),
    threshold,
  })
}
