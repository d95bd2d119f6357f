import { Fault } from '../errors.ts'
import { gone, taken, unavailable } from './link.ts'
import type { PostgresTarget } from './postgres-url.ts'

/** SQLSTATE of the server, or a code of the operating system. */
export const codeOf = (error: unknown): string => {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** True when the server itself refused something: its connection is then still good. */
export const isAnswer = (error: unknown): boolean =>
  /^[0-9A-Z]{5}$/.test(codeOf(error)) && !/^(08|57P)/.test(codeOf(error))

/** There was no connection in time. */
export class NoConnection extends Error {
  constructor() {
    super('No connection in time')
  }
}

/** Serialization failure, deadlock: nothing was changed, and trying again helps. */
export const isRepeatable = (error: unknown): boolean => ['40001', '40P01'].includes(codeOf(error))

/**
 * Message and code only: the driver's errors also carry rows, and rows hold hashes. Nothing is
 * inherited from the driver's error, so no log can print more.
 */
const bare = (error: unknown): Error => {
  const message = error instanceof Error ? error.message : String(error)
  return new Error(`PostgreSQL ${codeOf(error)}: ${message}`)
}

/** By the first characters of the SQLSTATE; the longest that fits. No address: these go over HTTP (S6). */
const meanings: Readonly<Record<string, (error: unknown) => Fault>> = {
  '23505': () => taken(),
  '23503': () => gone(),
  '40001': (error) => unavailable('is too busy', bare(error)),
  '40P01': (error) => unavailable('is too busy', bare(error)),
  '57014': (error) => unavailable('does not answer in time', bare(error)),
  '55P03': (error) => unavailable('does not answer in time', bare(error)),
  '25006': (error) => unavailable('can only be read now', bare(error)),
  '25P': (error) => unavailable('does not answer in time', bare(error)),
  '53100': (error) => unavailable('cannot be written: its disk is full', bare(error)),
  '53': (error) => unavailable('has no room for this now', bare(error)),
  '58': (error) => unavailable('cannot be read or written: its disk reports an error', bare(error)),
  '28': (error) => unavailable('refuses its account', bare(error)),
  '3D': (error) => unavailable('is not there', bare(error)),
  XX: (error) => unavailable('cannot be read or written: it reports a failure of its own', bare(error)),
}

/** What an error of an open store means; one that is nobody's to mend is stripped, and stays an error. */
export function runningFault(error: unknown): Error {
  if (error instanceof Fault) return error
  const code = codeOf(error)
  const meaning = meanings[code] ?? meanings[code.slice(0, 3)] ?? meanings[code.slice(0, 2)]
  if (meaning) return meaning(error)
  if (isConnectionLost(error)) return unavailable('cannot be reached', bare(error))
  // An error that is not the driver's is a defect of ours, and its stack is wanted.
  return code === '' && error instanceof Error ? error : bare(error)
}

const ofTheDriver = /^(Connection terminated|Query read timeout|Client has encountered a connection|Client was closed)/

/** The connection broke, or there was none. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof NoConnection) return true
  const code = codeOf(error)
  if (/^(08|57P)/.test(code)) return true
  if (/^E[A-Z_]{3,}$/.test(code) || (error instanceof AggregateError && error.errors.length > 0)) return true
  return error instanceof Error && ofTheDriver.test(error.message)
}

/** What an error in opening means. Every one names the store, and what to do. */
export function openingFault(error: unknown, { label, host, port, user, database, ssl }: PostgresTarget): Error {
  if (error instanceof Fault) return error
  const code = codeOf(error)
  const local = (what: string, ...hints: readonly string[]): Fault =>
    new Fault('Local', `The store ${label} ${what}`, { hints, cause: bare(error) })
  if (code === '28P01') {
    return local(`refuses the password of ${user}`, 'The file that SVC_STORE_PASSWORD_FILE names should hold it.')
  }
  if (code.startsWith('28')) return local(`does not let ${user} in from here`, 'Its pg_hba.conf says who may.')
  if (code === '3D000') return local(`does not exist: there is no database ${database}`, `createdb ${database}`)
  if (code === '42501' || code === '3F000') {
    return local(`does not let ${user} make its tables, or use them`, 'Make that account the owner of the database.')
  }
  if (isTls(error)) {
    return local(
      `does not give a connection that can be trusted: ${error instanceof Error ? error.message : ''}`,
      ssl === false
        ? '?sslmode=verify-full encrypts.'
        : '?sslrootcert=FILE names its CA; ?sslmode=disable goes without.',
    )
  }
  if (isConnectionLost(error)) {
    return new Fault('Unavailable', `The store ${label} cannot be reached: nothing usable answers at ${host}:${port}`, {
      hints: ['Is PostgreSQL running, and SVC_STORE right?'],
      retryAfter: 5,
      cause: bare(error),
    })
  }
  return runningFault(error)
}

const isTls = (error: unknown): boolean =>
  /CERT|SELF_SIGNED|TLS|SSL|UNABLE_TO/.test(codeOf(error)) ||
  (error instanceof Error && /does not support SSL/.test(error.message))
