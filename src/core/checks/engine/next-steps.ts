import type { Result } from './result.ts'

const startIt = 'next: on its host, ss -ltn lists the ports that are open: start the service, or correct the port'
const wakeIt =
  'next: on its host, ss -ltnp names the process and shows in Recv-Q how many connections wait for it: it is stopped (ps -o stat,args -p PID shows T), overloaded, or at a limit'
const findRoute =
  'next: ip route get ADDRESS shows how this machine reaches it: check its interfaces (ip address), its gateway, the VPN and the firewalls on the way'
const asksOthers =
  'next: /etc/resolv.conf lists the name servers of this machine: check that it reaches them and that they answer'
const correctName = 'next: correct the name in svc.yaml, or add its record to the DNS or to /etc/hosts'

/** As kinds, the connection of a kind and the program ping report it. */
const noRoute = /\b(?:no route to|has no route|network is unreachable)\b/i
/** The answers of name servers, and the reports of resolvers, for a name that they do not have. */
const absentName = /\b(?:no such name|has no address|ENOTFOUND|ENODATA)\b/

/** The origins of secrets, which an operator can correct, and the command that tries the monitor afterwards. */
export type Correction = {
  /** Where the secrets of the monitor come from, such as `{env: DB_PASSWORD}`. */
  readonly origins: readonly string[]
  readonly tryNow: string
}

/** The next step after a failure that looks alike in all kinds. Undefined for others, whose kinds know better. */
export function nextStepOf(
  { status, fault, message }: Pick<Result, 'status' | 'fault' | 'message'>,
  { origins, tryNow }: Correction,
): string | undefined {
  if (status !== 'failed') return undefined
  if (fault === 'refused' && message.endsWith('nothing listens on that port')) return startIt
  if (fault === 'refused' && noRoute.test(message)) return findRoute
  if (fault === 'dns' && message.includes(' does not resolve')) {
    return `${absentName.test(message) ? correctName : asksOthers}; then ${tryNow}`
  }
  if (fault === 'timeout' && message.includes(' but sent nothing for ')) return wakeIt
  // Never before the correction: a wrong password that is repeated may lock the account.
  if (fault === 'auth') return `next: correct ${[...origins, 'the account'].join(' or ')}; then ${tryNow}`
  if (fault === 'tls' && message.includes(' expired on ')) {
    return `next: renew the certificate, and make the server load it; then ${tryNow}`
  }
  return undefined
}

/** The results, with the next step as the first detail of the first one that has any. */
export function withNextStep(results: readonly Result[], correction: Correction): readonly Result[] {
  const at = results.findIndex((result) => nextStepOf(result, correction) !== undefined)
  return results.map((result, index) => {
    const step = index === at ? nextStepOf(result, correction) : undefined
    return step === undefined ? result : { ...result, details: [step, ...(result.details ?? [])] }
  })
}
