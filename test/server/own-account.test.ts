import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { testCore, testServer } from '../support/engine/core.ts'
import { adminOver } from '../support/store/admin.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-own-http-'))
const password = 'violet-harbour-42'
const next = 'copper-lantern-77'
let url = ''
let close: () => Promise<void> = async () => {}
let add: (userName: string) => Promise<unknown> = async () => {}
const log: string[] = []

beforeAll(async () => {
  const { service, runtime } = await testCore({
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store: join(folder, 'store', 'svc.db'),
  })
  const server = await testServer({ service, runtime, log: (entry) => log.push(JSON.stringify(entry)) })
  url = server.url
  add = async (userName) =>
    await adminOver(service).users.add({ userName, password }, { who: 'local:tester', correlationId: 'own' })
  close = async () => {
    await server.stop()
    await runtime.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
afterAll(() => close())

const post = (path: string, body: object, headers: Record<string, string> = {}) =>
  fetch(`${url}${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'Content-Type': 'application/json', ...headers },
  })
/** The cookies that a browser would keep. */
const cookiesOf = (response: Response): string =>
  response.headers
    .getSetCookie()
    .map((line) => line.split(';', 1)[0])
    .join('; ')
async function browser(userName: string, RememberMe = false): Promise<string> {
  await add(userName)
  return cookiesOf(await post('/auth/credentials', { UserName: userName, Password: password, RememberMe }))
}
const whoIs = async (Cookie: string): Promise<number> => (await fetch(`${url}/auth`, { headers: { Cookie } })).status
const change = { CurrentPassword: password, NewPassword: next }

describe('a browser', () => {
  test('S6 the status page says who is signed in and by which provider, and to others that nobody is', async () => {
    const cookie = await browser('Pia <b>')
    const page = async (headers: Record<string, string>) => await (await fetch(`${url}/`, { headers })).text()
    expect(await page({ Cookie: cookie })).toContain('signed in as Pia &lt;b&gt; by password')
    for (const headers of [{}, { Cookie: 'ss-id=nonsense' }]) expect(await page(headers)).not.toContain('signed in')
  })

  test.each([
    ['a session of the browser', false, 'ss-id'],
    ['a remembered session', true, 'ss-pid'],
  ])('P9 gets the cookie of the new session: %s', async (_, remembered, name) => {
    const before = await browser(`browser-${name}`, remembered)
    const response = await post('/password', change, { Cookie: before, 'Sec-Fetch-Site': 'same-origin' })
    expect(response.status).toBe(200)
    const after = cookiesOf(response)
    expect(after).toMatch(new RegExp(`^${name}=svc_ss_`))
    expect([await whoIs(before), await whoIs(after)]).toEqual([401, 200])
  })

  test.each([
    ['POST', '/password', change],
    ['POST', '/sessions/end', { All: true }],
    ['DELETE', '/sessions/x', undefined],
    ['POST', '/api/EndSession', { Others: true }],
  ] as const)('T6 a page of another site cannot %s %s', async (method, path, body) => {
    const Cookie = await browser(`page-${method}-${path.replaceAll('/', '-')}`)
    for (const headers of [{ 'Sec-Fetch-Site': 'cross-site' }, { Origin: 'https://evil.example' }]) {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: { Cookie, 'Content-Type': 'application/json', ...headers },
        ...(body ? { body: JSON.stringify(body) } : {}),
      })
      expect(response.status).toBe(403)
    }
    expect(await whoIs(Cookie)).toBe(200)
  })

  test('T8 GET and HEAD of the sessions change nothing, and JSONP gets none', async () => {
    const Cookie = await browser('reader')
    const list = await fetch(`${url}/sessions`, { headers: { Cookie } })
    expect(list.status).toBe(200)
    expect(list.headers.get('cache-control')).toBe('no-store')
    expect((await fetch(`${url}/sessions?callback=cb`, { headers: { Cookie } })).status).toBe(401)
    const response = await fetch(`${url}/sessions/end?All=true`, { headers: { Cookie } })
    expect(response.status).toBe(405)
    expect(await whoIs(Cookie)).toBe(200)
  })
})

describe('the passwords of a change', () => {
  test('N5 are refused in a query, and appear in no log', async () => {
    const Cookie = await browser('query')
    for (const field of ['CurrentPassword', 'NewPassword']) {
      const response = await post(`/password?${field}=${next}`, {}, { Cookie })
      expect([field, response.status]).toEqual([field, 400])
    }
    await post('/password', { ...change, CurrentPassword: 'wrong-and-secret' }, { Cookie })
    expect(log.join('')).not.toMatch(/copper-lantern|violet-harbour|wrong-and-secret/)
  })

  test('R3 are refused in a batch, by which somebody could guess many', async () => {
    const Cookie = await browser('batch')
    for (const path of ['/json/reply/ChangePassword[]', '/api/EndSession[]', '/api/GetSessions[]']) {
      expect((await post(path, [change], { Cookie })).status).toBe(400)
    }
    expect(await whoIs(Cookie)).toBe(200)
  })
})
