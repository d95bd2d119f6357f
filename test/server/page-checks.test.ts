import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import type { RunDocument, ServerType } from '../../src/core/protocol/index.ts'
import type { RecentRun, Runtime } from '../../src/core/protocol/service/service.ts'
import { runtimeFacts } from '../support/page/facts.ts'
import { recentRun } from './recent.ts'
import { ask, type Got, openSite, withSite } from './site.ts'
import { serveMonitors } from './with-monitors.ts'

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const press = (port: number, body: string, headers: Readonly<Record<string, string>> = {}): Promise<Got> =>
  ask(port, '/', { method: 'POST', headers: { ...form, ...headers }, body })
const configured = (types: readonly ServerType[], more: Partial<Runtime> = {}): Partial<Runtime> => ({
  facts: runtimeFacts({ types, ownTypes: [] }),
  ...more,
})
const basic = 'ServerType=Sql&ExecutionMode=Basic'

describe('S12 a button of the status page', () => {
  let server: Awaited<ReturnType<typeof serveMonitors>>
  beforeAll(async () => {
    server = await serveMonitors()
  })
  afterAll(() => server.close())

  test('S12 runs the check and comes back to the page, where its report is open', async () => {
    const pressed = await press(server.port, 'ServerType=Batch&ExecutionMode=Standard')
    expect([pressed.status, pressed.text]).toEqual([303, ''])
    expect(pressed.headers.location).toBe('/?report=Batch-Standard#Batch-Standard')
    const { text, headers } = await ask(server.port, '/?report=Batch-Standard')
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    const [, report = ''] = /<details id="Batch-Standard" open>(.*?)<\/details>/s.exec(text) ?? []
    expect(report).toContain('Standard report: 1 monitor, ')
    expect(report).toContain('tcp &lt;b&gt;queue&lt;/b&gt;')
    expect(report).toMatch(/<b>connect<\/b> \d/)
    expect(report).toMatch(/correlation id [0-9a-f-]{36}/)
  })

  test('S12 the page offers the configured types only, in three modes each', async () => {
    const { text } = await ask(server.port, '/')
    const offers = [...text.matchAll(/aria-label="(Run .*?)"/g)].map(([, label]) => label)
    const modes = ['Basic', 'Standard', 'Advanced']
    expect(offers.toSorted()).toEqual(
      ['Batch', 'Ftp'].flatMap((type) => modes.map((mode) => `Run ${mode} of ${type}`)).toSorted(),
    )
    expect(text).not.toMatch(/href="\/healthcheck/)
    const refused = await press(server.port, basic)
    expect([refused.status, refused.headers['content-type']]).toEqual([400, 'text/html; charset=utf-8'])
    expect(refused.text).toContain('The check did not run: Sql is not configured here')
    expect(refused.headers.refresh).toBe('30; url=/')
  })
})

describe('S12 a form of another page', () => {
  test.each([
    ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['another port of this host', { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' }],
    ['a browser that names the origin only', { origin: 'http://evil.example' }],
    ['a page that hides its origin', { origin: 'null' }],
    ['a bookmark, which cannot send a form', { 'sec-fetch-site': 'none' }],
  ] as const)('S12 of %s starts no check, with a cookie or without', async (_, headers) => {
    const { port, calls } = await openSite({ runtime: configured(['Sql']) })
    for (const more of [headers, { ...headers, cookie: 'ss-id=x; ss-opt=temp' }]) {
      const got = await press(port, basic, more)
      expect([got.status, got.headers.location]).toEqual([403, undefined])
      expect(calls.filter(({ operation }) => operation === 'healthCheck')).toEqual([])
    }
  })

  test('S12 a form of the page itself, of a listed origin, and a client that is not a browser start one', async () => {
    const options = { origins: ['https://ops.example'] }
    const { port, calls } = await openSite({ runtime: configured(['Sql']), options })
    for (const headers of [
      { 'sec-fetch-site': 'same-origin' },
      { origin: `http://127.0.0.1:${port}` },
      { origin: 'https://ops.example', 'sec-fetch-site': 'cross-site' },
      {},
    ] as readonly Readonly<Record<string, string>>[]) {
      expect((await press(port, basic, headers)).status).toBe(303)
    }
    expect(calls.map(({ operation }) => operation)).toEqual(Array.from({ length: 4 }, () => 'healthCheck'))
  })

  test('S12 a GET starts no check, whatever it names', async () => {
    const { port, calls } = await openSite({ runtime: configured(['Sql']) })
    for (const query of [basic, 'report=Sql-Basic', 'report=%3Cscript%3E-Basic', 'report=']) {
      const { status, text } = await ask(port, `/?${query}`)
      expect(status).toBe(200)
      expect(text).not.toContain('<script')
    }
    expect(calls).toEqual([])
  })

  test('S12 no frame, script or base of another page is allowed, and forms go to this server only', async () => {
    const { port } = await openSite({ runtime: configured(['Sql']) })
    const { headers, text } = await ask(port, '/')
    const policy = headers['content-security-policy']
    for (const rule of ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) {
      expect(policy).toContain(rule)
    }
    // Otherwise browsers send the form with the Origin null.
    expect(text).toContain('<meta name="referrer" content="same-origin">')
    expect(text).not.toMatch(/<script| on[a-z]+=/)
  })
})

describe('S12 a check that did not run', () => {
  test.each([
    ['an unknown type', 'ServerType=%3Cscript%3E&ExecutionMode=Basic', 400],
    ['a missing mode', 'ServerType=Sql', 400],
    ['an empty body', '', 400],
  ] as const)('S12 says so on the page, for %s', async (_, body, status) => {
    const { port, calls } = await openSite({ runtime: configured(['Sql']) })
    const got = await press(port, body)
    expect(got.status).toBe(status)
    expect(got.text).toContain('The check did not run: ')
    expect(got.text).not.toContain('<script')
    expect(calls).toEqual([])
  })

  test('S12 a limit and its Retry-After reach the page, and a defect reveals nothing', async () => {
    const limited = () => Promise.reject(new Fault('TooManyRequests', 'Too many checks <at once>', { retryAfter: 7 }))
    await withSite({ runtime: configured(['Sql']), health: limited }, async ({ port }) => {
      const got = await press(port, basic)
      expect([got.status, got.headers['retry-after']]).toEqual([429, '7'])
      expect(got.text).toContain('The check did not run: Too many checks &lt;at once&gt;')
      expect(got.text).toContain('aria-label="Run Basic of Sql"')
    })
    const broken = () => Promise.reject(new TypeError('orders-db is undefined'))
    const { port, log } = await openSite({ runtime: configured(['Sql']), health: broken })
    const got = await press(port, basic)
    expect(got.status).toBe(500)
    expect(got.text).not.toContain('orders-db')
    expect(log[0]?.stack).toContain('orders-db')
  })
})

describe('the card of the host', () => {
  const at = new Date('2026-03-01T03:00:00.000Z')
  type Monitor = RunDocument['monitors'][number]
  const monitor = (name: string, status: Monitor['status'], message: string, host = false): Monitor => ({
    name,
    kind: name,
    status,
    host,
    results: [{ check: 'disk', status, message, ...(status === 'failed' ? { fault: 'threshold' } : {}) }],
  })
  const run = (type: ServerType, ageSeconds: number, status: Monitor['status'], ...monitors: Monitor[]): RecentRun => {
    const document: RunDocument = {
      ...{ version: 1, type, mode: 'Basic', view: 'full', status, message: `${type} is ${status}` },
      ...{ startedAt: at, endedAt: at, durationMs: 15, monitors },
    }
    return recentRun(document, ageSeconds)
  }
  const page = async (types: readonly ServerType[], ...runs: RecentRun[]): Promise<string> => {
    let text = ''
    await withSite({ runtime: configured(types, { recent: async () => runs }) }, async ({ port }) => {
      text = (await ask(port, '/')).text
    })
    return text
  }
  const title = (text: string): string | undefined => /<h1>(.*?)<\/h1>/.exec(text)?.[1]
  const cardOf = (text: string, id: string): string =>
    new RegExp(`<section id="${id}">.*?</section>`, 's').exec(text)?.[0] ?? expect.fail(`no card ${id}`)
  const cardText = (text: string, id: string): string =>
    cardOf(text, id)
      .replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' ')
  const full = monitor('host', 'failed', '2 % free', true)
  const fine = monitor('host', 'ok', '41 % free', true)

  test('what the host repeats in every type is on one card, and each type keeps its verdict', async () => {
    const text = await page(
      ['Sql', 'App'],
      run('Sql', 3, 'failed', full, monitor('postgres', 'ok', 'connected')),
      run('App', 9, 'failed', full, monitor('http', 'ok', 'answered')),
    )
    expect(title(text)).toBe('The host is unhealthy')
    expect(cardText(text, 'host')).toContain('this machine')
    expect(cardText(text, 'host')).toContain('disk 2 % free')
    expect(text.indexOf('<section id="host">')).toBeLessThan(text.indexOf('<section id="App">'))
    for (const type of ['Sql', 'App']) {
      const card = cardOf(text, type)
      expect(card).toContain('<span class="state fail">✗ unhealthy</span>')
      expect(card).toContain('The host was unhealthy: see <a href="#host">Host</a>')
      expect(card).not.toContain('2 % free')
    }
    expect(cardOf(text, 'host')).not.toContain('<form')
  })

  test('a failure of a type of its own is named beside that of the host', async () => {
    const text = await page(
      ['Sql', 'App'],
      run('Sql', 3, 'failed', full, monitor('postgres', 'failed', 'refused')),
      run('App', 9, 'failed', full, monitor('http', 'ok', 'answered')),
    )
    expect(title(text)).toBe('The host and Sql are unhealthy')
    expect(cardText(text, 'Sql')).toMatch(/✗ postgres 3 s ago disk refused/)
    expect(cardOf(text, 'App')).not.toContain('refused')
  })

  test('a type whose latest run still blames the host is never green, also after the host is well again', async () => {
    const text = await page(['Sql', 'App'], run('Sql', 90, 'failed', full), run('App', 3, 'ok', fine))
    expect(title(text)).toBe('Sql is unhealthy')
    expect(cardOf(text, 'host')).toContain('<span class="state ok">✓ healthy</span>')
    expect(cardOf(text, 'Sql')).toContain('<span class="state fail">✗ unhealthy</span>')
  })

  test('a failure that no monitor explains stays with its type', async () => {
    const text = await page(['Sql'], run('Sql', 3, 'failed', monitor('host', 'warning', '9 % free', true)))
    expect(title(text)).toBe('Sql is unhealthy')
    expect(cardOf(text, 'Sql')).toContain('Sql is failed')
  })

  test('callers without details see that the host is unhealthy, and no figure of it', async () => {
    const brief = {
      ...full,
      name: undefined,
      results: [{ check: 'disk', status: 'failed', fault: 'threshold' } as const],
    }
    const text = await page(['Sql'], run('Sql', 3, 'failed', brief))
    expect(title(text)).toBe('The host is unhealthy')
    expect(cardText(text, 'host')).toMatch(/✗ this machine 3 s ago disk failed: threshold/)
  })

  test('without a host in the runs there is no card', async () => {
    expect(await page(['Sql'], run('Sql', 3, 'ok', monitor('postgres', 'ok', 'connected')))).not.toContain('id="host"')
  })
})
