import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Accounts, bearer, by, startAccounts } from './accounts.ts'
import { ask, raw } from './site.ts'

const secret = 'hunter2-of-ann'
let site: Accounts
beforeAll(async () => {
  site = await startAccounts()
})
afterAll(() => site.close())

/** The log of one request, and its path as logged. */
async function logOf(method: string, path: string): Promise<{ readonly whole: string; readonly path: unknown }> {
  const before = site.log.length
  await ask(site.port, path, { method })
  const entries = site.log.slice(before)
  return { whole: JSON.stringify(entries), path: entries.at(-1)?.path }
}

test.each([
  ['POST', `/auth/${secret}`],
  ['GET', `/auth/${secret}`],
  ['GET', `/auth/${secret}.json?provider=x`],
  ['DELETE', `/auth/${secret}`],
  ['PUT', `/auth/${secret}`],
  ['POST', `/auth/credentials/${secret}`],
  ['POST', `/AUTH//${secret}/`],
  ['POST', `/%61uth/${secret}`],
  ['POST', `/auth%2f${secret}`],
  ['POST', `/auth%252f${secret}`],
  ['POST', `/auth/%ff/${secret}`],
  ['POST', `/behind/a/proxy/auth/${secret}`],
  ['POST', `//auth/${secret}`],
  ['POST', `/auth/${secret}%00`],
  ['POST', `/heartbeats/${secret}`],
  ['GET', `/heartbeats/${secret}.json`],
  ['POST', `/Heartbeats/nightly/${secret}`],
  ['GET', `/drills/opened/${secret}`],
  ['HEAD', `/drills/opened/${secret}`],
  ['POST', `/drills/opened/${secret}`],
  ['PUT', `/drills/opened/${secret}.json`],
  ['OPTIONS', `/DRILLS//Opened/${secret}/`],
  ['GET', `/drills/%6fpened%2f${secret}?x=1`],
  ['GET', `/behind/a/proxy/drills/opened/${secret}`],
])('S7 %s %s leaves no path below /auth/, /heartbeats/ or /opened/ in the log', async (method, path) => {
  const { whole, path: logged } = await logOf(method, path)
  expect(whole).not.toContain(secret)
  expect(logged).toMatch(/\/(?:auth|heartbeats|opened)\/…(?:\?…)?$/i)
})

test.each([
  '/auth',
  '/auth/credentials',
  '/auth/Credentials.json',
  '/auth/logout',
  '/auth/login',
  '/auth/basic',
  '/heartbeats',
])('S7 the known path %s is logged as it is', async (path) => {
  expect((await logOf('POST', path)).path).toBe(path)
})

test('S7 the answer about an unknown provider names it, and the metrics and the audit log do not', async () => {
  const got = await site.post(`/auth/${secret}`, {})
  expect(got.json.ResponseStatus?.Message).toBe(`No configuration was added for OAuth provider '${secret}'`)
  expect((await ask(site.port, '/metrics')).text).not.toContain(secret)
  const refused = await raw(site.port, `POST /auth/${secret} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`)
  expect(refused.text).toMatch(/^HTTP\/1\.1 400/)
  expect(JSON.stringify(site.log)).not.toContain(secret)
  expect(JSON.stringify(await site.admin.audit.list({ limit: 100 }))).not.toContain(secret)
})

test('S7 a heartbeat is counted and accepted under its name, which the log leaves out', async () => {
  await site.admin.users.add({ userName: 'agent', permissions: ['heartbeat'] }, by)
  const { secret: key } = await site.admin.keys.create({ name: 'agent', userName: 'agent' }, by)
  const got = await site.post('/heartbeats/nightly-backup', {}, bearer(key))
  expect(got.status).toBe(200)
  expect(site.log.at(-1)?.path).toBe('/heartbeats/…')
  expect((await ask(site.port, '/metrics')).text).toContain('/heartbeats/{Name}')
})
