import {
  type Chain,
  certificateName,
  daysBetween,
  describeExpiry,
  formatDay,
  hostProblem,
  pinProblem,
  trustDecision,
  trustedSentence,
  trustProblem,
} from '../net/certificates.ts'
import type { ExecutionMode } from '../protocol/index.ts'
import type { Setting, Threshold } from '../settings/index.ts'
import { atLeast, fail, ok, type Result, warn } from './result.ts'

const certificateDays = { warn: 20, limit: 3 } as const

/** The setting of `evaluateExpiry`. */
export const certificateSetting = {
  type: 'threshold',
  unit: 'days',
  default: certificateDays,
  doc: 'Minimum remaining validity of every certificate in the chain, in days',
} as const satisfies Setting

/** The same setting for a kind whose `url` may also be http. */
export const httpsCertificateSetting = {
  type: 'threshold',
  unit: 'days',
  default: certificateDays,
  doc: 'Minimum remaining validity of every certificate in the chain, in days (https)',
} as const satisfies Setting

/**
 * Checks the dates of every certificate in the chain; the earliest expiry decides. A pinned certificate only warns: who
 * pins it decides how long it is used.
 */
export function evaluateExpiry<const Name extends string>(
  check: Name,
  chain: Chain,
  threshold: Threshold,
): Result<Name> {
  const { address } = chain
  const isPinned = chain.pin === 'matches'
  const pinned = isPinned ? `certificate ${trustDecision(chain)}; ` : ''
  const [first, ...rest] = [...chain.certificates].sort((a, b) => a.to.getTime() - b.to.getTime())
  if (first === undefined) return fail(check, 'tls', `${address} presented no certificate`, { address })
  const early = chain.certificates.find((one) => chain.at < one.from)
  const details = rest.map((one) => describeExpiry(chain, one))
  const left = daysBetween(chain.at, first.to)
  if (chain.at > first.to || early) {
    const worst = chain.at > first.to ? first : (early ?? first)
    const others = chain.certificates.filter((one) => one !== worst).map((one) => describeExpiry(chain, one))
    const spared =
      chain.trustError === undefined ? ['this machine finds a trusted path without it; older clients do not'] : []
    const more: Partial<Result> = {
      address,
      measurement: { value: left, unit: 'days', ...threshold, bound: 'atLeast', at: first.to },
      details: [...others, ...spared],
    }
    const message = `${address}: ${pinned}${describeExpiry(chain, worst)}`
    return isPinned ? warn(check, message, more) : fail(check, 'tls', message, more)
  }
  return atLeast({
    check,
    what: `${address}: ${pinned}${certificateName(chain, first)} expires on ${formatDay(first.to)}, in`,
    value: left,
    unit: 'days',
    threshold: isPinned ? { warn: threshold.warn ?? threshold.limit } : threshold,
    at: first.to,
    address,
    details,
  })
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
  const wrong = chain.certificates.find((one) => chain.at > one.to || chain.at < one.from)
  return wrong
    ? warn(check, `${text}; ${describeExpiry(chain, wrong)}`, { measurement })
    : ok(check, text, { measurement })
}

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
