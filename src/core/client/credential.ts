import { Fault } from '../base/errors.ts'
import {
  type HealthCheckResponse,
  neverInQuery,
  type Operation,
  type OperationSpec,
  operations,
} from '../protocol/index.ts'
import type { Call, Credential } from '../protocol/service/service.ts'
import type { OffsetDate } from '../protocol/wire/index.ts'
import type { Received } from './exchange.ts'

/** `OffsetDate` of wire, which is loaded after the request is sent. */
type OffsetDateClass = typeof OffsetDate

/** How old an answer from a cache may be. Below half of the smallest step between time zones, a quarter of an hour. */
const nearMs = 7 * 60_000

/**
 * Corrects the dates of an answer that carry an offset, such as `/Date(1614834367089-0500)/`. Older servers write the
 * time of their wall clock as milliseconds, others the instant; the text alone does not tell which. The answer's `Date`
 * header does: if the run ended within minutes of it only when the milliseconds are read as wall clock, that holds for
 * all dates of the answer. Otherwise the milliseconds are the instant (N3).
 */
export function byServerClock(
  answer: HealthCheckResponse,
  dateHeader: string | undefined,
  offsetDate: OffsetDateClass,
): HealthCheckResponse {
  const { ExecutionMetrics: metrics } = answer
  const sentAt = Date.parse(dateHeader ?? '')
  const reference = metrics?.EndDateTime ?? metrics?.StartDateTime
  if (Number.isNaN(sentAt) || !(reference instanceof offsetDate)) return answer
  const isNear = (date: Date): boolean => Math.abs(date.getTime() - sentAt) < nearMs
  if (isNear(reference) || !isNear(reference.readAsWallClock())) return answer
  const corrected = (date: Date | undefined): Date | undefined =>
    date instanceof offsetDate ? date.readAsWallClock() : date
  return {
    ...answer,
    ExecutionMetrics: {
      ...metrics,
      StartDateTime: corrected(metrics?.StartDateTime),
      EndDateTime: corrected(metrics?.EndDateTime),
    },
  }
}

/** The source of a client's credentials. They belong to one server and go nowhere else (K5). */
export type CredentialSource = {
  /**
   * True: also presented to public operations. False: these are called without it first, and again with it after a 401
   * (K5).
   */
  readonly always: boolean
  readonly current: () => Promise<Credential | undefined>
  /** Returns the replacement for a credential that got a 401. This or another process may have renewed it (C5). */
  readonly renew: (rejected: Credential, signal: AbortSignal) => Promise<Credential | undefined>
}

/** True for public operations, which are first called without a credential. */
const forAnyone = (operation: Operation): boolean =>
  operations[operation].caller === 'anyone' && operation !== 'authenticate'
/** Sign-in, sign-out and renewal present only their call's own credential. Asking who is signed in is a GET. */
const ofItsOwn = (operation: Operation, call: Call): boolean =>
  operation === 'getAccessToken' || (operation === 'authenticate' && call.verb !== 'GET')

const refused = (error: unknown): boolean =>
  error instanceof Fault && error.fault === 'Unauthorized' && error.details.remoteStatus === 401

/** The part of a call's own credential that is sent. A password is sent only at sign-in, and a digest never. */
export const tokenOf = ({ credential }: Call): Credential | undefined =>
  credential?.kind === 'basic' || credential?.kind === 'digest' ? undefined : credential

/** The first credential of a call, and whether a 401 is final. */
export type CredentialPresenter = {
  readonly first: () => Promise<Credential | undefined>
  /** True: the call brings its own credential, so nothing is renewed. */
  readonly own: boolean
}

export function presentingOf(
  operation: Operation,
  call: Call,
  source: CredentialSource | undefined,
): CredentialPresenter {
  const own = call.credential !== undefined || ofItsOwn(operation, call)
  const stored = !own && source && (source.always || !forAnyone(operation))
  return { own, first: async () => (stored ? await source.current() : tokenOf(call)) }
}

/**
 * Calls `ask` with the first credential. After a 401 it tries again with the stored one, if nothing was presented, and
 * after another 401 once more with the renewed one. Makes at most three attempts (C5). `ask` rejects with the Fault.
 */
export async function presenting<R>(
  { first, own }: CredentialPresenter,
  source: CredentialSource | undefined,
  signal: AbortSignal,
  ask: (credential: Credential | undefined) => Promise<R>,
): Promise<R> {
  const presented = await first()
  try {
    return await ask(presented)
  } catch (error) {
    if (!refused(error) || !source || own) throw error
    if (presented) return await renewed(presented, error)
    const stored = await source.current()
    if (!stored) throw error
    try {
      return await ask(stored)
    } catch (second) {
      if (!refused(second)) throw second
      return await renewed(stored, second)
    }
  }

  async function renewed(rejected: Credential, error: unknown): Promise<R> {
    const next = await source?.renew(rejected, signal)
    if (!next) throw error
    return await ask(next)
  }
}

/** Newer servers send these fields as cookies instead of in the body (C4): cookie → field of the answer. */
const cookieFields: Partial<Record<Operation, Readonly<Record<string, string>>>> = {
  authenticate: { 'ss-tok': 'BearerToken', 'ss-reftok': 'RefreshToken' },
  getAccessToken: { 'ss-tok': 'accessToken', 'ss-reftok': 'refreshToken' },
}

/** The answer with the tokens from the cookies. Fields of the body win. */
export function withCookieTokens<R>(operation: Operation, response: R, { headers }: Received): R {
  const fields = cookieFields[operation]
  if (!fields) return response
  const answer = response as Readonly<Record<string, unknown>>
  const taken = (headers['set-cookie'] ?? []).flatMap((line): [string, string][] => {
    const [pair = ''] = line.split(';', 1)
    const equals = pair.indexOf('=')
    const [name, value] = [pair.slice(0, Math.max(0, equals)).trim(), pair.slice(equals + 1).trim()]
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    return field === undefined || value === '' || answer[field] ? [] : [[field, decoded(value)]]
  })
  return { ...response, ...Object.fromEntries(taken) }
}

function decoded(value: string): string {
  const bare = value.replace(/^"(.*)"$/, '$1')
  try {
    return decodeURIComponent(bare)
  } catch {
    return bare
  }
}

/** Shorter secrets occur by chance in any sentence. */
const shortest = 4

/** Every secret that a call sends. No message may contain one: a server may echo what it receives. */
export function secretsOf(request: unknown, credentials: readonly (Credential | undefined)[]): readonly string[] {
  const values = request as Readonly<Record<string, unknown>>
  const names = new Set(Object.values<OperationSpec>(operations).flatMap(neverInQuery))
  const sent = [...names].flatMap((name) => (typeof values[name] === 'string' ? [values[name]] : []))
  const presented = credentials.flatMap((one) => (one ? [one.kind === 'bearer' ? one.token : one.secret] : []))
  return [...sent, ...presented].filter((secret) => secret.length >= shortest)
}

/** The same fault without the secrets, even where a message quotes only their beginning. */
export function withoutSecrets(fault: Fault, secrets: readonly string[]): Fault {
  const parts = secrets.flatMap((secret) => (secret.length > 24 ? [secret, secret.slice(0, 24)] : [secret]))
  const holds = (text: string): boolean => parts.some((part) => text.includes(part))
  const clean = (text: string): string => parts.reduce((left, part) => left.replaceAll(part, '***'), text)
  const { fields = [], hints = [] } = fault.details
  const message = [
    fault.message,
    fault.errorCode,
    fault.details.remoteMessage ?? '',
    ...hints,
    ...fields.flatMap((field) => [field.ErrorCode, field.FieldName, field.Message]),
  ]
  if (!message.some(holds)) return fault
  return new Fault(fault.fault, clean(fault.message), {
    ...fault.details,
    hints: hints.map(clean),
    fields: fields.map((field) => ({
      ErrorCode: clean(field.ErrorCode),
      FieldName: clean(field.FieldName),
      Message: clean(field.Message),
    })),
    errorCode: fault.details.errorCode === undefined ? undefined : clean(fault.details.errorCode),
    remoteMessage: fault.details.remoteMessage === undefined ? undefined : clean(fault.details.remoteMessage),
  })
}
