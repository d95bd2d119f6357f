import { createHmac, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { OpenIdSettings } from '../../../src/core/accounts/auth/providers/provider.ts'
import type { Call } from '../../../src/core/protocol/service/service.ts'
import {
  audience,
  clientId,
  erin,
  newKey,
  type OpenIdServer,
  otherClient,
  startOpenId,
} from '../../support/openid/provider.ts'
import { bearer, by, type Fixture, faultFields, faultOf, from, openFixture, session } from './fixture.ts'

let provider: OpenIdServer
beforeAll(async () => {
  provider = await startOpenId()
})
afterAll(() => provider.close())

const settings = (more: Partial<OpenIdSettings> = {}): OpenIdSettings => ({
  name: 'corp',
  issuer: provider.issuer,
  clientId,
  audience,
  scope: 'openid profile email',
  roles: { claim: 'groups', map: { 'ops-admins': 'Admin', deployers: 'Deploy' } },
  tolerance: 60_000,
  ...more,
})

/** A fixture in which the provider corp is turned on, at the present time. */
async function withCorp(use: (fixture: Fixture) => Promise<void>, more: Partial<OpenIdSettings> = {}): Promise<void> {
  const fixture = await openFixture({ digest: false, digestMd5: true, openid: [settings(more)] })
  fixture.clock.at = Date.now()
  await use(fixture)
}

const signIn = (fixture: Fixture, token: string, call: Partial<Call> = {}, address = '192.0.2.1') =>
  fixture.access.authenticate({ provider: 'corp', AccessToken: token }, from(address, call))

const notAuthenticated = {
  fault: 'Unauthorized',
  status: 401,
  errorCode: 'Unauthorized',
  message: 'Not Authenticated',
  details: {},
}

/** The reason of the last audit entry. */
const lastReason = async ({ data }: Fixture): Promise<string | undefined> =>
  (await data.audit.list({ limit: 1 }))[0]?.reason

const refusedFor = async (fixture: Fixture, token: string): Promise<string | undefined> => {
  expect(faultFields(await faultOf(signIn(fixture, token)))).toEqual(notAuthenticated)
  expect((await fixture.data.audit.list({ limit: 1 }))[0]?.event).toBe('signin.failed')
  return await lastReason(fixture)
}

const seconds = (fixture: Fixture): number => Math.floor(fixture.clock.at / 1_000)
const segment = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

describe('A13 a token of a provider signs in', () => {
  test('A13 the first sign-in adds a user without a password, and later ones find that user', () =>
    withCorp(async (fixture) => {
      const first = await signIn(fixture, await provider.sign())
      expect(first).toMatchObject({ UserName: 'erin', DisplayName: 'Erin Example', Permissions: [] })
      const second = await signIn(fixture, await provider.sign({ preferred_username: 'renamed' }))
      expect(second.UserId).toBe(first.UserId)
      expect((await fixture.data.users.find('erin'))?.passwordHash).toBeUndefined()
    }))

  test('A13 roles from claims belong to the session and its tokens, and are not grants', () =>
    withCorp(async (fixture) => {
      const answer = await signIn(fixture, await provider.sign())
      expect(answer.Roles).toEqual(['Admin'])
      const { SessionId = '', BearerToken = '', RefreshToken = '' } = answer
      const signedIn = await fixture.access.authenticate(
        {},
        from('192.0.2.1', { verb: 'GET', credential: session(SessionId) }),
      )
      expect(signedIn.Roles).toEqual(['Admin'])
      expect((await fixture.access.identify(bearer(BearerToken)))?.roles).toEqual(['Admin'])
      const { accessToken = '' } = await fixture.access.getAccessToken({ RefreshToken }, from('192.0.2.1'))
      expect((await fixture.access.identify(bearer(accessToken)))?.roles).toEqual(['Admin'])
      expect((await fixture.data.users.find('erin'))?.roles).toEqual([])
      const plain = await signIn(fixture, await provider.sign({ groups: ['everyone'] }))
      expect(plain.Roles).toEqual([])
    }))

  test('A13 roles from claims end seven days after the sign-in, however often the token is renewed', () =>
    withCorp(async (fixture) => {
      const { RefreshToken = '' } = await signIn(fixture, await provider.sign())
      const day = 86_400_000
      const rolesNow = async () => {
        const { accessToken = '' } = await fixture.access.getAccessToken({ RefreshToken }, from('192.0.2.1'))
        return (await fixture.access.identify(bearer(accessToken)))?.roles
      }
      fixture.clock.at += 4 * day
      expect(await rolesNow()).toEqual(['Admin'])
      fixture.clock.at += 3 * day
      expect(await rolesNow()).toEqual([])
    }))

  test('A13 an Admin by claims does not count as the last Admin', () =>
    withCorp(async (fixture) => {
      await signIn(fixture, await provider.sign())
      expect((await faultOf(fixture.admin.users.remove('Ann', by))).fault).toBe('Conflict')
    }))

  test('T7 a user of the same name or e-mail address is never taken over', () =>
    withCorp(async (fixture) => {
      const token = await provider.sign({ preferred_username: 'Ann', email: 'ann@example.com' })
      const { UserId, UserName } = await signIn(fixture, token)
      expect(UserName).toBe('corp:erin-1')
      expect(UserId).not.toBe((await fixture.data.users.find('Ann'))?.id)
    }))

  test.each(['carol:x', 'corp\uff1acarol', 'admin', 'Adm\u0456n', 'Admın'])(
    'T7 a new user does not get the reserved name %s',
    (name) =>
      withCorp(async (fixture) => {
        const { UserName } = await signIn(fixture, await provider.sign({ preferred_username: name, email: undefined }))
        expect(UserName).toBe('corp:erin-1')
      }),
  )

  test.each(['\u0410nn', '\uff21nn', '\u00c1nn', 'A\u0578n', 'ANN'])(
    'T7 a new user does not get the name %s, which looks like Ann',
    (name) =>
      withCorp(async (fixture) => {
        const { UserName } = await signIn(fixture, await provider.sign({ preferred_username: name, email: undefined }))
        expect(UserName).toBe('corp:erin-1')
      }),
  )

  test('A2 with an access token, the answer has the name of the user, whatever the request says', () =>
    withCorp(async (fixture) => {
      const AccessToken = await provider.sign()
      const request = { provider: 'corp', AccessToken, UserName: 'Ann' }
      expect((await fixture.access.authenticate(request, from('192.0.2.1'))).UserName).toBe('erin')
    }))

  test('A13 a disabled user is refused, and so are the sessions from before', () =>
    withCorp(async (fixture) => {
      const { BearerToken = '' } = await signIn(fixture, await provider.sign())
      await fixture.admin.users.disable('erin', by)
      expect(await fixture.access.identify(bearer(BearerToken))).toBeUndefined()
      expect(await refusedFor(fixture, await provider.sign())).toContain('the user erin is disabled')
    }))

  test('A13 an access token for the configured audience signs in, whichever client requested it', () =>
    withCorp(async (fixture) => {
      const claims = { aud: ['https://elsewhere.example', audience], azp: otherClient, client_id: otherClient }
      expect((await signIn(fixture, await provider.sign(claims, { typ: 'at+jwt' }))).UserName).toBe('erin')
    }))

  test('A13 a claim path reads the roles of Keycloak', () =>
    withCorp(
      async (fixture) => {
        const token = await provider.sign({ realm_access: { roles: ['deployers', 7, ['ops-admins'], 'constructor'] } })
        expect((await signIn(fixture, token)).Roles).toEqual(['Deploy'])
      },
      { roles: { claim: 'realm_access.roles', map: { deployers: 'Deploy', 'ops-admins': 'Admin' } } },
    ))

  test('A13 a clock that differs by less than the tolerance is accepted', () =>
    withCorp(async (fixture) => {
      const now = seconds(fixture)
      await signIn(fixture, await provider.sign({ exp: now - 50 }))
      await signIn(fixture, await provider.sign({ nbf: now + 50, iat: now + 50 }))
    }))
})

type Forge = (fixture: Fixture) => Promise<string>
const withClaims =
  (
    claims: (fixture: Fixture) => Readonly<Record<string, unknown>>,
    header?: Readonly<Record<string, unknown>>,
  ): Forge =>
  async (fixture) =>
    await provider.sign(claims(fixture), header)
const withHeader = (header: Readonly<Record<string, unknown>>): Forge => withClaims(() => ({}), header)

/** Header and claims as they would be, signed by `sign`. */
const signedBy = async (header: unknown, claims: unknown, sign: (input: string) => string): Promise<string> => {
  const input = `${segment(header)}.${segment(claims)}`
  return `${input}.${sign(input)}`
}
const usual = (fixture: Fixture) => ({
  iss: provider.issuer,
  aud: clientId,
  iat: seconds(fixture),
  exp: seconds(fixture) + 300,
  ...erin,
})
const kid = () => provider.keys()[0]?.jwk.kid ?? ''

/** Signs raw texts with the key of the provider, so that only the texts are wrong. */
function signedTexts(header: string, claims: string, hash = 'sha256'): string {
  const [key] = provider.keys()
  const input = `${Buffer.from(header).toString('base64url')}.${Buffer.from(claims).toString('base64url')}`
  const signature = sign(hash, Buffer.from(input), createPrivateKey({ key: { ...key?.jwk }, format: 'jwk' }))
  return `${input}.${signature.toString('base64url')}`
}

/** Every forged or foreign token, and the reason in the audit. */
const forged: Readonly<Record<string, { readonly token: Forge; readonly reason: string }>> = {
  'that is not signed (alg none)': {
    token: (fixture) => signedBy({ alg: 'none' }, usual(fixture), () => ''),
    reason: 'its algorithm is not accepted',
  },
  'that is signed with the public key as a shared secret (HS256)': {
    token: async (fixture) => {
      const { n, e } = provider.keys()[0]?.jwk ?? {}
      const jwk = { kty: 'RSA', n: n ?? '', e: e ?? '' }
      const pem = createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
      return await signedBy({ alg: 'HS256', kid: kid() }, usual(fixture), (input) =>
        createHmac('sha256', pem).update(input).digest('base64url'),
      )
    },
    reason: 'its algorithm is not accepted',
  },
  'that is signed with an algorithm which is not fixed (RS512)': {
    token: async (fixture) =>
      signedTexts(JSON.stringify({ alg: 'RS512', kid: kid() }), JSON.stringify(usual(fixture)), 'sha512'),
    reason: 'its algorithm is not accepted',
  },
  'that contains the key it is signed with (jwk)': {
    token: async (fixture) => {
      const { privateKey, publicKey } = await generateKeyPair('RS256')
      const jwk = await exportJWK(publicKey)
      return await new SignJWT(usual(fixture)).setProtectedHeader({ alg: 'RS256', jwk }).sign(privateKey)
    },
    reason: 'its header contains jwk',
  },
  'that names the address of its keys (jku)': {
    token: withHeader({ jku: 'http://127.0.0.1:1/keys' }),
    reason: 'its header contains jku',
  },
  'that names the address of its certificate (x5u)': {
    token: withHeader({ x5u: 'http://127.0.0.1:1/certificate' }),
    reason: 'its header contains x5u',
  },
  'that contains its own certificate (x5c)': {
    token: withHeader({ x5c: ['AA=='] }),
    reason: 'its header contains x5c',
  },
  'with a critical extension (crit)': {
    token: async (fixture) => {
      const header = JSON.stringify({ alg: 'RS256', kid: kid(), crit: ['exp'], exp: 1 })
      return signedTexts(header, JSON.stringify(usual(fixture)))
    },
    reason: 'its header contains crit',
  },
  'with a path as its kid': {
    token: withHeader({ kid: '../../../../etc/passwd' }),
    reason: 'no key of the provider matches it',
  },
  'that is signed with the key of somebody else under the kid of the provider': {
    token: async (fixture) => {
      const { privateKey } = await generateKeyPair('RS256')
      return await new SignJWT(usual(fixture)).setProtectedHeader({ alg: 'RS256', kid: kid() }).sign(privateKey)
    },
    reason: 'its signature is wrong',
  },
  'whose claims were changed after it was signed': {
    token: async () => {
      const [header, , signature] = (await provider.sign()).split('.')
      const [, claims] = (await provider.sign({ sub: 'somebody-else' })).split('.')
      return `${header}.${claims}.${signature}`
    },
    reason: 'its signature is wrong',
  },
  'without a signature': {
    token: async () => `${(await provider.sign()).split('.').slice(0, 2).join('.')}.`,
    reason: 'its signature is wrong',
  },
  'of another issuer': {
    token: withClaims(() => ({ iss: 'https://elsewhere.example' })),
    reason: 'iss is not the issuer',
  },
  'of an issuer that differs by a slash': {
    token: withClaims(() => ({ iss: `${provider.issuer}/` })),
    reason: 'iss is not the issuer',
  },
  'for another audience': { token: withClaims(() => ({ aud: otherClient })), reason: 'aud is not this service' },
  'without an audience': { token: withClaims(() => ({ aud: undefined })), reason: 'aud is not this service' },
  'for several audiences that was issued to another client (azp)': {
    token: withClaims(() => ({ aud: [clientId, otherClient], azp: otherClient })),
    reason: 'azp is not this client',
  },
  'for several audiences that names no client (azp)': {
    token: withClaims(() => ({ aud: [clientId, otherClient] })),
    reason: 'azp is not this client',
  },
  'that has expired': { token: withClaims((fixture) => ({ exp: seconds(fixture) - 61 })), reason: 'it has expired' },
  'without an end (exp)': { token: withClaims(() => ({ exp: undefined })), reason: 'exp is missing' },
  'whose end is text': { token: withClaims(() => ({ exp: '9999999999' })), reason: 'exp is missing' },
  'that is not valid yet (nbf)': {
    token: withClaims((fixture) => ({ nbf: seconds(fixture) + 120 })),
    reason: 'it is not valid yet',
  },
  'that was issued in the future (iat)': {
    token: withClaims((fixture) => ({ iat: seconds(fixture) + 120 })),
    reason: 'it was issued in the future',
  },
  'without a subject': { token: withClaims(() => ({ sub: undefined })), reason: 'sub is missing' },
  'whose subject is a list': { token: withClaims(() => ({ sub: ['erin-1'] })), reason: 'sub is missing' },
  'whose subject contains a control character': {
    token: withClaims(() => ({ sub: 'erin-1\u0000' })),
    reason: 'sub is missing',
  },
  'that is a logout token by its type': { token: withHeader({ typ: 'logout+jwt' }), reason: 'its type is not that of' },
  'that is a logout token by its claims': {
    token: withClaims(() => ({ events: { 'http://schemas.openid.net/event/backchannel-logout': {} } })),
    reason: 'it is a logout token',
  },
  'that is a refresh token of Keycloak': {
    token: withClaims(() => ({ typ: 'Refresh' })),
    reason: 'typ is not that of',
  },
  'that is bound to a key of its holder': {
    token: withClaims(() => ({ cnf: { jkt: 'AAAA' } })),
    reason: 'it is bound to a key',
  },
  'of a client and not of a user': {
    token: withClaims(() => ({ aud: audience, sub: otherClient, client_id: otherClient })),
    reason: 'it is the token of a client',
  },
  'that names a claim twice': {
    token: async (fixture) => {
      const claims = JSON.stringify(usual(fixture)).replace(/\}$/, `,"sub"${' '.repeat(40)}:"somebody-else"}`)
      return signedTexts(JSON.stringify({ alg: 'RS256', kid: kid() }), claims)
    },
    reason: 'it names a member twice',
  },
  'that names a claim twice, once with an escape': {
    token: async (fixture) => {
      const claims = JSON.stringify(usual(fixture)).replace(/\}$/, ',"\\u0073ub":"somebody-else"}')
      return signedTexts(JSON.stringify({ alg: 'RS256', kid: kid() }), claims)
    },
    reason: 'it names a member twice',
  },
  'that is longer than 16 KB': {
    token: withClaims(() => ({ more: 'x'.repeat(16_384) })),
    reason: 'the token is longer than 16384 characters',
  },
  'that is not a token': { token: async () => 'a token', reason: 'it is not a token' },
}

describe('T7 a forged or foreign token is refused without a reason, and the audit has the reason', () => {
  test.for(Object.entries(forged))('T7 a token %s is refused', async ([, { token, reason }]) => {
    await withCorp(async (fixture) => {
      // The same token signs in where nothing of it is wrong.
      await signIn(fixture, await provider.sign())
      expect(await refusedFor(fixture, await token(fixture))).toContain(reason)
    })
  })

  test('T7 docs/sign-in.md lists each of them with its test', () => {
    const page = readFileSync(new URL('../../../docs/sign-in.md', import.meta.url), 'utf8')
    const listed = [...page.matchAll(/^\| a token .* \| T7 a token (.*) is refused \|$/gm)].map(([, name]) => name)
    expect(listed).toEqual(Object.keys(forged))
  })

  test('T7 an ES256 token of the provider is accepted', () =>
    withCorp(async (fixture) => {
      const key = provider.keys()[1]
      if (!key) throw new Error('there is no second key')
      const token = new SignJWT(usual(fixture)).setProtectedHeader({ alg: 'ES256', kid: key.jwk.kid ?? '' })
      expect((await signIn(fixture, await token.sign(key.privateKey))).UserName).toBe('erin')
    }))
})

/** A provider that answers as the test says. */
async function simulated(answer: RequestListener, use: (issuer: string, requests: string[]) => Promise<void>) {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

describe('T7 what svc requests from a provider', () => {
  test('T7 no address in a token is requested, and neither is the provider for a token of another issuer', () =>
    simulated(
      (_, response) => response.end('{}'),
      async (elsewhere, requests) => {
        await withCorp(async (fixture) => {
          const before = provider.requests.length
          await refusedFor(fixture, await provider.sign({ iss: elsewhere }))
          await refusedFor(fixture, await provider.sign({}, { jku: `${elsewhere}/keys` }))
          await refusedFor(fixture, await provider.sign({}, { x5u: `${elsewhere}/certificate` }))
          expect(provider.requests.slice(before)).toEqual([])
          await refusedFor(fixture, await provider.sign({}, { kid: `${elsewhere}/keys` }))
          expect(requests).toEqual([])
        })
      },
    ))

  test('T7 after a rotation of its keys, new tokens sign in and tokens of removed keys do not', () =>
    withCorp(async (fixture) => {
      const before = provider.keys()
      await signIn(fixture, await provider.sign())
      const old = await provider.sign()
      await provider.rotate([await newKey('RS256', 'rsa-2'), await newKey('ES256', 'ec-2')])
      try {
        fixture.clock.at += 31_000
        expect((await signIn(fixture, await provider.sign())).UserName).toBe('erin')
        expect(await refusedFor(fixture, old)).toContain('no key of the provider matches it')
      } finally {
        await provider.rotate(before)
      }
    }))

  test('T7 unknown keys make svc request the keys at most every 30 s', () =>
    withCorp(async (fixture) => {
      await signIn(fixture, await provider.sign())
      const stranger = await newKey('RS256', 'unknown')
      const token = new SignJWT(usual(fixture)).setProtectedHeader({ alg: 'RS256', kid: 'unknown' })
      const text = await token.sign(stranger.privateKey)
      const before = provider.requests.length
      for (let n = 0; n < 5; n += 1) await refusedFor(fixture, text)
      expect(provider.requests.length - before).toBe(0)
      fixture.clock.at += 31_000
      for (let n = 0; n < 5; n += 1) await refusedFor(fixture, text)
      expect(provider.requests.length - before).toBe(1)
    }))

  test('T7 a discovery document of another issuer is not used', () =>
    simulated(
      (_, response) => response.end(JSON.stringify({ issuer: provider.issuer, jwks_uri: `${provider.issuer}/jwks` })),
      async (issuer) => {
        await withCorp(
          async (fixture) => {
            const fault = await faultOf(signIn(fixture, await provider.sign({ iss: issuer })))
            expect(fault).toMatchObject({ fault: 'Unavailable', details: { retryAfter: 10 } })
            expect(await lastReason(fixture)).toContain('names another issuer')
          },
          { issuer },
        )
      },
    ))

  test('T7 keys at an address without TLS on another machine are not requested', () =>
    simulated(
      (request, response) =>
        response.end(JSON.stringify({ issuer: `http://${request.headers.host}`, jwks_uri: 'http://192.0.2.1/keys' })),
      async (issuer) => {
        await withCorp(
          async (fixture) => {
            expect((await faultOf(signIn(fixture, await provider.sign({ iss: issuer })))).fault).toBe('Unavailable')
            expect(await lastReason(fixture)).toContain('no jwks_uri with https')
          },
          { issuer },
        )
      },
    ))

  test('T7 a redirect of the provider is not followed', () =>
    simulated(
      (_, response) =>
        response.writeHead(302, { Location: `${provider.issuer}/.well-known/openid-configuration` }).end(),
      async (issuer) => {
        await withCorp(
          async (fixture) => {
            const before = provider.requests.length
            expect((await faultOf(signIn(fixture, await provider.sign({ iss: issuer })))).fault).toBe('Unavailable')
            expect(provider.requests.slice(before)).toEqual([])
          },
          { issuer },
        )
      },
    ))

  test('T7 an answer of the provider without an end is not read to its end', () =>
    simulated(
      (_, response) => {
        const write = (): void => {
          if (!response.destroyed) response.write('x'.repeat(65_536), write)
        }
        write()
      },
      async (issuer) => {
        await withCorp(
          async (fixture) => {
            expect((await faultOf(signIn(fixture, await provider.sign({ iss: issuer })))).fault).toBe('Unavailable')
            expect(await lastReason(fixture)).toContain('larger than')
          },
          { issuer },
        )
      },
    ))

  test('A13 while the provider is down, known keys serve for an hour, then the answer is 503', async () => {
    const own = await startOpenId()
    await withCorp(
      async (fixture) => {
        const token = (await own.sign({ exp: seconds(fixture) + 7_200 })) satisfies string
        await signIn(fixture, token)
        await own.close()
        fixture.clock.at += 59 * 60_000
        expect((await signIn(fixture, token)).UserName).toBe('erin')
        fixture.clock.at += 2 * 60_000
        expect(await faultOf(signIn(fixture, token))).toMatchObject({ status: 503, details: { retryAfter: 10 } })
        expect(await lastReason(fixture)).toContain('ECONNREFUSED')
      },
      { issuer: own.issuer },
    )
  })

  test('A13 a provider that does not answer within 5 s is a 503', () =>
    simulated(
      () => {},
      async (issuer, requests) => {
        await withCorp(
          async (fixture) => {
            const token = await provider.sign({ iss: issuer })
            const faults = await Promise.all([1, 2, 3].map(() => faultOf(signIn(fixture, token))))
            expect(faults.map(({ status }) => status)).toEqual([503, 503, 503])
            expect((await faultOf(signIn(fixture, token))).status).toBe(503)
            expect(requests).toHaveLength(1)
          },
          { issuer },
        )
      },
    ))

  test('P5 refused tokens count for the address, which is then answered 429', () =>
    withCorp(async (fixture) => {
      const token = await provider.sign({ aud: otherClient })
      for (let n = 0; n < 30; n += 1) expect((await faultOf(signIn(fixture, token))).status).toBe(401)
      expect((await faultOf(signIn(fixture, token))).status).toBe(429)
      expect((await faultOf(signIn(fixture, await provider.sign()))).status).toBe(429)
      expect((await signIn(fixture, await provider.sign(), {}, '198.51.100.1')).UserName).toBe('erin')
    }))
})

test.for(['oauth_token', 'oauth_verifier', 'AccessTokenSecret'] as const)(
  'A13 the field %s of OAuth 1.0a is a 400 that names it',
  (field) =>
    withCorp(async (fixture) => {
      const request = { provider: 'corp', AccessToken: await provider.sign(), [field]: 'text' }
      const fault = await faultOf(fixture.access.authenticate(request, from('192.0.2.1')))
      expect(fault).toMatchObject({ status: 400, details: { fields: [{ FieldName: field }] } })
    }),
)

test('A13 without a token, the answer names the field', () =>
  withCorp(async (fixture) => {
    const fault = await faultOf(fixture.access.authenticate({ provider: 'corp' }, from('192.0.2.1')))
    expect(fault).toMatchObject({ status: 400, details: { fields: [{ FieldName: 'AccessToken' }] } })
  }))

describe('T7 an Admin links an identity and a user', () => {
  test('T7 a linked user signs in with the identity, and keeps the roles that the store grants', () =>
    withCorp(async (fixture) => {
      const identity = { issuer: provider.issuer, subject: erin.sub }
      expect(await fixture.admin.users.link('ann', identity, by)).toBe(true)
      expect(await fixture.admin.users.link('ann', identity, by)).toBe(false)
      const answer = await signIn(fixture, await provider.sign({ groups: ['deployers'] }))
      expect([answer.UserName, answer.Roles]).toEqual(['Ann', ['Admin', 'Editor', 'Deploy']])
      const [, linked] = await fixture.data.audit.list({ limit: 2 })
      expect(linked).toMatchObject({ event: 'user.linked', target: 'Ann', who: by.who })
    }))

  test('T7 an unlinked identity signs nobody in, and every session of the user ends', () =>
    withCorp(async (fixture) => {
      const identity = { issuer: provider.issuer, subject: erin.sub }
      await fixture.admin.users.link('Ann', identity, by)
      const { BearerToken = '', RefreshToken = '' } = await signIn(fixture, await provider.sign())
      expect(await fixture.admin.users.unlink('Ann', { issuer: 'https://elsewhere.example' }, by)).toBe(false)
      expect(await fixture.access.identify(bearer(BearerToken))).toBeDefined()
      expect(await fixture.admin.users.unlink('Ann', { issuer: provider.issuer }, by)).toBe(true)
      expect(await fixture.access.identify(bearer(BearerToken))).toBeUndefined()
      const renewal = fixture.access.getAccessToken({ RefreshToken }, from('192.0.2.1'))
      expect((await faultOf(renewal)).fault).toBe('Unauthorized')
      expect((await signIn(fixture, await provider.sign())).UserName).toBe('erin')
    }))

  test('T7 an identity belongs to one user', () =>
    withCorp(async (fixture) => {
      await signIn(fixture, await provider.sign())
      const fault = await faultOf(fixture.admin.users.link('Ann', { issuer: provider.issuer, subject: erin.sub }, by))
      expect(fault).toMatchObject({ fault: 'Conflict', message: 'This identity belongs to the user erin' })
      const identity = { issuer: provider.issuer, subject: 'a\u0000b' }
      expect((await faultOf(fixture.admin.users.link('Ann', identity, by))).status).toBe(400)
    }))

  test('T7 the same subject of another issuer is another identity', () =>
    withCorp(async (fixture) => {
      await fixture.admin.users.link('Ann', { issuer: 'https://elsewhere.example', subject: erin.sub }, by)
      expect((await signIn(fixture, await provider.sign())).UserName).toBe('erin')
    }))
})
