import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { inspect } from 'node:util'
import { exportJWK, type JWK, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { ProbeError } from '../../../src/core/base/probe-error.ts'
import { keychainSecret, Secret, type Values } from '../../../src/core/base/settings/index.ts'
import { limits, type Result } from '../../../src/core/checks/engine/index.ts'
import { keyAge } from '../../../src/core/checks/kinds/oidc/checks.ts'
import oidc from '../../../src/core/checks/kinds/oidc/index.ts'
import { files } from '../../support/engine/files.ts'
import { expectResult } from '../../support/engine/finds.ts'
import {
  checked,
  evaluated,
  type RunKindOptions,
  runKind,
  secret,
  withDefaults,
} from '../../support/engine/run-kind.ts'
import {
  type Behaviour,
  cutAfter,
  endless,
  escapeSequences,
  http,
  hugeHeaders,
  type Peer,
  peer,
  replies,
  reset,
} from '../../support/faults/faults.ts'
import { account, client, type OidcServer, passwordClient, resource, startOidc } from '../../support/openid/oidc.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { hungUp } from '../../support/suite/until.ts'

type Overrides = Partial<Values<typeof oidc.settings>>
type Mode = 'Basic' | 'Standard' | 'Advanced'
const secretWord = 'hunter2-of-the-client'
const probe: Overrides = { clientId: client.clientId, clientSecret: secret(client.clientSecret) }
const bad = (results: readonly Result[]): readonly Result[] => results.filter(({ status }) => status !== 'ok')
const person: Overrides = { username: account.user, password: secret(account.password) }
const names = (results: readonly Result[]): readonly string[] => results.map(({ check }) => check)

describe('a real provider (oidc-provider)', () => {
  let server: OidcServer
  const run = (some: Overrides = {}, mode: Mode = 'Advanced', options: RunKindOptions = {}) =>
    runKind(oidc, { issuer: server.issuer, ...some }, mode, options)
  beforeAll(async () => {
    server = await startOidc()
  })
  afterAll(() => server.close())

  test('each mode runs its checks and those of the shallower ones, all are ok, and nothing is left behind', async () => {
    const all: Overrides = { ...probe, resource, refusesWrongSecret: true }
    const standard = ['discovery', 'issuer', 'endpoints', 'token endpoint', 'keys']
    for (const [mode, expected] of [
      ['Basic', ['discovery']],
      ['Standard', standard],
      [
        'Advanced',
        ['discovery', 'issuer', 'endpoints', 'keys', 'token', 'signature', 'claims', 'clock', 'wrong secret'],
      ],
    ] as const) {
      const results = await run(all, mode)
      expect(bad(results)).toEqual([])
      expect(names(results)).toEqual(expected)
      expect(results.every(({ address }) => address === server.address)).toBe(true)
    }
    await hungUp(server)
  })
  test('Basic and Standard send no credentials; nor does Advanced without a client', async () => {
    const from = server.requests().length
    await run(probe, 'Basic')
    await run(probe, 'Standard')
    await run({}, 'Advanced')
    expect(
      server
        .requests()
        .slice(from)
        .filter((line) => line.startsWith('POST')),
    ).toEqual(['POST /token', 'POST /token'])
    expect(server.requests().slice(from)).toContain('GET /jwks')
  })
  test('an opaque token is reported as opaque, and introspected only when that is configured', async () => {
    const from = server.requests().length
    const plain = await run(probe)
    expect(checked(plain, 'token').message).toContain('an opaque token (readable only by the provider)')
    expect(names(plain)).not.toContain('signature')
    expect(server.requests().slice(from).join()).not.toContain('introspection')
    expect(checked(await run({ ...probe, introspect: true }), 'introspection').status).toBe('ok')
  })
  test('a password grant signs the account in, its refresh token works, and the session is ended', async () => {
    const people: Overrides = {
      clientId: passwordClient.clientId,
      clientSecret: secret(passwordClient.clientSecret),
      username: account.user,
      password: secret(account.password),
    }
    const results = await run(people)
    expect(bad(results)).toEqual([])
    expect(checked(results, 'user').message).toContain(`issued "${account.user}" an opaque token`)
    expect(checked(results, 'refresh').message).toContain('issued a new token for the refresh token')
    expect(checked(results, 'refresh').details).toEqual([])
    expect(server.requests().at(-1)).toBe('POST /token/revocation')
    expect(server.sessions()).toBe(0)
    const shared = limits()
    const invalid = await run({ ...people, password: secret('wrong-wrong-wrong') }, 'Advanced', { limits: shared })
    expect(checked(invalid, 'user')).toMatchObject({ status: 'failed', fault: 'auth' })
    expect(checked(invalid, 'user').message).toContain(`refused "${account.user}": 400: invalid_grant`)
    expect(inspect(invalid, { depth: 9 })).not.toContain('wrong-wrong')
  })
  test('a wrong secret is auth, is not shown, and is not tried again soon', async () => {
    const shared = limits()
    const invalid: Overrides = { ...probe, clientSecret: secret(secretWord) }
    const from = server.requests().length
    const result = checked(await run(invalid, 'Advanced', { limits: shared, retries: 3 }), 'token')
    expect(result).toMatchObject({ status: 'failed', fault: 'auth' })
    expect(result.message).toContain('refused the client "svc-probe": 401: invalid_client')
    expect(result.details).toEqual(['clientId or clientSecret is wrong, or the client was removed'])
    expect(JSON.stringify(result)).not.toContain(secretWord)
    const again = await run(invalid, 'Advanced', { limits: shared })
    expect(checked(again, 'sign-in').message).toMatch(/^refused: 401: invalid_client/)
    expect(
      server
        .requests()
        .slice(from)
        .filter((line) => line === 'POST /token'),
    ).toHaveLength(1)
  })
  test('the slash at the end of the issuer matters, and without it no secret is sent', async () => {
    const from = server.requests().length
    const results = await run({ ...probe, issuer: `${server.issuer}/` })
    expect(checked(results, 'issuer')).toMatchObject({ status: 'failed', fault: 'data' })
    expect(checked(results, 'issuer').message).toMatch(/: they differ by the slash at the end$/)
    expect(checked(results, 'token')).toMatchObject({ status: 'failed', fault: 'dependency' })
    expect(server.requests().slice(from).join()).not.toContain('POST')
  })
  test('a wrong local clock is reported', async () => {
    const late = (ms: number): RunKindOptions => ({ date: () => new Date(Date.now() - ms) })
    const off = checked(await run({ ...probe, resource }, 'Advanced', late(20_000)), 'clock')
    expect(off).toMatchObject({ status: 'warning', measurement: { unit: 'milliseconds' } })
    expect(off.message).toMatch(/^the clock of \S+ is ahead of ours \(.+\) by (19|20)/)
    const far = await run({ ...probe, resource }, 'Advanced', late(-3_600_000))
    expect(checked(far, 'clock')).toMatchObject({ status: 'failed', fault: 'threshold' })
    expect(checked(far, 'claims').message).toContain('it expired at')
  })
})

suiteWith(opensslMissing(), 'a real provider (oidc-provider) over TLS', () => {
  let made: Certificates
  beforeAll(() => {
    made = makeCertificates()
  })
  afterAll(() => made.remove())
  const over = async (output: 'good' | 'twoDays' | 'expired' | 'otherHost', some: Overrides = {}) => {
    const secure = await startOidc({ tls: made[output] })
    try {
      const settings = { issuer: secure.issuer, caFile: made.caFile, ...probe, resource, ...some }
      return { results: await runKind(oidc, settings, 'Advanced'), requests: [...secure.requests()] }
    } finally {
      await secure.close()
    }
  }
  test('a valid certificate is ok, and its remaining days are evaluated', async () => {
    const { results } = await over('good')
    expect(bad(results)).toEqual([])
    expect(checked(results, 'certificate').message).toMatch(/in 89\.9 d/)
    expect(names(results).filter((name) => name === 'certificate')).toHaveLength(1)
    expect(checked((await over('twoDays')).results, 'certificate')).toMatchObject({ status: 'failed' })
  })
})

type Key = { readonly jwk: JWK; readonly key: KeyObject }
const pair = async (
  made: { readonly publicKey: KeyObject; readonly privateKey: KeyObject },
  more: JWK,
): Promise<Key> => ({ jwk: { ...(await exportJWK(made.publicKey)), ...more }, key: made.privateKey })
const ec = (kid: string): Promise<Key> =>
  pair(generateKeyPairSync('ec', { namedCurve: 'P-256' }), { kid, use: 'sig', alg: 'ES256' })

type Report = {
  readonly document?: object
  readonly keys?: unknown
  /** The whole answer of the token endpoint. */
  /** The whole answer to a token request without parameters. */
  readonly refusal?: string
  readonly token?: string | ((issuer: string) => Promise<string>)
}

describe('providers with defects', () => {
  let good: Key
  beforeAll(async () => {
    good = await ec('k1')
  })

  /** A provider without defects except the configured ones. */
  async function provider(
    messages: Report,
    tls?: { readonly key: string; readonly cert: string },
  ): Promise<Peer & { issuer: string }> {
    const at = { issuer: '', token: '' }
    const there = await peer(
      replies((request) => {
        const path = /^\w+ (\S+)/.exec(request)?.[1] ?? ''
        const { issuer } = at
        if (path.startsWith('/.well-known/')) {
          const document = {
            issuer,
            authorization_endpoint: `${issuer}/auth`,
            token_endpoint: `${issuer}/token`,
            jwks_uri: `${issuer}/keys`,
            response_types_supported: ['code'],
            subject_types_supported: ['public'],
            id_token_signing_alg_values_supported: ['ES256'],
            ...messages.document,
          }
          return http(200, JSON.stringify(document))
        }
        if (path === '/keys') return http(200, JSON.stringify(messages.keys ?? { keys: [good.jwk] }))
        if (path !== '/token') return http(404, '')
        const isEmpty = /\r\nContent-Length: 0\r\n/.test(request)
        return isEmpty ? (messages.refusal ?? http(400, '{"error":"invalid_request"}')) : at.token
      }),
      tls ? { tls } : {},
    )
    at.issuer = `${tls ? 'https' : 'http'}://127.0.0.1:${there.port}`
    at.token =
      typeof messages.token === 'function' ? await messages.token(at.issuer) : (messages.token ?? http(500, ''))
    return { ...there, issuer: at.issuer }
  }
  const look = async (message: Report, some: Overrides = {}, mode: Mode = 'Advanced'): Promise<readonly Result[]> => {
    await using there = await provider(message)
    const results = await runKind(oidc, { issuer: there.issuer, ...some }, mode)
    await hungUp(there)
    return results
  }
  const keysOf = async (keys: unknown, some: Overrides = {}): Promise<Result> =>
    checked(await look({ keys }, some), 'keys')

  test('simulated: all is ok except what the next tests change', async () => {
    expect(bad(await look({}))).toEqual([])
  })

  test.each([
    [403, { error: 'access_denied', error_description: 'Realm not enabled' }, 'failed', 'it refuses every client'],
    [
      403,
      { error: 'invalid_request', error_description: 'HTTPS required' },
      'warning',
      'check that clients get tokens',
    ],
    [403, { error: 'invalid_request' }, 'ok', 'answered an empty token request with 403: invalid_request'],
    [401, { error: 'invalid_client' }, 'ok', 'answered an empty token request with 401: invalid_client'],
    [429, {}, 'warning', 'check that clients get tokens'],
    [404, {}, 'failed', 'no client gets a token'],
    [500, {}, 'failed', 'no client gets a token'],
    [200, { access_token: 'x' }, 'failed', 'it must refuse it'],
  ] as const)('simulated: the token endpoint answers an empty request with %d %j', async (code, body, status, text) => {
    const results = await look({ refusal: http(code, JSON.stringify(body)) }, {}, 'Standard')
    const result = checked(results, 'token endpoint')
    expect(result).toMatchObject({ status, measurement: { value: code } })
    expect(result.message).toContain(text)
    // A realm of Keycloak that is disabled publishes its documents as before.
    expect(bad(results).filter(({ check }) => check !== 'token endpoint')).toEqual([])
  })

  test('simulated: without a token, the checks that need one are not checked', async () => {
    const all: Overrides = { ...probe, introspect: true, refusesWrongSecret: true, ...person }
    const results = await look({ token: http(401, '{"error":"invalid_client"}') }, all)
    expect(checked(results, 'token')).toMatchObject({ status: 'failed', fault: 'auth' })
    for (const check of ['introspection', 'user', 'refresh', 'wrong secret'])
      expect(checked(results, check)).toMatchObject({ notChecked: 'missing', cause: 'token' })
  })

  suiteWith(opensslMissing(), 'an http issuer with https endpoints', () => {
    test('simulated: the certificates of all endpoints are checked', async () => {
      const made = makeCertificates()
      onTestFinished(() => made.remove())

      await using other = await peer(replies(http(200, JSON.stringify({ keys: [good.jwk] }))), { tls: made.twoDays })
      const document = { jwks_uri: `https://127.0.0.1:${other.port}/keys` }
      const settings = { caFile: made.caFile, endpointHosts: [`127.0.0.1:${other.port}`] }
      const results = await look({ document }, settings, 'Standard')
      expect(checked(results, 'certificate')).toMatchObject({ status: 'failed', fault: 'threshold' })
    })
  })

  describe('discovery', () => {
    test('simulated: missing required members are named', async () => {
      const result = checked(await look({ document: { jwks_uri: 7, subject_types_supported: undefined } }), 'discovery')
      expect(result).toMatchObject({ status: 'failed', fault: 'data' })
      expect(result.message).toMatch(/has no valid jwks_uri, subject_types_supported$/)
    })
    test('simulated: another issuer is reported, and its text is sanitized', async () => {
      const result = checked(await look({ document: { issuer: `https://evil.test/${escapeSequences}` } }), 'issuer')
      expect(result).toMatchObject({ status: 'failed', fault: 'data' })
      expect(result.message).toContain('reports the issuer "https://evil.test/')
      expect(result.message).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
    })
    test('simulated: ID tokens without a verifiable signature fail', async () => {
      const document = { id_token_signing_alg_values_supported: ['none', 'HS256'] }
      const match = (await look({ document })).find(({ message }) => message.includes('none, HS256'))
      expect(match).toMatchObject({ check: 'keys', status: 'failed' })
    })
    test('simulated: an endpoint elsewhere fails until its host is listed, and is not called', async () => {
      await using other = await peer(replies(http(200, JSON.stringify({ keys: [good.jwk] }))))
      const document = { jwks_uri: `http://127.0.0.1:${other.port}/keys` }
      const results = await look({ document }, {}, 'Standard')
      expect(checked(results, 'endpoints')).toMatchObject({ status: 'failed', fault: 'data' })
      expect(checked(results, 'endpoints').message).toContain(`add "127.0.0.1:${other.port}" to endpointHosts`)
      expect(checked(results, 'keys')).toMatchObject({ status: 'failed', fault: 'data' })
      expect(other.connections()).toBe(0)
      expect(bad(await look({ document }, { endpointHosts: [`127.0.0.1:${other.port}`] }, 'Standard'))).toEqual([])
      expect(other.connections()).toBe(1)
    })
    suiteWith(opensslMissing(), 'over TLS', () => {
      test('simulated: plain http endpoints of an https issuer fail, as behind a proxy that hides its scheme', async () => {
        const made = makeCertificates()
        onTestFinished(() => made.remove())

        await using there = await provider({ document: { token_endpoint: 'http://127.0.0.1:1/token' } }, made.good)
        const settings: Overrides = { issuer: there.issuer, caFile: made.caFile, ...probe }
        const results = await runKind(oidc, settings, 'Advanced')
        expect(checked(results, 'endpoints').message).toContain('although the issuer is https')
        expect(checked(results, 'token').message).toContain('nothing was sent: token_endpoint is http://')
      })
    })
  })

  describe('keys', () => {
    const rsa = (bits: number, kid: string): Promise<Key> =>
      pair(generateKeyPairSync('rsa', { modulusLength: bits }), { kid, use: 'sig' })
    test('simulated: a weak RSA key fails below the limit, and is ok at it', async () => {
      const [weak, strong] = [await rsa(1_024, 'old'), await rsa(2_048, 'new')]
      const result = await keysOf({ keys: [weak.jwk, strong.jwk] })
      expect(result).toMatchObject({ status: 'failed', fault: 'data' })
      expect(result.message).toContain('key "old" is RSA of 1024 bits (fail below 2048)')
      expect((await keysOf({ keys: [strong.jwk] })).status).toBe('ok')
      expect((await keysOf({ keys: [strong.jwk] }, { keyBits: 2_049 })).status).toBe('failed')
    })
    test('simulated: two keys of one kid, and several without one, are reported', async () => {
      const twice = await keysOf({ keys: [good.jwk, (await ec('k1')).jwk] })
      expect(twice.message).toContain('2 keys have the kid "k1"')
      const { kid: _, ...nameless } = good.jwk
      expect((await keysOf({ keys: [nameless, (await ec('k2')).jwk] })).message).toContain('key 1 has no kid')
      expect((await keysOf({ keys: [nameless] })).status).toBe('warning')
    })
    test('simulated: a published private or shared key is reported first, and is not repeated', async () => {
      const all = await exportJWK(good.key)
      const result = await keysOf({
        keys: [{ kty: 'XX' }, { ...all, kid: 'open' }, { kty: 'oct', kid: 'mac', k: 'c2VjcmV0LXNlY3JldA' }],
      })
      expect(result).toMatchObject({ status: 'failed', fault: 'data' })
      expect(result.message).toContain('key "open" reveals its private part: anyone can sign tokens; replace it now')
      expect(result.details?.join()).toContain('key "mac" is a published shared secret')
      expect(JSON.stringify(result)).not.toContain(String(all.d))
      expect(JSON.stringify(result)).not.toContain('c2VjcmV0')
    })
    test('simulated: unknown curves, invalid points, the algorithm none, and missing keys are reported', async () => {
      const odd = async (jwk: object): Promise<string> => (await keysOf({ keys: [{ ...good.jwk, ...jwk }] })).message
      expect(await odd({ crv: 'secp256k1' })).toContain('is on the curve "secp256k1"')
      expect(await odd({ x: good.jwk.y })).toContain('is not a valid EC key')
      expect(await odd({ alg: 'none' })).toContain('is for the algorithm none')
      expect(await odd({ use: 'enc' })).toContain('the document has no valid key for verifying signatures')
      expect((await keysOf({ keys: [] })).message).toContain('no valid key')
      expect((await keysOf([good.jwk])).message).toContain('the document has no list of keys')
      expect((await keysOf({ keys: [null, 7, 'x', good.jwk] })).status).toBe('warning')
    })
    test('simulated: only the first hundred keys are checked', async () => {
      const many = (n: number) => ({ keys: Array.from({ length: n }, (_, i) => ({ ...good.jwk, kid: `k${i}` })) })
      expect((await keysOf(many(101))).message).toContain('the document has 101 keys (limit 100)')
      expect((await keysOf(many(100))).status).toBe('ok')
    })
    suiteWith(opensslMissing(), 'with certificates', () => {
      test('simulated: the certificate of a key dates it in Advanced, and must match the key', async () => {
        const made = makeCertificates()
        onTestFinished(() => made.remove())

        const key = createPrivateKey(made.expired.key)
        const own = await exportJWK(createPublicKey(key))
        const x5c = [(made.expired.cert.split('-----END')[0] ?? '').replaceAll(/-----.*-----|\s/g, '')]
        const results = await look({ keys: { keys: [{ ...own, kid: 'k1', x5c }] } })
        expect(bad(results)).toEqual([])
        expect(checked(results, 'key age').message).toMatch(/age of the newest signing key (?:90|89\.9) d$/)
        const standard = await look({ keys: { keys: [{ ...own, kid: 'k1', x5c }] } }, {}, 'Standard')
        expect(names(standard)).not.toContain('key age')
        expect((await keysOf({ keys: [{ ...good.jwk, x5c }] })).message).toContain(
          'has a certificate of another key (x5c)',
        )
      })
    })
    test('simulated: names in keys are sanitized', async () => {
      const result = await keysOf({ keys: [{ ...good.jwk, kid: `x${escapeSequences}`, alg: 'none' }] })
      expect(JSON.stringify(result)).not.toMatch(/\\u001b|\\u0007|\u202e/)
    })
  })

  describe('tokens', () => {
    const now = (): number => Math.floor(Date.now() / 1_000)
    const settings: Overrides = { ...probe, audience: 'orders' }
    const answered = (token: string): string =>
      http(200, JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 60 }))
    const signed =
      (claims: object = {}, header: object = {}, by?: Key): Report['token'] =>
      async (issuer) => {
        const all = { iss: issuer, aud: ['orders'], iat: now(), exp: now() + 60, ...claims }
        return answered(
          await new SignJWT(all).setProtectedHeader({ alg: 'ES256', kid: 'k1', ...header }).sign((by ?? good).key),
        )
      }
    const of = async (check: string, token: Report['token']): Promise<Result> =>
      checked(await look(token === undefined ? {} : { token }, settings), check)
    const written = (header: object, claims: object = {}, signature = ''): string =>
      answered(
        [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.') +
          `.${signature}`,
      )

    test('simulated: a valid token is ok', async () => {
      expect(bad(await look({ token: signed() } as Report, settings))).toEqual([])
    })
    test('simulated: alg none, a shared secret and unknown algorithms fail', async () => {
      for (const [alg, why] of [
        ['none', 'is not signed (alg none)'],
        ['NONE', 'is not signed (alg none)'],
        ['HS256', 'is signed with a shared secret (HS256)'],
        ['ROT13', 'is signed with "ROT13"'],
      ] as const) {
        const result = await of('signature', written({ alg, kid: 'k1' }, {}, alg === 'HS256' ? 'c2ln' : ''))
        expect(result).toMatchObject({ status: 'failed', fault: 'data' })
        expect(result.message).toContain(why)
      }
    })
    test('simulated: a token that contains its own key, or its URL, is rejected, and no request is sent', async () => {
      const forger = await ec('k1')
      await using elsewhere = await peer(replies(http(200, JSON.stringify({ keys: [forger.jwk] }))))
      for (const header of [
        { jwk: forger.jwk },
        { jku: `http://127.0.0.1:${elsewhere.port}/keys` },
        { x5u: 'https://evil.test' },
      ]) {
        const result = await of('signature', signed({}, header, forger))
        expect(result).toMatchObject({ status: 'failed', fault: 'data' })
        expect(result.message).toContain(`contains its own key (${Object.keys(header).join()})`)
      }
      // Others may have used this port before.
      expect(elsewhere.input()).not.toContain('/keys')
    })
    test('simulated: a forged signature, and a rotated key that is not published, fail', async () => {
      const other = await ec('k1')
      expect((await of('signature', signed({}, {}, other))).message).toContain('the signature of the token is wrong')
      const rotated = await of('signature', signed({}, { kid: 'b7' }))
      expect(rotated).toMatchObject({ status: 'failed', fault: 'data' })
      expect(rotated.message).toContain(
        'kid "b7", but matches no key of the provider (1 key): check whether the key was rotated but not published',
      )
    })
    test('simulated: an unknown critical header fails', async () => {
      const result = await of('signature', written({ alg: 'ES256', kid: 'k1', crit: ['x'], x: 1 }, {}, 'c2ln'))
      expect(result).toMatchObject({ status: 'failed', fault: 'data' })
      expect(result.message).toContain('Extension Header Parameter "x" is not recognized')
    })
    test('simulated: a token that contains the configured secret does not bring it into a message', async () => {
      const echoes = signed(
        { iss: `${'x'.repeat(190)}${secretWord}`, aud: [secretWord] },
        { kid: `${'k'.repeat(55)}${secretWord}` },
      )
      const results = await look({ token: echoes } as Report, { ...settings, clientSecret: secret(secretWord) })
      expect(checked(results, 'signature').message).toContain('kid "[secret]"')
      expect(checked(results, 'claims').message).toContain('iss is "[secret]"')
      expect(JSON.stringify(results)).not.toContain('hunter2')
    })
    test('simulated: expired, future, endless, foreign and misdirected tokens fail', async () => {
      for (const [claims, why] of [
        [{ exp: now() - 5 }, 'it expired at'],
        [{ nbf: now() + 3_600 }, 'it is not valid before'],
        [{ exp: undefined }, 'exp is missing: the token never expires'],
        [{ exp: 'soon' }, 'exp is not a time'],
        [{ exp: 1e300 }, 'exp is not a time'],
        [{ iss: 'https://evil.test' }, 'iss is "https://evil.test", not "http://127'],
        [{ aud: 'payments' }, 'aud is "payments", not "orders"'],
        [{ aud: undefined }, 'aud is missing, not "orders"'],
      ] as const) {
        const result = await of('claims', signed(claims))
        expect(result).toMatchObject({ status: 'failed', fault: 'data' })
        expect(result.message).toContain(why)
      }
    })
    test('simulated: the clock is evaluated by iat: ok at 2 s, a warning beyond, a failure beyond 30 s', async () => {
      const status = async (seconds: number): Promise<string> =>
        (await of('clock', signed({ iat: now() + seconds }))).status
      expect(await status(0)).toBe('ok')
      expect(await status(20)).toBe('warning')
      expect(await status(90)).toBe('failed')
      expect(await status(-90)).toBe('failed')
    })
    test('simulated: the text of a refusing server is shown safely, without the secret that it echoes', async () => {
      const echo = { error: 'invalid_client', error_description: `${escapeSequences} no ${secretWord} here` }
      const results = await look(
        { token: http(401, JSON.stringify(echo)) },
        { ...probe, clientSecret: secret(secretWord) },
      )
      const result = checked(results, 'token')
      expect(result).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(result.message).toContain('401: invalid_client: ')
      expect(result.message).toContain('no [secret] here')
      expect(JSON.stringify(results)).not.toMatch(/hunter2|\\u001b|\\u0007/)
    })
    test('simulated: a token in an answer is never shown', async () => {
      const token = await (signed() as (issuer: string) => Promise<string>)('http://other.test')
      const results = await look({ token }, settings)
      const value = (JSON.parse(token.slice(token.indexOf('{'))) as { access_token: string }).access_token
      expect(inspect(results, { depth: 9 })).not.toContain(value.split('.')[2])
    })
    test('simulated: invalid answers are distinguished', async () => {
      const messageOf = async (token: string): Promise<string> => {
        const { fault, message } = await of('token', token)
        return `${fault}: ${message.replace(/127\S+ /, '')}`
      }
      expect(await messageOf(http(200, '<html>'))).toBe(
        'protocol: answered 200 to the request for a token, with no JSON',
      )
      expect(await messageOf(http(200, '{}'))).toContain(
        'protocol: answered 200 to the request for a token, with JSON without',
      )
      expect(await messageOf(http(503, ''))).toContain(
        'data: answered the client "svc-probe" with 503: an error of the provider',
      )
      expect(await messageOf(http(400, '{"error":"unauthorized_client"}'))).toContain('data: ')
      expect(await messageOf(answered('x'.repeat(70_000)))).toContain('data: the token has 70000 characters')
    })
    test('simulated: a redirect is never followed, so the secret goes nowhere else', async () => {
      await using other = await peer(replies(answered('x')))
      for (const status of [302, 307, 308]) {
        const result = await of('token', http(status, '', { Location: `http://127.0.0.1:${other.port}/token` }))
        expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
        expect(result.message).toContain(`to 127.0.0.1:${other.port} (${status}): not followed`)
      }
      expect(other.connections()).toBe(0)
    })
    test('simulated: a provider that accepts any secret is detected', async () => {
      const result = checked(
        await look({ token: signed() } as Report, { ...probe, refusesWrongSecret: true }),
        'wrong secret',
      )
      expect(result).toMatchObject({ status: 'failed', fault: 'data' })
      expect(result.message).toContain('for a wrong secret: anyone can act as this client')
    })
    test('simulated: a secret goes only to listed hosts, and one of the keychain only to its own', async () => {
      await using other = await peer(replies(answered('x')))
      const document = { token_endpoint: `http://127.0.0.1:${other.port}/token` }
      const unlisted = checked(await look({ document }, probe), 'token')
      expect(unlisted).toMatchObject({ status: 'failed', fault: 'data' })
      expect(unlisted.message).toContain('nothing was sent: token_endpoint is http://127.0.0.1')
      await using there = await provider({ document })
      const place = oidc.target?.(withDefaults(oidc.settings, { issuer: there.issuer }))
      expect(place).toEqual({ host: '127.0.0.1', port: there.port })
      const keychainEntry = keychainSecret('oidc', {
        env: {},
        folder: '/',
        keychain: () => Promise.resolve({ secret: secretWord, host: '127.0.0.1', port: there.port }),
        target: () => place,
      })
      expect(await keychainEntry.reveal(files)).toBe(secretWord)
      const listed: Overrides = { issuer: there.issuer, endpointHosts: [`127.0.0.1:${other.port}`], clientId: 'svc' }
      const bound = checked(await runKind(oidc, { ...listed, clientSecret: keychainEntry }, 'Advanced'), 'token')
      expect(bound).toMatchObject({ status: 'failed', fault: 'data' })
      expect(bound.message).toMatch(/is bound to 127\S+, but the provider requires it at 127\S+: nothing was sent/)
      expect(other.connections()).toBe(0)
      await runKind(oidc, { ...listed, clientSecret: secret(secretWord) }, 'Advanced')
      expect(other.input()).toContain('POST /token')
    })
    test('simulated: an unreadable secret is reported, and nothing is sent', async () => {
      await using there = await provider({ token: answered('x') })
      const unread = new Secret('{env: GONE}', () =>
        Promise.reject(new ProbeError('internal', 'the variable GONE is not set')),
      )
      const result = checked(
        await runKind(oidc, { issuer: there.issuer, clientId: 'svc', clientSecret: unread }, 'Advanced'),
        'token',
      )
      expect(result).toMatchObject({ status: 'failed', fault: 'internal', message: 'the variable GONE is not set' })
      expect(there.input()).not.toContain('POST')
    })
    test('simulated: client_secret_post is used where the provider accepts nothing else, and neither where it accepts no secret', async () => {
      const document = { token_endpoint_auth_methods_supported: ['client_secret_post'] }
      await using there = await provider({ document, token: answered('x') })
      await runKind(oidc, { issuer: there.issuer, ...probe }, 'Advanced')
      expect(there.input()).toContain('client_secret=a+secret%3A+of+the+probe%2F%2B%25')
      expect(there.input()).not.toMatch(/authorization:/i)
      const none = await look({ document: { token_endpoint_auth_methods_supported: ['private_key_jwt'] } }, probe)
      expect(checked(none, 'token')).toMatchObject({ status: 'failed', fault: 'data' })
    })
  })
})

describe('oidc peers that misbehave', () => {
  const resultsOf = async (behave: Behaviour, some: Overrides = {}, timeoutMs = 5_000): Promise<readonly Result[]> => {
    await using there = await peer(behave)
    const settings = { issuer: `http://127.0.0.1:${there.port}`, ...some }
    const results = await runKind(oidc, settings, 'Standard', { timeoutMs })
    await hungUp(there)
    return results
  }
  const fault = async (behave: Behaviour): Promise<string> => {
    const result = checked(await resultsOf(behave), 'discovery')
    return `${result.status} ${result.fault}`
  }
  test('a slow answer exceeds the threshold', async () => {
    const document = {
      issuer: 'http://x',
      ...{ authorization_endpoint: 'http://x/a', token_endpoint: 'http://x/t', jwks_uri: 'http://x/k' },
      ...{
        response_types_supported: [],
        subject_types_supported: [],
        id_token_signing_alg_values_supported: ['RS256'],
      },
    }
    const slow = await resultsOf(replies(http(200, JSON.stringify(document)), 150), {
      latency: { warn: 50, limit: 100 },
    })
    expectResult(checked(slow, 'discovery'), 'failed (threshold)', { measurement: { limit: 100 } })
  })
  test('incomplete, reset, endless, huge and deep answers, and unrelated pages, are protocol faults, and end', async () => {
    expect(await fault(cutAfter(60, http(200, 'x'.repeat(200))))).toBe('failed protocol')
    expect(await fault(reset)).toBe('failed protocol')
    expect(await fault(replies(hugeHeaders(64 * 1024)))).toBe('failed protocol')
    expect(await fault(endless('HTTP/1.1 200 OK\r\n\r\n'))).toBe('failed protocol')
    expect(await fault(replies(http(200, '<html>sign in</html>')))).toBe('failed protocol')
    expect(await fault(replies(http(200, '[]')))).toBe('failed protocol')
    expect(await fault(replies(http(200, `"${'\\"'.repeat(200_000)}`)))).toBe('failed protocol')
    const deep = checked(await resultsOf(replies(http(200, `{"a":${'['.repeat(33)}${']'.repeat(33)}}`))), 'discovery')
    expect(deep.message).toContain('JSON nested more than 32 deep')
  })
  test('a redirect is reported, and not followed', async () => {
    await using other = await peer(replies(http(200, '{}')))
    const location = `http://127.0.0.1:${other.port}/.well-known/openid-configuration?token=abcd`
    const result = checked(await resultsOf(replies(http(301, '', { Location: location }))), 'discovery')
    expect(result).toMatchObject({ status: 'failed', fault: 'data', measurement: { value: 301 } })
    expect(result.message).toContain(
      `redirects to http://127.0.0.1:${other.port}/.well-known/openid-configuration?token=…`,
    )
    expect(other.connections()).toBe(0)
  })
})

describe('settings of oidc', () => {
  const messageOf = (some: Overrides): string | undefined =>
    oidc.validate?.(withDefaults(oidc.settings, { issuer: 'https://id.example.org', ...some }))
  test('settings that exclude each other are reported with a remedy', () => {
    expect(messageOf({})).toBeUndefined()
    expect(messageOf({ ...probe, username: 'a', password: secret('b') })).toBeUndefined()
    expect(messageOf({ issuer: 'https://id.example.org/.well-known/openid-configuration' })).toContain(
      'before /.well-known/',
    )
    expect(messageOf({ issuer: 'https://id.example.org/?a=b' })).toContain('query')
    expect(messageOf({ issuer: 'https://me@id.example.org' })).toContain('clientId')
    expect(messageOf({ endpointHosts: ['https://keys.example.org'] })).toContain('without https://')
    expect(messageOf({ clientId: 'a' })).toBe('clientId needs a clientSecret')
    expect(messageOf({ clientSecret: secret('b') })).toBe('clientSecret needs a clientId')
    expect(messageOf({ ...probe, username: 'a' })).toBe('username needs a password')
    expect(messageOf({ ...probe, password: secret('b') })).toBe('password needs a username')
    expect(messageOf({ username: 'a', password: secret('b') })).toContain('username needs a clientId')
    expect(messageOf({ refusesWrongSecret: true })).toContain('refusesWrongSecret needs')
    expect(messageOf({ introspect: true })).toContain('introspect needs')
  })
  test('the age of a key is a figure, and with keyAge a warning', () => {
    const at = new Date('2026-06-01T00:00:00Z')
    const aged = (days: number) =>
      evaluated(
        keyAge,
        { address: 'a', at, newest: new Date(at.getTime() - days * 86_400_000) },
        { keyAge: { warn: 90 } },
      )[0]
    const newest = new Date(at.getTime() - 400 * 86_400_000)
    expect(evaluated(keyAge, { address: 'a', at, newest })).toMatchObject([
      { status: 'ok', message: 'a: age of the newest signing key 400 d', measurement: { value: 400, unit: 'days' } },
    ])
    expect(aged(90)).toMatchObject({ check: 'key age', status: 'ok' })
    expectResult(aged(91), 'warning: a: age of the newest signing key 91 d (warn 90 d)')
  })
})
