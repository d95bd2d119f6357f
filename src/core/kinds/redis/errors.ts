import { listConnections } from '../../net/connections-step.ts'
import { quote, type Redact, sanitize } from '../../net/text.ts'
import { type FaultClass, MissingPrivilegeError, ProbeError, refusedSignIn } from '../../probe-error.ts'

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
  const refused = (reason: string): ProbeError => refusedSignIn(address, who, reason, [text])
  const code = /^[A-Z]+/.exec(error)?.[0] ?? ''
  switch (code) {
    case 'NOAUTH':
      return problem('auth', `${address} requires a sign-in: set password (and the user in url)`)
    case 'WRONGPASS':
      return refused('wrong password, or the user does not exist or is disabled')
    case 'NOPERM':
      return missingPermission(`ACL SETUSER ${sanitize(user ?? 'default', 64)} ${missingRule(error)}`, who, text)
    case 'LOADING':
      return problem('data', `${address} is still loading its data after a start and serves no requests yet`)
    case 'MASTERDOWN':
      return problem(
        'data',
        `${address} is a replica that has lost its primary and serves no requests until it is back`,
      )
    case 'BUSY':
      return problem(
        'data',
        `${address} is busy with a script or function and serves no other requests`,
        'next: SCRIPT KILL ends the script',
      )
    case 'DENIED':
      return problem('refused', `${address} is in protected mode: without a password it accepts only local clients`)
    case 'MISCONF':
      return problem(
        'data',
        `${address} accepts no writes: its last save to disk failed`,
        'check its log, the disk and the owner of its folder',
      )
    case 'OOM':
      return problem('data', `${address} accepts no writes: its memory is full (maxmemory)`)
    case 'NOREPLICAS':
      return problem('data', `${address} accepts no writes: it has too few healthy replicas (min-replicas-to-write)`)
    case 'READONLY':
      return problem('data', `${address} accepts no writes: it is a replica`)
    case 'CLUSTERDOWN':
      return problem('data', `${address} serves no requests: its cluster is down`, 'inspect: CLUSTER INFO')
    case 'MOVED':
    case 'ASK':
      return problem('data', `${address} does not have that key: it is on another node of the cluster`)
    default:
  }
  if (/max number of clients/i.test(error)) {
    return problem(
      'refused',
      `${address} has reached its maximum number of clients (maxclients)`,
      listConnections(address),
    )
  }
  if (/invalid password/i.test(error)) return refused('wrong password')
  if (/no password is set|without any password configured/i.test(error)) {
    return problem(
      'data',
      `${address} has no password although one is configured here: anyone who can reach it can use it`,
    )
  }
  if (user !== undefined && /wrong number of arguments for 'auth'/i.test(error)) {
    return problem('data', `${address} is older than Redis 6 and does not support users: remove ${who} from the url`)
  }
  return new ProbeError('protocol', `${address} answered ${quote(text, 200)}`)
}

const missingPermission = (grant: string, who: string, text: string): MissingPrivilegeError =>
  new MissingPrivilegeError(`${who} lacks a permission for this check, which ${grant} grants`, [grant, text])

/** The rule that an ACL lacks, according to the error of the server. Redis before 7 does not name all commands. */
function missingRule(error: string): string {
  if (/\bkeys?\b/.test(error.slice(0, 300))) return '~<key>'
  const [, command] = /'([\w|-]{1,64})'/.exec(error.slice(0, 300)) ?? []
  return command === undefined ? '+<command>' : `+${command.toLowerCase()}`
}
