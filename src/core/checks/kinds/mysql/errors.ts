import { sanitize } from '../../../base/net/text.ts'
import { type FaultClass, MissingPrivilegeError, ProbeError, refusedSignIn } from '../../../base/probe-error.ts'
import { type DatabaseTarget, type ErrorPlace, withoutTls } from '../../database/index.ts'

type MysqlPlace = ErrorPlace & {
  /** The account that is signed in, as a GRANT names it. Absent where it is not known. */
  readonly account?: string | undefined
}

/** `monitor@localhost` as a GRANT names it: `'monitor'@'localhost'`. A user name may contain an @, a host name may not. */
export function grantee(account: string): string | undefined {
  const at = account.lastIndexOf('@')
  const written = (text: string): string => `'${sanitize(text, 255).replaceAll("'", "''")}'`
  return at < 0 ? undefined : `${written(account.slice(0, at))}@${written(account.slice(at + 1))}`
}

/** Whether the server refuses a statement for a missing privilege. */
export const isPrivilegeLacking = (error: unknown): boolean =>
  lacksPrivilege.has((error as { readonly errno?: unknown } | null)?.errno as number)

/**
 * Explains an error of the driver or of the server. Leaves errors that `classify` handles unchanged. `isTlsUnused`: the
 * server offers TLS, and the connection is without it.
 */
export function mysqlFault(error: unknown, place: MysqlPlace, isTlsUnused = false): unknown {
  if (error instanceof ProbeError) return error
  const { code, errno, sqlState, message } = error as Record<'code' | 'errno' | 'sqlState' | 'message', unknown>
  const reason = sanitize(typeof message === 'string' ? message : '')
  if (typeof errno === 'number' && typeof sqlState === 'string') return fromServer(errno, reason, place, isTlsUnused)
  return fromDriver(code, reason, error, place)
}

export const closedBeforeAnswer = (address: string): ProbeError =>
  new ProbeError('protocol', `${address} closed the connection before it answered`)

type Meaning = readonly [fault: FaultClass, what: (address: string, user: string) => string, ...next: string[]]
const is = (fault: FaultClass, what: string, ...next: string[]): Meaning => [
  fault,
  (address) => `${address} ${what}`,
  ...next,
]
const full = is(
  'refused',
  'accepts no more connections',
  'next: as an administrator, SHOW PROCESSLIST shows who holds the connections',
)
const noSpace = is('data', 'has no space left for data', 'next: free space on the disk of its data directory')
const readOnly = is('data', 'accepts no writes')

const withTls = 'next: tls: {mode: verify}, on loopback too'
/** Error numbers of the server, which MySQL and MariaDB share. The reason of the server follows. */
const meanings: Readonly<Record<number, Meaning>> = {
  3: noSpace,
  1021: noSpace,
  1114: noSpace,
  1040: full,
  1203: full,
  1226: full,
  1290: readOnly,
  1836: readOnly,
  1044: ['data', (address, user) => `${address} denies ${user} access to the database`],
  1049: is('data', 'has no such database'),
  1053: is('refused', 'is shutting down'),
  1205: ['timeout', () => 'another session holds a lock', 'inspect: SHOW FULL PROCESSLIST'],
  1792: ['data', () => 'the query would write, and was refused'],
  1820: [
    'auth',
    (address, user) => `${address} refuses every statement of ${user}, because its password has expired`,
    'next: ALTER USER … IDENTIFIED BY a new password, or … PASSWORD EXPIRE NEVER',
  ],
  3159: is('tls', 'accepts connections over TLS only', withTls),
}
const refusesSignIn = new Set([1_045, 1_129, 1_130, 1_698, 1_862, 3_118, 4_151])
const lacksPrivilege = new Set([1_142, 1_143, 1_227, 1_370])
const tookTooLong = new Set([1_317, 1_969, 3_024])
/** The server answers so to a wrong password, and to a right one without TLS for an account that requires it. */
const accessDenied = 1_045
/** A Galera node outside its cluster rejects every query with this number. */
const unknownCommand = 1_047

function fromServer(
  errno: number,
  reason: string,
  { address, target, phase, account }: MysqlPlace,
  isTlsUnused: boolean,
): ProbeError {
  const probeError = (fault: FaultClass, message: string, ...details: string[]): ProbeError =>
    new ProbeError(fault, message, [...details, `error ${errno}`])
  const user = `"${sanitize(target.user, 64)}"`
  const meaning = meanings[errno]
  if (meaning) {
    const [fault, what, ...next] = meaning
    return probeError(fault, `${what(address, user)}: ${reason}`, ...next)
  }
  if (tookTooLong.has(errno)) return probeError('timeout', reason)
  if (phase === 'sign-in' && refusesSignIn.has(errno)) {
    return isTlsUnused && errno === accessDenied
      ? refusedSignIn(address, user, `${reason}, or the account may sign in over TLS only (REQUIRE SSL)`, [
          withTls,
          `error ${errno}`,
        ])
      : refusedSignIn(address, user, reason, [`error ${errno}`])
  }
  if (phase === 'query' && lacksPrivilege.has(errno))
    return probeError('data', `${user} may not read the table: ${reason}`, 'next: GRANT SELECT on it')
  if (refusesSignIn.has(errno) || lacksPrivilege.has(errno)) return missingPrivilege(errno, reason, target, account)
  if (phase === 'query') return probeError('data', `the query failed: ${reason}`)
  if (errno === unknownCommand) return probeError('data', `${address} does not accept queries: ${reason}`)
  return probeError(
    'protocol',
    phase === 'sign-in' ? `${address} refused the connection: ${reason}` : `the query failed: ${reason}`,
  )
}

/** With the GRANT to type, as far as the server names the privilege. */
function missingPrivilege(
  errno: number,
  reason: string,
  target: DatabaseTarget,
  account?: string,
): MissingPrivilegeError {
  const user = sanitize(target.user, 64)
  const to = `TO ${account ?? `'${user.replaceAll("'", "''")}'`}`
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
