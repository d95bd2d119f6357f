import { constants } from 'node:os'
import { fileMeaning } from '../../base/file-errors.ts'
import { showDuration } from '../../base/format.ts'
import { silenceOf } from '../../base/net/connect.ts'
import { tlsErrorOf } from '../../base/net/tls-reasons.ts'
import {
  type FaultClass,
  MissingPrivilegeError,
  NotReachedError,
  ProbeError,
  RefusedSignInError,
} from '../../base/probe-error.ts'
import type { CheckContext } from './kind.ts'
import { fail, notChecked, type Result } from './result.ts'

type Classified = {
  readonly fault: FaultClass
  readonly message: string
  readonly details: readonly string[]
  /** `Result.refusal`. */
  readonly refusal?: string | undefined
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/**
 * Explains an error to an operator, like `explain`. A timeout at an address that has accepted the connection and sent
 * nothing says so, whatever noticed it: the deadline, a limit of the kind or its driver.
 */
export function classify(error: unknown, address: string | undefined, afterMs: number): Classified {
  const classified = explain(error, address, afterMs)
  if (classified.fault !== 'timeout' || address === undefined) return classified
  // A kind that says so itself adds what it expected.
  if (classified.message.includes('sent nothing')) return classified
  return { ...classified, message: silenceOf(address) ?? classified.message }
}

/** By the number of the system's error: libuv gives some of them without their name. */
const shortages: ReadonlyMap<number, string> = new Map([
  [constants.errno.EMFILE, 'svc has too many files open: raise its limit (ulimit -n, LimitNOFILE=)'],
  [constants.errno.ENFILE, 'this machine has too many files open'],
])

/**
 * The resource that svc itself lacked for a check, which then says nothing about the server. Drivers wrap the system's
 * error. Undefined for any other error.
 */
function shortageOf(error: unknown, depth = 0): string | undefined {
  if (typeof error !== 'object' || error === null || depth > 4) return undefined
  const { errno, syscall, cause, errors } = error as Readonly<Record<string, unknown>>
  // Servers number their errors, too, but only the system names its call.
  const isOfSystem = typeof errno === 'number' && typeof syscall === 'string'
  const shortage = isOfSystem ? shortages.get(Math.abs(errno)) : undefined
  if (shortage !== undefined) return shortage
  return shortageOf(cause, depth + 1) ?? (Array.isArray(errors) ? shortageOf(errors[0], depth + 1) : undefined)
}

/**
 * The result of a check that says nothing about the server: svc lacked a resource, or the way to the server failed.
 * Undefined for any other error.
 */
export function withoutVerdict(check: string, error: unknown, more: Partial<Result>): Result | undefined {
  if (error instanceof NotReachedError)
    return notChecked(check, error.reason, error.message, { ...more, details: error.details })
  const shortage = shortageOf(error)
  return shortage === undefined ? undefined : notChecked(check, 'starved', shortage, more)
}

/**
 * Explains an error of a socket, of TLS or of a name lookup to an operator. `address` is what was probed and `afterMs`
 * how long it took: a refusal after 2 ms means "host up, process down". Unknown errors are `internal` and keep their
 * message as a detail.
 */
function explain(error: unknown, address: string | undefined, afterMs: number): Classified {
  if (error instanceof ProbeError) {
    const { fault, message, details } = error
    return { fault, message, details, refusal: error instanceof RefusedSignInError ? error.reason : undefined }
  }
  const e = (error instanceof AggregateError ? error.errors[0] : error) as {
    code?: unknown
    message?: unknown
    path?: unknown
  }
  const code = text(e?.code)
  const errorText = text(e?.message)
  const at = address ?? 'the target'
  const took = showDuration(afterMs)
  const classified = (fault: FaultClass, message: string, details: readonly string[] = []): Classified => ({
    fault,
    message,
    details,
  })
  const meaning = fileMeaning(e)
  if (typeof e?.path === 'string' && meaning !== undefined)
    return classified('internal', `${e.path} ${meaning}`, [code])
  switch (code) {
    case 'ENOENT':
      if (at.startsWith('/')) return classified('refused', `${at} does not exist: no server listens at this socket`)
      break
    case 'ECONNREFUSED':
      if (at.startsWith('/'))
        return classified('refused', `${at} refused the connection: no server listens at this socket`)
      return classified('refused', `${at} refused the connection in ${took}: host up, nothing listens on that port`)
    case 'ECONNRESET':
    case 'EPIPE':
      return classified('protocol', `${at} closed the connection after ${took}, before it answered`)
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return classified('refused', `no route to ${at}: network or firewall, not the service`)
    case 'ETIMEDOUT':
      return classified('timeout', `${at} did not answer within ${took}`)
    case 'EACCES':
    case 'EPERM':
      return classified('internal', `this account lacks a permission: ${errorText}`)
    case 'ENOTFOUND':
    case 'ENODATA':
    case 'ESERVFAIL':
    case 'EREFUSED':
    case 'EAI_AGAIN':
    case 'ECANCELLED':
      return classified('dns', `the name of ${at} does not resolve (${code})`)
    default:
  }
  const explained = tlsErrorOf(e, at)
  if (explained) return classified('tls', explained.message, explained.details)
  if (isTlsCode(code)) return classified('tls', `TLS with ${at} failed: ${errorText || code}`, [code])
  return classified('internal', errorText ? firstLine(errorText) : 'failed without a message', code ? [code] : [])
}

const tlsCodes = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'EPROTO',
  'HOSTNAME_MISMATCH',
])
const isTlsCode = (code: string): boolean =>
  code.startsWith('ERR_TLS') || code.startsWith('CERT_') || tlsCodes.has(code)

const firstLine = (message: string): string => message.split(/\r?\n/, 1)[0] ?? message

/** Why one of several items could not be observed. */
export type Failure = {
  readonly fault: FaultClass
  readonly message: string
  readonly details: readonly string[]
  /** True if only the account lacks a privilege. */
  readonly denied?: boolean | undefined
}

/** The observation of one of several items, or why it failed. */
export type ClassifiedAttempt<Observation> = { readonly observation: Observation } | { readonly failure: Failure }

/**
 * Observes one of several items that a check streams, so that a failing item does not hide the next. Rethrows the
 * cause when the deadline or a broken connection ends them all.
 */
export async function attempt<Observation>(
  connection: { readonly address: string; readonly usable: boolean },
  { signal, now }: Pick<CheckContext, 'signal' | 'now'>,
  observe: () => Promise<Observation>,
): Promise<ClassifiedAttempt<Observation>> {
  const since = now()
  try {
    return { observation: await observe() }
  } catch (cause) {
    if (signal.aborted || !connection.usable) throw cause
    const failure = classify(cause, connection.address, now() - since)
    return { failure: { ...failure, denied: cause instanceof MissingPrivilegeError } }
  }
}

/** The result of a failed attempt. */
export const failedAttempt = <const Name extends string>(
  check: Name,
  { fault, message, details, denied }: Failure,
): Result<Name> =>
  denied ? notChecked(check, 'permission', message, { details }) : fail(check, fault, message, { details })
