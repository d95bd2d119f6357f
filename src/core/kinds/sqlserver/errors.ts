import { calledOff, type ErrorPlace, withoutTls } from '../../database/index.ts'
import { type Redact, sanitize } from '../../net/text.ts'
import { type FaultClass, ProbeError } from '../../probe-error.ts'

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
const auth = (what: string, ...details: string[]): Meaning => [
  'auth',
  (address, user) => `${address} refused the sign-in of ${user}: ${what}`,
  ...details,
]
const is = (fault: FaultClass, what: string, ...details: string[]): Meaning => [
  fault,
  (address) => `${address} ${what}`,
  ...details,
]

/** Error numbers that say more than 18456, which follows some of them. */
const meanings: Readonly<Record<number, Meaning>> = {
  4060: [
    'data',
    (address, user) => `${address} does not open that database for ${user}: no such database, or no user there`,
  ],
  4064: ['data', (address, user) => `${address} cannot open the default database of ${user}: name one in the url`],
  40615: is('refused', 'lets no client of this address in', 'next: a firewall rule of the server for this machine'),
  18452: auth(
    'the name is not one of a login here, and Windows accounts cannot sign in this way',
    'next: sign in with a login of SQL Server itself, and let the server take those (mixed mode)',
  ),
  18470: auth('the login is disabled', 'next: ALTER LOGIN … ENABLE'),
  18486: auth('the login is locked', 'next: ALTER LOGIN … WITH PASSWORD = … UNLOCK'),
  18487: auth('the password has expired'),
  18488: auth('the password must be changed first', 'next: sign in once with a tool that can change it'),
  18451: is('refused', 'lets only administrators in: it is starting, stopping or in single-user mode'),
  18461: is('refused', 'is in single-user mode, and somebody is in'),
  18401: is('refused', 'is not ready: it runs the scripts of an upgrade'),
  17142: is('refused', 'is paused: new sign-ins are not taken'),
  6005: is('refused', 'is shutting down'),
  17809: is('refused', 'is full: no connection is left', 'look: who holds them (sys.dm_exec_sessions)?'),
  10928: is('refused', 'is full: the limit of its service tier is reached'),
  10929: is('refused', 'is full: the limit of its service tier is reached'),
  40613: is('refused', 'has the database, and it is not available now'),
  40197: is('refused', 'cannot serve now: its service moves or is upgraded'),
  976: is('data', 'is a secondary, and the database of the url is not readable there'),
  978: is('data', 'is a secondary that takes only readers for that database', 'next: name no database in the url'),
  983: is('data', 'has that database in no role of its availability group in which it can be opened'),
  921: is('data', 'has not recovered that database yet'),
  922: is('data', 'is recovering that database'),
  927: is('data', 'is restoring that database'),
  942: is('data', 'has that database offline'),
  945: is('data', 'cannot open that database: files, memory or disk space are missing'),
}

/** The states of error 18456. The server sends 1 to clients and writes the real state only to its own log. */
const states: Readonly<Record<number, string>> = {
  1: 'wrong name or password, most likely; why is only in the error log of the server',
  2: 'there is no such login',
  5: 'there is no such login',
  6: 'a Windows account cannot sign in with a password',
  7: 'the login is disabled',
  8: 'the password is wrong',
  9: 'the password is wrong',
  11: 'the login is right, but may not connect (GRANT CONNECT SQL)',
  12: 'the login is right, but may not connect (GRANT CONNECT SQL)',
  18: 'the password must be changed first',
  38: 'the database of the url does not exist, or is closed to the login',
  40: 'the default database of the login cannot be opened',
  46: 'the database of the url cannot be opened',
  58: 'the server takes Windows accounts only (mixed mode is off)',
}

/** Explains an error of the driver or of the server. `told` contains the error tokens of a sign-in, in order. */
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
  const decisive = errors.find(({ number }) => meanings[number]) ?? errors.find(({ number }) => number === 18_456)
  const { number, state, message } = decisive ?? (errors[0] as ServerError)
  const user = `"${sanitize(target.user, 64)}"`
  const reason = sanitize(redact(message))
  const details = [`error ${number}, state ${state}${reason === '' ? '' : `: ${reason}`}`]
  const meant = meanings[number]
  if (meant) return new ProbeError(meant[0], meant[1](address, user), [...meant.slice(2).map(String), ...details])
  if (number === 18_456) {
    const why = states[state] ?? 'wrong name or password, most likely'
    return new ProbeError('auth', `${address} refused the sign-in of ${user}: ${why}`, details)
  }
  if (phase === 'sign-in') return new ProbeError('protocol', `${address} refused the connection: ${reason}`, details)
  if (phase === 'query' && permission.has(number)) {
    return new ProbeError('data', `${user} may not read that: ${reason}`, [...details, 'next: GRANT SELECT on it'])
  }
  if (phase === 'query' && number !== 1_222) return new ProbeError('data', `the query failed: ${reason}`, details)
  if (permission.has(number)) return new UnreadableError('permission', `${user} may not look: ${reason}`, details)
  if (absent.has(number)) {
    return new UnreadableError('absent', `this edition or version has not what is looked at: ${reason}`, details)
  }
  if (number === 1_222) return new ProbeError('timeout', 'waited for a lock, in vain', details)
  return new ProbeError('protocol', `the query failed: ${reason}`, details)
}

function fromDriver(error: unknown, cause: unknown, code: unknown, { address, redact }: SqlserverPlace): unknown {
  const { message } = error as { readonly message?: unknown }
  const reason = sanitize(redact(typeof message === 'string' ? message : ''))
  if (code === 'EENCRYPT') {
    if (/requires encryption/.test(reason)) {
      return new ProbeError('tls', `${address} takes encrypted connections only`, ['next: tls: {mode: verify}'])
    }
    if (/not negotiate/.test(reason)) return new ProbeError('tls', `${address} does not offer TLS`, [withoutTls])
  }
  if (code === 'ETIMEOUT') return calledOff()
  if (code === 'ELOGIN') return new ProbeError('protocol', `${address} refused the connection and did not say why`)
  // Errors of sockets and TLS.
  if (typeof (cause as { code?: unknown } | undefined)?.code === 'string') return cause
  if (/unexpected end of message stream|Connection closed|socket hang up/.test(reason)) {
    return new ProbeError('protocol', `${address} closed the connection before it answered`)
  }
  return new ProbeError('protocol', `${address} does not answer as SQL Server does`, reason === '' ? [] : [reason])
}
