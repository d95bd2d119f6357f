import { type DatabaseTarget, type ErrorPlace, withoutTls } from '../../database/index.ts'
import { sanitize } from '../../net/text.ts'
import { type FaultClass, MissingPrivilegeError, ProbeError, refusedSignIn } from '../../probe-error.ts'

/**
 * Explains an error of the driver or of the server. Leaves errors that `classify` handles unchanged. `isTlsUnused`: the
 * server offers TLS, and the connection is without it.
 */
export function mysqlFault(error: unknown, place: ErrorPlace, isTlsUnused = false): unknown {
  if (error instanceof ProbeError) return error
  const { code, errno, sqlState, message } = error as Record<'code' | 'errno' | 'sqlState' | 'message', unknown>
  const reason = sanitize(typeof message === 'string' ? message : '')
  if (typeof errno === 'number' && typeof sqlState === 'string') return fromServer(errno, reason, place, isTlsUnused)
  return fromDriver(code, reason, error, place)
}

export const closedBeforeAnswer = (address: string): ProbeError =>
  new ProbeError('protocol', `${address} closed the connection before it answered`)

/** Error numbers of the server, which MySQL and MariaDB share. */
const meaning: Readonly<
  Record<
    number,
    | 'refused sign-in'
    | 'expired'
    | 'full'
    | 'no database'
    | 'not in'
    | 'down'
    | 'may not'
    | 'would write'
    | 'too long'
    | 'no space'
    | 'read-only'
    | 'locked'
    | 'without TLS'
  >
> = {
  1040: 'full',
  1203: 'full',
  1226: 'full',
  1045: 'refused sign-in',
  1129: 'refused sign-in',
  1130: 'refused sign-in',
  1698: 'refused sign-in',
  1820: 'expired',
  1862: 'refused sign-in',
  3118: 'refused sign-in',
  4151: 'refused sign-in',
  1044: 'not in',
  1049: 'no database',
  1053: 'down',
  1142: 'may not',
  1143: 'may not',
  1370: 'may not',
  1227: 'may not',
  1792: 'would write',
  1317: 'too long',
  1969: 'too long',
  3024: 'too long',
  3: 'no space',
  1021: 'no space',
  1114: 'no space',
  1290: 'read-only',
  1836: 'read-only',
  1205: 'locked',
  3159: 'without TLS',
}
/** The server answers so to a wrong password, and to a right one without TLS for an account that requires it. */
const accessDenied = 1_045
const withTls = 'next: tls: {mode: verify}, on loopback too'
/** A Galera node outside its cluster rejects every query with this number. */
const unknownCommand = 1_047

function fromServer(
  errno: number,
  reason: string,
  { address, target, phase }: ErrorPlace,
  isTlsUnused: boolean,
): ProbeError {
  const probeError = (fault: FaultClass, message: string, ...details: string[]): ProbeError =>
    new ProbeError(fault, message, [...details, `error ${errno}`])
  const user = `"${sanitize(target.user, 64)}"`
  switch (meaning[errno]) {
    case 'refused sign-in':
      if (phase === 'sign-in') {
        return isTlsUnused && errno === accessDenied
          ? refusedSignIn(address, user, `${reason}, or the account may sign in over TLS only (REQUIRE SSL)`, [
              withTls,
              `error ${errno}`,
            ])
          : refusedSignIn(address, user, reason, [`error ${errno}`])
      }
      return missingPrivilege(errno, reason, target)
    case 'expired':
      return probeError(
        'auth',
        `${address} refuses every statement of ${user}, because its password has expired: ${reason}`,
        'next: ALTER USER … IDENTIFIED BY a new password, or … PASSWORD EXPIRE NEVER',
      )
    case 'without TLS':
      return probeError('tls', `${address} accepts connections over TLS only: ${reason}`, withTls)
    case 'full':
      return probeError(
        'refused',
        `${address} accepts no more connections: ${reason}`,
        'next: as an administrator, SHOW PROCESSLIST shows who holds the connections',
      )
    case 'no database':
      return probeError('data', `${address} has no such database: ${reason}`)
    case 'not in':
      return probeError('data', `${address} denies ${user} access to the database: ${reason}`)
    case 'down':
      return probeError('refused', `${address} is shutting down: ${reason}`)
    case 'would write':
      return probeError('data', `the query would write, and was refused: ${reason}`)
    case 'may not':
      if (phase === 'query')
        return probeError('data', `${user} may not read the table: ${reason}`, 'next: GRANT SELECT on it')
      return missingPrivilege(errno, reason, target)
    case 'no space':
      return probeError(
        'data',
        `${address} has no space left for data: ${reason}`,
        'next: free space on the disk of its data directory',
      )
    case 'read-only':
      return probeError('data', `${address} accepts no writes: ${reason}`)
    case 'locked':
      return probeError('timeout', `another session holds a lock: ${reason}`, 'inspect: SHOW FULL PROCESSLIST')
    case 'too long':
      return probeError('timeout', reason)
    default:
  }
  if (phase === 'query') return probeError('data', `the query failed: ${reason}`)
  if (errno === unknownCommand) return probeError('data', `${address} does not accept queries: ${reason}`)
  return probeError(
    'protocol',
    phase === 'sign-in' ? `${address} refused the connection: ${reason}` : `the query failed: ${reason}`,
  )
}

/** With the GRANT to type, as far as the server names the privilege. */
function missingPrivilege(errno: number, reason: string, target: DatabaseTarget): MissingPrivilegeError {
  const user = sanitize(target.user, 64)
  const to = `TO '${user.replaceAll("'", "''")}'`
  const [, global = ''] = /\bthe ([A-Z ,]{1,200}?) privilege/.exec(reason) ?? []
  // Of several privileges that would do, SUPER is the first and the widest.
  const [narrowest] = global.split(', ').reverse()
  const [, commands = '', table = ''] =
    /^([A-Z ,]{1,100}) command denied .{0,300} for table (.{1,140})$/.exec(reason) ?? []
  const grants = [
    ...(narrowest ? [`GRANT ${narrowest} ON *.* ${to}`] : []),
    ...(commands === '' ? [] : [`GRANT ${commands} ON ${fullName(table.replaceAll("'", ''), target)} ${to}`]),
  ]
  const [grant] = grants
  const which = grant === undefined ? '' : `, which ${grant} grants`
  return new MissingPrivilegeError(`"${user}" lacks a privilege${which}: ${reason}`, [...grants, `error ${errno}`])
}

/** The name of a table for a GRANT. MariaDB names the database; MySQL does not. */
function fullName(table: string, { database }: DatabaseTarget): string {
  if (table.includes('.')) return table
  if (/^(?:replication_\w+|threads)$/.test(table)) return 'performance_schema.*'
  return database === '' ? table : `\`${sanitize(database, 64)}\`.\`${table}\``
}

function fromDriver(code: unknown, reason: string, error: unknown, { address }: ErrorPlace): unknown {
  if (code === 'HANDSHAKE_NO_SSL_SUPPORT') return new ProbeError('tls', `${address} does not offer TLS`, [withoutTls])
  if (code === 'HANDSHAKE_SSL_ERROR') return new ProbeError('tls', `TLS with ${address} failed: ${reason}`)
  if (code === 'PROTOCOL_CONNECTION_LOST') {
    return closedBeforeAnswer(address)
  }
  if (code === 'AUTH_SWITCH_PLUGIN_ERROR')
    return new ProbeError('protocol', `the sign-in at ${address} failed: ${reason}`)
  // Socket errors pass through. The driver's errors for invalid data have a code too, hence the other conditions.
  const { syscall } = error as { syscall?: unknown }
  if (typeof code === 'string' && (typeof syscall === 'string' || /^E[A-Z]+$/.test(code))) return error
  return new ProbeError('protocol', `${address} does not answer as MySQL does`, reason === '' ? [] : [reason])
}
