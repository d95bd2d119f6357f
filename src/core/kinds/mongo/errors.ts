import { type DatabaseTarget, withoutTls } from '../../database/index.ts'
import { type Redact, sanitize } from '../../net/text.ts'
import { type FaultClass, ProbeError, refusedSignIn } from '../../probe-error.ts'

export type MongoPlace = {
  readonly target: DatabaseTarget
  readonly address: string
  readonly phase: 'sign-in' | 'check'
  readonly redact: Redact
}

/** The account or the type of server prevents a check from observing: no failure of the database. */
export class UnavailableError extends ProbeError {
  readonly why: 'permission' | 'absent'
  constructor(why: 'permission' | 'absent', message: string, details: readonly string[]) {
    super('data', message, details)
    this.why = why
  }
}

/** Explains an error of the driver or of the server. Leaves errors that `classify` handles unchanged. */
export function mongoFault(error: unknown, where: MongoPlace): unknown {
  const root = rootOf(error)
  if (root) return root
  const { name, code, message } = error as Record<'name' | 'code' | 'message', unknown>
  const reason = sanitize(where.redact(typeof message === 'string' ? message : ''))
  if (typeof code === 'number') return fromServer(code, reason, where)
  return fromDriver(String(name), reason, where)
}

/** The driver wraps socket errors. */
function rootOf(error: unknown): unknown {
  let one = error
  for (let depth = 0; depth < 6 && one instanceof Error; depth += 1) {
    if (one instanceof ProbeError) return one
    const { code } = one as { readonly code?: unknown }
    if (typeof code === 'string' && !/^ERR_(?!TLS|SSL)/.test(code)) return one
    one = one.cause
  }
  return undefined
}

type Meaning = 'refused sign-in' | 'may not' | 'absent' | 'too long' | 'no longer' | 'down' | 'no majority'
const meaning: Readonly<Record<number, Meaning>> = {
  11: 'refused sign-in',
  18: 'refused sign-in',
  8000: 'refused sign-in',
  13: 'may not',
  59: 'absent',
  76: 'absent',
  115: 'absent',
  238: 'absent',
  26: 'absent',
  50: 'too long',
  262: 'too long',
  89: 'too long',
  189: 'no longer',
  10107: 'no longer',
  13435: 'no longer',
  13436: 'no longer',
  11602: 'no longer',
  91: 'down',
  11600: 'down',
  64: 'no majority',
  79: 'no majority',
  100: 'no majority',
}

function fromServer(code: number, reason: string, { address, target, phase }: MongoPlace): ProbeError {
  const probeError = (fault: FaultClass, message: string, ...details: string[]): ProbeError =>
    new ProbeError(fault, message, [...details, `error ${code}`])
  const user = target.user === '' ? 'a client without a sign-in' : `"${sanitize(target.user, 64)}"`
  switch (meaning[code]) {
    case 'refused sign-in':
      return refusedSignIn(address, user, reason, [
        `the user is looked up in the database ${sanitize(target.database || 'admin', 64)}; the url can name another one`,
        `error ${code}`,
      ])
    case 'may not':
      return new UnavailableError('permission', `${user} lacks a privilege: ${reason}`, [`error ${code}`])
    case 'absent':
      return new UnavailableError('absent', `this server does not report this: ${reason}`, [`error ${code}`])
    case 'too long':
      return probeError('timeout', `the server aborted the command, which took too long: ${reason}`)
    case 'no longer':
      return probeError('data', `${address} is not a primary (any more, or yet): ${reason}`)
    case 'down':
      return probeError('refused', `${address} is shutting down: ${reason}`)
    case 'no majority':
      return probeError('timeout', `no majority acknowledged the write in time: ${reason}`)
    default:
      return probeError(
        'protocol',
        phase === 'sign-in' ? `${address} refused the connection: ${reason}` : `the command failed: ${reason}`,
      )
  }
}

/** For example `connection 3 to 10.0.0.1:27017 closed` or `Socket closed`. */
function tellsOfClosing(reason: string): boolean {
  const connection = reason.indexOf('connection ')
  return (
    reason.includes('Socket closed') ||
    (connection >= 0 && reason.includes(' closed', connection + 'connection '.length))
  )
}

function fromDriver(name: string, reason: string, { address, target }: MongoPlace): ProbeError {
  const details = reason === '' ? [] : [reason]
  if (name === 'MongoNetworkTimeoutError')
    return new ProbeError('timeout', `${address} did not answer in time`, details)
  if (tellsOfClosing(reason)) {
    const maybe = target.tls.mode === 'off' ? ['if the server accepts only TLS, set tls: {mode: verify}'] : [withoutTls]
    return new ProbeError('protocol', `${address} closed the connection before it answered`, maybe)
  }
  if (name === 'MongoCompatibilityError') {
    return new ProbeError('protocol', `${address} speaks no version that the driver supports`, details)
  }
  if (/signature|nonce|iteration count|SCRAM|conversation/i.test(reason)) {
    return new ProbeError(
      'protocol',
      `${address} did not prove that it knows the user: check that it is the right server`,
      details,
    )
  }
  return new ProbeError('protocol', `${address} does not answer as MongoDB does`, details)
}
