import {
  atMost,
  evaluateExpiry,
  evaluateProblem,
  evaluateUnreached,
  fail,
  ok,
  type Result,
  warn,
} from '../../engine/index.ts'
import { count, quoted, said } from '../../net/text.ts'
import type { Entry } from './session.ts'
import type { LdapSettings } from './settings.ts'
import type { LdapSeen } from './visit.ts'

/** Judges what a visit to an LDAP server saw. */
export function evaluateLdap(seen: LdapSeen, given: LdapSettings): Result | readonly Result[] {
  switch (seen.see) {
    case 'connect': {
      const { address, protocol } = seen
      return timed('connect', `${address} accepted${protocol === undefined ? '' : ` with ${protocol}`} in`, seen, given)
    }
    case 'certificate':
      return evaluateExpiry('certificate', seen.chain, given.certificate)
    case 'bind':
      return timed('bind', `signed in at ${seen.address} as ${quoted(seen.user, 120)} in`, seen, given)
    case 'rootDSE':
      return evaluateRoot(seen.address, seen.root, given)
    case 'rootDSE hidden':
      return ok('rootDSE', 'not shown without a sign-in', { address: seen.address, details: [seen.why] })
    case 'search':
      return evaluateSearch(seen, given)
    case 'no base':
      return warn('search', `${seen.address} names no base: set base`, { address: seen.address })
    case 'entry':
      return evaluateEntry(seen, given)
    case 'synchronized':
      return seen.done
        ? ok('synchronized', `${seen.address} has finished its replication since it started`, { address: seen.address })
        : fail('synchronized', 'data', `${seen.address} has not finished its replication since it started`, {
            address: seen.address,
          })
    case 'last change':
      return evaluateLastChange(seen, given)
    case 'wrong password':
      return evaluateWrongPassword(seen)
    case 'problem':
      return evaluateProblem(seen)
    case 'unreached':
      return evaluateUnreached(seen)
  }
}

type Timed = { readonly ms: number; readonly address: string }
const timed = (check: string, what: string, { ms, address }: Timed, { latency }: LdapSettings): Result =>
  atMost({ check, what, value: ms, unit: 'duration', threshold: latency, address })

function evaluateRoot(address: string, root: Entry | undefined, given: LdapSettings): Result {
  if (!root) {
    const who = given.user === undefined ? 'strangers' : quoted(given.user, 120)
    return fail('rootDSE', 'data', `${address} shows its root entry not to ${who}: access rules`, { address })
  }
  const { attributes } = root
  const versions = attributes.supportedldapversion ?? []
  const server = [attributes.vendorname?.[0], attributes.vendorversion?.[0]].filter((part) => part !== undefined)
  const contexts = attributes.namingcontexts ?? []
  const told = [
    said(server.join(' ') || (attributes.dnshostname?.[0] ?? ''), 80),
    versions.length > 0 ? `LDAP ${said(versions.join(', '), 20)}` : '',
    contexts.length > 0 ? said(contexts.join(', '), 120) : '',
  ].filter((part) => part !== '')
  const message = `${address} shows its root entry${told.length > 0 ? `: ${told.join('; ')}` : ''}`
  return versions.length > 0 && !versions.includes('3')
    ? warn('rootDSE', `${message}: version 3 is missing`, { address })
    : ok('rootDSE', message, { address })
}

function evaluateSearch(seen: LdapSeen & { see: 'search' }, given: LdapSettings): Result {
  const { address, base, found } = seen
  if (found) return timed('search', `${quoted(base, 120)} was found in`, seen, given)
  return fail('search', 'data', `${address} shows nothing of ${quoted(base, 120)}: access rules`, { address })
}

function evaluateEntry({ address, base, found }: LdapSeen & { see: 'entry' }, { entry }: LdapSettings): Result {
  const { filter = '', atLeast = 1 } = entry ?? {}
  const many = found === 0 ? 'nothing' : count(found, 'entry', 'entries')
  const message = `${address} finds ${many} of ${quoted(filter, 80)} in ${quoted(base, 120)} (at least ${atLeast})`
  const more: Partial<Result> = { address, measurement: { value: found, unit: 'count', limit: atLeast } }
  return found >= atLeast ? ok('entry', message, more) : fail('entry', 'data', message, more)
}

function evaluateLastChange({ address, ageMs }: LdapSeen & { see: 'last change' }, given: LdapSettings): Result {
  if (ageMs === undefined) {
    const why = 'it does not replicate, or this account may not see it'
    return warn('last change', `${address} shows no contextCSN: ${why}`, { address })
  }
  const what = `the newest change that ${address} knows of is old by`
  const threshold = given.lastChange ?? {}
  return atMost({ check: 'last change', what, value: Math.max(0, ageMs), unit: 'duration', threshold, address })
}

function evaluateWrongPassword(seen: LdapSeen & { see: 'wrong password' }): Result {
  const { address, right, why, wrong } = seen
  const user = quoted(seen.user, 120)
  const found = `a wrong password of ${user}`
  if (wrong === 'accepted') {
    return fail('wrong password', 'data', `${address} let ${user} in with a wrong password: anybody may be anybody`, {
      address,
    })
  }
  if (wrong === 'unproved') {
    return warn('wrong password', `${address} refused ${user}, but not for the password: ${why}`, { address })
  }
  return ok('wrong password', `${address} refused ${found}${right ? ', and let the right one in' : ''}`, { address })
}
