import { expect, test } from 'vitest'
import type { RunDocument } from '../../src/core/protocol/index.ts'
import type { MonitorElsewhere } from '../../src/core/protocol/service/service.ts'
import { boardMarkup } from '../../src/core/server/pages/board-markup.ts'
import { cardsOf, headline, overall } from '../../src/core/server/pages/cards.ts'
import { idsOfPage, type PageFacts, pageMarkup } from '../../src/core/server/pages/page-markup.ts'
import { monitorMarkup } from '../../src/core/server/pages/page-monitor.ts'
import { boardFacts, pageFacts } from '../support/page/facts.ts'
import { recentRun } from './recent.ts'

const at = new Date(Date.UTC(2026, 10, 28, 12))
const url = 'https://node-b.example.com'

const run: RunDocument = {
  ...{ version: 1, type: 'Sql', mode: 'Standard', view: 'full', status: 'ok', message: 'Sql is healthy' },
  ...{ startedAt: at, endedAt: at, durationMs: 1 },
  monitors: [
    {
      name: 'tcp here',
      kind: 'tcp',
      status: 'ok',
      results: [{ check: 'connect', status: 'ok', message: 'connected' }],
    },
  ],
}

const ofB = (name: string, fault?: MonitorElsewhere['fault'], message?: string): MonitorElsewhere => ({
  ...{ name: `tcp ${name}`, node: 'node-b', url, fault },
  reason: message === undefined ? undefined : { check: 'connect', message },
})
const replicas = (count: number): readonly MonitorElsewhere[] =>
  Array.from({ length: count }, (_, index) => ofB(`replica-${index}`))
const broken = ofB('orders', 'failed', 'connection refused')

/** The pages of a node that runs `tcp here`, while node-b runs these. */
function pagesOf(others: readonly MonitorElsewhere[], more: Partial<PageFacts> = {}) {
  const facts = pageFacts(['Sql'], { at, reads: () => true, ...more })
  const elsewhere = { byType: new Map([['Sql', others]] as const), reads: facts.reads ?? (() => false) }
  const cards = cardsOf(['Sql'], [recentRun(run, 1)], 'http://svc', elsewhere)
  const board = boardFacts({ reads: elsewhere.reads, at })
  return {
    page: pageMarkup(cards, facts).markup,
    ids: idsOfPage(cards, facts).map(({ monitor }) => monitor),
    board: textOf(boardMarkup(cards, board).markup),
    /** The class and the first line of their headers. */
    headers: [pageMarkup(cards, facts), boardMarkup(cards, { ...board, holder: facts.holder })].map(({ markup }) =>
      /<header class="(.*?)">\s*(.*)/.exec(markup)?.slice(1),
    ),
    ofMonitor: (monitor: string) =>
      monitorMarkup({ type: 'Sql', monitor }, cards, { windows: [] }, facts)?.markup ?? '',
  }
}
const textOf = (markup: string): string =>
  markup
    .replace(/<style>.*?<\/style>/s, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
const title = (page: string): string => textOf(/<h1>(.*?)<\/h1>/s.exec(page)?.[1] ?? '').trim()

test('W4 the page lists the monitors that other nodes run beside its own, as those have confirmed them', () => {
  const { page, ids } = pagesOf([...replicas(2), broken])
  expect(title(page)).toBe('Sql is unhealthy')
  expect(textOf(page)).toContain('4 monitors, 1 failed, 3 on node-b · checked 1 s ago')
  const rows = [...page.matchAll(/<li class="([^"]*)">.*?monitor=([^"]*)".*?class="when">(.*?)<\/span>([^\n]*)/g)]
  expect(
    rows.map(([, level, id, when, why]) => [level, decodeURIComponent(id ?? ''), when, textOf(why ?? '').trim()]),
  ).toEqual([
    ['fail', 'Sql/tcp orders', 'on node-b', 'connect connection refused'],
    ['ok', 'Sql/tcp here', '1 s ago', ''],
    ['', 'Sql/tcp replica-0', 'on node-b', ''],
    ['', 'Sql/tcp replica-1', 'on node-b', ''],
  ])
  expect(ids).toEqual(['tcp orders', 'tcp here', 'tcp replica-0', 'tcp replica-1'])
})

test.for([
  [undefined, '3 monitors on node-b have no confirmed fault', '? Sql: no confirmed fault'],
  ['warning', 'Healthy, with warnings: Sql', '! Sql'],
  ['failed', 'Sql is unhealthy', '✗ Sql'],
  ['unknown', 'Sql is not fully checked', '? Sql'],
] as const)(
  'W4 a type with a monitor elsewhere whose confirmed fault is %s: %s, for every reader and on the board',
  ([fault, sentence, state]) => {
    for (const reads of [() => true, () => false]) {
      const { page, board } = pagesOf([...replicas(2), ofB('orders', fault)], { reads })
      expect(title(page)).toBe(reads() ? sentence : sentence.replace('node-b', 'other nodes'))
      expect(board).toContain(state)
    }
  },
)

test('W4 page and board name the holder in their first lines, with a link, and are healthy neither by what runs here nor by what does not fail', () => {
  const line = (path: string) => `<p><a href="${url}${path}">node-b</a> runs the monitors of the network.</p>`
  const holder = { node: 'node-b', url }
  const expected = [
    ['none', line('/')],
    ['none', line('/board')],
  ]
  expect(pagesOf(replicas(2), { holder }).headers).toEqual(expected)
  expect(pagesOf([], {}).headers).toEqual([
    ['ok', '<h1>All healthy</h1>'],
    ['ok', '<h1>✓ All healthy</h1>'],
  ])
  const { headers } = pagesOf([broken], { holder: { node: undefined, url: undefined } })
  expect(headers).toEqual(Array(2).fill(['fail', '<p>Other nodes run the monitors of the network.</p>']))
})

test('W4 while no holder is known, monitors of the network have their confirmed faults, and are healthy nowhere', () => {
  const unled = [...replicas(2), broken].map((one) => ({ ...one, node: undefined, url: undefined }))
  const { page, board, ofMonitor } = pagesOf(unled)
  expect(title(page)).toBe('Sql is unhealthy')
  expect(textOf(page)).toContain('tcp orders on other nodes connect connection refused')
  expect(title(ofMonitor('tcp replica-0'))).toBe('Sql tcp replica-0: no confirmed fault on other nodes')
  expect(board).toContain('✗ Sql')
  expect(title(pagesOf(unled.slice(0, 2)).page)).toBe('2 monitors on other nodes have no confirmed fault')
})

test('W4 a monitor that was run here, too, is shown as the worse of both', () => {
  const { page } = pagesOf([ofB('here', 'failed', 'connection refused')])
  expect(textOf(page)).toContain('1 monitor, 1 failed, 1 on node-b')
  const { page: healthy } = pagesOf([ofB('here')])
  expect(healthy).not.toContain('class="when">on node-b')
})

test('W4 a search finds the monitors of other nodes by name and by state', () => {
  const searchFor = (find: string, state?: 'fail' | 'ok'): string => {
    const { page } = pagesOf([...replicas(39), broken], { search: { find, state } })
    return textOf(/role="status">.*?<\/ul>/s.exec(page)?.[0] ?? '')
  }
  expect(searchFor('REPLICA-3')).toContain('10 monitors')
  expect(searchFor('tcp', 'fail')).toMatch(/1 monitor .* Sql tcp orders on node-b connect connection refused/)
  expect(searchFor('replica', 'ok')).toMatch(/0 monitors|^$/)
})

test('W4 the page of a monitor that another node runs names the node, and links to the page of the monitor there', () => {
  const { ofMonitor } = pagesOf([...replicas(1), broken])
  expect(ofMonitor('tcp replica-0')).toContain(`<a href="${url}/?monitor=Sql%2Ftcp%20replica-0">node-b</a>`)
  expect(title(ofMonitor('tcp replica-0'))).toBe('Sql tcp replica-0: no confirmed fault on node-b')
  expect(title(ofMonitor('tcp orders'))).toBe('Sql tcp orders: unhealthy')
  expect(ofMonitor('tcp here')).not.toContain('node-b')
  expect(ofMonitor('tcp unknown')).toBe('')
})

test('W4 a reader who may not read a type learns how many of its monitors other nodes run, and no name', () => {
  const { page, board } = pagesOf([broken], { reads: () => false })
  expect(textOf(page)).toContain('1 monitor, 1 on other nodes')
  for (const name of ['orders', 'node-b', 'refused']) expect(page + board).not.toContain(name)
})

test('W4 a type that is healthy here is named as such beside those of other nodes, and the page as a whole is not healthy', () => {
  const elsewhere = { byType: new Map([['Batch', replicas(2)]] as const), reads: () => true }
  const cards = cardsOf(['Batch', 'Sql'], [recentRun(run, 1)], 'http://svc', elsewhere)
  expect(headline(cards)).toBe('Healthy here: Sql; 2 monitors on node-b have no confirmed fault')
  expect(overall(cards)).toBeUndefined()
})
