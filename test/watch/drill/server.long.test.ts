import { text as textOf } from 'node:stream/consumers'
import { afterAll, describe, expect, test, vi } from 'vitest'
import type { GetDrillResponse } from '../../../src/core/protocol/index.ts'
import { load } from '../../config/given.ts'
import { type Accounts, bearer, by, password, startAccounts } from '../../server/accounts.ts'
import { ask } from '../../server/site.ts'
import { type HttpPeer, httpPeer } from '../../support/simulated/http-peer.ts'
import { cheapHash } from '../../support/suite/cheap-hash.ts'
import { until } from '../../support/suite/until.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 60_000 })

let site: Accounts
let hook: HttpPeer
const bodies: string[] = []
const keys = new Map<string, string>()

/** As a proxy relays a caller of another machine. */
const far = { 'x-forwarded-for': '203.0.113.9' }

async function call(who: string | undefined, method: 'GET' | 'POST', path: string, body?: object) {
  const key = who === undefined ? undefined : keys.get(who)
  const headers = { ...far, 'content-type': 'application/json', ...(key === undefined ? {} : bearer(key)) }
  const got = await ask(site.port, path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) })
  return { status: got.status, json: got.json as GetDrillResponse & { readonly Receiver?: string } }
}

/** The first test makes it: it reads a svc.yaml as tests do. */
async function start(): Promise<void> {
  hook = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      bodies.push(`${request.url} ${body}`)
      response.writeHead(204).end()
    })
  })
  const yaml = `
serve: {name: prod, url: "https://svc.example.com/", confirm: 5s}
notify:
  - {name: chat, webhook: {url: "${hook.origin}/chat"}}
  - {name: other, webhook: {url: "${hook.origin}/other"}}
drill: {through: [chat]}
`
  const { notify, drill, serve, types } = await load(yaml)
  site = await startAccounts({}, undefined, undefined, types, cheapHash, { notify, drill, serve, origin: '/svc.yaml' })
  await site.admin.users.add({ userName: 'driller', password, permissions: ['drill'] }, by)
  await site.admin.users.add({ userName: 'reader', password, permissions: ['health'] }, by)
  for (const userName of ['driller', 'reader', 'Ann'])
    keys.set(userName, (await site.admin.keys.create({ name: `key of ${userName}`, userName }, by)).secret)
}
afterAll(async () => {
  await site?.close()
  await hook?.[Symbol.asyncDispose]()
})

const page = { headers: far }
/** The link as a mail gateway, a chat preview, another site and a person use it. Nobody of them needs an account. */
async function openLink(link: string): Promise<void> {
  const unknown = await ask(site.port, `${link.slice(0, -1)}!`, page)
  expect([unknown.status, unknown.text.includes('unknown, or older than 7 days')]).toEqual([404, true])
  for (const method of ['HEAD', 'GET', 'OPTIONS', 'HEAD', 'GET'])
    expect((await ask(site.port, link, { ...page, method })).status).toBe(200)
  const button = 'Confirm that the message arrived'
  expect((await ask(site.port, link, page)).text).toContain(button)
  const foreign = { ...far, 'sec-fetch-site': 'cross-site', origin: 'https://elsewhere.example' }
  expect((await ask(site.port, link, { method: 'POST', headers: foreign })).status).toBe(403)
  expect((await ask(site.port, link, page)).text).toContain(button)

  const pressed = await ask(site.port, link, { ...page, method: 'POST' })
  expect([pressed.status, pressed.headers.location]).toEqual([303, '?'])
  const confirmed = await ask(site.port, link, page)
  const [sentence = ''] = /Confirmed on <time[^>]*>[^<]*UTC/.exec(confirmed.text) ?? []
  expect([confirmed.status, sentence !== '', confirmed.text.includes(button)]).toEqual([200, true, false])
  expect((await ask(site.port, link, { ...page, method: 'POST' })).status).toBe(303)
  expect((await ask(site.port, link, page)).text).toContain(sentence)
  const [token = ''] = /[^/]+$/.exec(link) ?? []
  expect(site.log.length).toBeGreaterThan(10)
  expect(JSON.stringify(site.log)).not.toContain(token)
}

describe('M14 a drill at a server', () => {
  test('is for Admin and for the permission drill', async () => {
    await start()
    expect((await call(undefined, 'POST', '/drills/start', {})).status).toBe(401)
    expect((await call('reader', 'POST', '/drills/start', {})).status).toBe(403)
    expect((await call('reader', 'GET', '/drills')).status).toBe(403)
    expect((await call('Ann', 'GET', '/drills')).status).toBe(404)
    expect((await call('driller', 'POST', '/drills/start', { Through: ['nobody'] })).status).toBe(404)
    expect(bodies).toEqual([])
  })

  test('goes through the named receiver alone, is proven by its link, and is in nothing but svc_drill_*', async () => {
    const begin = await call('driller', 'POST', '/drills/start', {})
    expect(begin.status).toBe(200)
    expect(begin.json.Drill).toMatchObject({ By: 'driller', Through: ['chat'], Result: 'Waiting' })
    expect((await call('Ann', 'POST', '/drills/start', {})).status).toBe(429)
    await until(() => bodies.length === 1, 60_000, 200)
    const [message = ''] = bodies
    expect(message).toContain('"alertname":"SvcDrill"')
    const link = /https:\/\/svc\.example\.com(\/drills\/opened\/[A-Za-z0-9_-]{32})"/.exec(message)?.[1] ?? ''
    await openLink(link)
    const { Id = '' } = begin.json.Drill ?? {}
    let drill: GetDrillResponse['Drill']
    await until(
      async () => {
        drill = (await call('Ann', 'GET', `/drills/${Id}`)).json.Drill
        return drill?.EndedAt !== undefined
      },
      240_000,
      1_000,
    )
    const hops = (drill?.Hops ?? []).map(({ Hop, Result }) => `${Hop} ${Result}`)
    // Nothing is monitored here, and a drill says so.
    expect(hops).toEqual([
      'watching Failed',
      'confirmation Proven',
      'outbox Proven',
      'accepted Proven',
      'opened Proven',
      'end Proven',
    ])
    expect(bodies.map((body) => body.slice(0, body.indexOf(' ')))).toEqual(['/chat', '/chat'])
    const { text: metrics } = await ask(site.port, '/metrics', { headers: bearer(keys.get('Ann') ?? '') })
    expect(metrics).toMatch(/^svc_drill_failed 1$/m)
    expect(metrics).toMatch(/^svc_drill_hop_proven\{receiver="chat",hop="opened"\} 1$/m)
    const others = metrics.split('\n').filter((line) => /drill/i.test(line) && !/svc_drill_/.test(line))
    expect(others.filter((line) => !/svc_(requests|http)/.test(line))).toEqual([])
    expect(metrics).toMatch(/^svc_notifications_total\{receiver="chat",result="accepted"\} 0$/m)
    const { text: page } = await ask(site.port, '/', { headers: bearer(keys.get('Ann') ?? '') })
    expect(page).not.toContain('svc drill')
  })
})
