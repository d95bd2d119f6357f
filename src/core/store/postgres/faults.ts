import { Fault, StoreError, StoreOutage } from '../../base/errors.ts'
import { gone, taken, unavailable } from '../link.ts'
import { isSocket } from './address.ts'
import type { PostgresTarget } from './url.ts'

/** The server's SQLSTATE, or a code of the operating system. */
export const codeOf = (error: unknown): string => {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/**
 * Codes with which the server closes the connection. 25P03: the transaction has waited too long for its next statement, and
 * was rolled back.
 */
const closing = /^(08|57P|25P03)/

/** True when the server itself refused something. The connection is still usable then. */
export const isAnswer = (error: unknown): boolean => /^[0-9A-Z]{5}$/.test(codeOf(error)) && !closing.test(codeOf(error))

/** There was no connection in time. */
export class NoConnection extends Error {
  constructor() {
    super('No connection in time')
  }
}

/** The server accepts no writes, and another one may have the store. */
export class ReadOnlyHost extends Error {
  constructor() {
    super('The server accepts no writes')
  }
}

/** The connection broke before COMMIT was sent. Nothing has been changed, and another connection may work. */
export class NotCommitted extends NoConnection {}

/** True when PostgreSQL or PgBouncer accepts no more connections. */
export const isLimit = (error: unknown): boolean =>
  codeOf(error) === '53300' || (error instanceof Error && error.message.startsWith('no more connections allowed'))

/** True when a pooler in front of PostgreSQL refuses settings that belong to a whole connection. */
export const isSettingRefused = (error: unknown): boolean =>
  codeOf(error) === '08P01' && error instanceof Error && error.message.startsWith('unsupported startup parameter')

/** True for a serialization failure and a deadlock: nothing was changed, and a retry helps. */
export const isRepeatable = (error: unknown): boolean => ['40001', '40P01'].includes(codeOf(error))

/**
 * Keeps only message and code: the driver's errors also contain rows, and rows contain hashes. Nothing is inherited
 * from the driver's error, so no log can print more.
 */
const bare = (error: unknown): StoreError => {
  const message = error instanceof Error ? error.message : String(error)
  return new StoreError(`PostgreSQL ${codeOf(error)}: ${message}`)
}

/**
 * By the first characters of the SQLSTATE; the longest match wins. No address appears, because these faults go over
 * HTTP (S6).
 */
const meanings: Readonly<Record<string, (error: unknown) => Fault>> = {
  '23505': () => taken(),
  '23503': () => gone(),
  '40001': (error) => unavailable('is too busy', bare(error)),
  '40P01': (error) => unavailable('is too busy', bare(error)),
  '57P03': (error) => unavailable('accepts no connections at the moment', bare(error)),
  '57014': (error) => unavailable('does not answer in time', bare(error)),
  '55P03': (error) => unavailable('does not answer in time', bare(error)),
  '25006': (error) => unavailable('is read-only at the moment', bare(error)),
  '25P': (error) => unavailable('does not answer in time', bare(error)),
  '53100': (error) => unavailable('cannot be written: its disk is full', bare(error)),
  '53300': (error) => unavailable('accepts no more connections', bare(error)),
  '53': (error) => unavailable('is out of resources at the moment', bare(error)),
  '58': (error) => unavailable('cannot be read or written: its disk reports an error', bare(error)),
  '28': (error) => unavailable('rejects the account that svc uses', bare(error)),
  '3D': (error) => unavailable('does not exist', bare(error)),
  XX: (error) => unavailable('cannot be read or written: the database reports an internal error', bare(error)),
}

/** Translates an error of an open store. Errors without a remedy stay errors, stripped of their data. */
export function runningFault(error: unknown): Error {
  if (error instanceof Fault) return error
  const code = codeOf(error)
  const meaning = meanings[code] ?? meanings[code.slice(0, 3)] ?? meanings[code.slice(0, 2)]
  if (meaning) return meaning(error)
  if (isLimit(error)) return unavailable('accepts no more connections', bare(error))
  if (error instanceof ReadOnlyHost) return unavailable('is on no server that accepts writes', bare(error))
  if (isLate(error)) return unavailable('does not answer in time', bare(error))
  if (isConnectionLost(error)) return unavailable('cannot be reached', bare(error))
  // An error that does not come from the driver is a defect of ours, and its stack is needed.
  return code === '' && error instanceof Error ? error : bare(error)
}

const ofTheDriver = /^(Connection terminated|Query read timeout|Client has encountered a connection|Client was closed)/

/** True when nothing was heard of a server in time: it may be busy, and nobody has refused anything. */
const isLate = (error: unknown): boolean =>
  (error instanceof NoConnection && !(error instanceof NotCommitted)) ||
  (error instanceof Error && error.message.startsWith('Query read timeout'))

/** True when the connection broke, or there was none. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof NoConnection) return true
  const code = codeOf(error)
  if (closing.test(code)) return true
  if (/^E[A-Z_]{3,}$/.test(code) || (error instanceof AggregateError && error.errors.length > 0)) return true
  return error instanceof Error && ofTheDriver.test(error.message)
}

/** True when the name of a host is unknown. A name server that does not answer is another error. */
export const isUnknownHost = (error: unknown): boolean => codeOf(error) === 'ENOTFOUND'

/**
 * Translates an error from opening the store. Every fault names the store and the remedy. A StoreOutage may be over later; every
 * other fault is a mistake, which somebody has to correct.
 */
export function openingFault(error: unknown, { label, hosts, user, database }: PostgresTarget): Error {
  if (error instanceof Fault) return error
  const code = codeOf(error)
  const local = (what: string, ...hints: readonly string[]): Fault =>
    new Fault('Local', `The store ${label} ${what}`, { hints, cause: bare(error) })
  if (code === '28P01') {
    return local(
      `rejects the password of ${user}`,
      'Check the password in the file that SVC_STORE_PASSWORD_FILE names.',
    )
  }
  if (code.startsWith('28'))
    return local(`does not allow ${user} to connect from this machine`, 'Check pg_hba.conf on the database server.')
  if (code === '3D000') return local(`does not exist: there is no database ${database}`, `createdb ${database}`)
  if (code === '42501' || code === '3F000') {
    return local(`does not allow ${user} to create or use its tables`, 'Make that account the owner of the database.')
  }
  if (isTls(error)) {
    return local(
      `does not offer a trusted connection: ${error instanceof Error ? error.message : ''}`,
      hosts.every(({ ssl }) => ssl === false)
        ? 'To encrypt, use ?sslmode=verify-full.'
        : 'Set its CA with ?sslrootcert=FILE, or turn TLS off with ?sslmode=disable.',
    )
  }
  const outage = (why: string, more: string, ...hints: readonly string[]): StoreOutage =>
    new StoreOutage(why, { message: `The store ${label} ${why}${more}`, hints, cause: bare(error) })
  if (isLimit(error)) {
    return outage(
      'accepts no more connections',
      '',
      'Raise max_connections of the server or the limit of the account, or set fewer with ?connections= for each svc.',
    )
  }
  if (error instanceof ReadOnlyHost) {
    return outage('is on no server that accepts writes', '', `These are standbys or read-only: ${addresses(hosts)}.`)
  }
  if (isUnknownHost(error)) {
    const names = hosts.map(({ host }) => host).join(' or ')
    return new Fault('Unavailable', `The store ${label} cannot be reached: there is no host ${names}`, {
      hints: ['Correct the host in SVC_STORE, or its entry in DNS.'],
      cause: bare(error),
    })
  }
  if (code === 'EACCES') {
    return new Fault('Unavailable', `The store ${label} cannot be reached: no permission to use ${addresses(hosts)}`, {
      hints: ['Allow the account of svc to use the socket (unix_socket_permissions and the folder).'],
      cause: bare(error),
    })
  }
  if (code === '57P03') {
    return outage('accepts no connections at the moment', `: the server at ${addresses(hosts)} is starting or stopping`)
  }
  if (isConnectionLost(error)) {
    return outage(
      'cannot be reached',
      `: no PostgreSQL server responds at ${addresses(hosts)}`,
      'Is PostgreSQL running, and is SVC_STORE correct?',
    )
  }
  const running = runningFault(error)
  return running instanceof StoreOutage ? outage(running.why, '') : running
}

const addresses = (hosts: PostgresTarget['hosts']): string =>
  hosts
    .map((server) => (isSocket(server) ? `${server.host}/.s.PGSQL.${server.port}` : `${server.host}:${server.port}`))
    .join(' or ')

const isTls = (error: unknown): boolean =>
  /CERT|SELF_SIGNED|TLS|SSL|UNABLE_TO/.test(codeOf(error)) ||
  (error instanceof Error && /does not support SSL/.test(error.message))
