import { expect, test } from 'vitest'
import type { HistoryIncident, RunDocument, ServerType } from '../../src/core/protocol/index.ts'
import type { HealthViews, Incidents, RecentRun } from '../../src/core/protocol/service/service.ts'
import { cardsOf } from '../../src/core/server/pages/cards.ts'
import { pageMarkup } from '../../src/core/server/pages/page-markup.ts'
import { type HistoryOfWindows, monitorMarkup } from '../../src/core/server/pages/page-monitor.ts'
import type { MonitorId } from '../../src/core/server/pages/page-words.ts'
import { Blips, endedIncidents, isTroubled, openIncidents } from '../../src/core/service/watch/incidents.ts'
import { type Effect, Ledger, States, type Verdict, type WatchedMonitor } from '../../src/core/watch/states/index.ts'
import { pageFacts } from '../support/page/facts.ts'
import { recentRun } from './recent.ts'

const types = ['App', 'Sql'] as const

const second = 1_000
const began = Date.UTC(2026, 10, 24, 10, 0)
const everything: HealthViews = () => 'full'

const monitor = (type: ServerType, name: string, more: Partial<WatchedMonitor> = {}): WatchedMonitor => ({
  key: `${type}/tcp/${name}`,
  type,
  name: `tcp ${name}`,
  runsOn: 'network',
  every: { Standard: 60 * second },
  dependsOn: [],
  confirmMs: 20 * second,
  flapping: 6,
  formerly: [],
  fingerprint: '',
  ...more,
})
const dependsOn = (...of: readonly string[]) => ({ dependsOn: of.map((one) => ({ atLeast: 1, of: [one] })) })

const healthy: Omit<Verdict, 'check'> = { level: 'ok', message: 'connected', depth: 'Basic' }
const refused: Omit<Verdict, 'check'> = {
  level: 'failed',
  fault: 'refused',
  message: 'connection refused',
  depth: 'Basic',
}

/** States of these monitors, which ran healthy once, and the page that shows them. Times are seconds since then. */
function watching(...monitors: readonly WatchedMonitor[]) {
  const states = new States(began)
  const [ledger, blips] = [new Ledger(), new Blips()]
  let now = began
  const take = (effects: readonly Effect[]): void => {
    ledger.take(effects)
    for (const effect of effects) if (effect.type === 'transition') blips.add(effect.transition)
  }
  take(states.configure(monitors, began))
  const runs = (at: number, verdict: Omit<Verdict, 'check'>, ...keys: readonly string[]): void => {
    now = began + at * second
    for (const key of keys.length > 0 ? keys : monitors.map((one) => one.key)) {
      take(
        states.ran(
          { key, depth: 'Basic', beganAt: now, endedAt: now, verdicts: [{ check: 'connect', ...verdict }] },
          now,
        ),
      )
    }
    take(states.tick(now))
  }
  runs(0, healthy)
  const incidents = async (views: HealthViews = everything): Promise<Incidents> => {
    const subjects = [...states.views(now, isTroubled)].map((view) => ({
      ...view,
      suspect: view.state.incident ? undefined : states.suspectOf(view.key),
    }))
    const records = ledger.incidents.toSorted((one, other) => other.beganAt - one.beganAt)
    const ended = endedIncidents({ records, blips: blips.ended, now }, views, 100)
    return { ...(await openIncidents(subjects, views)), ended, isIsolated: undefined }
  }
  return {
    runs,
    incidents,
    /** The page of a monitor, of which history says this. */
    monitorPage: async (id: MonitorId, windows: HistoryOfWindows): Promise<string> =>
      monitorMarkup(id, [], { windows }, pageFacts(types, { incidents: await incidents(), at: new Date(now) }))
        ?.markup ?? '',
    page: async (views?: HealthViews, more: Partial<Parameters<typeof pageOf>[1]> = {}) =>
      pageOf(await incidents(views), { at: new Date(now), ...more }),
  }
}

function pageOf(
  incidents: Incidents,
  { at, runs = [], victims }: { readonly at: Date; readonly runs?: readonly RecentRun[]; readonly victims?: string },
): string {
  return pageMarkup(cardsOf(types, runs, 'http://svc'), pageFacts(types, { incidents, at, victims })).markup
}

const title = (page: string): string | undefined => /<h1>(.*?)<\/h1>/.exec(page)?.[1]?.replace(/<[^>]*>/g, '')
/** The text of the section about incidents, as a reader sees it. */
const sectionText = (page: string): string =>
  (/<section id="incidents">(.*?)<\/section>/s.exec(page)?.[1] ?? '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
/** How often the page says that it reloads itself. */
const reloads = (page: string): string | undefined => /reloads every (\d+) s/.exec(page)?.[1]

test('W20 a fault is first in doubt on the page, then an incident with its beginning and its reason, then recovering, then over with its end', async () => {
  const { runs, page } = watching(monitor('Sql', 'orders'))
  const before = await page()
  expect([title(before), sectionText(before), reloads(before)]).toEqual(['Nothing has been checked yet', '', '30'])
  runs(60, refused)
  const doubt = await page()
  expect(title(doubt)).toBe('Sql tcp orders may have failed since 10:01:00 UTC: connect connection refused')
  expect(sectionText(doubt)).toContain(
    '? in doubt connect connection refused since 10:01:00 UTC (0 s) · in doubt: not confirmed yet',
  )
  expect(reloads(doubt)).toBe('5')
  for (const at of [65, 70, 80]) runs(at, refused)
  runs(200, refused)
  const open = await page()
  expect(title(open)).toBe('Sql tcp orders has failed since 10:01:00 UTC: connect connection refused')
  expect(sectionText(open)).toContain('✗ failed connect connection refused since 10:01:00 UTC (2 min) · confirmed')
  expect(open).toContain('<header class="fail">')
  expect(reloads(open)).toBe('30')
  runs(240, healthy)
  const recovering = await page()
  expect(title(recovering)).toContain('Sql tcp orders is healthy again, not confirmed yet; since 10:01:00 UTC')
  expect(sectionText(recovering)).toContain('↑ recovering')
  expect(recovering).not.toContain('<header class="ok">')
  runs(250, healthy)
  const over = await page()
  expect(title(over)).toBe('Nothing has been checked yet')
  expect(sectionText(over)).toContain('1 incident over, the last at 10:04:00 UTC')
  expect(sectionText(over)).toContain(
    'Sql tcp orders connect connection refused 10:01:00 UTC to 10:04:00 UTC (3 min) · recovered',
  )
})

test('W20 a fault that is over before it is confirmed is a blip on the page, and no incident', async () => {
  const { runs, page, incidents } = watching(monitor('Sql', 'orders'))
  runs(60, refused)
  runs(65, healthy)
  runs(75, healthy)
  expect((await incidents()).open).toEqual([])
  expect(sectionText(await page())).toContain('blip: over before it was confirmed')
})

const shops = Array.from({ length: 137 }, (_, at) =>
  monitor(at % 2 === 0 ? 'App' : 'Sql', `shop${at}`, dependsOn(at < 100 ? 'Sql/tcp/proxy' : 'App/tcp/shop0')),
)
const others = shops.map(({ key }) => key)

test('W20 137 victims of one cause are one incident with their count, also those of victims, from the first doubt on', async () => {
  const { runs, page, incidents } = watching(monitor('Sql', 'proxy'), ...shops)
  runs(60, refused)
  expect((await incidents()).open).toMatchObject([{ monitor: 'tcp proxy', faults: [{ certainty: 'in doubt' }] }])
  expect(title(await page())).toMatch(/^Sql tcp proxy may have failed since .*, and 137 monitors because of it$/)
  expect(sectionText(await page())).toContain('137 monitors may fail because of it')
  for (const at of [65, 70, 80]) runs(at, refused)
  runs(81, refused, ...others)
  runs(90, refused)
  const { open } = await incidents()
  expect(open).toHaveLength(1)
  expect(open[0]?.victims).toHaveLength(137)
  const text = await page()
  expect(title(text)).toBe(
    'Sql tcp proxy has failed since 10:01:00 UTC: connect connection refused, and 137 monitors because of it',
  )
  const [, summary, folded = ''] = /<details><summary>(137 .*?)<\/summary>(.*?)<\/details>/s.exec(text) ?? []
  expect(summary).toBe('137 monitors fail because of it')
  expect(folded.match(/<li>/g)).toHaveLength(137)
  expect(folded).toContain('/?victims=Sql%2Ftcp%20proxy#incident-Sql%2Ftcp%20proxy')
  expect(await page(undefined, { victims: 'Sql%2Ftcp%20proxy' })).toContain('<details open><summary>137 monitors')
})

test('W20 a cause that is well again is shown with the victims that still fail', async () => {
  const { runs, page } = watching(monitor('Sql', 'proxy'), ...shops.slice(0, 3))
  for (const at of [60, 65, 70, 80, 90]) runs(at, refused)
  runs(100, healthy, 'Sql/tcp/proxy')
  runs(110, healthy, 'Sql/tcp/proxy')
  const text = await page()
  expect(title(text)).toBe('Sql tcp proxy is healthy again, and 3 monitors that depend on it not yet')
  expect(sectionText(text)).toContain('It is healthy again. What depends on it has not recovered yet.')
  expect(text).toContain('<header class="fail">')
})

test('S11 W20 a reader who may not read a type reads counts of it, and none of its names, causes or messages', async () => {
  const { runs, incidents, page } = watching(
    monitor('Sql', 'proxy-secret'),
    monitor('Sql', 'alone-secret'),
    monitor('App', 'shop', dependsOn('Sql/tcp/proxy-secret')),
    monitor('Sql', 'victim-secret', dependsOn('Sql/tcp/proxy-secret')),
    monitor('App', 'web'),
    monitor('Sql', 'other-secret', dependsOn('App/tcp/web')),
  )
  const secret = { ...refused, message: 'secret-host:5432 refused' }
  for (const at of [60, 65, 70, 80, 90]) {
    runs(at, secret, 'Sql/tcp/proxy-secret', 'Sql/tcp/alone-secret', 'Sql/tcp/victim-secret', 'Sql/tcp/other-secret')
    runs(at, refused, 'App/tcp/shop', 'App/tcp/web')
  }
  const onlyApp: HealthViews = (type) => (type === 'App' ? 'full' : 'brief')
  const text = await page(onlyApp)
  expect(text).not.toContain('secret')
  expect(sectionText(text)).toContain('A monitor of another type')
  expect(sectionText(text)).toContain('2 monitors fail because of it App tcp shop')
  expect(sectionText(text)).toContain('App tcp web')
  expect(sectionText(text)).toContain('1 monitor fails because of it 1 of types that you may not read')
  expect(sectionText(text)).toContain('1 monitor of types that you may not read has an open incident.')
  expect((await incidents(() => 'brief')).open).toEqual([])
  const stranger = await page(() => 'brief')
  expect(sectionText(stranger)).toBe(
    'Incidents None is open that you may read. 6 monitors of types that you may not read have an open incident.',
  )
  // Everybody who reads them sees these names.
  expect(await page()).toContain('proxy-secret')
  for (const at of [100, 110, 160, 170]) runs(at, healthy)
  expect((await incidents()).ended.length).toBeGreaterThan(1)
  expect((await incidents(onlyApp)).ended.map(({ monitor: name }) => name)).toEqual(['tcp web'])
})

test('W20 flapping and what nothing observes have names of their own', async () => {
  const { runs, page } = watching(monitor('Sql', 'flaps'), monitor('App', 'silent'))
  for (let at = 0; at < 8; at += 1) {
    runs(60 + at * 60, refused, 'Sql/tcp/flaps')
    runs(75 + at * 60, healthy, 'Sql/tcp/flaps')
  }
  for (let at = 600; at <= 1_000; at += 40) runs(at, healthy, 'Sql/tcp/flaps')
  const text = sectionText(await page())
  expect(text).toMatch(/Sql tcp flaps ↕ flapping connect \d+ faults within an hour/)
  expect(text).toMatch(
    /App tcp silent \? unobserved connect no run reports it since 10:00:00 UTC \(17 min\) · no verdict since then/,
  )
})

test('W20 the title names a type that fails for another reason, too', async () => {
  const { runs, page } = watching(monitor('Sql', 'orders'))
  for (const at of [60, 65, 70, 80]) runs(at, refused)
  const at = new Date(began)
  const results = [{ check: 'answer', status: 'failed' as const, fault: 'protocol', message: 'no answer' }]
  const app: RunDocument = {
    ...{ version: 1, type: 'App', mode: 'Basic', view: 'full', status: 'failed', message: 'App is unhealthy' },
    ...{ startedAt: at, endedAt: at, durationMs: 1 },
    monitors: [{ name: 'http shop', kind: 'http', status: 'failed', results }],
  }
  expect(title(await page(undefined, { runs: [recentRun(app, 3)] }))).toBe(
    'Sql tcp orders has failed since 10:01:00 UTC: connect connection refused; unhealthy, too: App',
  )
})

test('W20 10,000 monitors that fail at once take less than 200 kB of the page, and all of them are counted', async () => {
  const many = Array.from({ length: 10_000 }, (_, at) => monitor('App', `m${at}`))
  const { runs, page } = watching(...many)
  for (const at of [60, 65, 70, 80]) runs(at, refused)
  const text = await page()
  expect(text.length).toBeLessThan(200_000)
  expect(sectionText(text)).toContain('9900 more monitors have open incidents')
  expect(title(text)).toMatch(
    /^App tcp m\d+, App tcp m\d+, App tcp m\d+ and 9997 more have failed, the first since 10:01:00 UTC/,
  )
})

const [orders, shop] = [
  { type: 'Sql', monitor: 'tcp orders' },
  { type: 'App', monitor: 'tcp shop' },
] as const
/** The history of a monitor without incidents. */
const historyWithout = ({ type, monitor: name }: MonitorId): HistoryOfWindows =>
  Array.from({ length: 3 }, () => ({ Monitors: [{ ServerType: type, MonitorName: name }] }))

test('W20 the page of a monitor lists the incidents and blips of that monitor which are over, and those of no other', async () => {
  const { runs, monitorPage, page } = watching(monitor('Sql', 'orders'), monitor('App', 'shop'))
  runs(60, refused, 'Sql/tcp/orders')
  runs(65, healthy)
  runs(75, healthy)
  for (const at of [160, 165, 170, 180, 190]) runs(at, refused, 'App/tcp/shop')
  for (const at of [200, 210, 220, 230]) runs(at, healthy)
  const all = sectionText(await page())
  expect(all).toContain('2 incidents over')
  const [ofOrders, ofShop] = [
    await monitorPage(orders, historyWithout(orders)),
    await monitorPage(shop, historyWithout(shop)),
  ]
  expect(sectionText(ofOrders)).toContain('1 incident over')
  expect(sectionText(ofOrders)).toContain('Sql tcp orders connect connection refused')
  expect(sectionText(ofOrders)).not.toContain('shop')
  expect(sectionText(ofShop)).toContain('1 incident over')
  expect(sectionText(ofShop)).not.toContain('orders')
})

test('W20 what svc says of itself has a page while it has an incident, and after, although it has no results', async () => {
  const own = { ...monitor('App', 'nodes'), key: '/svc/nodes', type: undefined, name: 'svc' }
  const { runs, monitorPage } = watching(own, monitor('App', 'shop'))
  const id = { monitor: 'svc' }
  expect(await monitorPage(id, [])).toBe('')
  for (const at of [60, 65, 70, 80, 90]) runs(at, { ...refused, message: 'out' }, '/svc/nodes')
  expect(sectionText(await monitorPage(id, []))).toContain('out')
  for (const at of [100, 110, 120]) runs(at, healthy)
  expect(sectionText(await monitorPage(id, []))).toContain('1 incident over')
  expect(await monitorPage({ monitor: 'other' }, [])).toBe('')
})

test('W20 the page of a monitor lists the incidents that history has of it, with the cause of each, and its blips', async () => {
  const { runs, monitorPage } = watching(monitor('Sql', 'orders'))
  runs(60, refused)
  runs(65, healthy)
  runs(75, healthy)
  const incident = (hour: number, more: HistoryIncident): HistoryIncident => ({
    ...{ MonitoringName: 'connect', Status: 'Failed', Ending: 'Recovered', Message: 'connection refused' },
    From: new Date(began - hour * 3_600 * second),
    To: new Date(began - (hour - 1) * 3_600 * second),
    ...more,
  })
  const Incidents = [
    incident(1, { To: undefined, Ending: undefined, Message: 'still open' }),
    incident(2, { Cause: 'App/tcp proxy' }),
    incident(30, { VictimCount: 3 }),
    incident(40, { Status: 'Unobserved', Message: 'no run reports it' }),
    incident(50, { Ending: 'Unknown' }),
  ]
  const windows = historyWithout(orders).map(({ Monitors: [one] = [] }) => ({ Monitors: [{ ...one, Incidents }] }))
  const text = sectionText(await monitorPage(orders, windows))
  expect(text).toContain('5 incidents over, the last at 10:01:05 UTC')
  expect(text).toMatch(/blip: .* \(60 min\) · recovered · because of App\/tcp proxy/)
  expect(text).toMatch(/proxy .* \(60 min\) · recovered · 3 monitors failed because of it/)
  expect(text).toMatch(/no run reports it .* · observed again .* · nothing known of its end$/)
  expect(text).not.toContain('still open')
})
