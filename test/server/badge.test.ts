import { expect, test } from 'vitest'
import type { RunDocument } from '../../src/core/protocol/index.ts'
import type { RecentRun, Runtime } from '../../src/core/protocol/service/service.ts'
import { badgeMarkup } from '../../src/core/server/pages/badge.ts'
import { problemsOf, refused } from '../config/given.ts'
import { runtimeFacts } from '../support/page/facts.ts'
import { recentRun } from './recent.ts'
import { ask, type Got, withSite } from './site.ts'

const at = new Date('2026-03-01T03:00:00.000Z')
type Status = RunDocument['status']
const run = (shop: Status, more: Partial<RecentRun> = {}): RecentRun => {
  const monitor = (name: string, status: Status) => ({
    ...{ name, kind: 'http', status },
    results: [{ check: 'status', status, message: 'secret.internal answered <b>500</b>' }],
  })
  const document: RunDocument = {
    ...{ version: 1, type: 'App', mode: 'Basic', view: 'full', status: shop, message: 'App' },
    ...{ startedAt: at, endedAt: at, durationMs: 15 },
    monitors: [monitor('http shop', shop), monitor('http other', 'ok')],
  }
  return recentRun(document, 3, more)
}
const badges = ['App', 'App/shop']
const askWith = async (recent: readonly RecentRun[], path: string, more: Partial<Runtime> = {}): Promise<Got> => {
  const runtime: Partial<Runtime> = {
    facts: runtimeFacts({ types: ['App'], ownTypes: [] }),
    recent: async (views) => (views('App') === 'full' ? recent : []),
    // A stranger.
    viewOf: async () => () => 'brief',
    ...more,
  }
  let got: Got | undefined
  await withSite({ runtime, options: { badges } }, async ({ port }) => {
    got = await ask(port, path, { headers: { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors' } })
  })
  if (!got) throw new Error('no answer')
  return got
}

test('W25 a badge has the state of its monitor for anybody, on pages of any site, and no text of a peer', async () => {
  const states = { ok: 'healthy', warning: 'warning', failed: 'unhealthy' }
  for (const [status, word] of Object.entries(states)) {
    const got = await askWith([run(status as Status)], '/badge/App/shop.svg')
    expect([got.status, got.headers['content-type']]).toEqual([200, 'image/svg+xml; charset=utf-8'])
    expect(got.text).toContain(`<title>App/shop: ${word}</title>`)
    expect(got.text).not.toMatch(/secret|<b>|script/)
    expect(got.headers).toMatchObject({
      'cache-control': 'no-cache, max-age=0',
      'cross-origin-resource-policy': 'cross-origin',
    })
  }
})

test('W25 a badge is unknown without a result that counts, and where another node runs the monitor', async () => {
  for (const recent of [[], [run('ok', { expired: true })]])
    for (const path of ['/badge/App/shop.svg', '/badge/App.svg'])
      expect((await askWith(recent, path)).text).toContain(': unknown</title>')
  const elsewhere = async () => new Map([['App' as const, [{ name: 'http shop', node: undefined, fault: undefined }]]])
  for (const path of ['/badge/App/shop.svg', '/badge/App.svg'])
    expect((await askWith([], path, { elsewhere })).text).toContain(': unknown</title>')
})

test('W25 what serve.badges does not list is not there, whether svc has it or not', async () => {
  const answers = await Promise.all(
    ['App/other', 'App/http%20shop', 'App/nothing', 'Sql', 'App/shop/x'].map(
      async (name) => await askWith([run('ok')], `/badge/${name}.svg`),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404])
  expect(new Set(answers.slice(0, 4).map(({ json }) => json.ResponseStatus?.Message)).size).toBe(1)
  expect((await askWith([run('ok')], '/badge/App.svg')).text).toContain('App: healthy')
})

test('W25 R1 a path without the ending .svg is no badge, whatever the verb', async () => {
  await withSite({ options: { badges } }, async ({ port }) => {
    for (const method of ['GET', 'OPTIONS'])
      for (const name of ['App', 'App/shop', 'App.svg.csv', 'App/shop.svg.json'])
        expect([method, name, (await ask(port, `/badge/${name}`, { method })).status]).toEqual([method, name, 404])
    expect((await ask(port, '/badge/App/shop.SVG', { method: 'OPTIONS' })).status).toBe(200)
  })
})

test('W25 a name in a badge cannot become markup', () => {
  const { markup } = badgeMarkup('App/<script>"', 'ok')
  expect(markup).toContain('App/&lt;script&gt;&quot;: healthy')
  expect(markup).not.toContain('<script')
})

test('W25 a badge that names no type and no single monitor is a mistake in svc.yaml', async () => {
  const fault = await refused(
    `serve: {badges: [App, App/shop, 'App/http shop', App/shopp, Sql, App/x]}
types:
  App:
    - {kind: http, name: shop, url: http://127.0.0.1/}
    - {kind: http, name: x, url: http://127.0.0.1/}
    - {kind: tcp, name: x, host: 127.0.0.1, port: 1}
`,
  )
  expect(problemsOf(fault)).toEqual([
    expect.stringContaining('serve.badges[3] is "App/shopp", which is not a type or a monitor of this file'),
    expect.stringContaining('serve.badges[4] is "Sql"'),
    expect.stringContaining('serve.badges[5] is "App/x"'),
  ])
})
