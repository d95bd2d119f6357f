import type {
  Authenticate,
  AuthenticateResponse,
  ChangePassword,
  ChangePasswordResponse,
  EndSession,
  EndSessionResponse,
  GetAccessToken,
  GetAccessTokenResponse,
  GetSessions,
  GetSessionsResponse,
} from '../../protocol/index.ts'
import type { Call } from '../../protocol/service/service.ts'
import type { Data } from '../../store/index.ts'
import { type AuthContext, authenticate, authenticateCall, type Presenting } from './authenticate.ts'
import { commonPasswords } from './common-passwords.ts'
import { hashProcess } from './hash-process.ts'
import type { Identity } from './identify.ts'
import { changePassword, endSession, getSessions, type OwnCaller } from './own-account.ts'
import { Paces } from './paces.ts'
import { type HashCost, HashQueue, type Passwords, passwords } from './passwords.ts'
import { findProvider, loadProviders } from './providers/index.ts'
import { passwordsOnly, type WaysToSignIn } from './providers/provider.ts'
import { refresh } from './refresh.ts'
import { type Lifetimes, lifetimes } from './tokens.ts'

export {
  type AdministrationContext,
  keyOperations,
  newUserProblems,
  notAProvider,
  userEntry,
  userOperations,
} from './administration.ts'
export { refuseFields } from './names.ts'
export { passwordProblems } from './password-policy.ts'
export { probePasswordHash, probeUserLookup } from './verify.ts'
export { type HashCost, type Identity, type Lifetimes, lifetimes, Paces, type Passwords }

/** Sign-in over one store. */
export type Access = {
  readonly authenticate: (request: Authenticate, call: Call) => Promise<AuthenticateResponse>
  readonly getAccessToken: (request: GetAccessToken, call: Call) => Promise<GetAccessTokenResponse>
  /** A user's own password and sessions. `identity` is the signed-in caller; undefined is this machine's account. */
  readonly changePassword: (request: ChangePassword, call: Call, caller: OwnCaller) => Promise<ChangePasswordResponse>
  readonly getSessions: (request: GetSessions, caller: OwnCaller) => Promise<GetSessionsResponse>
  readonly endSession: (request: EndSession, caller: OwnCaller) => Promise<EndSessionResponse>
  /** The challenges of sign-in by digest (A12). Empty where it is off. */
  readonly digestChallenges: (stale: boolean) => Promise<readonly string[]>
  /**
   * Identifies the caller. Undefined when the credential is not valid (A10). Throws Forbidden for a user who has to change
   * the password first (P71), unless `mayHaveToChange`.
   */
  readonly identifyCaller: (call: Presenting, mayHaveToChange?: boolean) => Promise<Identity | undefined>
}

/**
 * Passwords with a queue of their own: once per process (P3). Only tests give another cost than that of P1. `apart`: a
 * process of its own hashes them, so that no request waits for a processor or a thread.
 */
export const passwordsOfProcess = (cost?: HashCost, apart = false): Passwords => {
  const queue = new HashQueue()
  return passwords(queue, cost, apart ? hashProcess(queue.slots) : undefined)
}

/** Loads every provider that is turned on, and the common passwords for changes of passwords. */
export const preloadProviders = async (ways: WaysToSignIn = passwordsOnly): Promise<void> => {
  await Promise.all([loadProviders(ways), commonPasswords()])
}

/** `now` in milliseconds since 1970. */
export function openAccess(options: {
  readonly data: Data
  readonly passwords: Passwords
  readonly now: () => number
  /** Once per process, like the passwords. */
  readonly paces: Paces
  readonly lifetimes?: Lifetimes | undefined
  readonly refresh?: AuthContext['refresh'] | undefined
  /** Default: by password only. */
  readonly ways?: WaysToSignIn | undefined
}): Access {
  const context: AuthContext = {
    ...options,
    lifetimes: options.lifetimes ?? lifetimes,
    refresh: options.refresh ?? 'any',
    ways: options.ways ?? passwordsOnly,
  }
  return {
    authenticate: (request, call) => authenticate(context, request, call),
    getAccessToken: (request, call) => refresh(context, request, call),
    changePassword: (request, call, caller) => changePassword(context, request, call, caller),
    getSessions: (request, caller) => getSessions(context, request, caller),
    endSession: (request, caller) => endSession(context, request, caller),
    digestChallenges: async (stale) => (await findProvider('digest', context.ways))?.challenges?.(context, stale) ?? [],
    identifyCaller: (call, mayHaveToChange) => authenticateCall(context, call, mayHaveToChange),
  }
}
