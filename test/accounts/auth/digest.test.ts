import { describe, expect, test } from 'vitest'
import { makeNonce } from '../../../src/core/accounts/auth/digest/proof.ts'
import { digestResponse, digestSecret } from '../../../src/core/accounts/auth/digest/secret.ts'
import type { Access } from '../../../src/core/accounts/auth/index.ts'
import { openAccess, Paces } from '../../../src/core/accounts/auth/index.ts'
import { HashQueue, passwords } from '../../../src/core/accounts/auth/passwords.ts'
import { recorded } from '../../support/store/recorded-store.ts'
import { cheapHash } from '../../support/suite/cheap-hash.ts'
import { by, type Fixture, faultOf, from, openFixture, password } from './fixture.ts'

const ways = { digest: true, digestMd5: true }
const uri = '/auth/digest'
const minute = 60_000

/** Signs in with the challenge fields of the body. `nc` rises from call to call. */
let count = 0
async function signIn(
  { access }: { readonly access: Pick<Access, 'authenticate'> },
  { name, nonce, secretOf = password }: { readonly name: string; readonly nonce: string; readonly secretOf?: string },
) {
  count += 1
  const parts = { uri, nonce, nc: count.toString(16).padStart(8, '0'), cnonce: 'c' }
  const { sha256 } = digestSecret(name, secretOf, false)
  const response = digestResponse('SHA-256', sha256, { ...parts, method: 'POST' })
  return await access.authenticate(
    { provider: 'digest', UserName: name, ...parts, qop: 'auth', response },
    from(`192.0.2.${count % 250}`, { signed: { method: 'POST', target: uri } }),
  )
}

const nonceAt = async ({ data, clock }: Fixture, ageMs = 0): Promise<string> =>
  makeNonce(await data.digest.nonceKey(), clock.at - ageMs)

async function addUser({ admin }: Fixture, userName: string): Promise<void> {
  await admin.users.add({ userName, password, digest: true }, by)
}

describe('sign-in by digest', () => {
  test('A12 a nonce is accepted for five minutes, and is then stale for whoever knows the secret', async () => {
    const fixture = await openFixture(ways)
    await addUser(fixture, 'Dora')
    // A nonce from before the secret is never accepted.
    fixture.clock.at += 10 * minute
    const fresh = await nonceAt(fixture, 5 * minute - 1)
    expect(await signIn(fixture, { name: 'Dora', nonce: fresh })).toMatchObject({ UserName: 'Dora' })
    const old = await nonceAt(fixture, 5 * minute + 1)
    const stale = await faultOf(signIn(fixture, { name: 'Dora', nonce: old }))
    expect([stale.status, stale.details.challenge]).toEqual([401, 'stale'])
    const refusal = await faultOf(signIn(fixture, { name: 'Dora', nonce: old, secretOf: 'another-password' }))
    expect([refusal.status, refusal.details.challenge]).toEqual([401, 'digest'])
    const future = await faultOf(signIn(fixture, { name: 'Dora', nonce: await nonceAt(fixture, -2 * minute) }))
    expect(future.status).toBe(401)
  })

  test('P2 wrong, unknown, disabled and without a secret: each refusal makes the same calls of the store', async () => {
    const fixture = await openFixture(ways)
    for (const name of ['Wrong', 'Off']) await addUser(fixture, name)
    await fixture.admin.users.disable('Off', by)
    await fixture.admin.users.add({ userName: 'Plain', password }, by)
    const calls: string[] = []
    const access = openAccess({
      data: recorded(fixture.data, calls),
      passwords: passwords(new HashQueue(2), cheapHash),
      paces: new Paces(),
      now: () => fixture.clock.at,
      ways,
    })
    const work: unknown[] = []
    for (const name of ['Wrong', 'Nobody', 'Off', 'Plain']) {
      const nonce = await nonceAt(fixture)
      calls.length = 0
      const secretOf = name === 'Wrong' ? 'another-password' : password
      const fault = await faultOf(signIn({ access }, { name, nonce, secretOf }))
      work.push([fault.status, fault.message, fault.details.challenge, ...calls])
    }
    expect(work[0]).toEqual(expect.arrayContaining([401, 'data.digest.secret', 'data.failures.add']))
    for (const one of work) expect(one).toEqual(work[0])
  })
})
