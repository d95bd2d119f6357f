import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { targetOf } from '../../../src/core/base/net/http/route.ts'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import { limits } from '../../../src/core/checks/engine/index.ts'
import { clock, latency } from '../../../src/core/checks/kinds/http/checks.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { expectFindings, expectResult, finds, findsOnly } from '../../support/engine/finds.ts'
import {
  checked,
  evaluated,
  type RunKindOptions,
  runKind,
  secret,
  withDefaults,
} from '../../support/engine/run-kind.ts'
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
  replies,
  reset,
  settled,
} from '../../support/faults/faults.ts'
import { givenUp } from '../../support/hostile/given-up.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { endsByDeadline } from '../../support/suite/deadline.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { measureWork } from '../../support/suite/processor-time.ts'
import { farMs } from '../../support/suite/until.ts'

type Settings = Parameters<typeof runKind<typeof http.settings>>[1]
type Look = Settings & { readonly path?: string }

/** Runs the kind against one peer; gives the findings and what the peer heard. */
async function look(
  behave: Behaviour,
  settings: Look = {},
  mode: ExecutionMode = 'Basic',
  options: RunKindOptions & { readonly peer?: PeerOptions } = {},
) {
  await using there = await peer(behave, options.peer)
  const { path = '/', ...input } = settings
  const url = `${options.peer?.tls ? 'https' : 'http'}://127.0.0.1:${there.port}${path}`
  const results = await runKind(http, { url, ...input }, mode, options)
  return { results, inputOf: there.input(), connections: there.connections(), port: there.port }
}
const one = async (check: string, ...args: Parameters<typeof look>) => checked((await look(...args)).results, check)
const json = (value: unknown, status = 200) =>
  replies(answer(status, JSON.stringify(value), { 'Content-Type': 'application/json' }))
const unprintable = /[\x00-\x1f\x7f-\x9f\u202e]/

describe('http settings', () => {
  test('svc.yaml sets them with defaults, numbers and lists of one', () => {
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
    const invalid = readSettings(
      http.settings,
      { url: 'ftp://a.test/', headers: { Authorization: 'Bearer x' }, redirect: 1 },
      context,
    )
    expect(invalid.problems.map((problem) => problem.path.join('.')).sort()).toEqual([
      'headers.Authorization',
      'redirect',
      'url',
    ])
  })
})

describe('http status and latency', () => {
  test('a correct answer is ok in connect, status and latency', async () => {
    const { results, inputOf } = await look(replies(answer(200, 'hello')), { path: '/up?x=1' })
    await findsOnly(results, 'connect ok', 'status ok', 'latency ok')
    expect(inputOf).toMatch(/^GET \/up\?x=1 HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n/)
    expect(inputOf).toMatch(/\r\nCache-Control: no-store\r\n/)
    expect(inputOf).toMatch(/\r\nConnection: close\r\n/)
    expect(inputOf).toMatch(/\r\nAccept-Encoding: identity\r\n/)
    expect(inputOf).not.toMatch(/x-svc-hops|authorization/i)
  })

  test('H16 without a status setting, Basic accepts each status below 500, and Standard 2xx', async () => {
    const accepted = async (mode: ExecutionMode) => {
      const codes = [200, 204, 300, 301, 302, 303, 304, 307, 308, 401, 403, 404, 499, 500, 503]
      const results = await Promise.all(codes.map((code) => one('status', replies(answer(code)), {}, mode)))
      return codes.filter((_, at) => results[at]?.status === 'ok')
    }
    expect(await accepted('Basic')).toEqual([200, 204, 300, 301, 302, 303, 304, 307, 308, 401, 403, 404, 499])
    expect(await accepted('Standard')).toEqual([200, 204])
  })

  test.each([301, 302, 303, 307, 308])(
    'H16 a redirect with %s fails with its goal, without its query',
    async (code) => {
      const { results, port } = await look(
        replies(answer(code, '', { Location: '/login?token=secret' })),
        {},
        'Standard',
      )
      await finds(results, [
        'status failed (data)',
        {
          message: `127.0.0.1:${port} redirects to http://127.0.0.1:${port}/login?token=… (${code}): name it in url, or set redirects: 3, or status: [${code}] if that is the healthy answer`,
          measurement: { value: code },
        },
      ])
      await finds(look(replies(answer(code, '', { Location: '/login' })), { status: [String(code)] }), 'status ok')
    },
  )

  test('H16 a redirect without Location leads nowhere', () =>
    finds(look(replies(answer(302)), {}, 'Standard'), [
      'status failed (data)',
      / answered 302 without Location, which leads nowhere: set status: \[302\] if/,
    ]))

  test('H16 an empty answer with 200 to a GET is a warning, unless status names it or it is not a page', async () => {
    const empty = async (code: number, settings: Partial<Settings> = {}, mode: ExecutionMode = 'Standard') => {
      const { results } = await look(replies(answer(code, '')), settings, mode)
      return results.find(({ check }) => check === 'empty body')?.status
    }
    expect(await empty(200)).toBe('warning')
    expect(await empty(200, {}, 'Basic')).toBeUndefined()
    expect(await empty(200, { status: ['200'] })).toBeUndefined()
    expect(await empty(200, { method: 'HEAD' })).toBeUndefined()
    expect(await empty(204)).toBeUndefined()
    // What is expected of the body fails by itself.
    expect(await empty(200, { contains: 'fine' })).toBeUndefined()
  })

  test.each([
    ['Basic realm="a, Digest b"', 'a sign-in (Basic): set username and password,'],
    ['Negotiate, NTLM', 'a sign-in (Negotiate, NTLM): set token to a value that the server accepts,'],
    ['Bearer realm="x", error="invalid_token", charset="UTF-8"', 'a sign-in (Bearer): set token,'],
    ['Negotiate YII=, Basic realm = "x"', 'a sign-in (Negotiate, Basic): set username and password,'],
    ['realm="only a parameter"', 'a sign-in: set username and password, or token,'],
    [undefined, 'a sign-in: set username and password, or token,'],
    [`Basic${' '.repeat(9_000)}, Evil`, 'a sign-in (Basic): set'],
  ])('a 401 names the schemes of its WWW-Authenticate header: %s', async (header, expected) => {
    const headers = header === undefined ? {} : { 'WWW-Authenticate': header }
    await finds(look(replies(answer(401, '', headers)), {}, 'Standard'), [
      `status failed (auth): …answered 401: it requires ${expected}…`,
      { measurement: { value: 401 } },
    ])
  })

  test('H16 a 403 forbids access, with an account too', async () => {
    const forbids = (settings: Settings) => look(replies(answer(403)), settings, 'Standard')
    await finds(forbids({}), 'status failed (auth): …answered 403: it forbids access without a sign-in, or from this…')
    const account = { username: 'monitor', password: secret('hunter22') }
    await finds(forbids(account), 'status failed (auth): …answered 403: the account of this monitor may not read…')
  })

  test('status accepts codes, classes, ranges and a bound', async () => {
    const status = async (code: number, ...status: string[]) =>
      (await one('status', replies(answer(code)), { status })).status
    expect(await status(200, '200')).toBe('ok')
    expect(await status(201, '200', '204')).toBe('failed')
    expect(await status(204, '2xx')).toBe('ok')
    expect(await status(304, '200-299')).toBe('failed')
    expect(await status(299, '200-299')).toBe('ok')
    expect(await status(418, '<418')).toBe('failed')
  })

  test('a failed status reports the observed and the expected one', async () => {
    const { results, port } = await look(replies(answer(503)), { status: ['200', '204'] })
    await finds(results, [
      `status failed (data): 127.0.0.1:${port} answered 503 (expected 200, 204)`,
      { measurement: { value: 503 } },
    ])
  })

  test('an invalid status setting is named', () =>
    finds(
      look(replies(answer(200)), { status: ['fine'] }),
      'status failed (data): …status "fine" is not of the form 200, 2xx, 200-299 or <500…',
    ))

  test('a slow answer warns', () =>
    finds(look(replies(answer(200, 'x'), 120), { latency: { warn: 50, limit: farMs } }), [
      'latency warning',
      /answered 1 B in [\d.]+ m?s \(warn 50 ms, fail 2 min\)$/,
    ]))

  test('values at the boundaries of latency and clock are ok', () => {
    const ofLatency = (ms: number) => evaluated(latency, { address: 'a:1', size: 0, ms })[0]?.status
    expect([1_000, 1_000.1, 5_000, 5_000.1].map(ofLatency)).toEqual(['ok', 'warning', 'warning', 'failed'])
    const ofClock = (skewMs: number) =>
      evaluated(clock, { address: 'a:1', isDated: true, isRequired: false, skewMs })[0]?.status
    expect([2_000, -2_000, -2_001, 30_000, 30_001].map(ofClock)).toEqual(['ok', 'ok', 'warning', 'warning', 'failed'])
  })

  test('headers are sent as configured, except framing and credentials', async () => {
    const { inputOf } = await look(replies(answer(200)), {
      headers: { 'X-Probe': 'yes', 'user-agent': 'mine', Host: 'other.test' },
    })
    expect(inputOf).toContain('X-Probe: yes\r\n')
    expect(inputOf).toContain('user-agent: mine\r\n')
    expect(inputOf).toContain('Host: other.test\r\n')
    expect(inputOf.match(/^(?:user-agent|host):/gim)).toHaveLength(2)
    for (const name of ['Authorization', 'accept-encoding', 'Transfer-Encoding', 'X-Svc-Hops']) {
      const { results, connections: observation } = await look(replies(answer(200)), { headers: { [name]: 'x' } })
      expect(results).toEqual([expect.objectContaining({ status: 'failed', fault: 'data' })])
      expect(results[0]?.message).toContain(`headers may not set ${name}`)
      expect(observation).toBe(0)
    }
  })

  test('a header with a line break is refused before anything is sent', async () => {
    const { inputOf } = await expectFindings(
      look(replies(answer(200)), { headers: { 'X-A': 'b\r\nX-C: d' } }),
      'status failed (data)',
    )
    expect(inputOf).toBe('')
  })

  test('a POST is sent from Standard on; Basic only connects', async () => {
    const settings = { method: 'POST', body: '{"ping":1}', headers: { 'Content-Type': 'application/json' } } as const
    const basic = await look(replies(answer(200)), settings, 'Basic')
    expect(basic.results.map((result) => result.check)).toEqual(['connect'])
    expect(basic.inputOf).toBe('')
    expect(await settled('')).toBe('')
    await using there = await peer(blackHole)
    await runKind(http, { url: `http://127.0.0.1:${there.port}/`, ...settings })
    expect(await settled('TCPServerWrap 1')).toBe('TCPServerWrap 1')
    const standard = await look(replies(answer(200)), settings, 'Standard')
    expect(standard.inputOf).toMatch(/^POST \/ .*Content-Length: 10\r\n.*\{"ping":1\}$/s)
    await finds(standard, 'status ok')
  })

  test('HEAD reads no body', async () => {
    const { results, inputOf } = await look(replies('HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n'), {
      method: 'HEAD',
    })
    expect(inputOf).toMatch(/^HEAD \//)
    expect(results.every((result) => result.status === 'ok')).toBe(true)
  })
})

describe('http faults', () => {
  test('a black hole ends at its deadline, reports what succeeded, and leaves nothing open', async () => {
    expect(await settled('')).toBe('')
    await using there = await peer(blackHole)
    const run = runKind(http, { url: `http://127.0.0.1:${there.port}/` }, 'Basic', { timeoutMs: 300 })
    const results = await endsByDeadline(300, run)
    await findsOnly(results, 'connect ok', 'status failed (timeout)')
    expect(results[1]?.message).toMatch(
      new RegExp(`^127.0.0.1:${there.port} accepted the connection but sent nothing for [\\d.]+ m?s$`),
    )
    expect(await settled('TCPServerWrap 1')).toBe('TCPServerWrap 1')
  })

  test('a body that never ends ends at its deadline and leaves nothing open', async () => {
    expect(await settled('')).toBe('')
    await using there = await peer(replies('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', 0))
    await using slow = await peer(
      (socket) => void socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\nhalf')),
    )
    await finds(
      runKind(http, { url: `http://127.0.0.1:${slow.port}/` }, 'Basic', { timeoutMs: 300 }),
      'status ok',
      'body failed (timeout)',
    )
    await finds(runKind(http, { url: `http://127.0.0.1:${there.port}/` }), [
      'body',
      /sent an incomplete response: 4 B of 9 B$/,
    ])
    expect(await settled('TCPServerWrap 2')).toBe('TCPServerWrap 2')
  })

  test('a cancelled run leaves nothing open', async () => {
    expect(await settled('')).toBe('')
    await using there = await peer(blackHole)
    const caller = new AbortController()
    const run = runKind(http, { url: `http://127.0.0.1:${there.port}/` }, 'Basic', { signal: caller.signal })
    setTimeout(() => caller.abort(), 100)
    await expect(run).rejects.toThrow()
    expect(await settled('TCPServerWrap 1')).toBe('TCPServerWrap 1')
  })

  test('H59 a chunk whose size is no number is named, and is no answer that was cut short', async () => {
    await using there = await peer(
      (socket) =>
        void socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n')),
    )
    await finds(runKind(http, { url: `http://127.0.0.1:${there.port}/` }), [
      'body failed (protocol)',
      /sent a body whose chunks cannot be read/,
    ])
  })

  test('an incomplete answer is a protocol fault, in the head and in the body', async () => {
    const whole = answer(200, 'x'.repeat(1_000))
    await finds(look(cutAfter(80, whole)), 'body failed (protocol)')
    await finds(look(cutAfter(80, whole)), ['body', /sent an incomplete response: \d+ B of 1000 B$/])
    await finds(look(cutAfter(20, whole)), 'status failed (protocol)')
  })

  test('a reset is reported as such', () =>
    finds(look(reset), 'status failed (protocol): …closed the connection after…'))

  test('an answer that is not HTTP is quoted, without its escape sequences', async () => {
    const result = await one('status', replies(`${escapeSequences}\r\nSSH-2.0-x\r\n`))
    expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(result.message).toContain('did not send valid HTTP: it sent "redgnp SSH-2.0-x"')
    expect(result.message).not.toMatch(unprintable)
  })

  test('huge headers, endless headers and endless interim answers are refused', async () => {
    await finds(look(replies(hugeHeaders(64_000))), 'status: …more than 16 KiB of headers…')
    await finds(look(endless('HTTP/1.1 200 OK\r\nX: ')), 'status: …more than 16 KiB of headers…')
    await finds(look(endless('', 'HTTP/1.1 100 Continue\r\n\r\n')), 'status (protocol): …too many interim responses…')
  })

  test('an endless body is read up to maxBody, and then the connection is closed', async () => {
    expect(await settled('')).toBe('')
    await using there = await peer(endless('HTTP/1.1 200 OK\r\n\r\n'))
    const url = `http://127.0.0.1:${there.port}/`
    await finds(
      runKind(http, { url, maxBody: 50_000, contains: 'never' }, 'Standard'),
      'latency ok',
      'content: …the first 49 KiB of the answer does not contain "never"…',
    )
    expect(await settled('TCPServerWrap 1')).toBe('TCPServerWrap 1')
  })

  test('H17 an answer in an unknown content coding is read as it is, and the coding is named', async () => {
    const packed = replies(answer(200, 'not compressed', { 'Content-Encoding': 'compress' }))
    await finds(look(packed, { contains: 'not' }, 'Standard'), 'content ok')
    await finds(
      look(packed, { contains: 'x1' }, 'Standard'),
      'content: …content-encoding is "compress", which svc does not know…',
    )
  })

  test('H17 an answer in several content codings is decoded in the reverse order, and more than three are not', async () => {
    const twice = gzipSync(gzipSync('hello'))
    const packed = (codings: string) =>
      replies(Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Encoding: ${codings}\r\n\r\n`), twice]))
    await finds(look(packed('gzip, x-gzip'), { contains: 'hello' }, 'Standard'), 'content ok')
    await finds(
      look(packed('gzip, gzip, gzip, gzip'), { contains: 'hello' }, 'Standard'),
      'content: …which svc does not know…',
    )
  })

  test('an unsolicited answer to an upgrade is an ordinary answer', () =>
    finds(look(replies('HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'), { status: ['2xx'] }), [
      'status failed',
      { measurement: { value: 101 } },
    ]))
})

describe('http redirects', () => {
  test('by default no redirect is followed, and its target is shown without its query', async () => {
    const { connections: observation } = await expectFindings(
      look(replies(answer(302, '', { Location: 'https://login.test/in?token=s3cr3t' })), { status: ['200'] }),
      ['status', 'answered 302 to https://login.test/in?token=… (expected 200)'],
    )
    expect(observation).toBe(1)
  })

  test('a redirect is followed when allowed, on the address that is probed', async () => {
    const behave = replies((request) =>
      request.startsWith('GET /old') ? answer(301, '', { Location: '/new' }) : answer(200, 'new'),
    )
    await finds(
      look(behave, { path: '/old', redirects: 1, contains: 'new' }, 'Standard'),
      'status: …answered 200 after 1 redirect…',
      'content ok',
    )
  })

  test('a redirect loop is reported, without queries', () =>
    finds(look(redirectLoop, { path: '/a', redirects: 9 }), [
      'status failed (protocol)',
      /redirects in a loop: http:\S+\/a -> http:\S+\/b\?token=… -> http:\S+\/a$/,
    ]))

  test('more redirects than allowed are reported', async () => {
    let n = 0
    await finds(
      look(
        replies(() => {
          n += 1
          return answer(302, '', { Location: `/${n}` })
        }),
        { redirects: 2 },
      ),
      'status: …redirects more than 2 times…',
    )
    expect(n).toBe(3)
  })

  test('another origin gets neither headers nor credentials', async () => {
    await using elsewhere = await peer(replies(answer(200)))
    const settings = { redirects: 1, token: secret('tok-12345'), headers: { 'X-Tenant': 'acme' } }
    const away = replies(answer(302, '', { Location: `http://127.0.0.1:${elsewhere.port}/` }))
    const { inputOf } = await expectFindings(look(away, settings, 'Standard'), 'status ok')
    expect(inputOf).toContain('Authorization: Bearer tok-12345')
    expect(inputOf).toContain('X-Tenant: acme')
    expect(elsewhere.input()).toMatch(/^GET \//)
    expect(elsewhere.input()).not.toMatch(/tok-12345|acme/)
  })

  test('a POST follows no redirect', async () => {
    const { results, connections: observation } = await look(
      replies(answer(307, '', { Location: '/x' })),
      { method: 'POST', redirects: 5 },
      'Standard',
    )
    expect(checked(results, 'status').measurement?.value).toBe(307)
    expect(observation).toBe(1)
  })

  test('other protocols and invalid URLs are not followed', async () => {
    for (const location of [
      'file:///etc/passwd',
      'http://[',
      `javascript:alert(1)${escapeSequences.replace('\0', '')}`,
    ]) {
      const result = await one('status', replies(answer(302, '', { Location: location })), { redirects: 3 })
      expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
      expect(result.message).not.toMatch(unprintable)
    }
  })

  test('a peer cannot redirect to a nearer network: from outside to a private one, from there to this machine', async () => {
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
  test('Basic mode does not sign in and accepts the resulting 401', async () => {
    const settings = { username: 'probe', password: secret('hunter22'), status: ['200'] }
    const { results, inputOf } = await look(replies(answer(401)), settings, 'Basic')
    expect(inputOf).not.toMatch(/authorization/i)
    await finds(results, 'status ok')
  })

  test('Standard signs in with basic, a bearer token or a custom header', async () => {
    const inputOf = async (settings: Settings) => (await look(replies(answer(200)), settings, 'Standard')).inputOf
    expect(await inputOf({ username: 'probe', password: secret('hunter22') })).toContain(
      `Authorization: Basic ${btoa('probe:hunter22')}\r\n`,
    )
    expect(await inputOf({ token: secret('tok-12345') })).toContain('Authorization: Bearer tok-12345\r\n')
    expect(await inputOf({ token: secret('tok-12345'), tokenHeader: 'X-Api-Key' })).toContain(
      'X-Api-Key: tok-12345\r\n',
    )
  })

  test('a refused sign-in is an auth fault, and the next run does not repeat it', async () => {
    await using there = await peer(replies(answer(401)))
    const settings = { url: `http://127.0.0.1:${there.port}/`, username: 'probe', password: secret('wrong-one') }
    const options = { limits: limits(), retries: 2 }
    await finds(
      runKind(http, settings, 'Standard', options),
      'status failed (auth): …the sign-in of this monitor was refused…',
    )
    expect(there.connections()).toBe(1)
    const second = await runKind(http, settings, 'Standard', options)
    expect(second).toEqual([
      expect.objectContaining({ fault: 'auth', message: expect.stringMatching(/^refused: status 401 /) }),
    ])
    expect(there.connections()).toBe(1)
  })

  test('a 401 that the configuration expects is not a refused sign-in', async () => {
    const settings = { token: secret('wrong-token'), status: ['401'] }
    await finds(look(replies(answer(401)), settings, 'Standard'), 'status ok')
  })

  test('credentials do not leave this machine over plain http', async () => {
    const settings = { url: 'http://far.test/', token: secret('tok-12345') }
    const resolve = () => Promise.resolve(['192.0.2.1'])
    await findsOnly(runKind(http, settings, 'Standard', { resolve }), [
      'connect failed (data)',
      { message: 'credentials are not sent to 192.0.2.1:80 over plain http: use https, or insecureHttp' },
    ])
  })

  test('no result contains a secret, whatever a peer returns', async () => {
    const token = 'tok-12345-abcdef'
    const password = 'hunter22-hunter22'
    const sent = { username: 'probe', password: secret(password) }
    const texts = [
      (await look(echo, { token: secret(token) }, 'Standard')).results,
      (await look(echo, sent, 'Standard')).results,
      (
        await look(
          json({ a: token, Status: 'Failure', StatusMessage: `bad ${token}` }),
          { token: secret(token), health: true, json: { '$.a': 'x' } },
          'Standard',
        )
      ).results,
      (
        await look(
          replies(answer(200, '', { 'X-Echo': `${'y'.repeat(70)}${token}` })),
          { token: secret(token), header: { 'X-Echo': 'x' } },
          'Standard',
        )
      ).results,
      (
        await look(
          replies(answer(200, '', { 'X-Echo': `tok-\x9b31m${token}` })),
          { token: secret(token), header: { 'X-Echo': 'x' } },
          'Standard',
        )
      ).results,
      (
        await look(
          json({ version: token }),
          { token: secret(token), version: { expected: '1', json: '$.version' } },
          'Standard',
        )
      ).results,
    ].map((results) => JSON.stringify(results))
    for (const text of texts) {
      expect(text).toContain('"failed"')
      expect(text).not.toMatch(/tok-12345|hunter22/)
      expect(text).not.toContain(btoa(`probe:${password}`))
    }
    expect(texts[0]).toContain('[secret]')
  })

  test('contradictory settings are refused before anything is sent', async () => {
    const cases: readonly (readonly [Settings, string])[] = [
      [{ token: secret('abcdef'), username: 'u', password: secret('abcdef') }, 'exclude each other'],
      [{ password: secret('abcdef') }, 'password needs a username'],
      [{ username: 'a:b', password: secret('abcdef') }, 'cannot contain a colon'],
      [{ body: 'x' }, 'a body needs method: POST'],
      [{ method: 'HEAD', contains: 'x' }, 'HEAD has no body'],
      [{ url: 'http://user:hunter22@127.0.0.1/' }, 'url contains a user or a password'],
    ]
    for (const [settings, words] of cases) {
      const { results, connections: observation } = await look(replies(answer(200)), settings, 'Standard')
      expect(results).toEqual([expect.objectContaining({ status: 'failed', fault: 'data' })])
      expect(results[0]?.message).toContain(words)
      expect(JSON.stringify(results)).not.toContain('hunter22')
      expect(observation).toBe(0)
    }
  })
})

describe('http content', () => {
  test('content is evaluated from Standard on', async () => {
    const { results } = await look(replies(answer(200, 'no')), { contains: 'yes', header: { x: 'y' } }, 'Basic')
    expect(results.map((result) => result.check)).toEqual(['connect', 'status', 'latency'])
  })

  test('headers are compared, matched, and reported when missing', async () => {
    const behave = replies(
      answer(200, '', { 'Content-Type': 'text/html; charset=utf-8', 'X-Left': '5', 'Set-Cookie': 'sid=abcdef' }),
    )
    const header = async (expected: Record<string, string>) =>
      await one('header', behave, { header: expected }, 'Standard')
    expect((await header({ 'content-type': '/^text\\/html/', 'x-left': '>= 5' })).status).toBe('ok')
    expect((await header({ 'Content-Type': 'text/html' })).message).toMatch(
      /header Content-Type is "text\/html; charset=utf-8", expected "text\/html"$/,
    )
    const two = await header({ 'X-Left': '> 5', 'X-Gone': '/./' })
    expect(two.message).toMatch(/header X-Left is "5", expected > 5 \(and 1 other\)$/)
    expect(two.details).toEqual(['the answer has no header X-Gone'])
    expect(JSON.stringify(await header({ 'set-cookie': 'x' }))).not.toContain('abcdef')
  })

  test('the body is searched for texts and patterns', async () => {
    const content = async (settings: Settings) =>
      await one('content', replies(answer(200, 'all systems go\nversion 3')), settings, 'Standard')
    expect((await content({ contains: 'systems go', matches: '/^version \\d$/m' })).status).toBe('ok')
    expect((await content({ contains: 'fail' })).message).toMatch(/the answer does not contain "fail"$/)
    const result = await content({ matches: 'v\\d' })
    expect(result).toMatchObject({ status: 'failed', fault: 'data' })
    expect(result.message).toMatch(/the answer does not match v\\d$/)
  })

  test('the body itself is never shown', async () => {
    const { results } = await look(
      replies(answer(200, 'card 4111111111111111')),
      { contains: 'x', matches: 'y', json: { '$.a': '1' } },
      'Standard',
    )
    expect(JSON.stringify(results)).not.toContain('411111')
  })

  test('a pattern that backtracks is abandoned and named', async () => {
    const spent = measureWork()
    const result = await one(
      'content',
      replies(answer(200, `${'a'.repeat(50)}!`)),
      { matches: '^(?=a)(a|aa)+$' },
      'Standard',
    )
    expect(spent()).toBeLessThan(3_000)
    expect(result.status).toBe('failed')
    expect(result.message).toMatch(new RegExp(givenUp))
  })

  test('JSON values are compared, matched, and reported when missing', async () => {
    const behave = json({ a: { b: [{ c: 3 }], 'x y': true, no: null }, status: 'UP' })
    const values = async (expected: Record<string, string>) => await one('json', behave, { json: expected }, 'Standard')
    const good = {
      '$.a.b[0].c': '>= 3',
      "$.a['x y']": 'true',
      '$.a.no': 'null',
      '$.status': '/^up$/i',
      '$.a.b': '[{"c":3}]',
    }
    expect(await values(good)).toMatchObject({ status: 'ok', message: expect.stringContaining('5 values as expected') })
    expect((await values({ '$.a.b[0].c': '> 3' })).message).toMatch(/\$\.a\.b\[0\]\.c is "3", expected > 3$/)
    expect((await values({ '$.a.b[7]': '1' })).message).toMatch(/the answer has no \$\.a\.b\[7\], expected 1$/)
    expect((await values({ '$..c': '1' })).message).toContain('is not a JSON path such as')
    expect((await values({ '$.toString': '/./' })).status).toBe('failed')
    expect((await values({ '$.status': '< 3' })).message).toContain('(not a number)')
  })

  test('an answer that is not JSON is reported with its type and length', async () => {
    const page = replies(answer(200, '<html>login</html>', { 'Content-Type': 'text/html' }))
    await finds(
      look(page, { json: { '$.a': '1' } }, 'Standard'),
      'json failed (protocol): …the answer is not JSON: 18 B of "text/html"…',
    )
    await finds(
      look(json('x'.repeat(2_000)), { json: { $: 'x' }, maxBody: 1_000 }, 'Standard'),
      'json: …longer than maxBody (1000 B)…',
    )
  })

  test('deeply nested JSON is handled', () =>
    finds(
      look(replies(answer(200, '['.repeat(500_000))), { json: { '$[0]': '1' } }, 'Standard'),
      'json failed (protocol)',
    ))
})

describe('http health of another server', () => {
  const path = '/healthcheck?ExecutionMode=Basic&ServerType=App'
  const health = async (body: unknown, status = 200) =>
    await one('health', json(body, status), { health: true, path }, 'Standard')

  test('a 200 with the body of a Failure fails', async () => {
    const result = await health({
      Status: 'Failure',
      StatusMessage: 'App is unhealthy: \x1b[31mdb\x1b[0m down',
      FailedMonitorCount: 2,
      MonitorSummaries: [
        { MonitorName: 'postgres orders', Status: 'Failure', ErrorMessages: ['round trip: refused'] },
        { MonitorName: 'host', Status: 'Success' },
      ],
    })
    expect(result).toMatchObject({ status: 'failed', fault: 'data', measurement: { value: 2 } })
    expect(result.message).toMatch(/reports Failure, 2 failed monitors: "App is unhealthy: db down"$/)
    expect(result.details).toEqual(['postgres orders: round trip: refused'])
  })

  test('Success is ok, and the request carries the hop header', async () => {
    const { inputOf } = await expectFindings(
      look(json({ Status: 'Success', FailedMonitorCount: 0 }), { health: true, path }, 'Standard'),
      'health ok',
    )
    expect(inputOf).toContain('X-Svc-Hops: 1\r\n')
    expect(inputOf).toContain('Accept: application/json\r\n')
  })

  test('Success with failed monitors, with none at all, or without a status fails', async () => {
    expectResult(await health({ Status: 'Success', FailedMonitorCount: 1 }), 'failed (protocol)')
    expectResult(await health({ Status: 'Success', FailedMonitorCount: 0, MonitorSummaries: [] }), 'warning')
    expect(await health({ status: 'UP' })).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(await health(null)).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(await health([1])).toMatchObject({ status: 'failed', fault: 'protocol' })
  })

  test('H16 a 503 is reported once, with its cause', () =>
    finds(
      look(
        json({ Status: 'Failure', StatusMessage: 'disk full', FailedMonitorCount: 1 }, 503),
        { health: true, path },
        'Standard',
      ),
      'status ok',
      'health failed: …reports Failure, 1 failed monitor: "disk full"…',
    ))

  test('a run that another svc requested makes no such call, even where health is not set', async () => {
    for (const settings of [
      { health: true, path: '/status' },
      { path },
      { path: '/json/reply/HealthCheckRequest?ServerType=App' },
    ]) {
      const { results, connections: observation } = await look(json({ Status: 'Success' }), settings, 'Standard', {
        calledByPeer: true,
      })
      await findsOnly(results, 'health ok')
      expect(observation).toBe(0)
    }
    const { connections: state } = await look(replies(answer(200)), { path: '/other' }, 'Basic', { calledByPeer: true })
    expect(state).toBe(1)
  })

  test('a secret is for the server in url: no other Host beside it, and no header of svc', () => {
    const url = 'https://shop.example.com/'
    const why = (input: Parameters<typeof withDefaults<typeof http.settings>>[1]): string | undefined =>
      http.validate?.(withDefaults(http.settings, { url, ...input }))
    expect(why({ headers: { host: 'other.example.com' } })).toBeUndefined()
    expect(why({ headers: { Host: 'other.example.com' }, token: secret('t') })).toContain('may not set Host')
    expect(why({ headers: { HOST: 'x' }, username: 'u', password: secret('t') })).toContain('may not set Host')
    expect(why({ tokenHeader: 'Host', token: secret('t') })).toBe('tokenHeader may not be Host')
    expect(why({ tokenHeader: 'Transfer-Encoding', token: secret('t') })).toContain('tokenHeader may not be')
    expect(why({ tokenHeader: 'X-Api-Key', token: secret('t') })).toBeUndefined()
  })

  test('this very process is never called for its health', async () => {
    await using there = await peer(json({ Status: 'Success' }))
    const url = `http://127.0.0.1:${there.port}/healthcheck`
    const results = await runKind(http, { url }, 'Standard', {
      services: { ownUrl: () => `http://127.0.0.1:${there.port}/` },
    })
    expect(results).toMatchObject([
      { status: 'warning', message: expect.stringContaining('is this svc process itself') },
    ])
    expect(there.connections()).toBe(0)
  })
})

describe('http version and clock', () => {
  test('version skew fails as deployment-related', async () => {
    const version = { expected: '1.2.4', json: '$.version' }
    await finds(look(json({ version: '1.2.3' }), { version }, 'Standard'), [
      'version failed',
      /: the version is "1\.2\.3", expected "1\.2\.4"$/,
      { deployment: true },
    ])
    await finds(look(json({ version: '1.2.4' }), { version }, 'Standard'), 'version ok')
    const header = { expected: '/^2\\./', json: '$.version', header: 'X-Version' }
    await finds(look(replies(answer(200, '', { 'x-version': '2.7' })), { version: header }, 'Standard'), 'version ok')
    await finds(look(replies(answer(200)), { version: header }, 'Standard'), 'version: …no header X-Version…')
  })

  test('H17 the clock is evaluated in Advanced, and left out without a Date header unless svc.yaml limits it', async () => {
    const at = (ms: number, more: Record<string, string> = {}) =>
      replies(() => answer(200, '', { Date: new Date(Date.now() + ms).toUTCString(), ...more }))
    await finds(look(at(0), {}, 'Advanced'), 'clock ok')
    const behind = await one('clock', at(-10_000), {}, 'Advanced')
    expect(behind.status).toBe('warning')
    expect(behind.message).toMatch(/the clock of 127.* is behind ours by \d+(\.\d+)? s \(warn 2 s, fail 30 s\)$/)
    await finds(look(at(60_000), {}, 'Advanced'), 'clock failed (threshold): …is ahead of ours…')
    for (const [ms, age] of [
      [-3_600_000, '3600'],
      [0, '3600'],
      [0, '3600, 10'],
    ] as const) {
      await finds(look(at(ms, { Age: age }), {}, 'Advanced'), 'clock ok')
    }
    await finds(look(at(-60_000, { Age: '3600' }), {}, 'Advanced'), ['clock', /is behind ours by (59|6\d)/])
    await finds(look(replies(answer(200, '', { Date: 'soon' })), {}, 'Advanced'), 'clock warning')
    const without = await look(replies(answer(200)), {}, 'Advanced')
    expect(without.results.map((result) => result.check)).not.toContain('clock')
    await finds(
      look(replies(answer(200)), { clock: { limit: 60_000 } }, 'Advanced'),
      'clock not checked (missing): …sent no Date header…',
    )
    const standard = await look(at(60_000), {}, 'Standard')
    expect(standard.results.map((result) => result.check)).not.toContain('clock')
    const off = await look(at(60_000), { clock: {} }, 'Advanced')
    expect(off.results.map((result) => result.check)).not.toContain('clock')
  })
})

describe('http addresses', () => {
  test('Advanced requests each address separately, with the name as Host', async () => {
    await using good = await peer(replies(answer(200)))
    await using bad = await peer(replies(answer(500)), { host: '127.0.0.2', port: good.port })
    const resolve = () => Promise.resolve(['127.0.0.1', '127.0.0.2'])
    const settings = { url: `http://app.test:${good.port}/` }
    const results = await runKind(http, settings, 'Advanced', { resolve })
    const status = results.filter((result) => result.check === 'status')
    expect(status.map((result) => `${result.address} ${result.status}`).sort()).toEqual([
      `127.0.0.1:${good.port} ok`,
      `127.0.0.2:${bad.port} failed`,
    ])
    expect(bad.input()).toContain(`Host: app.test:${good.port}\r\n`)
    const standard = await runKind(http, settings, 'Standard', { resolve })
    expect(standard.filter(({ check }) => check === 'status')).toHaveLength(2)
    const basic = await runKind(http, settings, 'Basic', { resolve })
    expect(basic.every((result) => result.address === `127.0.0.1:${good.port}`)).toBe(true)
  })

  describe('same version', () => {
    const run = async (
      versions: readonly (string | undefined)[],
      mode: ExecutionMode = 'Advanced',
      input: Settings = {},
    ) => {
      const ips = versions.map((_, index) => `127.0.0.${index + 1}`)
      const versionAnswer = (version: string | undefined) => answer(200, JSON.stringify({ version }))
      const first = await peer(replies(versionAnswer(versions[0])))
      const rest = await Promise.all(
        versions
          .slice(1)
          .map((version, index) =>
            peer(replies(versionAnswer(version)), { host: ips[index + 1] ?? '', port: first.port }),
          ),
      )
      const settings = {
        url: `http://app.test:${first.port}/`,
        version: { expected: '/./', json: '$.version' },
        ...input,
      }
      const results = await runKind(http, settings, mode, { resolve: () => Promise.resolve(ips) })
      for (const one of [first, ...rest]) await one.close()
      return results.find(({ check }) => check === 'same version')
    }

    test('H5 another build at one address fails, as a deployment error', async () => {
      const result = await run(['2.4.1', '2.4.0', '2.4.1'])
      expect(result).toMatchObject({ status: 'failed', fault: 'data', deployment: true })
      expect(result?.message).toMatch(
        /^3 addresses run 2 versions: "2\.4\.1" at 127\.0\.0\.\d:\d+ \(and 1 other\), "2\.4\.0" at 127\.0\.0\.2:\d+$/,
      )
      expect(result?.details).toHaveLength(2)
    })

    test('the same build everywhere is ok; one address, a shallower mode and no version have no such row', async () => {
      expect(await run(['2.4.1', '2.4.1'])).toMatchObject({ status: 'ok', message: '2 addresses run "2.4.1"' })
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

  test('Basic: a small answer without a sign-in is evaluated at once', async () => {
    await finds(look(offline, settings), 'json failed (data)')
    const { results } = await look(offline, { json: settings.json })
    expect(results.map(({ check }) => check)).not.toContain('json')
  })

  test('an answer to a request without its credentials is not evaluated in Basic', async () => {
    const { results } = await look(offline, { ...settings, token: secret('tok-12345') })
    expect(results.map(({ check }) => check)).not.toContain('json')
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

  test('a valid chain is ok, and Advanced evaluates its dates', async () => {
    await finds(
      secure(made.good),
      ['connect', /accepted, TLSv1\.3$/],
      ['certificate ok', { measurement: { unit: 'days' } }],
    )
    expect((await secure(made.good, {}, 'Standard')).results.map((result) => result.check)).not.toContain('certificate')
    await finds(secure(made.fiveDays), 'certificate warning')
    await finds(secure(made.twoDays), 'certificate failed (threshold)')
  })

  test('a server with the wrong identity gets no request, and the reason is reported', async () => {
    const cases = [
      [made.expired, /certificate "svc.test" expired on .* UTC, 2 d ago$/],
      [made.expiredIntermediate, /issuer certificate "Svc Old Issuer" expired on/],
      [made.notYetValid, /is not valid before/],
      [made.otherHost, /the certificate is not for 127\.0\.0\.1, but for elsewhere\.test$/],
      [made.selfSigned, /"self\.test" is self-signed/],
      [made.withoutIntermediate, /issuer "Svc Test Issuer" is unknown here/],
    ] as const
    for (const [output, words] of cases) {
      const { results, inputOf } = await secure(output, { token: secret('tok-12345') }, 'Standard')
      await findsOnly(results, 'connect failed (tls)')
      expect(results[0]?.message).toMatch(words)
      expect(inputOf).toBe('')
    }
  })

  test('verify: false sends the request, and Advanced still dates the chain', () =>
    finds(secure(made.expired, { verify: false, caFile: undefined }), 'status ok', 'certificate failed (tls)'))

  test('a plain server behind https is reported', async () => {
    await using there = await peer(replies(answer(200)))
    await finds(
      runKind(http, { url: `https://127.0.0.1:${there.port}/` }),
      'connect failed (tls): …does not speak TLS on this port…',
    )
  })
})
