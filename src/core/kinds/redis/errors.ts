import { quote, type Redact, sanitize } from '../../net/text.ts'
import { type FaultClass, ProbeError } from '../../probe-error.ts'

/** The server that answered with an error, and the user it answered. */
type Peer = { readonly address: string; readonly redact: Redact; readonly user: string | undefined }

/**
 * Explains an error of the server to an operator.
 *
 * The first word of an error is its code. Servers before Redis 6 use `ERR` for almost all errors.
 */
export function redisError(error: string, { address, redact, user }: Peer): ProbeError {
  const text = sanitize(redact(error), 200)
  const who = quote(user ?? 'default', 64)
  const problem = (fault: FaultClass, message: string, ...next: string[]): ProbeError =>
    new ProbeError(fault, message, [...next, text])
  const code = /^[A-Z]+/.exec(error)?.[0] ?? ''
  switch (code) {
    case 'NOAUTH':
      return problem('auth', `${address} wants a sign-in: set password (and the user in url)`)
    case 'WRONGPASS':
      return problem('auth', `${address} refused the sign-in of ${who}: wrong password, no such user, or it is off`)
    case 'NOPERM':
      return problem('data', `${who} may not look: ${text}`, 'next: ACL SETUSER on the server, for what is named')
    case 'LOADING':
      return problem('data', `${address} has just started and is loading its data: it answers nothing else yet`)
    case 'MASTERDOWN':
      return problem('data', `${address} is a replica that has lost its primary, and serves nothing meanwhile`)
    case 'BUSY':
      return problem(
        'data',
        `${address} is busy with a script or function: it answers nothing else`,
        'look: SCRIPT KILL',
      )
    case 'DENIED':
      return problem(
        'refused',
        `${address} is in protected mode: it lets in only its own machine while it has no password`,
      )
    case 'MISCONF':
      return problem(
        'data',
        `${address} takes no writes: its last save to disk failed`,
        'look: its log, the disk, who owns its folder',
      )
    case 'OOM':
      return problem('data', `${address} takes no writes: its memory is full (maxmemory)`)
    case 'NOREPLICAS':
      return problem('data', `${address} takes no writes: it has fewer good replicas than it must have`)
    case 'READONLY':
      return problem('data', `${address} takes no writes: it is a replica`)
    case 'CLUSTERDOWN':
      return problem('data', `${address} serves nothing: its cluster is down`, 'look: CLUSTER INFO')
    case 'MOVED':
    case 'ASK':
      return problem('data', `${address} does not have that key: it is on another node of the cluster`)
    default:
  }
  if (/max number of clients/i.test(error)) {
    return problem('refused', `${address} is full: it has as many clients as it takes (maxclients)`)
  }
  if (/invalid password/i.test(error))
    return problem('auth', `${address} refused the sign-in of ${who}: wrong password`)
  if (/no password is set|without any password configured/i.test(error)) {
    return problem('data', `${address} has no password, but one is configured here: whoever reaches it may use it`)
  }
  if (user !== undefined && /wrong number of arguments for 'auth'/i.test(error)) {
    return problem('data', `${address} is older than Redis 6 and knows no users: take ${who} out of the url`)
  }
  return new ProbeError('protocol', `${address} answered ${quote(text, 200)}`)
}
