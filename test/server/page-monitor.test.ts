import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { GetHistoryResponse, RunDocument } from '../../src/core/protocol/index.ts'
import { cardsOf } from '../../src/core/server/pages/cards.ts'
import { pageMarkup } from '../../src/core/server/pages/page-markup.ts'
import { historyMarkup, monitorIn } from '../../src/core/server/pages/page-monitor.ts'
import { pageFacts } from '../support/page/facts.ts'
import { until } from '../support/suite/until.ts'
import { recentRun } from './recent.ts'
import { ask, openSite } from './site.ts'
import { serveMonitors } from './with-monitors.ts'

const textOf = (page: string): string =>
  page
    .replace(/<style>.*?<\/style>/s, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
const pathOf = (key: string): string => `/?monitor=${encodeURIComponent(key)}`

describe('the page of a monitor', () => {
  let server: Awaited<ReturnType<typeof serveMonitors>>
  beforeAll(async () => {
    server = await serveMonitors()
    for (const type of ['Batch', 'Ftp'])
      await ask(server.port, `/healthcheck?ExecutionMode=Standard&ServerType=${type}`)
  })
  afterAll(() => server.close())

  test('W20 a report links to the pages of its monitors, which show availability, down time and the latest results', async () => {
    const { text } = await ask(server.port, '/')
    const all = [...text.matchAll(/href="(\/\?monitor=[^"]*)"/g)].map(([, link = '']) => link)
    const links = [...new Set(all)].filter((link) => link !== pathOf('/host'))
    expect(links.toSorted()).toEqual(
      [
        pathOf('Batch/tcp <b>queue</b>'),
        pathOf('Ftp/file-age a-name-that-is-much-too-long-for-one-line-of-a-phone'),
      ].toSorted(),
    )
    const rows = await until(async () => {
      const [batch = '', ftp = ''] = await Promise.all(
        links.toSorted().map(async (link) => textOf((await ask(server.port, link)).text)),
      )
      return (
        /24 h 100 % since \S+ UTC never/.test(batch) && /24 h 0 % since \S+ UTC [\d.]+ m?s/.test(ftp) && [batch, ftp]
      )
    })
    const [batch = '', ftp = ''] = rows
    expect(batch).toMatch(/30 days 100 % since \S+ UTC never/)
    expect(batch).toContain('Without a store, svc remembers the last 24 hours')
    expect(batch).toMatch(/Latest results Standard .* connect 127\.0\.0\.1/)
    expect(ftp).toContain('Down for longest')
  })

  test('W20 without a store, the page says that states and incidents do not outlive svc, and /readyz is ready', async () => {
    const { text } = await ask(server.port, '/')
    expect(textOf(text)).toContain('Without a store, svc forgets states and incidents when it ends.')
    expect((await ask(server.port, '/readyz')).text).toBe('ready\n')
  })

  test('W20 with reload=off neither page reloads itself, and each page has a link to it', async () => {
    for (const path of ['/', pathOf('Batch/tcp <b>queue</b>')]) {
      const { text, headers } = await ask(server.port, path)
      const [, link = ''] = /<a href="([^"]*)">stop</.exec(text) ?? []
      expect(headers.refresh).toMatch(/^30\b/)
      const { text: still, headers: stillHeaders } = await ask(server.port, link.replaceAll('&amp;', '&'))
      expect(stillHeaders.refresh).toBe(undefined)
      expect(still).toContain('does not reload')
      expect(/<h1>.*<\/h1>/.exec(still)?.[0]).toBe(/<h1>.*<\/h1>/.exec(text)?.[0])
    }
  })

  test('W20 a page with a query names itself without a fragment, because browsers at a fragment would not reload it', async () => {
    for (const path of ['/?report=Batch-Basic', pathOf('Batch/tcp <b>queue</b>'), '/?find=%22&victims=a']) {
      const { headers } = await ask(server.port, path)
      expect(headers.refresh).toBe(`30; url=${path}`)
    }
  })

  test('W20 a monitor that nobody knows is a 404, and its name is escaped', async () => {
    for (const key of ['Batch/<script>', 'Nothing/tcp', '/', 'host', 'Batch/']) {
      const { status, text } = await ask(server.port, pathOf(key))
      expect(status).toBe(404)
      expect(text).toContain('Nothing that you may read is known of this monitor.')
      expect(text).not.toContain('<script')
    }
  })
})

test('S11 W20 a reader who may not read a type gets no page of its monitors, no links, and no history', async () => {
  const runtime = { viewOf: async () => () => 'brief' as const }
  const { port, calls } = await openSite({ runtime })
  expect((await ask(port, pathOf('Sql/postgres orders'))).status).toBe(404)
  expect(calls).toEqual([])
  expect((await ask(port, '/')).text).not.toContain('?monitor=')
})

test.each([
  ['Sql/postgres a/b', { type: 'Sql', monitor: 'postgres a/b' }],
  ['/host', { type: undefined, monitor: 'host' }],
  ['sql/x', undefined],
  ['Sql', undefined],
  [undefined, undefined],
])('W20 the query monitor=%s names %j', (text, id) => {
  expect(monitorIn(text)).toEqual(id)
})

const day = 86_400_000
test('W20 an hour down in 90 days is below 100 %, one red bar among those of the days, and its check is named', () => {
  const now = Date.UTC(2026, 10, 24, 12)
  const first = Math.floor(now / day) * day - 89 * day
  const answer = (days: number): GetHistoryResponse => ({
    Monitors: [
      {
        ServerType: 'Sql',
        MonitorName: 'postgres orders',
        From: new Date(now - days * day),
        AvailabilityPercent: 100 * (1 - 1 / (24 * days)),
        Down: 3_600_000,
        Unobserved: 0,
        Worst: [{ From: new Date(now - day), To: new Date(now - day / 2), Down: 3_600_000, FailedChecks: ['connect'] }],
        Periods: Array.from({ length: days }, (_, at) => ({
          From: new Date(first + at * day),
          To: new Date(first + (at + 1) * day),
          Status: at === 88 ? ('Failed' as const) : ('Ok' as const),
          AvailabilityPercent: at === 88 ? 95.833 : 100,
          Down: at === 88 ? 3_600_000 : 0,
          FailedChecks: at === 88 ? ['connect'] : [],
        })),
      },
    ],
  })
  const { markup } = historyMarkup([answer(1), answer(30), answer(90)], { now })
  expect(textOf(markup)).toContain('90 days 99.953 % 1 h never')
  const bars = /<svg class="bars" viewBox="0 0 900 32".*?<\/svg>/s.exec(markup)?.[0] ?? ''
  expect(bars.match(/<rect class="ok"/g)).toHaveLength(89)
  expect(
    bars.match(/<rect class="fail".*?<title>2026-11-23 UTC: 95.833 %, down 1 h \(connect\)<\/title>/g),
  ).toHaveLength(1)
})

test('W20 the page of 10,000 monitors with three runs each is smaller than 1 MB, lists what is not healthy, and finds the others', () => {
  const at = new Date(0)
  const monitors = Array.from({ length: 10_000 }, (_, index) => ({
    name: `http shop-${index}`,
    kind: 'http',
    status: index === 7_777 ? ('failed' as const) : ('ok' as const),
    results: [
      {
        check: 'answer',
        status: index === 7_777 ? ('failed' as const) : ('ok' as const),
        message: `200 in ${index} ms`,
      },
      { check: 'certificate', status: 'ok' as const, message: 'valid until 2027-01-01, 38 days left' },
    ],
  }))
  const runs = (['Basic', 'Standard', 'Advanced'] as const).map((mode) => {
    const document: RunDocument = {
      ...{ version: 1, type: 'App', mode, view: 'full', status: 'failed', message: 'App is unhealthy' },
      ...{ startedAt: at, endedAt: at, durationMs: 1, monitors },
    }
    return recentRun(document, 1)
  })
  const page = (find?: string): string =>
    pageMarkup(cardsOf(['App'], runs, 'http://svc'), pageFacts(['App'], { at, reads: () => true, search: { find } }))
      .markup
  const text = page()
  expect(text.length).toBeLessThan(1_000_000)
  // Its row, and each of its reports.
  expect(text.match(/http shop-7777<\/a>/g)).toHaveLength(4)
  expect(text).toContain('9999 monitors not listed')
  expect(text).not.toContain('shop-42<')
  const matches = page('SHOP-42')
  expect(matches).toContain('App http shop-42</a>')
  expect(textOf(matches)).toContain('111 monitors, 1 to 100 of them')
})
