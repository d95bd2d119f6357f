import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readSettings } from '../../../src/core/health/index.ts'
import { limits } from '../../../src/core/health/limits.ts'
import http from '../../../src/core/health/monitors/http.ts'
import { targetOf } from '../../../src/core/health/probe/http-route.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/certs.ts'
import {
  http as answer,
  type Behaviour,
  blackHole,
  cutAfter,
  echo,
  endless,
  escapeSequences,
  hugeHeaders,
  type PeerOptions,
  peer,
  redirectLoop,
  refusedPort,
  replies,
  reset,
  settled,
} from '../../support/faults.ts'
import { httpPeer } from '../../support/http-peer.ts'
import { suiteWith } from '../../support/peer.ts'
import { processorMs } from '../../support/processor-time.ts'
import { checked, type RunKindOptions, runKind, secret, withDefaults } from '../../support/run-kind.ts'

type Settings = Parameters<typeof runKind<typeof http.settings, unknown>>[1]
type Look = Settings & { readonly path?: string }

/** Runs the kind against one peer; gives the findings and what the peer heard. */
async function look(
  behave: Behaviour,
  settings: Look = {},
  mode: ExecutionMode = 'Basic',
  options: RunKindOptions & { readonly peer?: PeerOptions } = {},
) {
  await using there = await peer(behave, options.peer)
  const { path = '/', ...given } = settings
  const url = `${options.peer?.tls ? 'https' : 'http'}://127.0.0.1:${there.port}${path}`
  const findings = await runKind(http, { url, ...given }, mode, options)
  return { findings, heard: there.heard(), seen: there.seen(), port: there.port }
}
const one = async (check: string, ...args: Parameters<typeof look>) => checked((await look(...args)).findings, check)
const json = (value: unknown, status = 200) =>
  replies(answer(status, JSON.stringify(value), { 'Content-Type': 'application/json' }))
const unprintable = /[\x00-\x1f\x7f-\x9f\u202e]/

describe('http settings', () => {
  test('svc.yaml sets them with defaults, figures and lists of one', () => {
    const context = { env: {}, folder: '.' }
    const read = readSettings(
      http.settings,
      { url: 'https://a.test/', status: 200, json: { '$.n': 3 }, version: { expected: '1' } },
      context,
    )
    expect(read.problems).toEqual([])
    expect(read.values).toMatchObject({
      method: 'GET',
      status: ['200'],
      json: { '$.n': '3' },
      version: { expected: '1', json: '$.version' },
      latency: { warn: 1_000, limit: 5_000 },
      maxBody: 1_048_576,
      redirects: 0,
      verify: true,
    })
    const wrong = readSettings(
      http.settings,
      { url: 'ftp://a.test/', headers: { Authorization: 'Bearer x' }, redirect: 1 },
      context,
    )
    expect(wrong.problems.map((problem) => problem.path.join('.')).sort()).toEqual([
      'headers.Authorization',
      'redirect',
      'url',
    ])
  })
})

describe('http status and latency', () => {
  test('a good answer is ok in connect, status and latency', async () => {
    const { findings, heard } = await look(replies(answer(200, 'hello')), { path: '/up?x=1' })
    expect(findings.map((finding) => [finding.check, finding.level])).toEqual([
      ['connect', 'ok'],
      ['status', 'ok'],
      ['latency', 'ok'],
    ])
    expect(heard).toMatch(/^GET \/up\?x=1 HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n/)
    expect(heard).toMatch(/\r\nCache-Control: no-store\r\n/)
    expect(heard).toMatch(/\r\nConnection: close\r\n/)
    expect(heard).not.toMatch(/accept-encoding|x-svc-hops|authorization/i)
  })

  test('without a status setting everything below 500 is well, and 500 is not', async () => {
    const level = async (status: number) => (await one('status', replies(answer(status)))).level
    expect([await level(204), await level(404), await level(499), await level(500), await level(503)]).toEqual([
      'ok',
      'ok',
      'ok',
      'fail',
      'fail',
    ])
  })

  test('status takes codes, classes, ranges and a bound', async () => {
    const level = async (code: number, ...status: string[]) =>
      (await one('status', replies(answer(code)), { status })).level
    expect(await level(200, '200')).toBe('ok')
    expect(await level(201, '200', '204')).toBe('fail')
    expect(await level(204, '2xx')).toBe('ok')
    expect(await level(304, '200-299')).toBe('fail')
    expect(await level(299, '200-299')).toBe('ok')
    expect(await level(418, '<418')).toBe('fail')
  })

  test('a failed status says what was observed, and what was expected', async () => {
    const { findings, port } = await look(replies(answer(503)), { status: ['200', '204'] })
    expect(checked(findings, 'status')).toMatchObject({ level: 'fail', fault: 'data', observed: 503 })
    expect(checked(findings, 'status').message).toBe(`127.0.0.1:${port} answered 503 (expected 200, 204)`)
  })

  test('a status setting that cannot be read is named', async () => {
    const finding = await one('status', replies(answer(200)), { status: ['fine'] })
    expect(finding).toMatchObject({ level: 'fail', fault: 'data' })
    expect(finding.message).toContain('status "fine" is none of 200, 2xx, 200-299, <500')
  })

  test('a slow answer warns', async () => {
    const finding = await one('latency', replies(answer(200, 'x'), 120), { latency: { warn: 50, limit: 5_000 } })
    expect(finding.level).toBe('warn')
    expect(finding.message).toMatch(/answered 1 B in \d+ ms \(warns above 50 ms\)$/)
  })

  test('the boundaries of latency and clock belong to the better side', () => {
    const settings = withDefaults(http.settings, { url: 'http://a.test/' })
    const level = (seen: Parameters<typeof http.judge>[0]) => {
      const judged = http.judge(seen, settings)
      return 'level' in judged ? judged.level : 'several'
    }
    const latency = (ms: number) => level({ see: 'latency', address: 'a:1', ms, bytes: 0 })
    expect([1_000, 1_000.1, 5_000, 5_000.1].map(latency)).toEqual(['ok', 'warn', 'warn', 'fail'])
    const clock = (skewMs: number) => level({ see: 'clock', address: 'a:1', skewMs })
    expect([2_000, -2_000, -2_001, 30_000, 30_001].map(clock)).toEqual(['ok', 'ok', 'warn', 'warn', 'fail'])
  })

  test('headers are sent as configured, framing and credentials excepted', async () => {
    const { heard } = await look(replies(answer(200)), {
      headers: { 'X-Probe': 'yes', 'user-agent': 'mine', Host: 'other.test' },
    })
    expect(heard).toContain('X-Probe: yes\r\n')
    expect(heard).toContain('user-agent: mine\r\n')
    expect(heard).toContain('Host: other.test\r\n')
    expect(heard.match(/^(?:user-agent|host):/gim)).toHaveLength(2)
    for (const name of ['Authorization', 'accept-encoding', 'Transfer-Encoding', 'X-Svc-Hops']) {
      const { findings, seen } = await look(replies(answer(200)), { headers: { [name]: 'x' } })
      expect(findings).toEqual([expect.objectContaining({ level: 'fail', fault: 'data' })])
      expect(findings[0]?.message).toContain(`headers may not set ${name}`)
      expect(seen).toBe(0)
    }
  })

  test('a header with a line break is refused before anything is sent', async () => {
    const { findings, heard } = await look(replies(answer(200)), { headers: { 'X-A': 'b\r\nX-C: d' } })
    expect(checked(findings, 'status')).toMatchObject({ level: 'fail', fault: 'data' })
    expect(heard).toBe('')
  })

  test('a POST is sent from Standard on; Basic only connects', async () => {
    const settings = { method: 'POST', body: '{"ping":1}', headers: { 'Content-Type': 'application/json' } } as const
    const basic = await look(replies(answer(200)), settings, 'Basic')
    expect(basic.findings.map((finding) => finding.check)).toEqual(['connect'])
    expect(basic.heard).toBe('')
    expect(await settled('')).toBe('')
    await using there = await peer(blackHole)
    await runKind(http, { url: `http://127.0.0.1:${there.port}/`, ...settings })
    expect(await settled('TCPServerWrap 1')).toBe('TCPServerWrap 1')
    const standard = await look(replies(answer(200)), settings, 'Standard')
    expect(standard.heard).toMatch(/^POST \/ .*Content-Length: 10\r\n.*\{"ping":1\}$/s)
    expect(checked(standard.findings, 'status').level).toBe('ok')
  })

  test('HEAD reads no body', async () => {
    const { findings, heard } = await look(replies('HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n'), {
      method: 'HEAD',
    })
    expect(heard).toMatch(/^HEAD \//)
    expect(findings.every((finding) => finding.level === 'ok')).toBe(true)
  })
})

describe('http faults', () => {
  test('a refused port is told at connect', async () => {
    const port = await refusedPort()
    const finding = checked(await runKind(http, { url: `http://127.0.0.1:${port}/` }), 'connect')
    expect(finding).toMatchObject({ level: 'fail', fault: 'refused' })
    expect(finding.message).toContain('host up, nothing listens on that port')
  })

  test('a black hole ends at its deadline, says what had worked, and leaves nothing open', async () => {
    expect(await settled('')).toBe('')
    await using there = await peer(blackHole)
    const start = performance.now()
    const findings = await runKind(http, { url: `http://127.0.0.1:${there.port}/` }, 'Basic', { timeoutMs: 300 })
    expect(performance.now() - start).toBeLessThan(4_500)
    expect(findings.map((finding) => [finding.check, finding.level, finding.fault])).toEqual([
      ['connect', 'ok', undefined],
      ['status', 'fail', 'timeout'],
    ])
    expect(findings[1]?.message).toBe(`127.0.0.1:${there.port} gave no answer within 0.3 s`)
    expect(await settled('TCPServerWrap 1')).toBe('TCPServerWrap 1')
  })

  test('a body that never ends ends at its deadline and leaves nothing open', async () => {
    expect(await settled('')).toBe('')
    await using there = await peer(replies('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', 0))
    await using slow = await peer(
      (socket) => void socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\nhalf')),
    )
    const findings = await runKind(http, { url: `http://127.0.0.1:${slow.port}/` }, 'Basic', { timeoutMs: 300 })
    expect(checked(findings, 'status').level).toBe('ok')
    expect(checked(findings, 'body')).toMatchObject({ level: 'fail', fault: 'timeout' })
    const cut = await runKind(http, { url: `http://127.0.0.1:${there.port}/` })
    expect(checked(cut, 'body').message).toMatch(/cut its answer short, after 4 B of 9 B$/)
    expect(await settled('TCPServerWrap 2')).toBe('TCPServerWrap 2')
  })

  test('a caller that gives up leaves nothing open', async () => {
    expect(await settled('')).toBe('')
    await using there = await peer(blackHole)
    const caller = new AbortController()
    const run = runKind(http, { url: `http://127.0.0.1:${there.port}/` }, 'Basic', { signal: caller.signal })
    setTimeout(() => caller.abort(), 100)
    await expect(run).rejects.toThrow()
    expect(await settled('TCPServerWrap 1')).toBe('TCPServerWrap 1')
  })

  test('an answer cut short is a fault of protocol, in the head and in the body', async () => {
    const whole = answer(200, 'x'.repeat(1_000))
    expect(await one('body', cutAfter(80, whole))).toMatchObject({ level: 'fail', fault: 'protocol' })
    expect((await one('body', cutAfter(80, whole))).message).toMatch(/cut its answer short, after \d+ B of 1000 B$/)
    expect(await one('status', cutAfter(20, whole))).toMatchObject({ level: 'fail', fault: 'protocol' })
  })

  test('a reset is told as such', async () => {
    const finding = await one('status', reset)
    expect(finding).toMatchObject({ level: 'fail', fault: 'protocol' })
    expect(finding.message).toContain('closed the connection after')
  })

  test('what is not HTTP is quoted, without its escape sequences', async () => {
    const finding = await one('status', replies(`${escapeSequences}\r\nSSH-2.0-x\r\n`))
    expect(finding).toMatchObject({ level: 'fail', fault: 'protocol' })
    expect(finding.message).toContain('does not answer in sound HTTP: it said "red gnp SSH-2.0-x"')
    expect(finding.message).not.toMatch(unprintable)
  })

  test('huge headers, endless headers and endless interim answers are refused', async () => {
    expect((await one('status', replies(hugeHeaders(64_000)))).message).toContain('more than 16 KiB of headers')
    expect((await one('status', endless('HTTP/1.1 200 OK\r\nX: '))).message).toContain('more than 16 KiB of headers')
    const interim = await one('status', endless('', 'HTTP/1.1 100 Continue\r\n\r\n'))
    expect(interim).toMatchObject({ fault: 'protocol' })
    expect(interim.message).toContain('interim answers without end')
  })

  test('an endless body is read up to maxBody and then hung up on', async () => {
    expect(await settled('')).toBe('')
    await using there = await peer(endless('HTTP/1.1 200 OK\r\n\r\n'))
    const url = `http://127.0.0.1:${there.port}/`
    const findings = await runKind(http, { url, maxBody: 50_000, contains: 'never' }, 'Standard')
    expect(checked(findings, 'latency').level).toBe('ok')
    expect(checked(findings, 'content').message).toContain('the first 49 KiB of the answer does not contain "never"')
    expect(await settled('TCPServerWrap 1')).toBe('TCPServerWrap 1')
  })

  test('a packed answer is not unpacked, and told', async () => {
    const packed = replies(answer(200, 'not really gzip', { 'Content-Encoding': 'gzip' }))
    expect((await one('content', packed, { contains: 'x' }, 'Standard')).message).toContain('content-encoding "gzip"')
  })

  test('an answer to an upgrade that nobody asked for is an answer like any other', async () => {
    const finding = await one('status', replies('HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'), {
      status: ['2xx'],
    })
    expect(finding).toMatchObject({ level: 'fail', observed: 101 })
  })
})

describe('http redirects', () => {
  test('by default none is followed, and where it leads is shown without its query', async () => {
    const { findings, seen } = await look(
      replies(answer(302, '', { Location: 'https://login.test/in?token=s3cr3t' })),
      {
        status: ['200'],
      },
    )
    expect(checked(findings, 'status').message).toContain(
      'answered 302 to https://login.test/in?token=… (expected 200)',
    )
    expect(seen).toBe(1)
  })

  test('a redirect is followed when allowed, on the address that is probed', async () => {
    const behave = replies((asked) =>
      asked.startsWith('GET /old') ? answer(301, '', { Location: '/new' }) : answer(200, 'new'),
    )
    const { findings } = await look(behave, { path: '/old', redirects: 1, contains: 'new' }, 'Standard')
    expect(checked(findings, 'status').message).toContain('answered 200 after 1 redirect')
    expect(checked(findings, 'content').level).toBe('ok')
  })

  test('a redirect loop is told, and shows no query', async () => {
    const finding = await one('status', redirectLoop, { path: '/a', redirects: 9 })
    expect(finding).toMatchObject({ level: 'fail', fault: 'protocol' })
    expect(finding.message).toMatch(/redirects in a loop: http:\S+\/a -> http:\S+\/b\?token=… -> http:\S+\/a$/)
  })

  test('more redirects than allowed are told', async () => {
    let n = 0
    const finding = await one(
      'status',
      replies(() => {
        n += 1
        return answer(302, '', { Location: `/${n}` })
      }),
      { redirects: 2 },
    )
    expect(finding.message).toContain('redirects more than 2 times')
    expect(n).toBe(3)
  })

  test('another origin gets neither headers nor credentials', async () => {
    await using elsewhere = await peer(replies(answer(200)))
    const settings = { redirects: 1, token: secret('tok-12345'), headers: { 'X-Tenant': 'acme' } }
    const away = replies(answer(302, '', { Location: `http://127.0.0.1:${elsewhere.port}/` }))
    const { findings, heard } = await look(away, settings, 'Standard')
    expect(checked(findings, 'status').level).toBe('ok')
    expect(heard).toContain('Authorization: Bearer tok-12345')
    expect(heard).toContain('X-Tenant: acme')
    expect(elsewhere.heard()).toMatch(/^GET \//)
    expect(elsewhere.heard()).not.toMatch(/tok-12345|acme/)
  })

  test('a POST follows no redirect', async () => {
    const { findings, seen } = await look(
      replies(answer(307, '', { Location: '/x' })),
      { method: 'POST', redirects: 5 },
      'Standard',
    )
    expect(checked(findings, 'status').observed).toBe(307)
    expect(seen).toBe(1)
  })

  test('other protocols and what is no URL are not followed', async () => {
    for (const location of [
      'file:///etc/passwd',
      'http://[',
      `javascript:alert(1)${escapeSequences.replace('\0', '')}`,
    ]) {
      const finding = await one('status', replies(answer(302, '', { Location: location })), { redirects: 3 })
      expect(finding).toMatchObject({ level: 'fail', fault: 'protocol' })
      expect(finding.message).not.toMatch(unprintable)
    }
  })

  test('a peer cannot redirect to what is nearer than itself: from elsewhere to the link, from there to this machine', async () => {
    const far = {
      ip: '192.0.2.7',
      port: 80,
      address: '192.0.2.7:80',
      signal: new AbortController().signal,
      step: () => {},
    }
    const from = new URL('http://far.test/')
    const near = { ...far, ip: '169.254.7.7', address: '169.254.7.7:80' }
    for (const [first, to, ip, where] of [
      [far, 'http://127.0.0.1/x', '127.0.0.1', 'this machine'],
      [far, 'http://meta.test/', '169.254.169.254', 'on the link of this machine'],
      [far, 'http://[::1]/', '::1', 'this machine'],
      [far, 'http://mapped.test/', '::ffff:7f00:1', 'this machine'],
      [far, 'http://every.test/', '0.0.0.0', 'this machine'],
      [near, 'http://own.test/', '127.0.0.1', 'this machine'],
    ] as const) {
      const going = targetOf(new URL(to), from, first, first, { resolve: () => Promise.resolve([ip]) })
      await expect(going).rejects.toThrow(`which is ${where}: not followed`)
    }
    const beside = await targetOf(new URL('http://beside.test/'), from, near, near, {
      resolve: () => Promise.resolve(['169.254.7.8']),
    })
    expect(beside).toMatchObject({ address: '169.254.7.8:80' })
    const fine = await targetOf(new URL('https://b.test/'), from, far, far, {
      resolve: () => Promise.resolve(['192.0.2.9']),
    })
    expect(fine).toMatchObject({ address: '192.0.2.9:443' })
  })
})

describe('http credentials', () => {
  test('Basic mode signs in nowhere and accepts the 401 that it gets', async () => {
    const settings = { username: 'probe', password: secret('hunter22'), status: ['200'] }
    const { findings, heard } = await look(replies(answer(401)), settings, 'Basic')
    expect(heard).not.toMatch(/authorization/i)
    expect(checked(findings, 'status').level).toBe('ok')
  })

  test('Standard signs in with basic, a bearer token or a header of its own', async () => {
    const heard = async (settings: Settings) => (await look(replies(answer(200)), settings, 'Standard')).heard
    expect(await heard({ username: 'probe', password: secret('hunter22') })).toContain(
      `Authorization: Basic ${btoa('probe:hunter22')}\r\n`,
    )
    expect(await heard({ token: secret('tok-12345') })).toContain('Authorization: Bearer tok-12345\r\n')
    expect(await heard({ token: secret('tok-12345'), tokenHeader: 'X-Api-Key' })).toContain('X-Api-Key: tok-12345\r\n')
  })

  test('a refused sign-in is a fault of auth, and is not repeated by the next run', async () => {
    await using there = await peer(replies(answer(401)))
    const settings = { url: `http://127.0.0.1:${there.port}/`, username: 'probe', password: secret('wrong-one') }
    const options = { limits: limits(), retries: 2 }
    const first = checked(await runKind(http, settings, 'Standard', options), 'status')
    expect(first).toMatchObject({ level: 'fail', fault: 'auth' })
    expect(first.message).toContain('the sign-in of this monitor was refused')
    expect(there.seen()).toBe(1)
    const second = await runKind(http, settings, 'Standard', options)
    expect(second).toEqual([
      expect.objectContaining({ fault: 'auth', message: expect.stringContaining('not signed in') }),
    ])
    expect(there.seen()).toBe(1)
  })

  test('a 401 that the configuration expects is no refused sign-in', async () => {
    const settings = { token: secret('wrong-token'), status: ['401'] }
    expect(await one('status', replies(answer(401)), settings, 'Standard')).toMatchObject({ level: 'ok' })
  })

  test('credentials do not leave this machine over plain http', async () => {
    const settings = { url: 'http://far.test/', token: secret('tok-12345') }
    const resolve = () => Promise.resolve(['192.0.2.1'])
    const findings = await runKind(http, settings, 'Standard', { resolve })
    expect(findings).toEqual([expect.objectContaining({ check: 'connect', level: 'fail', fault: 'data' })])
    expect(findings[0]?.message).toBe(
      'credentials are not sent to 192.0.2.1:80 over plain http: use https, or insecureHttp',
    )
  })

  test('no finding holds a secret, whatever a peer gives back', async () => {
    const token = 'tok-12345-abcdef'
    const password = 'hunter22-hunter22'
    const sent = { username: 'probe', password: secret(password) }
    const texts = [
      (await look(echo, { token: secret(token) }, 'Standard')).findings,
      (await look(echo, sent, 'Standard')).findings,
      (
        await look(
          json({ a: token, Status: 'Failure', StatusMessage: `bad ${token}` }),
          { token: secret(token), health: true, json: { '$.a': 'x' } },
          'Standard',
        )
      ).findings,
      (
        await look(
          replies(answer(200, '', { 'X-Echo': `${'y'.repeat(70)}${token}` })),
          { token: secret(token), header: { 'X-Echo': 'x' } },
          'Standard',
        )
      ).findings,
      (
        await look(
          replies(answer(200, '', { 'X-Echo': `tok-\x9b31m${token}` })),
          { token: secret(token), header: { 'X-Echo': 'x' } },
          'Standard',
        )
      ).findings,
      (
        await look(
          json({ version: token }),
          { token: secret(token), version: { expected: '1', json: '$.version' } },
          'Standard',
        )
      ).findings,
    ].map((findings) => JSON.stringify(findings))
    for (const text of texts) {
      expect(text).toContain('"fail"')
      expect(text).not.toMatch(/tok-12345|hunter22/)
      expect(text).not.toContain(btoa(`probe:${password}`))
    }
    expect(texts[0]).toContain('[secret]')
  })

  test('settings that contradict each other are refused before anything is sent', async () => {
    const cases: readonly (readonly [Settings, string])[] = [
      [{ token: secret('abcdef'), username: 'u', password: secret('abcdef') }, 'exclude each other'],
      [{ password: secret('abcdef') }, 'password needs a username'],
      [{ username: 'a:b', password: secret('abcdef') }, 'holds no colon'],
      [{ body: 'x' }, 'a body needs method: POST'],
      [{ method: 'HEAD', contains: 'x' }, 'HEAD has no body'],
      [{ url: 'http://user:hunter22@127.0.0.1/' }, 'url holds a user or a password'],
    ]
    for (const [settings, words] of cases) {
      const { findings, seen } = await look(replies(answer(200)), settings, 'Standard')
      expect(findings).toEqual([expect.objectContaining({ level: 'fail', fault: 'data' })])
      expect(findings[0]?.message).toContain(words)
      expect(JSON.stringify(findings)).not.toContain('hunter22')
      expect(seen).toBe(0)
    }
  })
})

describe('http content', () => {
  test('content is judged from Standard on', async () => {
    const { findings } = await look(replies(answer(200, 'no')), { contains: 'yes', header: { x: 'y' } }, 'Basic')
    expect(findings.map((finding) => finding.check)).toEqual(['connect', 'status', 'latency'])
  })

  test('headers are compared, matched, and missed', async () => {
    const behave = replies(
      answer(200, '', { 'Content-Type': 'text/html; charset=utf-8', 'X-Left': '5', 'Set-Cookie': 'sid=abcdef' }),
    )
    const header = async (expected: Record<string, string>) =>
      await one('header', behave, { header: expected }, 'Standard')
    expect((await header({ 'content-type': '/^text\\/html/', 'x-left': '>= 5' })).level).toBe('ok')
    expect((await header({ 'Content-Type': 'text/html' })).message).toMatch(
      /header Content-Type is "text\/html; charset=utf-8", expected "text\/html"$/,
    )
    const two = await header({ 'X-Left': '> 5', 'X-Gone': '/./' })
    expect(two.message).toMatch(/header X-Left is "5", expected > 5 \(and 1 other\)$/)
    expect(two.details).toEqual(['the answer has no header X-Gone'])
    expect(JSON.stringify(await header({ 'set-cookie': 'x' }))).not.toContain('abcdef')
  })

  test('the body contains and matches', async () => {
    const content = async (settings: Settings) =>
      await one('content', replies(answer(200, 'all systems go\nversion 3')), settings, 'Standard')
    expect((await content({ contains: 'systems go', matches: '/^version \\d$/m' })).level).toBe('ok')
    expect((await content({ contains: 'fail' })).message).toMatch(/the answer does not contain "fail"$/)
    const finding = await content({ matches: 'v\\d' })
    expect(finding).toMatchObject({ level: 'fail', fault: 'data' })
    expect(finding.message).toMatch(/the answer does not match v\\d$/)
  })

  test('the body itself is never shown', async () => {
    const { findings } = await look(
      replies(answer(200, 'card 4111111111111111')),
      { contains: 'x', matches: 'y', json: { '$.a': '1' } },
      'Standard',
    )
    expect(JSON.stringify(findings)).not.toContain('4111')
  })

  test('a pattern that backtracks is given up and named', async () => {
    const start = processorMs()
    const finding = await one(
      'content',
      replies(answer(200, `${'a'.repeat(50)}!`)),
      { matches: '^(a|aa)+$' },
      'Standard',
    )
    expect(processorMs() - start).toBeLessThan(3_000)
    expect(finding.level).toBe('fail')
    expect(finding.message).toContain('did not end within 250 ms')
  })

  test('many patterns that backtrack are given up together: in headers, JSON, measures, and of a link', async () => {
    const text = `${'a'.repeat(60)}!`
    const many = Array.from({ length: 12 }, (_, index) => index)
    const map = (key: (n: number) => string) => Object.fromEntries(many.map((n) => [key(n), `/^(\\w+)+${n}$/`]))
    const headers = Object.fromEntries(many.map((n) => [`X-H${n}`, text]))
    const body = Object.fromEntries(many.map((n) => [`k${n}`, text]))
    await using server = await httpPeer((_, response) => {
      response
        .writeHead(200, { 'Content-Type': 'application/json', ...headers })
        .end(JSON.stringify({ ...body, next: `${server.origin}/x` }))
    })
    const settings = {
      url: server.origin,
      header: map((n) => `X-H${n}`),
      json: map((n) => `$.k${n}`),
      measure: [{ name: 'm', path: '$', value: '.', where: map((n) => `k${n}`), count: { limit: 0 } }],
    }
    const start = processorMs()
    const findings = await runKind(http, settings, 'Standard', { timeoutMs: 20_000 })
    // Once 250 ms; each by itself, they take 9 s.
    expect(processorMs() - start).toBeLessThan(2_000)
    expect(checked(findings, 'header').message).toContain('did not end within 250 ms, so it backtracks')
    expect(checked(findings, 'json')).toMatchObject({ level: 'fail', fault: 'data' })
    expect(checked(findings, 'json').message).toContain('was not tried, as another pattern of this answer was given up')
    expect(checked(findings, 'measure')).toMatchObject({ level: 'fail', fault: 'data' })
    const links = [{ name: 'next', path: '$.next', json: map((n) => `$.k${n}`) }]
    const before = processorMs()
    const linked = await runKind(http, withDefaults(http.settings, { url: server.origin, links } as never), 'Standard')
    expect(processorMs() - before).toBeLessThan(1_500)
    expect(checked(linked, 'json').message).toContain('(and 11 others)')
    // The next answer has a budget of its own.
    const next = await runKind(http, { url: server.origin, json: { '$.k0': '/^a+!$/' } }, 'Standard')
    expect(checked(next, 'json').level).toBe('ok')
  })

  test('JSON values are compared, matched, and missed', async () => {
    const behave = json({ a: { b: [{ c: 3 }], 'x y': true, no: null }, status: 'UP' })
    const values = async (expected: Record<string, string>) => await one('json', behave, { json: expected }, 'Standard')
    const good = {
      '$.a.b[0].c': '>= 3',
      "$.a['x y']": 'true',
      '$.a.no': 'null',
      '$.status': '/^up$/i',
      '$.a.b': '[{"c":3}]',
    }
    expect(await values(good)).toMatchObject({ level: 'ok', message: expect.stringContaining('5 values as expected') })
    expect((await values({ '$.a.b[0].c': '> 3' })).message).toMatch(/\$\.a\.b\[0\]\.c is "3", expected > 3$/)
    expect((await values({ '$.a.b[7]': '1' })).message).toMatch(/the answer has no \$\.a\.b\[7\], expected 1$/)
    expect((await values({ '$..c': '1' })).message).toContain('is not a JSON path such as')
    expect((await values({ '$.toString': '/./' })).level).toBe('fail')
    expect((await values({ '$.status': '< 3' })).message).toContain('(not a number)')
  })

  test('what is not JSON is told by its type and length', async () => {
    const page = replies(answer(200, '<html>login</html>', { 'Content-Type': 'text/html' }))
    const finding = await one('json', page, { json: { '$.a': '1' } }, 'Standard')
    expect(finding).toMatchObject({ level: 'fail', fault: 'protocol' })
    expect(finding.message).toContain('the answer is not JSON: 18 B of "text/html"')
    const long = await one('json', json('x'.repeat(2_000)), { json: { $: 'x' }, maxBody: 1_000 }, 'Standard')
    expect(long.message).toContain('longer than maxBody (1000 B)')
  })

  test('deeply nested JSON is survived', async () => {
    const finding = await one('json', replies(answer(200, '['.repeat(500_000))), { json: { '$[0]': '1' } }, 'Standard')
    expect(finding).toMatchObject({ level: 'fail', fault: 'protocol' })
  })
})

describe('http health of another server', () => {
  const path = '/healthcheck?ExecutionMode=Basic&ServerType=App'
  const health = async (body: unknown, status = 200) =>
    await one('health', json(body, status), { health: true, path }, 'Standard')

  test('200 proves nothing: the body says Failure', async () => {
    const finding = await health({
      Status: 'Failure',
      StatusMessage: 'App is unhealthy: \x1b[31mdb\x1b[0m down',
      FailedMonitorCount: 2,
      MonitorSummaries: [
        { MonitorName: 'postgres orders', Status: 'Failure', ErrorMessages: ['round trip: refused'] },
        { MonitorName: 'host', Status: 'Success' },
      ],
    })
    expect(finding).toMatchObject({ level: 'fail', fault: 'data', observed: 2 })
    expect(finding.message).toMatch(/says Failure, 2 failed monitors: "App is unhealthy: db down"$/)
    expect(finding.details).toEqual(['postgres orders: round trip: refused'])
  })

  test('Success is ok, and the request carries the hop', async () => {
    const { findings, heard } = await look(
      json({ Status: 'Success', FailedMonitorCount: 0 }),
      { health: true, path },
      'Standard',
    )
    expect(checked(findings, 'health')).toMatchObject({ level: 'ok' })
    expect(heard).toContain('X-Svc-Hops: 1\r\n')
    expect(heard).toContain('Accept: application/json\r\n')
  })

  test('Success with failed monitors, with none at all, or without a status is not taken at its word', async () => {
    expect(await health({ Status: 'Success', FailedMonitorCount: 1 })).toMatchObject({
      level: 'fail',
      fault: 'protocol',
    })
    expect(await health({ Status: 'Success', FailedMonitorCount: 0, MonitorSummaries: [] })).toMatchObject({
      level: 'warn',
    })
    expect(await health({ status: 'UP' })).toMatchObject({ level: 'fail', fault: 'protocol' })
    expect(await health(null)).toMatchObject({ level: 'fail', fault: 'protocol' })
    expect(await health([1])).toMatchObject({ level: 'fail', fault: 'protocol' })
  })

  test('a 503 tells its cause too', async () => {
    const { findings } = await look(
      json({ Status: 'Failure', StatusMessage: 'disk full', FailedMonitorCount: 1 }, 503),
      { health: true, path },
      'Standard',
    )
    expect(checked(findings, 'status').level).toBe('fail')
    expect(checked(findings, 'health').message).toContain('says Failure, 1 failed monitor: "disk full"')
  })

  test('a run that another svc asked for makes no such call, also where health was forgotten', async () => {
    for (const settings of [
      { health: true, path: '/status' },
      { path },
      { path: '/json/reply/HealthCheckRequest?ServerType=App' },
    ]) {
      const { findings, seen } = await look(json({ Status: 'Success' }), settings, 'Standard', { calledByPeer: true })
      expect(findings).toEqual([expect.objectContaining({ check: 'health', level: 'ok' })])
      expect(seen).toBe(0)
    }
    const { seen } = await look(replies(answer(200)), { path: '/other' }, 'Basic', { calledByPeer: true })
    expect(seen).toBe(1)
  })

  test('a secret is for the server that url names: no other Host beside it, and no header that is ours', () => {
    const url = 'https://shop.example.com/'
    const why = (given: Parameters<typeof withDefaults<typeof http.settings>>[1]): string | undefined =>
      http.contradiction?.(withDefaults(http.settings, { url, ...given }))
    expect(why({ headers: { host: 'other.example.com' } })).toBeUndefined()
    expect(why({ headers: { Host: 'other.example.com' }, token: secret('t') })).toContain('may not set Host')
    expect(why({ headers: { HOST: 'x' }, username: 'u', password: secret('t') })).toContain('may not set Host')
    expect(why({ tokenHeader: 'Host', token: secret('t') })).toBe('tokenHeader may not be Host')
    expect(why({ tokenHeader: 'Transfer-Encoding', token: secret('t') })).toContain('tokenHeader may not be')
    expect(why({ tokenHeader: 'X-Api-Key', token: secret('t') })).toBeUndefined()
  })

  test('this very process is never asked for its health', async () => {
    await using there = await peer(json({ Status: 'Success' }))
    const url = `http://127.0.0.1:${there.port}/healthcheck`
    const findings = await runKind(http, { url }, 'Standard', { ownUrl: () => `http://127.0.0.1:${there.port}/` })
    expect(findings).toMatchObject([{ level: 'warn', message: expect.stringContaining('is this very process') }])
    expect(there.seen()).toBe(0)
  })
})

describe('http version and clock', () => {
  test('version skew fails as deployment-related', async () => {
    const version = { expected: '1.2.4', json: '$.version' }
    const finding = await one('version', json({ version: '1.2.3' }), { version }, 'Standard')
    expect(finding).toMatchObject({ level: 'fail', deployment: true })
    expect(finding.message).toMatch(/: the version is "1\.2\.3", expected "1\.2\.4"$/)
    expect((await one('version', json({ version: '1.2.4' }), { version }, 'Standard')).level).toBe('ok')
    const header = { expected: '/^2\\./', json: '$.version', header: 'X-Version' }
    expect(
      (await one('version', replies(answer(200, '', { 'x-version': '2.7' })), { version: header }, 'Standard')).level,
    ).toBe('ok')
    expect((await one('version', replies(answer(200)), { version: header }, 'Standard')).message).toContain(
      'no header X-Version',
    )
  })

  test('the clock is judged in Advanced, and left out without a Date header', async () => {
    const at = (ms: number, more: Record<string, string> = {}) =>
      replies(() => answer(200, '', { Date: new Date(Date.now() + ms).toUTCString(), ...more }))
    expect((await one('clock', at(0), {}, 'Advanced')).level).toBe('ok')
    const behind = await one('clock', at(-10_000), {}, 'Advanced')
    expect(behind.level).toBe('warn')
    expect(behind.message).toMatch(/the clock of 127.* is behind ours by \d+(\.\d+)? s \(warns above 2 s\)$/)
    const ahead = await one('clock', at(60_000), {}, 'Advanced')
    expect(ahead).toMatchObject({ level: 'fail', fault: 'threshold' })
    expect(ahead.message).toContain('is ahead of ours')
    expect((await one('clock', at(-3_600_000, { Age: '3600' }), {}, 'Advanced')).level).toBe('ok')
    expect((await one('clock', replies(answer(200, '', { Date: 'soon' })), {}, 'Advanced')).level).toBe('warn')
    const { findings } = await look(replies(answer(200)), {}, 'Advanced')
    expect(findings.map((finding) => finding.check)).not.toContain('clock')
    const standard = await look(at(60_000), {}, 'Standard')
    expect(standard.findings.map((finding) => finding.check)).not.toContain('clock')
    const off = await look(at(60_000), { clock: {} }, 'Advanced')
    expect(off.findings.map((finding) => finding.check)).not.toContain('clock')
  })
})

describe('http addresses', () => {
  test('Advanced asks every address by itself, with the name as Host', async () => {
    await using good = await peer(replies(answer(200)))
    await using bad = await peer(replies(answer(500)), { host: '127.0.0.2', port: good.port })
    const resolve = () => Promise.resolve(['127.0.0.1', '127.0.0.2'])
    const settings = { url: `http://app.test:${good.port}/` }
    const findings = await runKind(http, settings, 'Advanced', { resolve })
    const status = findings.filter((finding) => finding.check === 'status')
    expect(status.map((finding) => `${finding.address} ${finding.level}`).sort()).toEqual([
      `127.0.0.1:${good.port} ok`,
      `127.0.0.2:${bad.port} fail`,
    ])
    expect(bad.heard()).toContain(`Host: app.test:${good.port}\r\n`)
    const standard = await runKind(http, settings, 'Standard', { resolve })
    expect(standard.filter(({ check }) => check === 'status')).toHaveLength(2)
    const basic = await runKind(http, settings, 'Basic', { resolve })
    expect(basic.every((finding) => finding.address === `127.0.0.1:${good.port}`)).toBe(true)
  })

  describe('same version', () => {
    const run = async (
      versions: readonly (string | undefined)[],
      mode: ExecutionMode = 'Advanced',
      given: Settings = {},
    ) => {
      const ips = versions.map((_, index) => `127.0.0.${index + 1}`)
      const said = (version: string | undefined) => answer(200, JSON.stringify({ version }))
      const first = await peer(replies(said(versions[0])))
      const rest = await Promise.all(
        versions
          .slice(1)
          .map((version, index) => peer(replies(said(version)), { host: ips[index + 1] ?? '', port: first.port })),
      )
      const settings = {
        url: `http://app.test:${first.port}/`,
        version: { expected: '/./', json: '$.version' },
        ...given,
      }
      const findings = await runKind(http, settings, mode, { resolve: () => Promise.resolve(ips) })
      for (const one of [first, ...rest]) await one.close()
      return findings.find(({ check }) => check === 'same version')
    }

    test('H5 another build at one address fails, as a deployment error', async () => {
      const found = await run(['2.4.1', '2.4.0', '2.4.1'])
      expect(found).toMatchObject({ level: 'fail', fault: 'data', deployment: true })
      expect(found?.message).toMatch(
        /^3 addresses run 2 versions: "2\.4\.1" at 127\.0\.0\.\d:\d+ \(and 1 other\), "2\.4\.0" at 127\.0\.0\.2:\d+$/,
      )
      expect(found?.details).toHaveLength(2)
    })

    test('the same build everywhere is well; one address, a shallower mode and no version have no such row', async () => {
      expect(await run(['2.4.1', '2.4.1'])).toMatchObject({ level: 'ok', message: '2 addresses run "2.4.1"' })
      expect(await run(['2.4.1'])).toBeUndefined()
      expect(await run(['2.4.1', '2.4.0'], 'Standard')).toBeUndefined()
      expect(await run(['2.4.1', '2.4.0'], 'Advanced', { addresses: 'first' })).toBeUndefined()
      expect(await run(['2.4.1', undefined])).toBeUndefined()
    })
  })
})

describe('http judgeFrom', () => {
  const settings = { judgeFrom: 'Basic', json: { '$.Online': 'true' } } as const
  const offline = replies(answer(200, '{"Online": false}'))

  test('Basic: what is small and asked without a sign-in is judged at once', async () => {
    expect(await one('json', offline, settings)).toMatchObject({ level: 'fail', fault: 'data' })
    const { findings } = await look(offline, { json: settings.json })
    expect(findings.map(({ check }) => check)).not.toContain('json')
  })

  test('an answer to a request without its credentials is not judged in Basic', async () => {
    const { findings } = await look(offline, { ...settings, token: secret('tok-12345') })
    expect(findings.map(({ check }) => check)).not.toContain('json')
  })
})

suiteWith(opensslMissing(), 'https', () => {
  let made: Certificates
  beforeAll(() => {
    made = makeCertificates()
  })
  afterAll(() => made.remove())
  const secure = async (
    tls: { key: string; cert: string },
    settings: Settings = {},
    mode: ExecutionMode = 'Advanced',
  ) => await look(replies(answer(200, 'hi')), { caFile: made.caFile, ...settings }, mode, { peer: { tls } })

  test('a good chain is ok, and Advanced judges its dates', async () => {
    const { findings } = await secure(made.good)
    expect(checked(findings, 'connect').message).toMatch(/accepted, TLSv1\.3$/)
    expect(checked(findings, 'certificate')).toMatchObject({ level: 'ok', unit: 'days' })
    expect((await secure(made.good, {}, 'Standard')).findings.map((finding) => finding.check)).not.toContain(
      'certificate',
    )
    expect(checked((await secure(made.fiveDays)).findings, 'certificate').level).toBe('warn')
    expect(checked((await secure(made.twoDays)).findings, 'certificate')).toMatchObject({
      level: 'fail',
      fault: 'threshold',
    })
  })

  test('a server that is not who it should be is asked nothing, and why is told', async () => {
    const cases = [
      [made.expired, /certificate "svc.test" expired on .* UTC, 2 d ago$/],
      [made.expiredIntermediate, /issuer certificate "Svc Old Issuer" expired on/],
      [made.notYetValid, /is not valid before/],
      [made.wrongHost, /the certificate is not for 127\.0\.0\.1, but for elsewhere\.test$/],
      [made.selfSigned, /"self\.test" is self-signed/],
      [made.withoutIntermediate, /the issuer "Svc Test Issuer" is unknown here/],
    ] as const
    for (const [shown, words] of cases) {
      const { findings, heard } = await secure(shown, { token: secret('tok-12345') }, 'Standard')
      expect(findings).toEqual([expect.objectContaining({ check: 'connect', level: 'fail', fault: 'tls' })])
      expect(findings[0]?.message).toMatch(words)
      expect(heard).toBe('')
    }
  })

  test('verify: false asks all the same, and Advanced still dates the chain', async () => {
    const { findings } = await secure(made.expired, { verify: false, caFile: undefined })
    expect(checked(findings, 'status').level).toBe('ok')
    expect(checked(findings, 'certificate')).toMatchObject({ level: 'fail', fault: 'tls' })
  })

  test('a plain server behind https is told', async () => {
    await using there = await peer(replies(answer(200)))
    const finding = checked(await runKind(http, { url: `https://127.0.0.1:${there.port}/` }), 'connect')
    expect(finding).toMatchObject({ level: 'fail', fault: 'tls' })
    expect(finding.message).toContain('does not speak TLS on this port')
  })

  test('a black hole behind the handshake leaves nothing open', async () => {
    expect(await settled('')).toBe('')
    await using there = await peer(blackHole, { tls: made.good })
    const settings = { url: `https://127.0.0.1:${there.port}/`, caFile: made.caFile }
    const findings = await runKind(http, settings, 'Basic', { timeoutMs: 1_000 })
    expect(checked(findings, 'status')).toMatchObject({ level: 'fail', fault: 'timeout' })
    expect(await settled('TCPServerWrap 1')).toBe('TCPServerWrap 1')
  })
})
