import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { runMonitors } from '../../../src/core/checks/engine/index.ts'
import deployment, { progress, versionIn } from '../../../src/core/checks/kinds/deployment.ts'
import { healthCheckResponse, runDocument } from '../../../src/core/checks/reports/index.ts'
import { finds, findsOnly } from '../../support/engine/finds.ts'
import { evaluated, runKind, withDefaults } from '../../support/engine/run-kind.ts'

let folder = ''
const servers: (Server | TcpServer)[] = []
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-deployment-'))
})
afterEach(() => Promise.all(servers.splice(0).map((server) => new Promise((done) => server.close(done)))))
afterAll(async () => await rm(folder, { recursive: true }))

let files = 0
async function file(content: string): Promise<string> {
  files += 1
  const path = join(folder, `file-${files}`)
  await writeFile(path, content)
  return path
}
/** A marker that is so many minutes old. */
async function marker(minutes: number): Promise<string> {
  const path = await file('')
  const when = new Date(Date.now() - minutes * 60_000)
  await utimes(path, when, when)
  return path
}
const missing = (): string => join(folder, 'missing')

async function web(status: number, body: string): Promise<string> {
  const server = createServer((_, response) => {
    response.writeHead(status, { 'Content-Type': 'application/json' })
    response.end(body)
  })
  return await listening(server)
}
async function listening(server: Server | TcpServer): Promise<string> {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const look = (input: Parameters<typeof runKind<typeof deployment.settings>>[1], more = {}) =>
  runKind(deployment, input, 'Standard', more)

describe('the deployed version', () => {
  test('that equals the expected one is ok', async () =>
    findsOnly(look({ expected: '1.2.3', versionFile: await file('1.2.3\n') }), 'version ok: 1.2.3, as expected'))

  test('H5 that differs is a deployment-related failure that names both', async () => {
    const versionFile = await file('1.2.2\n')
    await findsOnly(look({ expected: '1.2.3', versionFile }), [
      `version failed (data): ${versionFile} reports 1.2.2, expected 1.2.3`,
      { deployment: true },
    ])
  })

  test('is read from a file, or from a key of a JSON file', async () => {
    const versionFile = await file('{"build": {"version": "7", "number": 42}}')
    expect(await look({ expected: '7', versionFile, versionKey: 'build.version' })).toMatchObject([{ status: 'ok' }])
    expect(await look({ expected: '42', versionFile, versionKey: '$.build.number' })).toMatchObject([{ status: 'ok' }])
    const expectedFile = await file('{"wanted": "7"}')
    expect(await look({ expectedFile, expectedKey: 'wanted', versionFile, versionKey: 'build.version' })).toMatchObject(
      [{ status: 'ok' }],
    )
  })

  test('is fetched from an address', async () => {
    const url = await web(200, '{"version": "2.0"}')
    expect(await look({ expected: '2.0', url: `${url}/info?key=hidden`, versionKey: 'version' })).toMatchObject([
      { status: 'ok' },
    ])
    const [other] = await look({ expected: '2.1', url: `${url}/info?key=hidden`, versionKey: 'version' })
    expect(other).toMatchObject({ status: 'failed', deployment: true })
    expect(JSON.stringify(other)).not.toContain('hidden')
  })

  test('is fetched from a host name with the resolver of the run', async () => {
    const url = new URL(await web(200, '9'))
    url.hostname = 'app.test'
    const resolve = async (host: string): Promise<readonly string[]> => (host === 'app.test' ? ['127.0.0.1'] : [])
    expect(await look({ expected: '9', url: url.href }, { resolve })).toMatchObject([{ status: 'ok' }])
  })

  test('that an attacker wrote cannot control a terminal', async () => {
    const versionFile = await file(`\u001b[31mred\u0007\u202e${'x'.repeat(500)}`)
    const [result] = await look({ expected: '1', versionFile })
    expect(result?.message).not.toMatch(/[\u0000-\u001f\u202e]/)
    expect(result?.message.length).toBeLessThan(300)
  })

  test.each([
    ['missing', { versionFile: '' }, 'does not exist'],
    ['not JSON', { versionFile: 'x', versionKey: 'a' }, 'is not JSON'],
    ['without the key', { versionFile: '{"b": 1}', versionKey: 'a' }, 'has no text at a'],
    ['null at the key', { versionFile: '{"a": null}', versionKey: 'a' }, 'has no text at a'],
    ['empty', { versionFile: ' \n' }, 'is empty'],
    ['too large', { versionFile: 'x'.repeat(70_000) }, 'is larger than'],
    ['at a key that is none', { versionFile: '{}', versionKey: 'a..b' }, 'is not a path'],
  ])('in a file that is %s is a failure that is not deployment-related', async (_, input, message) => {
    const versionFile = input.versionFile === '' ? missing() : await file(input.versionFile)
    const [result] = await look({ expected: '1', ...input, versionFile })
    expect(result).toMatchObject({ check: 'version', status: 'failed', fault: 'data' })
    expect(result?.message).toContain(message)
    expect(result?.deployment).toBeUndefined()
  })

  test('at an address that answers incorrectly or not at all is a failure with its class', async () => {
    expect(await look({ expected: '1', url: await web(503, 'no') })).toMatchObject([
      { status: 'failed', fault: 'protocol', message: expect.stringContaining('answered 503, not 200') },
    ])
    const garbage = createTcpServer((socket) =>
      socket
        .on('error', () => {})
        .resume()
        .end('nonsense\r\n\r\n'),
    )
    expect(await look({ expected: '1', url: await listening(garbage) })).toMatchObject([
      { status: 'failed', fault: 'protocol' },
    ])
    expect(await look({ expected: '1', url: await web(200, 'x'.repeat(70_000)) })).toMatchObject([
      { status: 'failed', fault: 'protocol', message: expect.stringContaining('larger than') },
    ])
    const closed = await web(200, '')
    await new Promise((done) => servers.pop()?.close(done))
    expect(await look({ expected: '1', url: closed })).toMatchObject([{ status: 'failed', fault: 'refused' }])
  })
})

describe('the marker of a deployment', () => {
  test('whose absence means that none is in progress', () =>
    findsOnly(look({ marker: missing() }), 'deployment ok: none in progress'))

  test('H5 whose presence is a deployment-related failure with its age', async () => {
    const path = await marker(4)
    await findsOnly(look({ marker: path }), [
      `deployment failed: …: ${path} exists…`,
      /^in progress for 4(?:\.\d)? min \(fail 30 min\): /,
      { deployment: true },
    ])
  })

  test('H5 that a deployment left behind is a failure that nothing suppresses', async () => {
    const [result] = await look({ marker: await marker(31) })
    expect(result).toMatchObject({ status: 'failed', fault: 'threshold' })
    expect(result?.message).toMatch(/began 31(?:\.\d)? min ago and has not ended \(fail 30 min\)/)
    expect(result?.deployment).toBeUndefined()
  })

  test('makes an unreadable version deployment-related', async () => {
    const [, during] = await look({ marker: await marker(1), expected: '1', versionFile: missing() })
    expect(during).toMatchObject({ check: 'version', status: 'failed', deployment: true })
    const [, after] = await look({ marker: await marker(99), expected: '1', versionFile: missing() })
    expect(after?.deployment).toBeUndefined()
    const [, without] = await look({ marker: missing(), expected: '1', versionFile: missing() })
    expect(without?.deployment).toBeUndefined()
  })

  test('with an age at the limit means a deployment in progress', () => {
    const evaluate = (ageMs: number) => evaluated(progress, { path: '/m', ageMs }, { marker: '/m' })[0]
    expect(evaluate(1_800_000)).toMatchObject({ status: 'failed', deployment: true })
    expect(evaluate(1_800_001)?.status).toBe('failed')
    expect(evaluate(1_800_001)?.deployment).toBeUndefined()
  })
})

describe('SuppressDeploymentErrors', () => {
  test('H5 suppresses version skew and a deployment in progress, reports them, and hides nothing else', async () => {
    const monitor = (name: string, input: Parameters<typeof look>[0]) => ({
      name,
      kind: deployment,
      settings: withDefaults(deployment.settings, input),
      depth: 'Standard' as const,
      host: false,
      dependsOn: [],
      retries: 0,
      deployment: false,
    })
    const versionFile = await file('1')
    const plan = [
      monitor('skew', { expected: '2', versionFile }),
      monitor('in progress', { marker: await marker(2) }),
      monitor('left behind', { marker: await marker(60) }),
    ]
    const { limits } = await import('../../../src/core/checks/engine/index.ts')
    const context = {
      now: () => performance.now(),
      date: () => new Date(),
      resolve: async () => [],
      inChild: async () => undefined,
      measureState: () => () => ({}),
      limits: limits(),
    }
    const run = await runMonitors(plan, context, { mode: 'Standard', signal: new AbortController().signal })
    const shaped = (suppress: boolean) =>
      healthCheckResponse(
        runDocument(run, {
          type: 'App',
          correlationId: 'c',
          flags: { SuppressDeploymentErrors: suppress },
          view: 'full',
        }),
      )
    expect(shaped(false).FailedMonitorCount).toBe(3)
    const { FailedMonitorCount, MonitorSummaries } = shaped(true)
    expect(FailedMonitorCount).toBe(1)
    expect(MonitorSummaries?.map((summary) => summary.Status)).toEqual(['Success', 'Success', 'Failure'])
    expect(MonitorSummaries?.[0]?.Results?.[0]?.StatusMessage).toBe(
      `suppressed (deployment): ${versionFile} reports 1, expected 2`,
    )
  })
})

describe('settings', () => {
  test.each([
    [{}, 'has nothing to check: add expected with versionFile or url, or add marker'],
    [{ expected: '1' }, 'has no source of the deployed version: add versionFile or url'],
    [{ versionFile: '/v' }, 'has no expected version: add expected or expectedFile'],
    [{ url: 'http://127.0.0.1:1/', marker: '/m' }, 'has no expected version: add expected or expectedFile'],
    [
      { expected: '1', expectedFile: '/e', versionFile: '/v' },
      'has both expected and expectedFile: remove one of them',
    ],
    [
      { expected: '1', url: 'http://127.0.0.1:1/', versionFile: '/v' },
      'has both versionFile and url: remove one of them',
    ],
  ])('%j checks nothing or two things, and is an error', async (input, message) => {
    const [result] = await look(input)
    expect(result).toMatchObject({ status: 'failed', fault: 'data', message: expect.stringContaining(message) })
  })

  test('a version is a string or a number', () => {
    expect(versionIn('{"a": [{"b": " 1.0 "}]}', '$.a[0].b', 'x')).toBe('1.0')
    expect(() => versionIn('{"a": true}', 'a', 'x')).toThrow('x has no text at a')
    expect(() => versionIn('{"a": {}}', '__proto__', 'x')).toThrow('x has no text at __proto__')
  })

  test('the result of a run names the check', () => finds(look({ marker: missing() }), 'deployment ok'))
})
