import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { CookieJar } from '../../../src/core/base/net/http/cookies.ts'
import type { Secret } from '../../../src/core/base/settings/index.ts'
import { limits, type Result } from '../../../src/core/checks/engine/index.ts'
import steps from '../../../src/core/checks/kinds/http-steps/index.ts'
import { password, startAccounts } from '../../server/accounts.ts'
import { expectResult, findsOnly } from '../../support/engine/finds.ts'
import { messagesOf, type RawSteps as Raw, stepsWith } from '../../support/engine/run-steps.ts'
import { escapeSequences, refusedPort } from '../../support/faults/faults.ts'
import { makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { type FtpServer, startFtpServer } from '../../support/servers/ftp-server.ts'
import { type FtpApi, ftpApiPassword, type Instead, startFtpApi } from '../../support/simulated/ftp-api.ts'
import { suiteWith } from '../../support/suite/peer.ts'

const env = { API_PASSWORD: ftpApiPassword, SVC_PASSWORD: password, WRONG: 'not-the-password-at-all' }

const { settingsOf, run, problemOf } = stepsWith(env)
const everything = (results: readonly Result[]): string => JSON.stringify(results)

let ftp: FtpServer
let lets: (name: string, settings: string) => boolean = () => false
let attempts = 0
beforeAll(async () => {
  ftp = await startFtpServer('', (name, password) => lets(name, password))
})
afterAll(() => ftp.remove())
/** The passwords that were tried in this test. */
const triedHere = (): readonly string[] => ftp.passwords().slice(attempts)

type Peers = { readonly api: FtpApi; readonly ftp: FtpServer }

/** An API; the FTP server accepts the accounts that it has created. */
async function peers(instead?: Instead): Promise<Peers> {
  const api = await startFtpApi(instead)
  onTestFinished(() => api[Symbol.asyncDispose]())
  return use(api)
}

function use(api: FtpApi): Peers {
  lets = (name, password) => api.accounts.get(name) === password
  attempts = ftp.passwords().length
  return { api, ftp }
}

/** A probe credential is made, used and removed. */
const probe = ({ api, ftp }: Peers, more: Raw = {}): Raw => ({
  url: `${api.origin}/v1`,
  username: 'monitor',
  password: { env: 'API_PASSWORD' },
  authorization: `Bearer \${session}`,
  allowWrites: true,
  show: ['id'],
  steps: [
    {
      name: 'sign in',
      method: 'POST',
      path: '/sign-in',
      signIn: true,
      body: `{"user": "\${username}", "password": "\${password}"}`,
      capture: { session: '$.token' },
    },
    {
      name: 'make',
      method: 'POST',
      path: '/accounts',
      body: `{"name": "\${probe}", "password": "\${probePassword}"}`,
      status: [201],
      json: { '$.name': `\${probe}` },
      capture: { id: '$.id' },
    },
    { name: 'read', path: `/accounts/\${id}`, json: { '$.name': `\${probe}` } },
    {
      name: 'use',
      ftp: { host: '127.0.0.1', port: ftp.port, tls: 'off', username: `\${probe}`, password: `\${probePassword}` },
    },
  ],
  cleanup: [
    { name: 'remove', method: 'DELETE', path: `/accounts/\${id}`, undoes: 'make' },
    { name: 'sign out', method: 'POST', path: '/sign-out', undoes: 'sign in' },
  ],
  ...more,
})

test('a probe credential is created, used at a real FTP server, and removed', async () => {
  const all = await peers()
  const results = await run(probe(all))
  expect(messagesOf(results).map((line) => line.replace(/svc-probe-\w+/, 'svc-probe-1'))).toEqual([
    `connect ok 127.0.0.1:${all.api.port} accepted`,
    'step ok sign in: POST /v1/sign-in was answered 200 with 34 B',
    'step ok make: POST /v1/accounts was answered 201 with 47 B',
    'step ok read: GET /v1/accounts/a-1001 was answered 200 with 47 B',
    `step ok use: signed in to 127.0.0.1:${all.ftp.port} as "svc-probe-1" (unencrypted)`,
    'cleanup ok remove: DELETE /v1/accounts/a-1001 was answered 204 with 0 B',
    'cleanup ok sign out: POST /v1/sign-out was answered 204 with 0 B',
  ])
  expect(results[4]?.message).toMatch(/ms \(warn 1 s, fail 3 s\); .*listed in/)
  expect(results[1]).toMatchObject({
    measurement: { unit: 'milliseconds', limit: 5_000 },
    address: `127.0.0.1:${all.api.port}`,
  })
  expect(all.api.accounts.size).toBe(0)
  expect(triedHere()).toHaveLength(1)
  await expect.poll(() => all.api.open()).toBe(0)
})

test('each run creates another credential', async () => {
  const all = await peers()
  await run(probe(all))
  await run(probe(all))
  const [first, second] = triedHere()
  expect(second).toMatch(/^Aa1-[\w-]{24}$/)
  expect(second).not.toBe(first)
})

test('Basic and Standard send nothing: all steps are Advanced', () => {
  expect(steps.checks.map(({ depth }) => depth)).toEqual(['Advanced', 'Advanced', 'Advanced', 'Advanced'])
})

test('a sign-in round trip with a real svc serve: sign in, read, sign out, and stay signed out', async () => {
  const site = await startAccounts()
  onTestFinished(site.close)
  const raw = {
    url: `http://127.0.0.1:${site.port}`,
    username: 'Ann',
    password: { env: 'SVC_PASSWORD' },
    steps: [
      {
        name: 'in',
        method: 'POST',
        path: '/auth/credentials',
        signIn: true,
        form: { UserName: `\${username}`, Password: `\${password}` },
        json: { '$.UserName': `\${username}` },
        capture: { session: 'cookie:ss-id', bearer: '$.BearerToken' },
      },
      { name: 'read', path: '/auth', json: { '$.DisplayName': 'Ann Example' } },
      { name: 'out', method: 'POST', path: '/auth/logout', signIn: true },
      { name: 'is out', path: '/auth', status: [401] },
    ],
  }
  const results = await run(raw)
  expect(messagesOf(results).map((line) => line.replace(/ with .*/, ''))).toEqual([
    `connect ok 127.0.0.1:${site.port} accepted`,
    'step ok in: POST /auth/credentials was answered 200',
    'step ok read: GET /auth was answered 200',
    'step ok out: POST /auth/logout was answered 200',
    'step ok is out: GET /auth was answered 401',
  ])
  const refused = await run({ ...raw, password: { env: 'WRONG' } })
  expect(messagesOf(refused).slice(1)).toEqual([
    'step failed in: POST /auth/credentials was answered 401: the sign-in was refused',
    'step failed read: not run: step "in" failed',
    'step failed out: not run: step "in" failed',
    'step failed is out: not run: step "in" failed',
  ])
  expect(refused[1]?.fault).toBe('auth')
})

test('a refused sign-in is not repeated: neither at once nor by the next run', async () => {
  const all = await peers()
  const sharedLimits = limits()
  const raw = probe(all, { password: { env: 'WRONG' } })
  const first = await run(raw, { limits: sharedLimits, retries: 3 })
  expect(first.map(({ fault }) => fault)).toEqual([undefined, 'auth', 'dependency', 'dependency', 'dependency'])
  const [second] = await run(raw, { limits: sharedLimits })
  expect(second?.message).toMatch(/^refused: status 40\d /)
  expect(all.api.requestTexts()).toHaveLength(1)
  expect(everything(first)).not.toContain(env.WRONG)
})

test('a sign-in that is refused with a 200 is refused nevertheless', async () => {
  const all = await peers((request) =>
    request.endsWith('/sign-in') ? { status: 200, body: { ok: false } } : undefined,
  )
  const raw = probe(all)
  const [first, ...rest] = raw.steps as readonly Raw[]
  const results = await run({ ...raw, steps: [{ ...first, json: { '$.ok': 'true' } }, ...rest] })
  expect(results[1]).toMatchObject({ status: 'failed', fault: 'auth' })
  expect(results[1]?.message).toMatch(/\$\.ok is "false", expected "true"/)
})

test('a 500 during the sequence ends it, and the created credential is removed', async () => {
  const all = await peers((request) => (request.startsWith('GET /v1/accounts/') ? { status: 500 } : undefined))
  const results = await run(probe(all))
  expect(messagesOf(results).slice(3)).toEqual([
    'step failed read: GET /v1/accounts/a-1001 was answered 500 (expected 2xx)',
    'step failed use: not run: step "read" failed',
    'cleanup ok remove: DELETE /v1/accounts/a-1001 was answered 204 with 0 B',
    'cleanup ok sign out: POST /v1/sign-out was answered 204 with 0 B',
  ])
  expect(all.api.accounts.size).toBe(0)
})

test('a refused request has created nothing, so nothing is removed', async () => {
  const all = await peers((request) => (request === 'POST /v1/accounts' ? { status: 409 } : undefined))
  const results = await run(probe(all))
  expect(messagesOf(results).slice(2)).toEqual([
    'step failed make: POST /v1/accounts was answered 409 (expected 201)',
    'step failed read: not run: step "make" failed',
    'step failed use: not run: step "make" failed',
    'cleanup ok sign out: POST /v1/sign-out was answered 204 with 0 B',
  ])
})

test('what a 500 may have created and cannot be removed by its id is reported as left behind', async () => {
  const all = await peers((request) => (request === 'POST /v1/accounts' ? { status: 500 } : undefined))
  const results = await run(probe(all))
  expect(all.api.accounts.size).toBe(1)
  expectResult(
    results.find(({ check }) => check === 'cleanup'),
    `failed (dependency): remove: DELETE /v1/accounts/\${id}: not sent: no step captured \${id}; what step "make" created may be left behind: remove it with DELETE /v1/accounts/\${id}`,
  )
})

test('a cleanup that fails reports what it leaves behind, and the next one runs nevertheless', async () => {
  const all = await peers((request) => (request.startsWith('DELETE') ? { status: 503 } : undefined))
  const results = await run(probe(all))
  expect(messagesOf(results).slice(-2)).toEqual([
    'cleanup failed remove: DELETE /v1/accounts/a-1001 was answered 503 (expected 2xx); what step "make" created may be left behind: remove it with DELETE /v1/accounts/a-1001',
    'cleanup ok sign out: POST /v1/sign-out was answered 204 with 0 B',
  ])
})

test('H11 a probe account that the FTP server refuses does not pause the sign-in of svc.yaml', async () => {
  const { api } = await peers()
  const shared = limits()
  lets = () => false
  const refused = await run(probe({ api, ftp }), { limits: shared })
  expect(refused.find(({ message }) => message.startsWith('use: '))).toMatchObject({ status: 'failed', fault: 'auth' })
  lets = (name, password) => api.accounts.get(name) === password
  const next = await run(probe({ api, ftp }), { limits: shared })
  expect(next.map(({ check, status }) => [check, status])).not.toContainEqual(['sign-in', 'failed'])
  expect(next.find(({ message }) => message.startsWith('use: '))?.status).toBe('ok')
})

test('a credential that the FTP server refuses is reported by the step, and removed', async () => {
  const { api } = await peers()
  lets = () => false
  const results = await run(probe({ api, ftp }))
  const use = results.find(({ message }) => message.startsWith('use: '))
  expect(use).toMatchObject({ check: 'step', status: 'failed', fault: 'auth', address: ftp.address })
  expect(use?.message).toMatch(/refused the sign-in of "svc-probe-/)
  expect(api.accounts.size).toBe(0)
  expect(everything(results)).not.toContain(triedHere()[0])
})

test('a step that does not answer is ended in time for the cleanup, and reported by name', async () => {
  const all = await peers((request) => (request.startsWith('GET /v1/accounts/') ? 'silence' : undefined))
  const results = await run(probe(all), { timeoutMs: 3_000 })
  expect(messagesOf(results).slice(3)).toEqual([
    expect.stringMatching(
      /^step failed read: GET \/v1\/accounts\/a-1001: 127\.0\.0\.1:\d+ accepted the connection but sent nothing for [\d.]+ m?s$/,
    ),
    'step failed use: not run: step "read" failed',
    'cleanup ok remove: DELETE /v1/accounts/a-1001 was answered 204 with 0 B',
    'cleanup ok sign out: POST /v1/sign-out was answered 204 with 0 B',
  ])
  expect(results[3]?.fault).toBe('timeout')
  expect(all.api.accounts.size).toBe(0)
  await expect.poll(() => all.api.open()).toBe(0)
})

test('a cancelled run removes what it created, and leaves nothing open', async () => {
  const cancel = new AbortController()
  const all = await peers((request) => {
    if (!request.startsWith('GET /v1/accounts/')) return undefined
    cancel.abort()
    return 'silence'
  })
  await expect(run(probe(all), { signal: cancel.signal })).rejects.toThrow()
  expect(all.api.requestTexts().map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
    'POST /v1/sign-in',
    'POST /v1/accounts',
    'GET /v1/accounts/a-1001',
    'DELETE /v1/accounts/a-1001',
    'POST /v1/sign-out',
  ])
  expect(all.api.accounts.size).toBe(0)
  await expect.poll(() => all.api.open()).toBe(0)
})

test('a slow step fails by its threshold, and the sequence continues', async () => {
  const all = await peers()
  const results = await run(probe(all, { latency: '0ms' }))
  expect(results[1]).toMatchObject({ status: 'failed', fault: 'threshold' })
  expect(results.at(-1)?.message).toMatch(/^sign out: POST \/v1\/sign-out was answered 204/)
  expect(results.at(-1)?.message).not.toContain('left behind')
  expect(all.api.accounts.size).toBe(0)
})

test.each([
  ['a quote', 'a"b', '/v1/accounts/a%22b'],
  ['a newline', 'a\r\nX-Evil: 1', '/v1/accounts/a%0D%0AX-Evil%3A%201'],
  ['a question mark', 'a?b#c&d', '/v1/accounts/a%3Fb%23c%26d'],
  ['a slash', 'a/b', '/v1/accounts/a%2Fb'],
])('%s in a captured value stays a part of the path', async (_, id, question) => {
  const all = await peers((request) =>
    request === 'POST /v1/accounts' ? { status: 201, body: { id, name: 'x' } } : undefined,
  )
  const raw = probe(all)
  const [signIn, make, ...rest] = raw.steps as readonly Raw[]
  await run({ ...raw, steps: [signIn, { ...make, json: {} }, ...rest] })
  expect(all.api.requestTexts()).toContain(`GET ${question}`)
})

test.each(['..', '.', '../../admin', 'x/..'])(
  'a captured %s never leads out of its path: nothing is sent',
  async (id) => {
    const all = await peers((request) =>
      request === 'POST /v1/accounts' ? { status: 201, body: { id, name: 'x' } } : undefined,
    )
    const raw = probe(all)
    const [signIn, make, ...rest] = raw.steps as readonly Raw[]
    const results = await run({ ...raw, steps: [signIn, { ...make, json: {} }, ...rest] })
    expect(results.filter(({ status }) => status === 'failed').map(({ fault }) => fault)).toEqual([
      'data',
      'dependency',
      'data',
    ])
    expect(all.api.requestTexts().some((line) => line.startsWith('DELETE') || line.startsWith('GET'))).toBe(false)
  },
)

test('a value in a JSON body is a string and nothing else, whatever it contains', async () => {
  const value = `", "admin": true, "x": "\\\n${escapeSequences}`
  const all = await peers((request) => (request === 'GET /v1/first' ? { status: 200, body: { value } } : undefined))
  const results = await run({
    url: `${all.api.origin}/v1`,
    allowWrites: true,
    steps: [
      { name: 'first', path: '/first', capture: { value: '$.value' } },
      { name: 'json', method: 'POST', path: '/json', body: `{"a": "-\${value}-"}`, status: [401] },
      { name: 'form', method: 'POST', path: '/form', form: { a: `\${value}`, b: '&=' }, status: [401] },
      { name: 'xml', method: 'POST', path: '/xml', body: `<a b="\${value}"/>`, status: [401] },
      { name: 'header', path: '/header', headers: { 'X-Value': `\${value}` } },
    ],
  })
  const [, json = '', form = '', xml = ''] = all.api.requestTexts().map((line) => line.split(' ').slice(2).join(' '))
  expect(JSON.parse(json)).toEqual({ a: `-${value}-` })
  expect([...new URLSearchParams(form)]).toEqual([
    ['a', value],
    ['b', '&='],
  ])
  expect(xml).not.toContain('"admin"')
  expect(results.at(-1)).toMatchObject({ status: 'failed', fault: 'data' })
  expect(results.at(-1)?.message).toMatch(
    /a value for the header X-Value contains a character that a header does not allow: nothing was sent$/,
  )
  expect(all.api.requestTexts()).toHaveLength(4)
})

test.each([
  ['huge', 'h'.repeat(9_000), /has a \$\.value of 9000 characters \(limit 8192\), so no \$\{value\}$/],
  ['empty', '', /has an empty \$\.value, so no/],
  ['a list', ['x'], /has a \$\.value that is neither text nor a number, so no/],
  ['null', null, /has a \$\.value that is neither text nor a number, so no/],
])('a captured value that is %s is refused', async (_, value, says) => {
  const all = await peers((request) => (request === 'GET /v1/first' ? { status: 200, body: { value } } : undefined))
  const results = await run({
    url: `${all.api.origin}/v1`,
    steps: [{ name: 'first', path: '/first', capture: { value: '$.value' } }],
  })
  expect(results.at(-1)).toMatchObject({ status: 'failed', fault: 'data' })
  expect(results.at(-1)?.message).toMatch(says)
})

test('secrets are never shown: configured, captured, from cookies, echoed by the peer', async () => {
  const long = randomBytes(2_500).toString('hex')
  const all = await peers((request) => {
    if (request.endsWith('/sign-in')) {
      return { status: 200, body: { token: long }, headers: { 'Set-Cookie': 'session=crumb-5566; Path=/v1' } }
    }
    if (!request.endsWith('/accounts')) return undefined
    const body = { name: `${escapeSequences}${long} ${ftpApiPassword} crumb-5566` }
    return { status: 201, body, headers: { Location: `/v1/${long}` } }
  })
  const results = await run(probe(all))
  const make = results.find(({ message }) => message.startsWith('make: '))
  expect(make).toMatchObject({ status: 'failed', fault: 'data' })
  expect(make?.message).toContain('$.name is "redgnp[secret]')
  for (const secret of [ftpApiPassword, 'crumb-5566', long.slice(0, 12), long.slice(2_000, 2_012)])
    expect(everything(results)).not.toContain(secret)
  expect(everything(results)).not.toMatch(/\\u001b/)
})

test('H34 a step whose answer lacks the text of contains fails, and the text may be one value', async () => {
  const api = await startFtpApi((request) => ({ status: 200, body: `hello, you asked for ${request}` }))
  onTestFinished(() => api[Symbol.asyncDispose]())
  const page = (contains: string): Promise<readonly Result[]> =>
    run({ url: api.origin, values: { word: 'hello' }, steps: [{ name: 'page', path: '/shop', contains }] })
  expect((await page('GET /shop')).at(-1)).toMatchObject({ status: 'ok' })
  expect((await page(`\${word}`)).at(-1)).toMatchObject({ status: 'ok' })
  expectResult((await page('goodbye')).at(-1), 'failed (data)', /the answer does not contain "goodbye"/)
})

test('a redirect is not followed, and its target is reported', async () => {
  const all = await peers((request) =>
    request.endsWith('/sign-in')
      ? { status: 302, headers: { Location: 'https://elsewhere.test/?token=abcdefg' } }
      : undefined,
  )
  const results = await run(probe(all))
  expect(results[1]?.message).toBe(
    'sign in: POST /v1/sign-in was answered 302 to https://elsewhere.test/?token=… (expected 2xx)',
  )
  expect(all.api.requestTexts()).toHaveLength(1)
})

test('a refused connection is reported as such, and no cleanup runs', async () => {
  const port = await refusedPort()
  await findsOnly(
    run({
      url: `http://127.0.0.1:${port}`,
      steps: [{ name: 'out', method: 'POST', path: '/x', signIn: true }],
      cleanup: [{ name: 'back', method: 'POST', path: '/y', undoes: 'out' }],
    }),
    'connect failed (refused)',
  )
})

suiteWith(opensslMissing(), 'over TLS', () => {
  test('a server without a trusted certificate gets nothing, one trusted through caFile gets everything', async () => {
    const certificates = makeCertificates()
    onTestFinished(async () => certificates.remove())
    const api = await startFtpApi(undefined, certificates.good)
    onTestFinished(() => api[Symbol.asyncDispose]())
    await findsOnly(run(probe(use(api))), 'connect failed (tls)')
    expect(api.requestTexts()).toEqual([])
    const trusted = await run(probe({ api, ftp }, { caFile: certificates.caFile }))
    expect(trusted.filter(({ status }) => status !== 'ok')).toEqual([])
    expect(trusted[0]?.message).toMatch(/ accepted, TLSv1\.3$/)
  })
})

const one = (step: Raw, more: Raw = {}): Raw => ({
  url: 'http://127.0.0.1/api',
  steps: [{ name: 'a', path: '/a', ...step }],
  ...more,
})

test.each<[string, Raw, RegExp]>([
  ['a write without leave', one({ method: 'DELETE' }), /step "a" sends DELETE, which needs allowWrites: true/],
  [
    'a value that nothing gives',
    one({ path: `/\${id}` }),
    /uses \$\{id\}, which no earlier step captures: use one of probe, probePassword/,
  ],
  [
    'a value out of quotes',
    one({ method: 'POST', body: `{"id": \${probe}}` }, { allowWrites: true }),
    /is not JSON: put values in quotes/,
  ],
  [
    'a value in other bodies',
    one({ method: 'POST', body: `id=\${probe}` }, { allowWrites: true }),
    /neither JSON nor XML; use form/,
  ],
  ['a typing error', one({ path: `/\${id` }), /contains "\$\{id", which is not a \$\{name\}/],
  ['a body of a GET', one({ body: '{}' }), /cannot send a body with GET/],
  ['a header that is ours', one({ headers: { Host: 'x' } }), /may not set the header Host/],
  ['a capture of nothing', one({ capture: { id: 'id' } }), /captures id from "id", which is not of the form/],
  [
    'a capture over what is given',
    one({ capture: { password: '$.id' } }),
    /may not capture the built-in name password/,
  ],
  ['a status', one({ status: ['ok'] }), /^is "ok", which no answer has: write 200/],
  ['a health check', one({ path: '/healthcheck' }), /use kind http or svc/],
  ['no path', { url: 'http://127.0.0.1', steps: [{ name: 'a' }] }, /has neither a path nor ftp/],
  [
    'a cleanup with the name of a step',
    one({}, { cleanup: [{ name: 'a', path: '/b', undoes: 'a' }] }),
    /two steps have the name "a"/,
  ],
  [
    'a cleanup of nothing',
    one({}, { cleanup: [{ name: 'b', path: '/b', undoes: 'c' }] }),
    /undoes "c", which is not a step that sends a request/,
  ],
  [
    'an FTP host of their choice',
    {
      url: 'http://127.0.0.1',
      steps: [{ name: 'a', ftp: { host: `\${probe}`, username: 'x', password: `\${probe}` } }],
    },
    /^contains the variable \$\{probe\}, which svc does not replace: write the value itself/,
  ],
  [
    'a query of url',
    { url: 'http://127.0.0.1/?a', steps: [{ name: 'a', path: '/' }] },
    /move a query to the path of a step/,
  ],
  ['show', one({}, { show: ['id'] }), /show names id, which no step captures/],
])('%s is refused before anything is sent', (_, raw, says) => {
  expect(problemOf(raw)).toMatch(says)
})

test('a secret of the keychain belongs to the host of url, and is not sent to the FTP host', () => {
  const settings = settingsOf({
    url: 'http://127.0.0.1/',
    username: 'x',
    password: { keychain: 'api' },
    steps: [{ name: 'a', ftp: { host: 'ftp.test', username: `\${username}`, password: `\${password}` } }],
  })
  expect((settings.password as Secret).origin).toBe('{keychain: api}')
  expect(steps.validate?.(settings)).toMatch(/would send \$\{password\} to ftp\.test/)
})

test('cookies are kept by path, end by Max-Age, and are sent over TLS only if secure', () => {
  const jar = new CookieJar()
  const now = new Date('2026-01-01T00:00:00Z')
  expect(jar.take('a=1; Path=/v1; HttpOnly', '/v1/in', now)).toBe('1')
  jar.take('b=2; Secure; Path=/', '/v1/in', now)
  jar.take('c=3; Expires=Thu, 01 Jan 2026 00:00:00 GMT', '/v1/in', now)
  jar.take('d=\u0007', '/v1/in', now)
  expect(jar.header('/v1/x', false)).toBe('a=1')
  expect(jar.header('/v12', true)).toBe('b=2')
  jar.take('a=; Max-Age=0; Path=/v1', '/v1/out', now)
  expect(jar.header('/v1/x', false)).toBeUndefined()
})
