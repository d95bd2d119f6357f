import { type Certificate, type Chain, dateErrors } from './chain.ts'
import { count } from './text.ts'

const dayMs = 86_400_000

export const formatDay = (date: Date): string => `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`
/** Tenths of a day, rounded down: `3 d` must not be said of what fails a limit of 3 d. */
export const daysBetween = (from: Date, to: Date): number =>
  Math.floor(((to.getTime() - from.getTime()) / dayMs) * 10) / 10

export const certificateName = (chain: Chain, one: Certificate): string =>
  one === chain.certificates[0] ? `certificate "${one.name}"` : `issuer certificate "${one.name}"`

export const describeExpiry = (chain: Chain, one: Certificate): string => {
  const left = daysBetween(chain.at, one.to)
  if (chain.at > one.to)
    return `${certificateName(chain, one)} expired on ${formatDay(one.to)}, ${daysBetween(one.to, chain.at)} d ago`
  if (chain.at < one.from)
    return `${certificateName(chain, one)} is not valid before ${formatDay(one.from)}: renewed too early, or a wrong clock`
  return `${certificateName(chain, one)} expires on ${formatDay(one.to)}, in ${left} d`
}

function distrust(chain: Chain, error: string, top: string): string {
  const own = chain.certificates[0]
  if (own?.selfSigned) return `certificate "${own.name}" is self-signed; name it in caFile if it is meant to be`
  if (error === 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' || error === 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY') {
    return `the issuer "${top}" is unknown here and the server does not send it: an intermediate is missing there, or a private CA here (caFile)`
  }
  if (error === 'SELF_SIGNED_CERT_IN_CHAIN' || dateErrors.has(error)) {
    return `the chain ends at "${top}", which this machine does not trust; a private CA belongs in caFile`
  }
  return `the chain does not verify (${error})`
}

/** Why the chain is not trusted, its dates aside; undefined when it leads to a trusted root. */
export function trustProblem(chain: Chain): string | undefined {
  const { address, trustError } = chain
  if (trustError === undefined || (dateErrors.has(trustError) && chain.trustedButForDates)) return undefined
  const root = chain.certificates.at(-1)
  const top = root?.selfSigned ? root.name : (root?.issuer ?? 'nobody')
  return `${address}: ${distrust(chain, trustError, top)}`
}

/** Why the certificate is not for the name that clients use; undefined when it is. */
export const hostProblem = ({ address, host, hostError }: Chain): string | undefined =>
  hostError === undefined ? undefined : `${address}: the certificate is not for ${host}, but ${hostError}`

/** Why nothing may be sent to this server, most urgent first; undefined when it is who it should be. */
export function whyDistrusted(chain: Chain): string | undefined {
  const { trustError } = chain
  if (trustError === undefined) return hostProblem(chain)
  const wrong = chain.certificates.find((one) => chain.at > one.to || chain.at < one.from)
  if (dateErrors.has(trustError) && wrong) return `${chain.address}: ${describeExpiry(chain, wrong)}`
  return trustProblem(chain) ?? `${chain.address}: ${trustedSentence(chain)}`
}

/** How a trusted chain is described. */
export const trustedSentence = ({ certificates, trustError }: Chain): string =>
  `${count(certificates.length, 'certificate')} up to a trusted root${trustError === undefined ? '' : ', its dates aside'}`
