import { type ErrorPlace, withoutTls } from '../../database/index.ts'
import { said } from '../../net/text.ts'
import { type FaultClass, ProbeError } from '../../probe-error.ts'

/** What an error of the driver or of the server means; one that classify knows is given back as it is. */
export function postgresFault(error: unknown, place: ErrorPlace): unknown {
  if (error instanceof ProbeError) return error
  const { code, severity, message } = error as { code?: unknown; severity?: unknown; message?: unknown }
  const told = said(typeof message === 'string' ? message : '')
  // A socket's error has a code too (EPIPE is as long as an SQLSTATE), but no severity.
  if (typeof severity === 'string' && typeof code === 'string') return fromServer(code, told, place)
  if (typeof code === 'string' && !/^ERR_(?!TLS|SSL)/.test(code)) return error
  return fromDriver(told, place)
}

function fromServer(code: string, told: string, place: ErrorPlace): ProbeError {
  const { address, target, phase } = place
  const found = (fault: FaultClass, message: string, ...details: string[]): ProbeError =>
    new ProbeError(fault, message, [...details, `SQLSTATE ${said(code, 8)}`])
  const user = `"${said(target.user, 64)}"`
  switch (code) {
    case '28P01':
    case '28000':
      return found('auth', `${address} refused the sign-in of ${user}: ${told}`)
    case '3D000':
      return found('data', `${address} has no such database: ${told}`)
    case '53300':
      return found('refused', `${address} is full: ${told}`, 'look: who holds the connections (pg_stat_activity)?')
    case '57P03':
      return found('refused', `${address} is not ready: ${told}`)
    case '57P01':
    case '57P02':
      return found('refused', `${address} is shutting down: ${told}`)
    case '57014':
      return found('timeout', told)
    case '55P03':
      return found('timeout', 'waited for a lock, in vain', 'look: SELECT * FROM pg_locks WHERE NOT granted')
    case '42501':
      if (phase === 'sign-in') return found('data', `${address} does not let ${user} into the database: ${told}`)
      if (phase === 'query') return found('data', `${user} may not read that: ${told}`, 'next: GRANT SELECT on it')
      return found('data', `${user} may not look: ${told}`, grantTo(target.user))
    default:
      if (phase === 'query' && code === '25006') return found('data', `it would write, and was refused: ${told}`)
      if (phase === 'query') return found('data', `the query failed: ${told}`)
      if (phase === 'sign-in') return found('protocol', `${address} refused the connection: ${told}`)
      return found('protocol', `the query failed: ${told}`)
  }
}

/** The statement that lets a role see what the checks look at. */
export const grantTo = (user: string): string => `GRANT pg_monitor TO "${said(user, 64).replaceAll('"', '""')}"`

/** The driver's own errors have no codes. */
function fromDriver(told: string, { address }: ErrorPlace): ProbeError {
  if (/does not support SSL/i.test(told)) return new ProbeError('tls', `${address} does not offer TLS`, [withoutTls])
  if (/establishing an SSL connection/i.test(told)) {
    return new ProbeError('tls', `${address} answered the wish for TLS with an error`, [withoutTls])
  }
  if (/terminated/i.test(told)) return new ProbeError('protocol', `${address} closed the connection before it answered`)
  if (/^SASL|password|SCRAM/i.test(told)) return new ProbeError('protocol', `the sign-in at ${address} failed: ${told}`)
  return new ProbeError('protocol', `${address} does not answer as PostgreSQL does`, told === '' ? [] : [told])
}
