import { X509Certificate } from 'node:crypto'
import { daysBetween, formatDay } from '../../core/base/net/certificates.ts'
import { usualLimits } from '../../core/checks/engine/index.ts'
import type { Log } from '../../core/server/index.ts'

/** Milliseconds between two looks at a certificate that nobody replaces. */
const lookAgainMs = 86_400_000

/** The certificates in a PEM file that a server has accepted. */
const certificatesIn = (pem: string): readonly X509Certificate[] =>
  (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map((one) => new X509Certificate(one))

/** The certificate of the file that ends first: without it, clients refuse the others. */
const firstToEnd = (pem: string): X509Certificate | undefined =>
  certificatesIn(pem).toSorted((one, other) => Date.parse(one.validTo) - Date.parse(other.validTo))[0]

/** When the certificates of the file end, in UTC. */
export function endOf(pem: string): string | undefined {
  const certificate = firstToEnd(pem)
  return certificate && new Date(certificate.validTo).toISOString()
}

/**
 * The warning about the certificate of this server that ends first. Undefined while more than the default limit of
 * kind tls is left.
 */
export function expiryWarning(pem: string, now: Date): string | undefined {
  const certificate = firstToEnd(pem)
  if (certificate === undefined) return undefined
  const [from, to] = [new Date(certificate.validFrom), new Date(certificate.validTo)]
  const way = 'renew it, then: svc serve reload'
  if (now > to) return `the certificate of this server has expired on ${formatDay(to)}, and clients refuse it: ${way}`
  const days = daysBetween(now, to)
  if (days >= usualLimits({ from, to }).warn) return undefined
  return `the certificate of this server expires on ${formatDay(to)}, in ${days} d: ${way}`
}

/** Logs the warning about the certificate in use: when one comes into use, and every day. */
export function certificateInUse(log: Log, now: () => Date) {
  let timer: NodeJS.Timeout | undefined
  const end = (): void => clearInterval(timer)
  const use = (pem: string): void => {
    const look = (): void => {
      const msg = expiryWarning(pem, now())
      if (msg !== undefined) log({ level: 'warn', msg })
    }
    end()
    timer = setInterval(look, lookAgainMs).unref()
    look()
  }
  return { use, end }
}
