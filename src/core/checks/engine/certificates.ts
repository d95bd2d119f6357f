import type { X509Certificate } from 'node:crypto'
import {
  type Certificate,
  type Chain,
  certificateName,
  daysBetween,
  describeExpiry,
  exactDaysBetween,
  formatDay,
  hostProblem,
  isSpare,
  nameOf,
  pinProblem,
  trustDecision,
  trustedSentence,
  trustProblem,
} from '../../base/net/certificates.ts'
import type { Setting, Threshold } from '../../base/settings/index.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import { atLeast, fail, ok, type Result, warn } from './result.ts'

const certificateDays: { readonly warn: number; readonly limit: number } = { warn: 20, limit: 3 }
/** Days. Of a certificate with a shorter lifetime, the default limits are parts of that. */
const shortLifetime = 30
/** Clients of ACME renew such certificates when a third to a half is left. */
const partsOfLifetime = { warn: 0.2, limit: 0.05 } as const

/** The setting of `evaluateExpiry`. */
export const certificateSetting = {
  type: 'threshold',
  unit: 'days',
  default: certificateDays,
  doc: 'Minimum remaining validity of every certificate in the chain, in days; for one issued for less than 30 days, by default a fifth and a twentieth of its lifetime',
} as const satisfies Setting

/** The same setting for a kind whose `url` may also be http. */
export const httpsCertificateSetting = {
  type: 'threshold',
  unit: 'days',
  default: certificateDays,
  doc: 'Minimum remaining validity of every certificate in the chain, in days (https); for one issued for less than 30 days, by default a fifth and a twentieth of its lifetime',
} as const satisfies Setting

type Remaining = { readonly certificate: Certificate; readonly days: number; readonly threshold: Threshold }

/**
 * The remaining validity of a certificate, and its limits. The default limits hold for certificates of at least 30
 * days.
 */
function remaining(certificate: Certificate, at: Date, threshold: Threshold): Remaining {
  const { to } = certificate
  const own = threshold === certificateDays ? usualLimits(certificate) : threshold
  return { certificate, days: own === threshold ? daysBetween(at, to) : exactDaysBetween(at, to), threshold: own }
}

/** The default limits of the remaining validity of a certificate. Days. */
export function usualLimits({ from, to }: Pick<Certificate, 'from' | 'to'>): typeof certificateDays {
  const lifetime = exactDaysBetween(from, to)
  if (lifetime >= shortLifetime) return certificateDays
  return { warn: lifetime * partsOfLifetime.warn, limit: lifetime * partsOfLifetime.limit }
}

/** How near a limit is: 2 below the limit, 1 below the warning. */
const urgency = ({ days, threshold: { warn: warning, limit } }: Remaining): number =>
  limit !== undefined && days < limit ? 2 : warning !== undefined && days < warning ? 1 : 0

/**
 * Checks the dates of every certificate in the chain; the one that is most urgent, or else ends first, decides. A pinned
 * certificate only warns: who pins it decides how long it is used.
 */
export function evaluateExpiry<const Name extends string>(
  check: Name,
  chain: Chain,
  threshold: Threshold,
): Result<Name> {
  const { address, at } = chain
  const isPinned = chain.pin === 'matches'
  const pinned = isPinned ? `certificate ${trustDecision(chain)}; ` : ''
  const spare = chain.certificates.filter((one) => isSpare(chain, one))
  const needed = chain.certificates.filter((one) => !spare.includes(one))
  const notes = spare.map(
    (one) => `${describeExpiry(chain, one)}: this machine trusts the chain without it, so remove it from the server`,
  )
  const [first, ...rest] = needed
    .map((one) => remaining(one, at, threshold))
    .toSorted((a, b) => urgency(b) - urgency(a) || a.certificate.to.getTime() - b.certificate.to.getTime())
  if (first === undefined) return fail(check, 'tls', `${address} presented no certificate`, { address })
  const expired = needed.filter(({ to }) => at > to).sort((a, b) => a.to.getTime() - b.to.getTime())
  const worst = expired[0] ?? needed.find(({ from }) => at < from)
  if (worst) {
    const others = needed.filter((one) => one !== worst).map((one) => describeExpiry(chain, one))
    const left = daysBetween(at, worst.to)
    const more: Partial<Result> = {
      address,
      measurement: { value: left, unit: 'days', ...threshold, bound: 'atLeast', at: worst.to },
      details: [...others, ...notes],
    }
    const message = `${address}: ${pinned}${describeExpiry(chain, worst)}`
    return isPinned ? warn(check, message, more) : fail(check, 'tls', message, more)
  }
  const { certificate, days: value, threshold: own } = first
  return atLeast({
    check,
    what: `${address}: ${pinned}${certificateName(chain, certificate)} expires on ${formatDay(certificate.to)}, in`,
    value,
    unit: 'days',
    threshold: isPinned ? { warn: own.warn ?? own.limit } : own,
    at: certificate.to,
    address,
    details: [...rest.map((one) => describeExpiry(chain, one.certificate)), ...notes],
  })
}

/** Whether a certificate of svc itself is valid at a time, and for how long. The limits are those of a server's. */
export function evaluateClientExpiry<const Name extends string>(
  check: Name,
  {
    certificate,
    threshold = certificateDays,
  }: { readonly certificate: X509Certificate; readonly threshold?: Threshold | undefined },
  at: Date,
): Result<Name> {
  const { validFromDate: from, validToDate: to } = certificate
  const own = threshold === certificateDays ? usualLimits({ from, to }) : threshold
  const what = `certificate "${nameOf(certificate, certificate.subject)}" of svc`
  if (at < from) return fail(check, 'tls', `${what} is not valid before ${formatDay(from)}`)
  const value = daysBetween(at, to)
  const text = `${what} ${at > to ? 'expired' : 'expires'} on ${formatDay(to)}`
  if (at > to) {
    const measurement = { value, unit: 'days', ...own, bound: 'atLeast', at: to } as const
    return fail(check, 'tls', `${text}, ${daysBetween(to, at)} d ago: renew it, servers refuse it`, { measurement })
  }
  return atLeast({ check, what: `${text}, in`, value, unit: 'days', threshold: own, at: to })
}

/** The result of `evaluateExpiry`, with what made svc trust the server. */
function withDecision<R extends Result>(result: R, chain: Chain): R {
  const decision = chain.pin === undefined ? trustDecision(chain) : undefined
  return decision === undefined
    ? result
    : { ...result, details: [`the certificate ${decision}`, ...(result.details ?? [])] }
}

/**
 * The result of a connection that the server accepted, in milliseconds. A pinned certificate that has expired is a
 * warning already here, because not every kind checks the dates.
 */
export function evaluateAccepted<const Name extends string>(
  check: Name,
  { address, chain, ms }: { readonly address: string; readonly chain: Chain | undefined; readonly ms: number },
): Result<Name> {
  const measurement = { value: ms, unit: 'milliseconds' } as const
  if (chain?.pin !== 'matches')
    return ok(check, `${address} accepted${chain ? `, ${chain.protocol}` : ''}`, { measurement })
  const text = `${address} accepted, ${chain.protocol}, certificate ${trustDecision(chain)}`
  const invalid = chain.certificates.find((one) => chain.at > one.to || chain.at < one.from)
  return invalid
    ? warn(check, `${text}; ${describeExpiry(chain, invalid)}`, { measurement })
    : ok(check, text, { measurement })
}

/** Whether `url` has another scheme, and so no TLS. */
export const isPlain =
  (scheme: string) =>
  ({ url }: { readonly url?: string }): boolean =>
    url !== undefined && new URL(url).protocol !== `${scheme}:`

type CertificateOptions<Connection, S> = {
  readonly depth: ExecutionMode
  /** The threshold in days. Several checks of a kind may share it. */
  readonly setting: S
  /** The certificate chain of the connection. Undefined without TLS: then there is no result. */
  readonly chain: (connection: Connection) => Chain | undefined
  /** The URL scheme for TLS, if the kind also supports URLs without TLS. */
  readonly scheme?: string
  /** Runs before all other checks, whatever the order of declaration. */
  readonly first?: true
}

/** The `certificate` check of a kind that reads the chain when it connects. */
export function certificateCheck<Connection, const S extends Setting & { readonly type: 'threshold' }>({
  depth,
  setting,
  chain: chainOf,
  scheme,
  ...order
}: CertificateOptions<Connection, S>) {
  const only = scheme === undefined ? '' : ` (${scheme})`
  return {
    ...order,
    depth,
    results: { certificate: `Every certificate in the chain remains valid long enough${only}` },
    settings: { certificate: setting },
    provesNoReading: true,
    ...(scheme === undefined ? {} : { impossibleWith: isPlain(scheme) }),
    observe: async (connection: Connection) => ({ chain: chainOf(connection) }),
    evaluate: ({ chain }: { readonly chain: Chain | undefined }, settings: { readonly certificate: Threshold }) =>
      chain ? withDecision(evaluateExpiry('certificate', chain, settings.certificate), chain) : [],
  } as const
}

/** Whether the certificate is the pinned one or, if none is pinned, its chain leads to a trusted root. */
export function evaluateTrust<const Name extends string>(check: Name, chain: Chain): Result<Name> {
  const { address, trustError } = chain
  if (chain.pin === 'matches') return ok(check, `${address}: certificate ${trustDecision(chain)}`, { address })
  const problem = pinProblem(chain) ?? trustProblem(chain)
  if (problem === undefined) return ok(check, `${address}: ${trustedSentence(chain)}`, { address })
  return fail(check, 'tls', problem, { address, details: trustError === undefined ? [] : [trustError] })
}

/** Whether the server sends the staple that its certificate requires. No result where it requires none. */
export function evaluateStaple<const Name extends string>(
  check: Name,
  { address, staple }: Chain,
): readonly Result<Name>[] {
  if (staple === undefined) return []
  if (staple === 'sent')
    return [ok(check, `${address} sends the OCSP staple that its certificate requires`, { address })]
  const why = 'the certificate requires OCSP stapling (must-staple), but the server sends none'
  return [warn(check, `${address}: ${why}: Firefox refuses it; turn stapling on, or issue it without`, { address })]
}

/** Whether the certificate covers the name that clients use. */
export function evaluateHost<const Name extends string>(check: Name, chain: Chain): Result<Name> {
  const { address, host } = chain
  const problem = hostProblem(chain)
  if (problem === undefined) return ok(check, `${address}: the certificate is for ${host}`, { address })
  // The fingerprint identifies the server, so the names in its certificate do not matter.
  if (chain.pin === 'matches') return ok(check, `${problem}; accepted, because it is pinned`, { address })
  return fail(check, 'tls', problem, { address })
}

const versions = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']

/** Whether the highest protocol version that the server accepts is at least `least`. */
export function evaluateProtocol<const Name extends string>(
  check: Name,
  chain: Chain,
  least: 'TLSv1.2' | 'TLSv1.3',
): Result<Name> {
  const { address, protocol } = chain
  const sound = versions.indexOf(protocol) >= versions.indexOf(least)
  const message = `${address}: highest TLS version ${protocol} (fail below ${least})`
  return sound ? ok(check, message, { address }) : fail(check, 'tls', message, { address })
}
