import { atLeast, fail, ok } from '../judge.ts'
import type { Finding } from '../monitor.ts'
import type { Threshold } from '../settings.ts'
import { type Certificate, type Chain, dateErrors } from './chain.ts'
import { count } from './text.ts'

const dayMs = 86_400_000

const day = (date: Date): string => `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`
/** Tenths of a day, rounded down: `3 d` must not be said of what fails a limit of 3 d. */
const daysBetween = (from: Date, to: Date): number => Math.floor(((to.getTime() - from.getTime()) / dayMs) * 10) / 10

const which = (chain: Chain, one: Certificate): string =>
  one === chain.certificates[0] ? `certificate "${one.name}"` : `issuer certificate "${one.name}"`

const told = (chain: Chain, one: Certificate): string => {
  const left = daysBetween(chain.at, one.to)
  if (chain.at > one.to) return `${which(chain, one)} expired on ${day(one.to)}, ${daysBetween(one.to, chain.at)} d ago`
  if (chain.at < one.from)
    return `${which(chain, one)} is not valid before ${day(one.from)}: renewed too early, or a wrong clock`
  return `${which(chain, one)} expires on ${day(one.to)}, in ${left} d`
}

/** The dates of every certificate of the chain; the one that ends first speaks for it. */
export function judgeExpiry(check: string, chain: Chain, threshold: Threshold): Finding {
  const { address } = chain
  const [first, ...rest] = [...chain.certificates].sort((a, b) => a.to.getTime() - b.to.getTime())
  if (first === undefined) return fail(check, 'tls', `${address} showed no certificate`, { address })
  const early = chain.certificates.find((one) => chain.at < one.from)
  const details = rest.map((one) => told(chain, one))
  const left = daysBetween(chain.at, first.to)
  if (chain.at > first.to || early) {
    const worst = chain.at > first.to ? first : (early ?? first)
    const others = chain.certificates.filter((one) => one !== worst).map((one) => told(chain, one))
    const spared =
      chain.trustError === undefined ? ['this machine finds a trusted path without it; older clients do not'] : []
    const more = { address, observed: left, unit: 'days', limit: threshold.limit, details: [...others, ...spared] }
    return fail(check, 'tls', `${address}: ${told(chain, worst)}`, more)
  }
  return atLeast({
    check,
    what: `${address}: ${which(chain, first)} expires on ${day(first.to)}, in`,
    value: left,
    unit: 'days',
    threshold,
    address,
    details,
  })
}

/** Whether signatures lead to a root that this machine or `caFile` trusts. */
export function judgeTrust(check: string, chain: Chain): Finding {
  const { address, trustError } = chain
  const root = chain.certificates.at(-1)
  if (trustError === undefined || (dateErrors.has(trustError) && chain.trustedButForDates)) {
    const aside = trustError === undefined ? '' : ', its dates aside'
    return ok(check, `${address}: ${count(chain.certificates.length, 'certificate')} up to a trusted root${aside}`, {
      address,
    })
  }
  const top = root?.selfSigned ? root.name : (root?.issuer ?? 'nobody')
  const more = { address, details: [trustError] }
  return fail(check, 'tls', `${address}: ${distrust(chain, trustError, top)}`, more)
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

/** Whether the certificate is for the name that clients use. */
export function judgeHost(check: string, chain: Chain): Finding {
  const { address } = chain
  if (chain.hostError === undefined) return ok(check, `${address}: the certificate is for ${chain.host}`, { address })
  return fail(check, 'tls', `${address}: the certificate is not for ${chain.host}, but ${chain.hostError}`, { address })
}

const versions = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']

/** Whether the best version that the server agreed to is at least `least`. */
export function judgeProtocol(check: string, chain: Chain, least: 'TLSv1.2' | 'TLSv1.3'): Finding {
  const { address, protocol } = chain
  const sound = versions.indexOf(protocol) >= versions.indexOf(least)
  const message = `${address} speaks ${protocol} at best (at least ${least})`
  return sound ? ok(check, message, { address }) : fail(check, 'tls', message, { address })
}

/** Why nothing may be sent to this server, most urgent first; undefined when it is who it should be. */
export function whyDistrusted(chain: Chain): string | undefined {
  if (chain.trustError !== undefined) {
    const wrong = chain.certificates.find((one) => chain.at > one.to || chain.at < one.from)
    if (dateErrors.has(chain.trustError) && wrong) return `${chain.address}: ${told(chain, wrong)}`
    return judgeTrust('trust', chain).message
  }
  return chain.hostError === undefined ? undefined : judgeHost('host name', chain).message
}
