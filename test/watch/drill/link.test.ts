import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import { serveDefaults } from '../../../src/core/protocol/service/service.ts'
import { startServer } from '../../../src/core/server/index.ts'
import { openCore } from '../../../src/core/service/open.ts'
import { type Data, openData } from '../../../src/core/store/index.ts'
import { type DrillRecord, linkMs } from '../../../src/core/watch/drill/index.ts'
import { type Accounts, startAccounts } from '../../server/accounts.ts'
import { ask, type Got, openSite } from '../../server/site.ts'

let site: Accounts
let data: Data
beforeAll(async () => {
  site = await startAccounts()
  data = await openData({ store: site.store, create: false })
})
afterAll(async () => {
  await data?.close()
  await site?.close()
})

const day = 86_400_000
let count = 0
/** A drill in the store that began so long ago and is over, and the path of the link in its message. */
async function drilled(agoMs = day): Promise<{ readonly id: string; readonly path: string }> {
  const token = randomBytes(24).toString('base64url')
  count += 1
  const beganAt = Date.now() - agoMs - count * 60_000
  const drill: DrillRecord = {
    id: `drill ${count}`,
    by: 'ann',
    through: ['chat'],
    beganAt,
    endedAt: beganAt + 90_000,
    hops: [{ receiver: 'chat', hop: 'opened', result: 'not proven', message: 'nobody' }],
    tokens: { chat: createHash('sha256').update(token).digest('hex') },
    opened: {},
  }
  expect(await data.drills.begin(drill, 1_000)).toBe(true)
  return { id: drill.id, path: `/drills/opened/${token}` }
}
const confirmedAt = async (id: string): Promise<number | undefined> => (await data.drills.find(id))?.opened['chat']

const button = 'Confirm that the message arrived'
const press = async (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Got> =>
  await ask(site.port, path, { method: 'POST', headers })
/** As a browser sends the form of the page. */
const fromPage = (): Readonly<Record<string, string>> => ({
  origin: `http://127.0.0.1:${site.port}`,
  'sec-fetch-site': 'same-origin',
  'content-type': 'application/x-www-form-urlencoded',
})

describe('M14 the link in the message of a drill', () => {
  test('M14 no request but the POST of the button confirms anything, however often the link is followed', async () => {
    const { id, path } = await drilled()
    const requests: readonly (readonly [method: string, path: string, headers?: Readonly<Record<string, string>>])[] = [
      ['HEAD', path],
      ['GET', path],
      ['GET', path, { 'user-agent': 'Slackbot-LinkExpanding 1.0', accept: 'text/html' }],
      ['GET', path, { 'sec-purpose': 'prefetch', 'sec-fetch-site': 'none' }],
      ['GET', path, { accept: 'application/json' }],
      ['GET', `${path}?utm_source=gateway`],
      ['GET', `${path}.json`],
      ['OPTIONS', path, { origin: 'https://evil.example', 'access-control-request-method': 'POST' }],
      ['POST', path, { 'x-http-method-override': 'GET' }],
    ]
    for (const [method, target, headers = {}] of requests) {
      expect((await ask(site.port, target, { method, headers })).status, `${method} ${target}`).toBe(200)
    }
    for (const method of ['PUT', 'DELETE', 'PATCH', 'TRACE']) {
      const { status, headers } = await ask(site.port, path, { method })
      expect(status).toBe(405)
      if (method !== 'TRACE' && method !== 'PATCH') expect(headers['allow']).toBe('GET, HEAD, POST, OPTIONS')
    }
    expect(await confirmedAt(id)).toBeUndefined()
    expect((await ask(site.port, path)).text).toContain(button)
  })

  test('M14 T6 the page of another site cannot press the button', async () => {
    const { id, path } = await drilled()
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `http://127.0.0.1:${site.port}`, 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
    ]) {
      const got = await press(path, headers)
      expect([got.status, got.headers['content-type']]).toEqual([403, 'text/html; charset=utf-8'])
    }
    expect(await confirmedAt(id)).toBeUndefined()
  })

  test('M14 the first press counts, later ones change nothing, and the page says when it was', async () => {
    const { id, path } = await drilled()
    const got = await press(path, fromPage())
    const token = path.slice(path.lastIndexOf('/') + 1)
    expect(got.status).toBe(303)
    const at = await confirmedAt(id)
    expect(Math.abs((at ?? 0) - Date.now())).toBeLessThan(60_000)
    await press(path, fromPage())
    await press(path)
    expect(await confirmedAt(id)).toBe(at)
    const { status, text } = await ask(site.port, path)
    expect(status).toBe(200)
    const whole = new Date(at ?? 0).toISOString().slice(0, 19)
    expect(text).toContain(`✓ Confirmed on <time datetime="${whole}Z">${whole.replace('T', ' ')} UTC</time>`)
    expect(text).not.toContain('<button class="main">')
    expect(text).not.toContain(token)
  })

  test('M14 after the button, the browser is at the page again, also below a prefix that a proxy removes', async () => {
    const proxy = createServer(({ url = '', method, headers }, response) => {
      const options = { host: '127.0.0.1', port: site.port, path: url.slice('/svc'.length), method, headers }
      request(options, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(response)
      }).end()
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    await using stack = new AsyncDisposableStack()
    stack.defer(() => void proxy.close().closeAllConnections())
    const base = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/svc`
    for (const more of ['', '/', '?utm_source=gateway', '.json']) {
      const { id, path } = await drilled()
      const got = await fetch(`${base}${path}${more}`, { method: 'POST' })
      expect([got.status, got.redirected, await got.text()], more).toEqual([
        200,
        true,
        expect.stringContaining('✓ Confirmed on'),
      ])
      expect(got.url, more).toContain(`${base}${path}`)
      expect(await confirmedAt(id), more).toBeDefined()
    }
  })

  test('M14 whoever gets the link needs no account, also from beyond loopback, and the page has no script', async () => {
    const { path } = await drilled()
    const far = { 'x-forwarded-for': '203.0.113.9' }
    const { status, headers, text } = await ask(site.port, path, { headers: far })
    expect(status).toBe(200)
    expect(text).toContain('<b>chat</b>')
    expect(text).not.toContain('<script')
    expect(headers['content-security-policy']).toContain("form-action 'self'")
    expect(headers['cache-control']).toBe('no-store')
    expect(headers['www-authenticate']).toBeUndefined()
    expect((await press(path, { ...far, ...fromPage() })).status).toBe(303)
  })

  test('M14 a link of more than 7 days and one that never was get the same answer', async () => {
    const early = await drilled(linkMs - 3_600_000)
    const late = await drilled(linkMs)
    expect((await ask(site.port, early.path)).status).toBe(200)
    const unknown = `/drills/opened/${'x'.repeat(32)}`
    const whole = ({ status, headers, text }: Got) => {
      const { date, 'x-correlation-id': _, ...rest } = headers
      return [status, rest, text.replace(/\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d/g, 'time')]
    }
    for (const method of ['GET', 'HEAD', 'POST']) {
      const expected = whole(await ask(site.port, unknown, { method }))
      expect(expected[0]).toBe(404)
      for (const path of [late.path, '/drills/opened/short']) {
        expect(whole(await ask(site.port, path, { method }))).toEqual(expected)
      }
    }
    expect(await confirmedAt(late.id)).toBeUndefined()
  })

  test('M14 the link is of no use elsewhere', async () => {
    const { id, path } = await drilled()
    const Token = path.slice(path.lastIndexOf('/') + 1)
    for (const target of ['/drills/opened', '/json/reply/OpenDrill', '/api/OpenDrill', '/api/OpenDrill[]']) {
      expect((await site.post(target, { Token })).status).toBeGreaterThanOrEqual(400)
    }
    expect(await confirmedAt(id)).toBeUndefined()
  })

  test('M14 the log, /metrics and the answers have no link', async () => {
    const { path } = await drilled()
    const token = path.slice(path.lastIndexOf('/') + 1)
    for (const method of ['HEAD', 'GET', 'OPTIONS', 'POST', 'PUT']) await ask(site.port, path, { method })
    await ask(site.port, `${path}/more`)
    await ask(site.port, `/x${path}`)
    expect(JSON.stringify(site.log)).not.toContain(token)
    expect(site.log.some((entry) => entry.path === '/drills/opened/…')).toBe(true)
    const { text } = await ask(site.port, '/metrics')
    expect(text).not.toContain(token)
    expect(text).toContain('route="/drills/opened/{Token}"')
  })

  test('M14 the link works after a restart, at another server of the store, and long after the drill ended', async () => {
    const { id, path } = await drilled(6 * day)
    const config = { origin: undefined, types: {}, serve: { ...serveDefaults }, warnings: [] }
    const { service, runtime } = await openCore({
      version: '9.8.7',
      config,
      store: site.store,
      shared: true,
      details: serveDefaults.details,
    })
    const server = await startServer({
      service,
      runtime,
      options: serveDefaults,
      host: '127.0.0.1',
      port: 0,
      log: () => {},
    })
    onTestFinished(async () => {
      await server.stop()
      await runtime.close()
    })

    const { port } = new URL(server.url)
    expect((await ask(Number(port), path, { method: 'POST' })).status).toBe(303)
    expect(await confirmedAt(id)).toBeDefined()
    expect((await ask(Number(port), path)).text).toContain('✓ Confirmed')
  })

  test('M14 a store that does not answer is a 503, and the page says that nothing was confirmed', async () => {
    const link = async (): Promise<never> => {
      throw new Fault('Unavailable', 'The store does not answer')
    }
    const { port } = await openSite({ runtime: { drillLinks: { read: link, confirm: link } } })
    for (const method of ['GET', 'POST']) {
      const got = await ask(port, `/drills/opened/${'x'.repeat(32)}`, { method })
      expect([got.status, got.headers['content-type']]).toEqual([503, 'text/html; charset=utf-8'])
      expect(got.text).toContain('The store does not answer')
      expect(got.text).toContain('Nothing was confirmed.')
    }
  })
})
