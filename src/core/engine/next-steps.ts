import type { Result } from './result.ts'

const startIt = 'next: on its host, ss -ltn lists the ports that are open: start the service, or correct the port'
const wakeIt =
  'next: on its host, ss -ltnp names the process and shows in Recv-Q how many connections wait for it: it is stopped (ps -o stat,args -p PID shows T), overloaded, or at a limit'

/** What an operator can correct, and the command that tries the monitor afterwards. */
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
