import { describe, expect, test } from 'vitest'
import type { LinkEntry } from '../../../src/core/checks/assert/link-settings.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import { admit } from '../../../src/core/checks/kinds/http/links.ts'
import { expectResult, finds } from '../../support/engine/finds.ts'
import { checked, type RunKindOptions, runKind, secret } from '../../support/engine/run-kind.ts'
import { http as answer, blackHole, endless, escapeSequences, peer, replies } from '../../support/faults/faults.ts'
import { httpPeer, pages } from '../../support/simulated/http-peer.ts'

type Settings = Parameters<typeof runKind<typeof http.settings>>[1]
const entry = (more: Partial<LinkEntry> = {}): LinkEntry => ({
  name: 'item',
  path: '$.items[*]',
  method: 'GET',
  status: ['2xx'],
  plainHttp: false,
  most: 10,
  levels: 1,
  within: 5_000,
  ...more,
})
const look = (origin: string, settings: Settings, options: RunKindOptions = {}) =>
  runKind(http, { url: `${origin}/`, ...settings } as Settings, 'Standard', options)
const messagesOf = (results: Awaited<ReturnType<typeof look>>, check: string) =>
  results.filter((one) => one.check === check).map(({ status, message }) => `${status} ${message}`)

describe('http xml', () => {
  const xml = '<VAST version="3.0"><Ad id="7"/><Ad id="8"/></VAST>'
  const evaluate = async (expected: Record<string, string>, body = xml) => {
    await using there = await peer(replies(answer(200, body, { 'Content-Type': 'text/xml' })))
    const codes = { parse: 'CODE 1', ...('/VAST/@version' in expected ? { '/VAST/@version': 'CODE 2' } : {}) }
    const results = await look(`http://127.0.0.1:${there.port}`, { xml: expected, codes })
    return { ...checked(results, 'xml'), input: there.input() }
  }

  test('values, counts and patterns are compared with the document', async () => {
    const fine = await evaluate({
      '/VAST/@version': '/^[234]/',
      'count(/VAST/Ad)': '>= 2',
      '/VAST/Ad[1]/@id': '8',
      '/VAST/Ad/@id': '> 6',
    })
    expect(fine).toMatchObject({ status: 'ok' })
    expect(fine.message).toMatch(/4 values as expected$/)
    expect(fine.input).toMatch(/\r\nAccept: application\/xml, /)
  })

  test('a wrong value is reported with its path, its code and the number of wrong ones', async () => {
    expect(await evaluate({ '/VAST/Ad/@id': '7' })).toMatchObject({ status: 'failed', fault: 'data' })
    expect((await evaluate({ '/VAST/Ad/@id': '7' })).message).toMatch(
      /: \/VAST\/Ad\/@id is "8", expected "7" \(1 of 2\)$/,
    )
    expect((await evaluate({ '/VAST/@version': '4.0' })).message).toMatch(
      /: CODE 2: \/VAST\/@version is "3\.0", expected "4\.0"$/,
    )
    expect((await evaluate({ '/VAST/Error': 'x' })).message).toMatch(/the answer has no \/VAST\/Error, expected x$/)
  })

  test('invalid, truncated or hostile XML is reported and shown without escapes', async () => {
    expectResult(await evaluate({ '/a': 'x' }, '<a>'), '(protocol): …CODE 1: the answer is not well-formed…')
    const hostile = await evaluate({ '/VAST/@version': 'x' }, `<VAST version="${escapeSequences.replace('\0', '')}"/>`)
    expect(hostile.message).toContain('/VAST/@version is "redgnp", expected "x"')
    await using there = await peer(endless('HTTP/1.1 200 OK\r\n\r\n<a>', '<b/>'))
    await finds(look(`http://127.0.0.1:${there.port}`, { xml: { '/a': 'x' }, maxBody: 5_000 }), [
      'xml',
      /is longer than maxBody \(4\.9 KiB\)$/,
    ])
  })
})

describe('http links', () => {
  test('only links that the path selects are requested, with their method, and evaluated by their own expectations', async () => {
    await using server = await httpPeer(
      pages(() => ({ '/': { items: ['/a', '/b'], others: ['/never'] }, '/a': { ok: true }, '/b': { ok: false } })),
    )
    const results = await look(server.origin, { links: [entry({ json: { '$.ok': 'true' }, codes: { '$.ok': 'E7' } })] })
    expect(server.requestLines()).toEqual(['GET /', 'GET /a', 'GET /b'])
    expect(messagesOf(results, 'links')).toEqual([
      expect.stringMatching(/^ok item http:\S+\/a: 127\.0\.0\.1:\d+ answered 200, "application\/json"$/),
      expect.stringMatching(/^ok item http:\S+\/b: /),
    ])
    expect(messagesOf(results, 'json')).toEqual([
      expect.stringMatching(/^ok/),
      expect.stringMatching(/^failed 127\.0\.0\.1:\d+: E7: \$\.ok is "false", expected "true"$/),
    ])
    await expect.poll(() => server.open()).toBe(0)
  })

  test('a template inserts a value percent-encoded, so that it cannot leave its place', async () => {
    await using server = await httpPeer(pages(() => ({ '/': { items: ['7', '../../x?y=1#z', 'http://192.0.2.1/'] } })))
    await look(server.origin, { links: [entry({ url: '/jobs/{}/log' })] })
    expect(server.requestLines().slice(1)).toEqual([
      'GET /jobs/7/log',
      'GET /jobs/..%2F..%2Fx%3Fy%3D1%23z/log',
      'GET /jobs/http%3A%2F%2F192.0.2.1%2F/log',
    ])
  })

  test('the origin of the monitor gets credentials, another gets none and no headers', async () => {
    await using other = await httpPeer(pages(() => ({ '/x': {} })))
    await using server = await httpPeer(pages(() => ({ '/': { items: ['/a', `${other.origin}/x`] }, '/a': {} })))
    const results = await look(server.origin, {
      token: secret('tok-12345'),
      headers: { 'X-Tenant': 'acme' },
      linkHosts: ['127.0.0.1'],
      links: [entry({ plainHttp: true })],
    })
    expect(messagesOf(results, 'links').every((line) => line.startsWith('ok'))).toBe(true)
    expect(server.requests().map(({ headers }) => headers.authorization)).toEqual([
      'Bearer tok-12345',
      'Bearer tok-12345',
    ])
    const [request] = other.requests()
    expect(request?.url).toBe('/x')
    expect(JSON.stringify(request?.headers)).not.toMatch(/tok-12345|acme|authorization/i)
  })

  test('a redirect of a link is checked separately, or not followed at all', async () => {
    await using server = await httpPeer((request, response) => {
      if (request.url === '/') response.end(JSON.stringify({ items: ['/in', '/out'] }))
      else if (request.url === '/in') response.writeHead(302, { Location: '/landed' }).end()
      else if (request.url === '/out') response.writeHead(302, { Location: 'http://192.0.2.1/internal' }).end()
      else response.end('{}')
    })
    const followed = await look(server.origin, { redirects: 1, links: [entry({ plainHttp: true })] })
    expect(messagesOf(followed, 'links')).toEqual([
      expect.stringMatching(/^ok item http:\S+\/in: .* answered 200/),
      expect.stringMatching(
        /^failed item: http:\/\/192\.0\.2\.1\/internal is not requested: its address is not public/,
      ),
    ])
    const not = await look(server.origin, { links: [entry()] })
    expect(messagesOf(not, 'links')[0]).toMatch(/^failed .*\/in: .* answered 302 \(expected 2xx\)$/)
  })

  test('a slow link uses only its own time, and the deadline of the run ends all of them', async () => {
    await using hole = await peer(blackHole)
    await using server = await httpPeer(
      pages(() => ({ '/': { items: [`http://127.0.0.1:${hole.port}/`, '/b'] }, '/b': {} })),
    )
    const settings = { linkHosts: ['127.0.0.1'], links: [entry({ plainHttp: true, within: 300 })] }
    expect(messagesOf(await look(server.origin, settings), 'links')).toEqual([
      expect.stringMatching(/^failed item \S+: \S+ gave no answer within 0\.3 s$/),
      expect.stringMatching(/^ok item \S+\/b: /),
    ])
    const whole = { ...settings, links: [entry({ plainHttp: true })] }
    await finds(look(server.origin, whole, { timeoutMs: 500 }), 'links failed (timeout)')
    await expect.poll(() => [hole.open(), server.open()]).toEqual([0, 0])
  })

  test('an answer behind a link that is incomplete, endless or refused is reported, and does not hide others', async () => {
    await using cut = await peer(replies(answer(200, 'x'.repeat(500)).slice(0, 120)))
    await using flood = await peer(endless('HTTP/1.1 200 OK\r\n\r\n{'))
    const at = (port: number): string => `http://127.0.0.1:${port}/`
    await using server = await httpPeer(
      pages(() => ({ '/': { items: [at(cut.port), at(flood.port), at(1), '/ok'] }, '/ok': { a: 1 } })),
    )
    const results = await look(server.origin, {
      linkHosts: ['127.0.0.1'],
      maxBody: 10_000,
      links: [entry({ plainHttp: true, json: { '$.a': '1' }, codes: { parse: 'P', unreachable: 'U' } })],
    })
    const failed = results.filter(({ status }) => status === 'failed').map(({ message }) => message)
    expect(failed).toEqual([
      expect.stringMatching(/^U: item .* sent an incomplete response/),
      expect.stringMatching(/: P: the answer is longer than maxBody/),
      expect.stringMatching(/^U: item .* refused the connection/),
    ])
    await expect.poll(() => [flood.open(), server.open()]).toEqual([0, 0])
  })

  test('links of a page that cannot be read are not checked', async () => {
    await using server = await httpPeer(
      pages(() => ({ '/': { items: ['/next'] }, '/next': '<html>moved</html>', '/login': '<html>sign in</html>' })),
    )
    const links = [entry({ levels: 2 })]
    const page = await runKind(http, { url: `${server.origin}/login`, links } as Settings, 'Standard')
    const unread = page.filter(({ check }) => check === 'links')
    expect(unread).toMatchObject([{ status: 'failed', notChecked: 'missing' }])
    expect(unread[0]?.message).toMatch(/^not checked: item: the answer is not JSON/)
    // The same for a document that a link leads to.
    const below = await runKind(http, { url: `${server.origin}/`, links, json: { '$.a': 'x' } } as Settings, 'Standard')
    const messages = below.filter(({ notChecked }) => notChecked !== undefined).map(({ message }) => message)
    expect(messages).toEqual([expect.stringMatching(/^not checked: item http.*\/next: the answer is not JSON/)])
  })

  test('no links, and too many links, are reported', async () => {
    await using server = await httpPeer(
      pages(() => ({ '/': { items: [], more: ['/1', '/2', '/2', '/3'] }, '/1': {}, '/2': {}, '/3': {} })),
    )
    const results = await look(server.origin, { links: [entry(), entry({ name: 'more', path: '$.more[*]', most: 2 })] })
    expect(messagesOf(results, 'links').slice(-2)).toEqual([
      'ok item: none in the answer',
      'warning more: 1 more not requested (limit 2)',
    ])
    expect(server.requestLines()).toEqual(['GET /', 'GET /1', 'GET /2'])
  })

  test('links of a list that the answer does not have are not checked', async () => {
    await using server = await httpPeer(pages(() => ({ '/': { other: [] } })))
    const results = await look(server.origin, { links: [entry()] })
    expect(messagesOf(results, 'links')).toEqual(['warning not checked: item: the answer has no list $.items'])
    await finds(results, ['links', { notChecked: 'missing' }])
  })

  test('a thousand refused links are not reported a thousand times', async () => {
    const items = Array.from({ length: 1_000 }, (_, n) => `http://192.0.2.1/${n}`)
    await using server = await httpPeer(pages(() => ({ '/': { items: [...items, ...items] } })))
    const results = await look(server.origin, { links: [entry()] })
    expect(messagesOf(results, 'links')).toHaveLength(11)
    expect(messagesOf(results, 'links').at(-1)).toBe('warning item: 1980 more not requested (limit 10)')
  })

  test('links are requested once, however many addresses are probed, and never in Basic', async () => {
    await using server = await httpPeer(pages(() => ({ '/': { items: ['/a'] }, '/a': {} })))
    const resolve = async () => ['127.0.0.1', '127.0.0.1']
    const settings = { url: `http://two.test:${server.port}/`, addresses: 'all', links: [entry()] } as Settings
    await runKind(http, settings, 'Standard', { resolve })
    expect(server.requestLines().filter((line) => line === 'GET /a')).toHaveLength(1)
    await runKind(http, settings, 'Basic', { resolve })
    expect(server.requestLines().filter((line) => line === 'GET /a')).toHaveLength(1)
  })

  test('a run that another svc requested does not call a health check through a link', async () => {
    await using server = await httpPeer(pages(() => ({ '/': { items: ['/healthcheck'] }, '/healthcheck': {} })))
    const fromPeer = await look(server.origin, { links: [entry()] }, { calledByPeer: true })
    expect(messagesOf(fromPeer, 'links')).toEqual([
      expect.stringMatching(/is not requested: another svc asked for this run$/),
    ])
    await look(server.origin, { links: [entry()] })
    expect(server.requests().at(-1)?.headers['x-svc-hops']).toBe('1')
  })

  test.each([
    [{ path: 'items' }, /links "item": "items" is neither a JSON path/],
    [{ url: '/fixed' }, /url has no \{\}/],
    [{ method: 'HEAD', levels: 2 }, /HEAD has no body to evaluate/],
    [{ codes: { lost: 'X' } }, /codes contains lost, which is not one of parse, status/],
    [{ measure: [{ name: 'm', path: '$.a', value: '.' }] }, /measure "m" evaluates nothing/],
  ] as const)('invalid settings of links are reported before any request: %j', async (more, message) => {
    const settings = { url: 'http://127.0.0.1:1/', links: [entry(more as Partial<LinkEntry>)] } as Settings
    expect(checked(await runKind(http, settings), 'settings').message).toMatch(message)
  })
})

describe('allowed targets of links', () => {
  const target = {
    ip: '93.184.216.34',
    port: 443,
    address: '93.184.216.34:443',
    signal: new AbortController().signal,
    step: () => {},
  }
  const decide = async (url: string, ip: string | undefined, hosts?: readonly string[], from = target) => {
    const gate = { home: new URL('https://home.example/'), target: from, hosts, plainHttp: false }
    const result = await admit(new URL(url), gate, {
      resolve: async () => (ip === undefined ? [] : [ip]),
      calledByPeer: false,
    })
    return 'refusal' in result ? result.refusal.replace(/^.*is not requested: /, '') : result.target.address
  }

  test('without linkHosts: the origin of the monitor, and public addresses on the usual port', async () => {
    expect(await decide('https://home.example/x', undefined)).toBe('93.184.216.34:443')
    expect(await decide('https://cdn.example/x', '8.8.8.8')).toBe('8.8.8.8:443')
    for (const ip of ['10.0.0.1', '127.0.0.1', '169.254.169.254', '192.168.0.1', '::1', 'fd00::1', '::ffff:10.0.0.1']) {
      expect(await decide('https://cdn.example/x', ip)).toMatch(/its address is not public/)
    }
    expect(await decide('https://[::ffff:127.0.0.1]/x', '::ffff:7f00:1')).toMatch(/its address is not public/)
    expect(await decide('https://cdn.example:22/x', '8.8.8.8')).toMatch(/its port is not the default/)
    expect(await decide('https://home.example:8443/x', '93.184.216.34')).toMatch(/its port is not the default/)
    expect(await decide('http://cdn.example/x', '8.8.8.8')).toBe('it is not https')
    expect(await decide('https://cdn.example/x', undefined)).toBe('its host has no address')
  })

  test('with linkHosts: those alone, including private addresses, but this machine only for a target on it', async () => {
    const hosts = ['store.internal', '*.cdn.example', 'one.example:8443']
    expect(await decide('https://store.internal/x', '10.0.0.1', hosts)).toBe('10.0.0.1:443')
    expect(await decide('https://a.cdn.example/x', '8.8.8.8', hosts)).toBe('8.8.8.8:443')
    expect(await decide('https://one.example:8443/x', '8.8.8.8', hosts)).toBe('8.8.8.8:8443')
    for (const url of [
      'https://cdn.example/',
      'https://evilcdn.example/',
      'https://one.example/',
      'https://store.internal.evil.example/',
    ]) {
      expect(await decide(url, '8.8.8.8', hosts)).toBe('its host is not in linkHosts')
    }
    expect(await decide('https://store.internal/x', '127.0.0.1', hosts)).toBe('it leads to this machine')
    expect(await decide('https://store.internal/x', '0.0.0.0', hosts)).toBe('it leads to this machine')
    expect(await decide('https://store.internal/x', 'fe80::1', hosts)).toBe('it leads to the link of this machine')
    const here = { ...target, ip: '127.0.0.1' }
    expect(await decide('https://store.internal/x', '127.0.0.1', hosts, here)).toBe('127.0.0.1:443')
  })
})
