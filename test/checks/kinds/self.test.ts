import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { onThisMachine, parseMarker } from '../../../src/core/base/system/serve-marker.ts'
import self, { eventLoop } from '../../../src/core/checks/kinds/self.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { checked, evaluated, runKind } from '../../support/engine/run-kind.ts'
import { endsByDeadline, lastsAtLeast } from '../../support/suite/deadline.ts'
import { until } from '../../support/suite/until.ts'

let folder = ''
let storePath = ''
/** A process that is alive and is not this one: the svc serve of the markers. */
let other: ChildProcess
const servers: (Server | TcpServer)[] = []
let requests: string[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-self-'))
  other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
  await new Promise((resolve) => other.once('spawn', resolve))
})
let stores = 0
beforeEach(() => {
  stores += 1
  storePath = join(folder, `store-${stores}.db`)
  requests = []
})
afterEach(() => Promise.all(servers.splice(0).map((server) => new Promise((done) => server.close(done)))))
afterAll(async () => {
  const gone = new Promise((resolve) => other.once('exit', resolve))
  other.kill('SIGKILL')
  await gone
  await rm(folder, { recursive: true })
})

async function listening(server: Server | TcpServer): Promise<string> {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
/** A real HTTP server that answers each path with a status. */
const serving = (status: Readonly<Record<string, number>>): Promise<string> =>
  listening(
    createServer((request, response) => {
      requests.push(request.url ?? '')
      response.writeHead(status[request.url ?? ''] ?? 404).end('{}')
    }),
  )
const mark = (content: unknown): Promise<void> =>
  writeFile(`${storePath}.serve.json`, typeof content === 'string' ? content : JSON.stringify(content))
const look = (mode: ExecutionMode = 'Basic', more = {}) => runKind(self, { version: '1.2.3', storePath }, mode, more)
const serve = async (mode: ExecutionMode = 'Basic') => checked(await look(mode), 'serve')

describe('this program', () => {
  test('reports its version and that of Node, without any store', async () => {
    expect(await runKind(self, { version: '1.2.3' })).toMatchObject([
      { check: 'version', status: 'ok', message: `svc 1.2.3 on Node ${process.versions.node}` },
      { check: 'serve', status: 'ok', message: 'svc serve is not running for this store' },
    ])
  })

  test('measures the delay of the event loop in Standard, over half a second', async () => {
    const results = await lastsAtLeast(499, () => look('Standard'))
    expect(checked(results, 'event loop')).toMatchObject({ measurement: { unit: 'milliseconds', limit: 1_000 } })
  })

  test('reports that the event loop was blocked', async () => {
    // Time and again, so that it is while svc looks, however long that takes to begin.
    const blocking = setInterval(() => {
      const end = performance.now() + 300
      while (performance.now() < end) Math.sqrt(end)
    }, 400)
    const result = checked(await look('Standard'), 'event loop')
    clearInterval(blocking)
    expect(result.status).not.toBe('ok')
    expect(result.measurement?.value).toBeGreaterThan(250)
  })

  test.each([
    [200, 'ok'],
    [201, 'warning'],
    [1_000, 'warning'],
    [1_001, 'failed'],
  ])('a delay of %s ms: %s', (ms, status) => {
    expect(evaluated(eventLoop, { ms })).toMatchObject([{ check: 'event loop', status }])
  })
})

describe('the svc serve of this store', () => {
  test('that is not running is ok', async () => {
    expect(await serve()).toMatchObject({ status: 'ok', message: 'svc serve is not running for this store' })
  })

  test('answers /livez in Basic, and /readyz too in Standard', async () => {
    await mark({ pid: other.pid, url: await serving({ '/livez': 200, '/readyz': 200 }) })
    expect(await serve()).toMatchObject({ status: 'ok', message: expect.stringMatching(/\/livez answered 200$/) })
    expect(requests).toEqual(['/livez'])
    requests = []
    const results = (await look('Standard')).filter((result) => result.check === 'serve')
    expect(results.map((result) => result.status)).toEqual(['ok', 'ok'])
    expect(requests).toEqual(['/livez', '/readyz'])
  })

  test('that is not ready is a failure in Standard', async () => {
    await mark({ pid: other.pid, url: await serving({ '/livez': 200, '/readyz': 503 }) })
    const results = (await look('Standard')).filter((result) => result.status === 'failed')
    expect(results).toMatchObject([
      { check: 'serve', fault: 'protocol', message: expect.stringContaining('/readyz answered 503') },
    ])
  })

  test('whose process runs but does not answer is a failure', async () => {
    const url = await serving({})
    await new Promise((done) => servers.pop()?.close(done))
    await mark({ pid: other.pid, url })
    expect(await serve()).toMatchObject({ status: 'failed', fault: 'refused' })
  })

  test('that accepts and stays silent is a failure after 3 s, and nothing is left open', async () => {
    const deaf = createTcpServer((socket) => socket.on('error', () => {}).resume())
    await mark({ pid: other.pid, url: await listening(deaf) })
    const openResources = (): number =>
      process.getActiveResourcesInfo().filter((kind) => /TCP|Timeout|ELD/.test(kind)).length
    // A timer of the test runner itself may still be running out.
    await pause(150)
    const before = openResources()
    const results = await endsByDeadline(3_000, look('Standard'), 5)
    expectResult(checked(results, 'serve'), 'failed (timeout): …did not answer within 3 s…')
    expect(checked(results, 'event loop').status).toBeDefined()
    await until(() => openResources() <= before)
  })

  test('that answers leaves no socket and no timer either', async () => {
    await mark({ pid: other.pid, url: await serving({ '/livez': 200 }) })
    const openResources = (): number =>
      process.getActiveResourcesInfo().filter((kind) => /TCP|Timeout|ELD/.test(kind)).length
    // A timer of the test runner itself may still be running out.
    await pause(150)
    const before = openResources()
    expect(await serve()).toMatchObject({ status: 'ok' })
    await until(() => openResources() <= before)
  })

  test('that is this svc process itself is not called', async () => {
    await mark({ pid: process.pid, url: await serving({ '/livez': 200 }) })
    expectResult(await serve(), 'ok', /^this process is the svc serve of this store, http:\/\/127/)
    expect(requests).toEqual([])
  })

  test('whose process has ended is not running', async () => {
    const url = await serving({ '/livez': 200 })
    await mark({ pid: 2 ** 22 + 1, url })
    const { status, message } = await serve()
    expect([status, message]).toEqual([
      'ok',
      `svc serve is not running for this store: its process ${2 ** 22 + 1} has exited`,
    ])
    expect(requests).toEqual([])
  })

  test('whose process id another process uses is not running', async () => {
    await mark({ pid: other.pid, url: 'http://127.0.0.1:1' })
    const hourAgo = new Date(Date.now() - 3_600_000)
    await utimes(`${storePath}.serve.json`, hourAgo, hourAgo)
    expect(await serve()).toMatchObject({ status: 'ok', message: expect.stringContaining('has exited') })
  })

  test('that listens on every address is called on loopback', async () => {
    const url = new URL(await serving({ '/livez': 200 }))
    url.hostname = '0.0.0.0'
    await mark({ pid: other.pid, url: url.origin })
    expect(await serve()).toMatchObject({ status: 'ok', message: expect.stringContaining('//127.0.0.1:') })
  })
})

describe('a marker that an attacker wrote', () => {
  test.each([
    ['another machine', 'http://192.0.2.1:80', 'names another machine'],
    ['a name', 'http://metadata.internal/', 'names another machine'],
    ['another scheme', 'file:///etc/passwd', 'was not written by svc serve'],
    ['no URL', 'x', 'was not written by svc serve'],
  ])('that leads to %s is not followed', async (_, url, message) => {
    await mark({ pid: other.pid, url })
    expect(await serve()).toMatchObject({ status: 'warning', message: expect.stringContaining(message) })
  })

  test('cannot choose the path, nor have credentials sent', async () => {
    const url = new URL(await serving({ '/livez': 200 }))
    await mark({ pid: other.pid, url: `http://user:word@${url.host}/auth/logout?x=1#y` })
    const result = await serve()
    expect(requests).toEqual(['/livez'])
    expect(result.message).not.toContain('word')
  })

  test.each([
    ['{'],
    ['null'],
    ['[]'],
    ['{"pid":"1","url":"http://127.0.0.1"}'],
    ['{"pid":-1,"url":"http://127.0.0.1"}'],
  ])('that is %s is reported as invalid', async (content) => {
    await mark(content)
    expectResult(await serve(), 'warning: …was not written by svc serve…')
  })

  test('that is huge, or a folder, is not read', async () => {
    await mark(`{"pid": ${other.pid}, "url": "http://127.0.0.1", "x": "${'x'.repeat(10_000)}"}`)
    expect(await serve()).toMatchObject({ status: 'warning' })
    const { mkdir } = await import('node:fs/promises')
    await rm(`${storePath}.serve.json`)
    await mkdir(`${storePath}.serve.json`)
    expect(await serve()).toMatchObject({ status: 'warning' })
  })

  test('keeps only the process id and the origin', () => {
    expect(parseMarker('{"pid": 7, "url": "https://[::1]:8443/a?b", "exec": "rm"}')).toEqual({
      pid: 7,
      url: new URL('https://[::1]:8443'),
    })
    expect(parseMarker('{"pid": 1.5, "url": "http://127.0.0.1"}')).toBeUndefined()
    expect(parseMarker(`{"pid": 1, "url": "http://127.0.0.1/${'x'.repeat(3_000)}"}`)).toBeUndefined()
  })

  test.each([
    ['http://127.0.0.1:1', 'http://127.0.0.1:1'],
    ['http://127.8.9.1:1', 'http://127.8.9.1:1'],
    ['http://localhost:1', 'http://localhost:1'],
    ['http://[::1]:1', 'http://[::1]:1'],
    ['http://[::]:1', 'http://[::1]:1'],
    ['http://0.0.0.0:1', 'http://127.0.0.1:1'],
    ['https://198.51.100.7', 'https://198.51.100.7'],
    ['http://198.51.100.8', undefined],
    ['http://localhost.evil.test', undefined],
    ['http://2130706433:1', 'http://127.0.0.1:1'],
  ])("a URL counts as this machine's or not: %s", (url, expected) => {
    expect(onThisMachine(new URL(url), ['198.51.100.7', 'fe80::1'])?.origin).toBe(expected)
  })
})
