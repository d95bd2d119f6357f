import { afterAll, beforeAll, expect, test } from 'vitest'
import { safeTarget } from '../../src/core/server/pages/sign-in-page.ts'
import { type Accounts, by, password, startAccounts } from './accounts.ts'
import { ask, type Got, openSite } from './site.ts'

/** As a proxy relays a caller of another machine. */
const far = { 'x-forwarded-for': '203.0.113.9' }
const form = { 'content-type': 'application/x-www-form-urlencoded' }

let site: Accounts
beforeAll(async () => {
  site = await startAccounts({ basic: true })
  await site.admin.users.add({ userName: 'viewer', password, permissions: ['health'] }, by)
  await ask(site.port, '/healthcheck?ExecutionMode=Basic&ServerType=App')
})
afterAll(() => site.close())

const post = (body: Readonly<Record<string, string>>, path = '/sign-in', headers = {}): Promise<Got> =>
  ask(site.port, path, {
    method: 'POST',
    headers: { ...form, ...far, ...headers },
    body: new URLSearchParams(body).toString(),
  })
const credentials = { UserName: 'viewer', Password: password }
const cookiesOf = ({ headers }: Got): string => (headers['set-cookie'] ?? []).map((one) => one.split(';')[0]).join('; ')

test('W25 a viewer with the permission health signs in by the form, reads details, and signs out', async () => {
  const stranger = await ask(site.port, '/', { headers: far })
  expect(stranger.text).toContain('<a href="/sign-in?continue=%2F">Sign in</a>')
  expect(stranger.text).not.toContain('?monitor=')
  const got = await post(credentials)
  expect([got.status, got.headers.location]).toEqual([303, '/'])
  const cookie = cookiesOf(got)
  const page = await ask(site.port, '/', { headers: { ...far, cookie } })
  expect(page.text).toContain('signed in as viewer by password')
  expect(page.text).toContain('?monitor=')
  // The session ends with the browser, so no answer makes its cookie last.
  expect(page.headers['set-cookie']).toBe(undefined)
  const out = await post({ provider: 'logout' }, '/sign-in', { cookie })
  expect([out.status, out.headers.location]).toEqual([303, '/'])
  expect(out.headers['set-cookie']?.every((one) => one.includes('Max-Age=0'))).toBe(true)
  expect((await ask(site.port, '/', { headers: { ...far, cookie } })).text).not.toContain('signed in as')
})

test('W25 a session that lasts is renewed in the browser by each page, as a board needs', async () => {
  const got = await post({ ...credentials, RememberMe: 'true' }, '/sign-in?continue=%2Fboard%3Ftype%3DApp')
  expect(got.headers.location).toBe('/board?type=App')
  const cookie = cookiesOf(got)
  for (const path of ['/board', '/']) {
    const { headers, text } = await ask(site.port, path, { headers: { ...far, cookie } })
    expect(headers['set-cookie']?.find((one) => one.startsWith('ss-pid='))).toMatch(/; Max-Age=2592000; HttpOnly/)
    expect(text).not.toMatch(/ss-pid|svc_/)
  }
  const ended = await ask(site.port, '/board', { headers: { ...far, cookie: 'ss-pid=ended; ss-opt=perm' } })
  expect(ended.headers['set-cookie']).toBe(undefined)
  expect(ended.text).toContain('States only')
})

test('W25 a sign-in that fails is the form with the reason, without a password, a challenge or a cookie', async () => {
  for (const body of [{ ...credentials, Password: 'mistaken-secret' }, { UserName: 'nobody', Password: 'x' }, {}]) {
    const got = await post(body as Record<string, string>)
    expect([400, 401]).toContain(got.status)
    expect(got.text).toContain('role="alert">Nobody is signed in: ')
    expect(got.text).not.toContain('mistaken-secret')
    expect(got.headers['www-authenticate']).toBe(undefined)
    expect(got.headers['set-cookie']).toBe(undefined)
  }
})

test.each([
  ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
  ['another port of this host', { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' }],
  ['a page that hides its origin', { origin: 'null' }],
] as const)('T6 a form of %s signs nobody in or out', async (_, headers) => {
  const got = await post(credentials, '/sign-in', headers)
  expect([got.status, got.headers['set-cookie']]).toEqual([403, undefined])
  const cookie = cookiesOf(await post(credentials))
  expect((await post({ provider: 'logout' }, '/sign-in', { ...headers, cookie })).status).toBe(403)
  expect((await ask(site.port, '/', { headers: { ...far, cookie } })).text).toContain('signed in as viewer')
})

test.each([
  ['/', '/'],
  ['/?report=Sql-Basic#Sql-Basic', '/?report=Sql-Basic#Sql-Basic'],
  ['/board?type=Sql', '/board?type=Sql'],
  ['//evil.example/', '/'],
  ['/\\evil.example/', '/'],
  ['https://evil.example/', '/'],
  ['/auth/logout', '/'],
  ['/../auth/logout', '/'],
  ['javascript:alert(1)', '/'],
  ['/\t/evil.example', '/'],
  [undefined, '/'],
])('W25 after a sign-in, continue=%s leads to %s', (text, target) => {
  expect(safeTarget(text)).toBe(target)
})

test('W25 a server without a store offers no sign-in', async () => {
  const { port } = await openSite({})
  expect((await ask(port, '/')).text).not.toContain('Sign in')
  expect((await ask(port, '/sign-in')).text).toContain('This server has no store, so it has no users')
})
