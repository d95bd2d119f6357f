import { Fault } from '../../base/errors.ts'
import { ProbeError } from '../../base/probe-error.ts'
import { atMost, type CheckContext, checksOn, fail, machineKind, ObservationError, ok, warn } from '../engine/index.ts'

/**
 * The methods that the monitor of svc's own sign-in needs. None of them writes; each rejects with the reason of a
 * failure.
 */
export type OwnSignIn = {
  /** Opens the store of the accounts and queries it. */
  readonly store: (signal: AbortSignal) => Promise<void>
  /** Whether any user who may sign in holds Admin. */
  readonly anyAdmin: () => Promise<boolean>
  /** Performs the reads of a sign-in for a name that does not exist. */
  readonly lookUp: () => Promise<void>
  /** Hashes a made-up password. Resolves with whether it verifies and a different one does not. */
  readonly hash: (signal: AbortSignal) => Promise<boolean>
}

declare module '../engine/index.ts' {
  interface Services {
    /** Absent where svc has no accounts of its own. */
    readonly ownSignIn: OwnSignIn
  }
}

/** Access to svc's own sign-in; absent if this svc has no accounts of its own. */
type Accounts = { readonly own?: OwnSignIn | undefined }
const check = checksOn<Accounts>()

/** Milliseconds. A hash costs some 30 ms on an idle machine; a sign-in that takes seconds is broken for its user. */
const threshold = { warn: 1_000, limit: 3_000 }

/** Runs one operation and measures it. A `Fault` keeps its own message and hints. */
async function measure<T>(
  { own }: Accounts,
  { now }: CheckContext,
  ask: (own: OwnSignIn) => Promise<T>,
): Promise<{ readonly ms: number; readonly value: T }> {
  if (!own) throw new ProbeError('data', 'this svc has no accounts of its own')
  const start = now()
  try {
    const value = await ask(own)
    return { ms: now() - start, value }
  } catch (error) {
    const cause = error instanceof Fault ? new ProbeError('internal', error.message, error.details.hints ?? []) : error
    throw new ObservationError(cause, { address: 'own accounts' })
  }
}

/** Gates the other checks: without the store, none of them can run. */
export const store = check({
  depth: 'Basic',
  results: { store: 'The store of the accounts opens and answers in time' },
  gate: true,
  observe: (accounts, _, context) => measure(accounts, context, (own) => own.store(context.signal)),
  evaluate: ({ ms: value }) =>
    atMost({ check: 'store', what: 'account store answered in', value, unit: 'duration', threshold }),
})

export const administrator = check({
  depth: 'Basic',
  results: { administrator: 'At least one user who may sign in is Admin' },
  observe: (accounts, _, context) => measure(accounts, context, (own) => own.anyAdmin()),
  evaluate: ({ value: any }) =>
    any
      ? ok('administrator', 'at least one Admin may sign in')
      : warn('administrator', 'no user is Admin: svc users add NAME --role Admin'),
})

export const lookUp = check({
  depth: 'Standard',
  results: { 'look-up': 'An account can be looked up in time' },
  observe: (accounts, _, context) => measure(accounts, context, (own) => own.lookUp()),
  evaluate: ({ ms: value }) =>
    atMost({ check: 'look-up', what: 'account looked up in', value, unit: 'duration', threshold }),
})

export const passwordHash = check({
  depth: 'Standard',
  results: { 'password hash': 'A test password is hashed in time, and a different one is rejected' },
  observe: (accounts, _, context) =>
    measure(accounts, context, async (own) => {
      try {
        return await own.hash(context.signal)
      } catch (error) {
        if (error instanceof Fault && error.fault === 'Unavailable') return 'busy'
        throw error
      }
    }),
  evaluate: ({ ms, value }) => {
    if (value === 'busy') {
      return warn('password hash', 'too many sign-ins at once: further ones are temporarily refused')
    }
    if (!value)
      return fail('password hash', 'internal', 'password check cannot tell a correct password from a wrong one')
    return atMost({
      check: 'password hash',
      what: 'test password hashed and verified in',
      value: ms,
      unit: 'duration',
      threshold,
    })
  },
})

/** svc's own sign-in. Stands in for an identity server while none is configured. Signs nobody in and writes nothing. */
export default machineKind({
  name: 'sign-in',
  title: "svc's own accounts and sign-in",
  cost: { machine: 'It reads the store of svc.' },
  internal: true,
  open: (_: object, { services }: CheckContext): Accounts => ({ own: services.ownSignIn }),
  checks: [store, administrator, lookUp, passwordHash],
})
