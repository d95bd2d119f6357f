import { count } from '../../../base/format.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { atMost, fail, notChecked, ok, type Result } from '../../engine/index.ts'
import { type LdapConnection, onLdap } from './connection.ts'
import type { LdapEntry } from './session.ts'

/** A database, as the server describes it to the account. */
type Database = {
  readonly suffix: string
  /** Undefined if the account may not see it. */
  readonly isReadOnly: boolean | undefined
  /** Where an OpenLDAP replica sends those who want to change something. */
  readonly replicaOf: string | undefined
  /** The pages of the memory map of mdb. Undefined for other databases. */
  readonly pages: { readonly max: number; readonly used: number } | undefined
}
type Databases = {
  readonly address: string
  /**
   * The grants that let the account see whether the databases are read-only, and how full they are; undefined where the
   * server shows nobody.
   */
  readonly grant: { readonly writes?: string | undefined; readonly space?: string | undefined }
  readonly databases: readonly Database[]
  readonly isDemanded: boolean
}

/** Maximum number of databases that are read and reported. */
const maxDatabases = 20
const settingNames = ['readOnly', 'databaseSpace'] as const

/** Only 389 Directory Server and its relatives name themselves so in the root entry. */
export const is389 = ({ root }: LdapConnection): boolean => (root?.attributes.vendorname?.[0] ?? '').startsWith('389 ')

/** OpenLDAP, by the class of its root entry. */
const isOpenLdap = (root: LdapEntry | undefined): boolean =>
  (root?.attributes.objectclass ?? []).some((name) => name.toLowerCase() === 'openldaprootdse')

/** The entries of a search, or none where the account may not see the base. Throws any other error. */
export async function visible(work: () => Promise<readonly LdapEntry[]>): Promise<readonly LdapEntry[]> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof ProbeError && cause.fault === 'data') return []
    throw cause
  }
}

const first = ({ attributes }: LdapEntry, name: string): string | undefined => attributes[name]?.[0]
const isOn = (value: string | undefined): boolean => /^(?:on|true)$/i.test(value ?? '')

/** The suffixes of OpenLDAP's configuration, and whether they are read-only; none where the account may not see them. */
async function configured(ldap: LdapConnection): Promise<ReadonlyMap<string, boolean>> {
  const session = await ldap.session()
  const at = { base: 'cn=config', scope: 'sub', filter: '(|(olcDatabase=*)(cn=config))' } as const
  // Entries without a suffix are those of the server itself.
  const most = 2 * maxDatabases
  const entries = await visible(() => session.list(at, ['olcSuffix', 'olcReadOnly'], most, ldap.user))
  const all = entries.some(
    (entry) => /^(?:cn=config$|olcdatabase=\{-1\})/i.test(entry.name) && isOn(first(entry, 'olcreadonly')),
  )
  return new Map(
    entries.flatMap((entry) =>
      (entry.attributes.olcsuffix ?? []).map((suffix) => [suffix, all || isOn(first(entry, 'olcreadonly'))] as const),
    ),
  )
}

async function openLdapDatabases(ldap: LdapConnection): Promise<readonly Database[]> {
  const monitored = ldap.root?.attributes.monitorcontext === undefined ? [] : await monitoredDatabases(ldap)
  const config = await configured(ldap)
  const others = [...config.keys()].filter((suffix) => monitored.every((database) => database.suffix !== suffix))
  return [
    // `readonly on` is in the configuration only, `restrict write` in cn=Monitor only.
    ...monitored.map((database) => ({ ...database, isReadOnly: database.isReadOnly || config.get(database.suffix) })),
    ...others.map((suffix) => ({ suffix, isReadOnly: config.get(suffix), replicaOf: undefined, pages: undefined })),
  ]
}

async function monitoredDatabases(ldap: LdapConnection): Promise<readonly Database[]> {
  const session = await ldap.session()
  const base = `cn=Databases,${ldap.root?.attributes.monitorcontext?.[0] ?? 'cn=Monitor'}`
  const attributes = [
    'namingContexts',
    'readOnly',
    'monitorIsShadow',
    'monitorUpdateRef',
    'olmMDBPagesMax',
    'olmMDBPagesUsed',
    'olmMDBPagesFree',
  ]
  const at = { base, scope: 'one', filter: '(namingContexts=*)' } as const
  const entries = await visible(() => session.list(at, attributes, maxDatabases, ldap.user))
  return entries.flatMap((entry) => {
    const suffix = first(entry, 'namingcontexts') ?? ''
    const [max, used, free] = ['max', 'used', 'free'].map((name) => Number(first(entry, `olmmdbpages${name}`)))
    // The databases of the server itself, such as cn=Monitor, hold no data of their own.
    if (suffix === '' || /^cn=(?:config|monitor)$/i.test(suffix)) return []
    return {
      suffix,
      isReadOnly: isOn(first(entry, 'readonly')),
      replicaOf: isOn(first(entry, 'monitorisshadow')) ? (first(entry, 'monitorupdateref') ?? '') : undefined,
      // The database reuses free pages before it takes new ones.
      pages: max !== undefined && used !== undefined && max > 0 ? { max, used: used - (free || 0) } : undefined,
    }
  })
}

async function directoryServerDatabases(ldap: LdapConnection): Promise<readonly Database[]> {
  const session = await ldap.session()
  const server = await visible(async () => {
    const entry = await session.read('cn=config', ['nsslapd-readonly'], ldap.user)
    return entry ? [entry] : []
  })
  const at = {
    base: 'cn=ldbm database,cn=plugins,cn=config',
    scope: 'one',
    filter: '(objectClass=nsBackendInstance)',
  } as const
  const attributes = ['nsslapd-suffix', 'nsslapd-readonly']
  const entries = await visible(() => session.list(at, attributes, maxDatabases, ldap.user))
  const all = server.some((entry) => isOn(first(entry, 'nsslapd-readonly')))
  return entries.flatMap((entry) => {
    const suffix = first(entry, 'nsslapd-suffix')
    const isReadOnly = all || isOn(first(entry, 'nsslapd-readonly'))
    return suffix === undefined ? [] : { suffix, isReadOnly, replicaOf: undefined, pages: undefined }
  })
}

export const grants = {
  monitor: 'access to dn.subtree="cn=Monitor" by dn.exact="<user>" read',
  config: 'access to dn.subtree="cn=config" attrs=entry,cn,olcDatabase,olcSuffix,olcReadOnly by dn.exact="<user>" read',
  directoryServer:
    'aci: (targetattr="cn || objectClass || nsslapd-suffix || nsslapd-readonly")(version 3.0; acl "svc"; allow (read, search) userdn="ldap:///<user>";)',
} as const

/** The observation that both checks share. */
const observe = async (
  ldap: LdapConnection,
  _: unknown,
  { isConfigured }: { readonly isConfigured: (setting: string) => boolean },
): Promise<Databases> => {
  const { address, root } = ldap
  const isDemanded = settingNames.some(isConfigured)
  if (is389(ldap)) {
    const databases = await directoryServerDatabases(ldap)
    return { address, grant: { writes: grants.directoryServer, space: undefined }, databases, isDemanded }
  }
  if (!isOpenLdap(root)) return { address, grant: {}, databases: [], isDemanded }
  const grant = { writes: grants.config, space: root?.attributes.monitorcontext && grants.monitor }
  return { address, grant, databases: await openLdapDatabases(ldap), isDemanded }
}

/** A figure that the server does not show to this account: nothing to say, unless svc.yaml demands the check. */
function unseen<const Name extends string>(
  check: Name,
  { address, isDemanded }: Databases,
  grant: string | undefined,
): Result<Name> | [] {
  if (!isDemanded) return []
  if (grant === undefined) return notChecked(check, 'missing', `${address} shows nobody the state of its databases`)
  return notChecked(check, 'permission', `${address} does not show this account the state of its databases: ${grant}`)
}

export const readOnly = onLdap({
  depth: 'Standard',
  results: {
    'read-only <suffix>': 'OpenLDAP and 389-ds: the database is not set read-only, where the account may see that',
    'read-only': 'Reported instead if `readOnly` is set and the account sees no database',
  },
  settings: {
    readOnly: {
      type: 'flag',
      doc: 'Whether the databases are meant to be read-only. A read-only database fails unless this is true. Replicas, which refer changes to their provider, are not read-only',
    },
  },
  privilege: `${grants.config}; ${grants.monitor}; 389-ds, in cn=config: ${grants.directoryServer}`,
  observe,
  evaluate: (observed, settings) => {
    const databases = observed.databases.filter(({ isReadOnly }) => isReadOnly !== undefined)
    if (databases.length === 0) return unseen('read-only', observed, observed.grant.writes)
    return databases.map(({ suffix, isReadOnly, replicaOf }) => {
      const check = `read-only ${sanitize(suffix, 120)}` as const
      const name = quote(suffix, 120)
      if (isReadOnly === true) {
        if (settings.readOnly === true) return ok(check, `${name} is read-only, as intended`)
        const remedy = 'if this is intended: readOnly: true'
        return fail(check, 'data', `${name} refuses all changes: its database is set read-only (${remedy})`)
      }
      if (replicaOf === undefined) return ok(check, `${name} is not set read-only`)
      const where = replicaOf === '' ? 'its provider' : sanitize(replicaOf, 120)
      return ok(check, `${name} is a replica, and refers changes to ${where}`)
    })
  },
})

export const databaseSpace = onLdap({
  depth: 'Standard',
  results: {
    'database space <suffix>': 'OpenLDAP with a monitor database: the memory map (maxsize) of an mdb database has room',
    'database space': 'Reported instead if `databaseSpace` is set and the account sees no database',
  },
  settings: {
    databaseSpace: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 80, limit: 95 },
      doc: 'Maximum usage of the memory map of an mdb database; a full one refuses all changes',
    },
  },
  privilege: grants.monitor,
  observe,
  evaluate: (observed, { databaseSpace: threshold }) => {
    const databases = observed.databases.filter(({ pages }) => pages !== undefined)
    if (databases.length === 0) return unseen('database space', observed, observed.grant.space)
    return databases.flatMap(({ suffix, pages }) =>
      pages === undefined
        ? []
        : atMost({
            check: `database space ${sanitize(suffix, 120)}` as const,
            what: `${quote(suffix, 120)} uses ${pages.used} of ${count(pages.max, 'page')} of its memory map (maxsize):`,
            value: (100 * pages.used) / pages.max,
            unit: 'percent',
            threshold,
          }),
    )
  },
})
