import { listConnections } from '../../../base/net/connect.ts'
import { sanitize } from '../../../base/net/text.ts'
import { type FaultClass, MissingPrivilegeError, ProbeError, refusedSignIn } from '../../../base/probe-error.ts'
import { type ErrorPlace, withoutTls } from '../../database/index.ts'

/** Explains an error of the driver or of the server. Leaves errors that `classify` handles unchanged. */
export function postgresFault(error: unknown, place: ErrorPlace): unknown {
  if (error instanceof ProbeError) return error
  const { code, severity, message } = error as { code?: unknown; severity?: unknown; message?: unknown }
  const reason = sanitize(typeof message === 'string' ? message : '')
  // Socket errors have a code too (EPIPE is as long as an SQLSTATE), but no severity.
  if (typeof severity === 'string' && typeof code === 'string') return fromServer(code, reason, place)
  if (typeof code === 'string' && !/^ERR_(?!TLS|SSL)/.test(code)) return error
  return fromDriver(reason, place)
}

function fromServer(code: string, reason: string, place: ErrorPlace): ProbeError {
  const { address, target, phase } = place
  const probeError = (fault: FaultClass, message: string, ...details: string[]): ProbeError =>
    new ProbeError(fault, message, [...details, `SQLSTATE ${sanitize(code, 8)}`])
  const user = `"${sanitize(target.user, 64)}"`
  const pooler = code === '08P01' ? fromPooler(reason, { address, user }) : undefined
  if (pooler) return pooler
  switch (code) {
    case '28P01':
    case '28000':
      return refusedSignIn(address, user, reason, [`SQLSTATE ${sanitize(code, 8)}`])
    case '3D000':
      return probeError('data', `${address} does not have this database: ${reason}`)
    case '53300':
      return probeError(
        'refused',
        `${address} has no free connection: ${reason}`,
        'next: as a superuser, SELECT * FROM pg_stat_activity shows who holds the connections',
      )
    case '57P03':
      return probeError('refused', `${address} is not ready: ${reason}`)
    case '57P01':
    case '57P02':
      return probeError('refused', `${address} is shutting down: ${reason}`)
    case '53100':
      return probeError('data', `${address} has no space left: ${reason}`)
    case '57014':
      return probeError('timeout', reason)
    case '55P03':
      return probeError('timeout', 'timed out waiting for a lock', 'inspect: SELECT * FROM pg_locks WHERE NOT granted')
    case '42501':
      if (phase === 'sign-in') return probeError('data', `${address} denies ${user} access to the database: ${reason}`)
      if (phase === 'write') return new MissingPrivilegeError(`${user} may not write: ${reason}`, [])
      if (phase === 'query')
        return probeError('data', `${user} has no permission to read this: ${reason}`, 'next: grant SELECT on it')
      return new MissingPrivilegeError(`${user} lacks a privilege, which ${grantTo(target.user)} grants: ${reason}`, [
        grantTo(target.user),
        'SQLSTATE 42501',
      ])
    default:
      if (phase === 'query' && code === '25006')
        return probeError('data', `the query was rejected because it writes: ${reason}`)
      if (phase === 'write') return probeError('data', `the write failed: ${reason}`)
      if (phase === 'query') return probeError('data', `the query failed: ${reason}`)
      if (phase === 'sign-in') return probeError('protocol', `${address} refused the connection: ${reason}`)
      return probeError('protocol', `the query failed: ${reason}`)
  }
}

export const inspectPools = 'inspect: SHOW POOLS and SHOW SERVERS on the console of PgBouncer'

/** PgBouncer reports every error with the code of a protocol violation. */
function fromPooler(
  reason: string,
  { address, user }: { readonly address: string; readonly user: string },
): ProbeError | undefined {
  const accepted = `PgBouncer at ${address} accepted the connection`
  const probeError = (fault: FaultClass, message: string, ...details: string[]): ProbeError =>
    new ProbeError(fault, message, [...details, 'SQLSTATE 08P01'])
  if (/^(?:query_wait_timeout|client_login_timeout)/.test(reason)) {
    const why = 'no connection to its server became free: the pool is exhausted, or the server is gone'
    return probeError('timeout', `${accepted}, but ${why} (${reason})`, inspectPools)
  }
  if (/^(?:server (?:login|conn)|pgbouncer cannot connect|connect failed|(?:server_)?connect_timeout)/.test(reason))
    return probeError('refused', `${accepted}, but cannot reach its server: ${reason}`, inspectPools)
  if (reason.startsWith('no such database'))
    return probeError('data', `PgBouncer at ${address} does not have this database: ${reason}`)
  if (/^(?:SASL|password) authentication failed/.test(reason))
    return refusedSignIn(address, user, reason, ['SQLSTATE 08P01'])
  if (reason === 'not allowed')
    return probeError(
      'data',
      `PgBouncer at ${address} does not let ${user} use its console`,
      'next: add it to stats_users',
    )
  if (reason.startsWith('no more connections allowed'))
    return probeError('refused', `PgBouncer at ${address} has no free connection: ${reason}`, listConnections(address))
  return undefined
}

/** The statement that lets a role see what the checks read. */
export const grantTo = (user: string): string => `GRANT pg_monitor TO ${identifier(user)}`

/** A quoted SQL identifier. */
export const identifier = (name: string): string => `"${sanitize(name, 64).replaceAll('"', '""')}"`

/** The driver's own errors have no code. */
function fromDriver(reason: string, { address }: ErrorPlace): ProbeError {
  if (/does not support SSL/i.test(reason)) return new ProbeError('tls', `${address} does not offer TLS`, [withoutTls])
  if (/establishing an SSL connection/i.test(reason)) {
    return new ProbeError('tls', `${address} replied to the TLS request with an error`, [withoutTls])
  }
  if (/terminated/i.test(reason))
    return new ProbeError('protocol', `${address} closed the connection before it answered`)
  if (/^SASL|password|SCRAM/i.test(reason))
    return new ProbeError('protocol', `the sign-in at ${address} failed: ${reason}`)
  return new ProbeError('protocol', `${address} does not speak the PostgreSQL protocol`, reason === '' ? [] : [reason])
}
