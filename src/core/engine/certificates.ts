import {
  type Chain,
  certificateName,
  daysBetween,
  describeExpiry,
  formatDay,
  hostProblem,
  trustedSentence,
  trustProblem,
} from '../net/certificates.ts'
import type { ExecutionMode } from '../protocol/index.ts'
import type { Setting, Threshold } from '../settings/index.ts'
import { atLeast, fail, ok, type Result } from './result.ts'

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

/** Checks the dates of every certificate in the chain; the earliest expiry decides. */
export function evaluateExpiry<const Name extends string>(
  check: Name,
  chain: Chain,
  threshold: Threshold,
): Result<Name> {
  const { address } = chain
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
    return fail(check, 'tls', `${address}: ${describeExpiry(chain, worst)}`, more)
  }
  return atLeast({
    check,
    what: `${address}: ${certificateName(chain, first)} expires on ${formatDay(first.to)}, in`,
    value: left,
    unit: 'days',
    threshold,
    at: first.to,
    address,
    details,
  })
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
      chain ? evaluateExpiry('certificate', chain, settings.certificate) : [],
  } as const
}

/** Whether the chain leads to a root that this machine or `caFile` trusts. */
export function evaluateTrust<const Name extends string>(check: Name, chain: Chain): Result<Name> {
  const { address, trustError } = chain
  const problem = trustProblem(chain)
  if (problem === undefined) return ok(check, `${address}: ${trustedSentence(chain)}`, { address })
  return fail(check, 'tls', problem, { address, details: trustError === undefined ? [] : [trustError] })
}

/** Whether the certificate covers the name that clients use. */
export function evaluateHost<const Name extends string>(check: Name, chain: Chain): Result<Name> {
  const { address, host } = chain
  const problem = hostProblem(chain)
  return problem === undefined
    ? ok(check, `${address}: the certificate is for ${host}`, { address })
    : fail(check, 'tls', problem, { address })
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
