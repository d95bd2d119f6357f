import { type Redact, sanitize } from '../../../base/net/text.ts'
import { type FaultClass, ProbeError, refusedSignIn } from '../../../base/probe-error.ts'
import { calledOff, type ErrorPlace, withoutTls } from '../../database/index.ts'

/** `redact` replaces the password in text of the server. */
export type SqlserverPlace = ErrorPlace & { readonly redact: Redact }

/** An error token of the server. */
export type ServerError = { readonly number: number; readonly state: number; readonly message: string }

/** The account, the edition or the version prevents a check from reading: no failure of the database. */
export class UnreadableError extends ProbeError {
  readonly why: 'permission' | 'absent'
  constructor(why: 'permission' | 'absent', message: string, details: readonly string[]) {
    super('data', message, details)
    this.why = why
  }
}

const permission = new Set([229, 230, 262, 297, 300, 916, 15_247])
const absent = new Set([195, 207, 208, 2_812, 40_515])

type Meaning = readonly [fault: FaultClass, what: (address: string, user: string) => string, ...details: string[]]
const is = (fault: FaultClass, what: string, ...details: string[]): Meaning => [
  fault,
  (address) => `${address} ${what}`,
  ...details,
]

/** Error numbers that say more than 18456, which follows some of them. */
const meanings: Readonly<Record<number, Meaning>> = {
  4060: [
    'data',
    (address, user) => `${address} denies ${user} access to the database: it does not exist, or has no such user`,
  ],
  4064: [
    'data',
    (address, user) => `${address} cannot open the default database of ${user}: set a database in the url`,
  ],
  40615: is(
    'refused',
    'accepts no clients from this address',
    'next: add a firewall rule for this machine on the server',
  ),
  18451: is('refused', 'accepts only administrators: it is starting, stopping or in single-user mode'),
  18461: is('refused', 'is in single-user mode, and its only connection is in use'),
  18401: is('refused', 'is not ready: it is running upgrade scripts'),
  17142: is('refused', 'is paused: it accepts no new sign-ins'),
  6005: is('refused', 'is shutting down'),
  17809: is(
    'refused',
    'has no free connection',
    'next: as an administrator, SELECT * FROM sys.dm_exec_sessions shows who holds the connections',
  ),
  10928: is('refused', 'has reached the limit of its service tier'),
  10929: is('refused', 'has reached the limit of its service tier'),
  40613: is('refused', 'reports that the database is currently unavailable'),
  40197: is('refused', 'is temporarily unavailable: its service is being moved or upgraded'),
  976: is('data', 'is a secondary on which the database of the url is not readable'),
  978: is(
    'data',
    'is a secondary that allows only read-only connections to this database',
    'next: name no database in the url',
  ),
  983: is('data', 'cannot open this database in its current availability-group role'),
  921: is('data', 'has not recovered this database yet'),
  922: is('data', 'is recovering this database'),
  927: is('data', 'is restoring this database'),
  942: is('data', 'has taken this database offline'),
  1101: is('data', 'has no space left for the data of this database', 'next: enlarge its files or free disk space'),
  1105: is('data', 'has no space left for the data of this database', 'next: enlarge its files or free disk space'),
  9002: is('data', 'has no space left in the log of this database', 'inspect: log_reuse_wait_desc in sys.databases'),
  3906: is('data', 'accepts no writes: this database is read-only'),
  945: is('data', 'cannot open this database: files, memory or disk space are missing'),
}

/** Error numbers of refused sign-ins that say more than 18456: why, and the next steps. */
const refusals: Readonly<Record<number, readonly [reason: string, ...details: string[]]>> = {
  18452: [
    'there is no SQL Server login of this name, and Windows accounts cannot sign in this way',
    'next: use a SQL Server login, and enable mixed mode on the server',
  ],
  18470: ['the login is disabled', 'next: ALTER LOGIN … ENABLE'],
  18486: ['the login is locked', 'next: ALTER LOGIN … WITH PASSWORD = … UNLOCK'],
  18487: ['the password has expired'],
  18488: ['the password must be changed first', 'next: sign in once with a tool that can change it'],
}

/** The states of error 18456. The server sends 1 to clients and writes the real state only to its own log. */
const states: Readonly<Record<number, string>> = {
  1: 'probably a wrong name or password; the exact reason is in the error log of the server',
  2: 'the login does not exist',
  5: 'the login does not exist',
  6: 'a Windows account cannot sign in with a password',
  7: 'the login is disabled',
  8: 'the password is wrong',
  9: 'the password is wrong',
  11: 'the login may not connect (GRANT CONNECT SQL)',
  12: 'the login may not connect (GRANT CONNECT SQL)',
  18: 'the password must be changed first',
  38: 'the database of the url does not exist, or the login has no access to it',
  40: 'the default database of the login cannot be opened',
  46: 'the database of the url cannot be opened',
  58: 'the server accepts only Windows accounts (mixed mode is off)',
}

/** Explains an error of the driver or of the server. `signInErrors` contains the error tokens of a sign-in, in order. */
export function sqlserverFault(
  error: unknown,
  place: SqlserverPlace,
  signInErrors: readonly ServerError[] = [],
): unknown {
  const { cause, code } = error as { readonly cause?: unknown; readonly code?: unknown }
  if (error instanceof ProbeError) return error
  if (cause instanceof ProbeError) return cause
  const errors = signInErrors.length > 0 ? signInErrors : serverErrors(error)
  if (errors.length > 0) return fromServer(errors, place)
  return fromDriver(error, cause, code, place)
}

function serverErrors(error: unknown): readonly ServerError[] {
  const all: readonly unknown[] = error instanceof AggregateError ? error.errors : [error]
  return all.flatMap((one) => {
    const { number, state, message } = one as Partial<ServerError>
    return typeof number === 'number' ? [{ number, state: Number(state), message: String(message) }] : []
  })
}

function fromServer(errors: readonly ServerError[], { target, address, phase, redact }: SqlserverPlace): ProbeError {
  const decisive =
    errors.find(({ number }) => meanings[number] ?? refusals[number]) ?? errors.find(({ number }) => number === 18_456)
  const { number, state, message } = decisive ?? (errors[0] as ServerError)
  const user = `"${sanitize(target.user, 64)}"`
  const reason = sanitize(redact(message))
  const details = [`error ${number}, state ${state}${reason === '' ? '' : `: ${reason}`}`]
  const meaning = meanings[number]
  if (meaning) {
    const [fault, describe, ...hints] = meaning
    return new ProbeError(fault, describe(address, user), [...hints.map(String), ...details])
  }
  const refusal = refusals[number]
  if (refusal) {
    const [why, ...hints] = refusal
    return refusedSignIn(address, user, why, [...hints, ...details])
  }
  if (number === 18_456) {
    const why = states[state] ?? 'probably a wrong name or password'
    return refusedSignIn(address, user, why, details)
  }
  if (phase === 'sign-in') return new ProbeError('protocol', `${address} refused the connection: ${reason}`, details)
  if (phase === 'query' && permission.has(number)) {
    return new ProbeError('data', `${user} has no permission to read this: ${reason}`, [
      ...details,
      'next: grant SELECT on it',
    ])
  }
  if (phase === 'query' && number !== 1_222) return new ProbeError('data', `the query failed: ${reason}`, details)
  if (permission.has(number))
    return new UnreadableError('permission', `${user} lacks a permission for this check: ${reason}`, details)
  if (absent.has(number)) {
    return new UnreadableError('absent', `this edition or version does not provide this data: ${reason}`, details)
  }
  if (number === 1_222) return new ProbeError('timeout', 'timed out waiting for a lock', details)
  return new ProbeError('protocol', `the query failed: ${reason}`, details)
}

function fromDriver(error: unknown, cause: unknown, code: unknown, { address, redact }: SqlserverPlace): unknown {
  const { message } = error as { readonly message?: unknown }
  const reason = sanitize(redact(typeof message === 'string' ? message : ''))
  if (code === 'EENCRYPT') {
    if (/requires encryption/.test(reason)) {
      return new ProbeError('tls', `${address} requires an encrypted connection`, ['next: tls: {mode: verify}'])
    }
    if (/not negotiate/.test(reason)) return new ProbeError('tls', `${address} does not offer TLS`, [withoutTls])
  }
  if (code === 'ETIMEOUT') return calledOff()
  if (code === 'ELOGIN') return new ProbeError('protocol', `${address} refused the connection without giving a reason`)
  // Errors of sockets and TLS.
  if (typeof (cause as { code?: unknown } | undefined)?.code === 'string') return cause
  if (/unexpected end of message stream|Connection closed|socket hang up/.test(reason)) {
    return closedBeforeAnswer(address)
  }
  return new ProbeError('protocol', `${address} does not speak the SQL Server protocol`, reason === '' ? [] : [reason])
}

/** The error for a server that closed the connection instead of answering. */
export const closedBeforeAnswer = (address: string): ProbeError =>
  new ProbeError('protocol', `${address} closed the connection before it answered`)
