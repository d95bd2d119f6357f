import { expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { type SilenceFacts, silenceMarkup } from '../../src/core/server/pages/page-silences.ts'
import type { MonitorId } from '../../src/core/server/pages/page-words.ts'
import { ask, type Got, openSite, type SiteOptions, withSite } from './site.ts'

const done = async () => ({})
const service: SiteOptions['service'] = { silenceMonitors: done, acknowledge: done, endSilence: done }
const back = '?continue=%2F%3Fmonitor%3DSql%252Ftcp%2520orders'
const press = (
  port: number,
  path: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Got> =>
  ask(port, `${path}${back}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields).toString(),
  })
const now = Date.UTC(2026, 2, 1, 3)
const may: SilenceFacts = { byMonitor: new Map(), entries: [], maySilence: true }
/** The value of a hidden field, as a browser sends it. */
const fieldOf = (markup: string, name: string): string =>
  (new RegExp(`name="${name}" value="(.*?)">`).exec(markup)?.[1] ?? '')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')

test('W25 a form of the page of a monitor calls its operation and comes back to the page, whatever the name contains', async () => {
  await withSite({ service }, async ({ port, calls }) => {
    for (const monitor of ['tcp orders', 'tcp a, b', 'tcp "quoted"', "tcp it's <x> & [y]", 'tcp a\\b'] as const) {
      const id: MonitorId = { type: 'Sql', monitor }
      const { markup = '' } = silenceMarkup(may, id, { clock: { now }, hasIncident: true }) ?? {}
      const Reason = 'patch night'
      const silenced = await press(port, '/forms/silence', {
        Monitors: fieldOf(markup, 'Monitors'),
        For: 'PT4H',
        Reason,
      })
      expect([silenced.status, silenced.headers.location]).toEqual([303, '/?monitor=Sql%2Ftcp%20orders'])
      const field = { Monitor: fieldOf(markup, 'Monitor'), For: 'P1D', Reason }
      expect((await press(port, '/forms/acknowledge', field)).status).toBe(303)
      const [silence, acknowledge] = calls.splice(0)
      expect(silence).toMatchObject({
        operation: 'silenceMonitors',
        request: { Monitors: [`Sql/${monitor}`], For: 14_400_000, Reason },
      })
      expect(acknowledge).toMatchObject({ operation: 'acknowledge', request: { Monitor: `Sql/${monitor}` } })
    }
    await press(port, '/forms/end-silence', { Id: 'abc' })
    expect(calls).toMatchObject([{ operation: 'endSilence', request: { Id: 'abc' } }])
  })
})

test.each([
  ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
  ['another port of this host', { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' }],
  ['a page that hides its origin', { origin: 'null' }],
] as const)('T6 W25 a form of %s silences nothing and ends nothing', async (_, headers) => {
  const { port, calls } = await openSite({ service })
  for (const [path, fields] of [
    ['/forms/silence', { Monitors: '*', For: 'P7D', Reason: 'x' }],
    ['/forms/acknowledge', { Monitor: 'Sql/tcp orders', Reason: 'x' }],
    ['/forms/end-silence', { Id: 'abc' }],
  ] as const) {
    expect((await press(port, path, fields, { ...headers, cookie: 'ss-id=x; ss-opt=temp' })).status).toBe(403)
    expect((await ask(port, `${path}?Monitors=*&Reason=x&Id=abc`)).text).toContain('on the page of each monitor')
  }
  expect(calls).toEqual([])
})

test('W25 a form that changes nothing says why, and one that is not complete everywhere says where it is not', async () => {
  const refuse = () => Promise.reject(new Fault('Forbidden', 'This needs the permission <silence>'))
  await withSite({ service: { ...service, silenceMonitors: refuse } }, async ({ port }) => {
    const refused = await press(port, '/forms/silence', { Monitors: 'a', For: 'PT1H', Reason: 'x' })
    expect(refused.status).toBe(403)
    expect(refused.text).toContain('Nothing has changed: This needs the permission &lt;silence&gt;')
    expect(refused.text).toContain('href="/?monitor=Sql%2Ftcp%20orders"')
    const lasting = await press(port, '/forms/silence', { Monitors: 'a', For: 'soon', Reason: 'x' })
    expect([lasting.status, lasting.text.includes('Nothing has changed: ')]).toEqual([400, true])
  })
  const partly = async () => ({ NotSilenced: [{ Receiver: 'ops', Place: 'http://am:9093', Message: 'no answer' }] })
  const { port } = await openSite({ service: { ...service, silenceMonitors: partly } })
  const { status, text } = await press(port, '/forms/silence', { Monitors: 'a', For: 'PT1H', Reason: 'x' })
  expect(status).toBe(200)
  expect(text).toContain(
    'It is silenced, but not everywhere. These go on sending what fires: ops at http://am:9093: no answer',
  )
})

test('W25 a reader who may not silence sees what is silenced and no form', () => {
  const until = new Date(now + 3_600_000)
  const one = { source: 'hand', until, by: 'alice', reason: 'patch night' } as const
  const byMonitor = new Map([['Sql/tcp orders', one]])
  const id: MonitorId = { type: 'Sql', monitor: 'tcp orders' }
  const markup =
    silenceMarkup({ ...may, byMonitor, maySilence: false }, id, { clock: { now }, hasIncident: true })?.markup ?? ''
  expect(markup.replace(/<[^>]*>/g, '')).toContain('silenced until 04:00:00 UTC, alice: patch night')
  expect(markup).not.toContain('<form')
  expect(silenceMarkup({ ...may, maySilence: false }, id, { clock: { now }, hasIncident: true })).toBe(undefined)
})
