import { fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { count, quote, sanitize } from '../../net/text.ts'
import { onLdap } from './connection.ts'
import { is389, visible } from './databases.ts'

/** The direction in which 389 Directory Server sends changes to another server. */
type Agreement = {
  readonly name: string
  readonly consumer: string
  readonly isEnabled: boolean
  /** How the server judges its last attempt. Versions before 1.4.1 give a code only. */
  readonly state: string
  readonly status: string
}

/** Maximum number of agreements that are read and reported. */
const maxAgreements = 50

export const agreementsGrant =
  'aci: (targetattr="cn || objectClass || nsDS5ReplicaRoot || nsds50ruv || nsDS5ReplicaHost || nsDS5ReplicaPort || nsds5ReplicaEnabled || nsds5replicaLastUpdateStatus || nsds5replicaLastUpdateStatusJSON")(version 3.0; acl "svc"; allow (read, search) userdn="ldap:///<user>";)'

/** `Error (49) Problem connecting to replica`: 0 is a success, and 1 a replica that is busy with another supplier. */
export function stateOf(json: string, status: string): string {
  const state = /"state": ?"([a-z]{1,10})"/.exec(json)?.[1]
  if (state !== undefined) return state
  const code = /^Error \((-?\d{1,10})\)/.exec(status)?.[1]
  if (code === undefined) return 'unknown'
  return code === '0' ? 'green' : code === '1' ? 'amber' : 'red'
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
    const list = entries.map(({ attributes: its }): Agreement => {
      const text = (name: string): string => its[name]?.[0] ?? ''
      const status = text('nsds5replicalastupdatestatus')
      return {
        name: text('cn'),
        consumer: `${text('nsds5replicahost')}:${text('nsds5replicaport')}`,
        isEnabled: text('nsds5replicaenabled').toLowerCase() !== 'off',
        state: stateOf(text('nsds5replicalastupdatestatusjson'), status),
        status,
      }
    })
    return { address: ldap.address, list }
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

export function evaluateAgreement({
  name,
  consumer,
  isEnabled,
  state,
  status,
}: Agreement): Result<`agreement ${string}`> {
  const check = `agreement ${sanitize(name, 64)}` as const
  const to = sanitize(consumer, 120)
  if (!isEnabled) return warn(check, `${to} receives no changes: the replication agreement is disabled`)
  const text = quote(status, 160)
  if (state === 'red') return fail(check, 'data', `${to} receives no changes: ${text}`)
  if (state !== 'green' && state !== 'amber')
    return warn(check, `${to}: the state of the replication is unknown: ${text}`)
  return ok(check, `the last replication to ${to}: ${text}`)
}
