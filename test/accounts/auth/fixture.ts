import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { type Access, type HashCost, openAccess, Paces } from '../../../src/core/accounts/auth/index.ts'
import { HashQueue, type Passwords, passwords } from '../../../src/core/accounts/auth/passwords.ts'
import type { WaysToSignIn } from '../../../src/core/accounts/auth/providers/provider.ts'
import { Fault } from '../../../src/core/base/errors.ts'
import { isLoopback } from '../../../src/core/base/loopback.ts'
import type { AuthenticateResponse } from '../../../src/core/protocol/index.ts'
import type { AdminActor, Call, Credential } from '../../../src/core/protocol/service/service.ts'
import { administrationOver } from '../../../src/core/service/accounts/administration.ts'
import { type Data, openData } from '../../../src/core/store/index.ts'
import { adminOf, type TestAdmin } from '../../support/store/admin.ts'
import { placeStore } from '../../support/store/embedded.ts'
import { cheapHash } from '../../support/suite/cheap-hash.ts'

export const by: AdminActor = { who: 'local:tester', correlationId: 'test' }
export const password = 'violet-harbour-42'

/** A store in a folder of its own, and sign-in over it, with a clock that the test moves. */
export type Fixture = {
  readonly data: Data
  readonly access: Access & {
    /** The caller that a credential identifies, from a remote address. */
    readonly identify: (credential: Call['credential']) => ReturnType<Access['identifyCaller']>
  }
  readonly admin: TestAdmin
  readonly clock: { at: number }
  /** How many passwords have been checked against a hash, real or dummy. */
  readonly hashes: { count: number }
  readonly store: string
  /** Signs Ann in. */
  readonly signIn: (more?: object, call?: Partial<Call>) => Promise<SignedIn>
}
type Secrets = { readonly SessionId: string; readonly BearerToken: string; readonly RefreshToken: string }
type SignedIn = Omit<AuthenticateResponse, keyof Secrets> & Secrets

/** `ways`: the ways to sign in besides passwords. `cost`: of a hash. */
export async function openFixture(ways?: WaysToSignIn, cost: HashCost = cheapHash): Promise<Fixture> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-auth-'))
  const store = join(folder, 'store', 'svc.db')
  const clock = { at: 1_800_000_000_000 }
  const now = (): number => clock.at
  placeStore(store)
  const data = await openData({ store, create: false, now })
  onTestFinished(async () => {
    await data.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const hashes = { count: 0 }
  const real = passwords(new HashQueue(2, 20_000), cost)
  const counting: Passwords = {
    ...real,
    check: async (...parts) => {
      const checked = await real.check(...parts)
      hashes.count += 1
      return checked
    },
  }
  const opened = openAccess({ data, passwords: counting, paces: new Paces(), now, ways })
  const access: Fixture['access'] = {
    ...opened,
    identify: (credential) => opened.identifyCaller(from('192.0.2.1', { credential })),
  }
  const admin = adminOf(administrationOver({ data: async () => data, passwords: real, providers: [] }))
  await admin.users.add({ userName: 'Ann', email: 'ann@example.com', password, roles: ['Admin', 'Editor'] }, by)
  const signIn: Fixture['signIn'] = async (more = {}, call = {}) => {
    const answer = await access.authenticate(
      { provider: 'credentials', UserName: 'Ann', Password: password, ...more },
      from('192.0.2.1', call),
    )
    const { SessionId = '', BearerToken = '', RefreshToken = '' } = answer
    return { ...answer, SessionId, BearerToken, RefreshToken }
  }
  return { data, access, admin, clock, hashes, store, signIn }
}

/** A call over HTTP from an address. */
export const from = (address: string, more: Partial<Call> = {}): Call => ({
  caller: { kind: 'http', address, loopback: isLoopback(address) },
  correlationId: 'test',
  signal: new AbortController().signal,
  ...more,
})

export const session = (secret: string): Credential => ({ kind: 'session', secret })
export const bearer = (token: string): Credential => ({ kind: 'bearer', token })

/** The Fault that a promise rejects with; fails for a result and for another error. */
export async function faultOf(promise: Promise<unknown>): Promise<Fault> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  expect('error' in outcome && outcome.error).toBeInstanceOf(Fault)
  return (outcome as { error: Fault }).error
}

/** The members of a Fault that a caller sees. */
export const faultFields = ({ fault, status, errorCode, message, details }: Fault) => ({
  fault,
  status,
  errorCode,
  message,
  details,
})
