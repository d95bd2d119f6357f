import { channel } from 'node:diagnostics_channel'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { type ExecutionMode, type HealthCheckResponse, ServerType } from '../../src/core/protocol/index.ts'
import type { Call } from '../../src/core/protocol/service/service.ts'
import type { startServer } from '../../src/core/server/index.ts'
import { bearer, by, from, password } from '../accounts/auth/fixture.ts'
import { serveYaml } from '../server/serve-yaml.ts'
import { testCore } from '../support/engine/core.ts'
import { peerProcess } from '../support/engine/peer-process.ts'
import { blackHole, peer, speaks } from '../support/faults/faults.ts'
import { adminOver } from '../support/store/admin.ts'
import { lastsAtLeast } from '../support/suite/deadline.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { hungUp, until } from '../support/suite/until.ts'

const folder = temporaryFolder()

/** A core with shared runs behind HTTP, as `svc serve` has it, with this `types:` part of svc.yaml. */
const serve = (types: string, limits: Parameters<typeof startServer>[0]['limits'] = {}) =>
  serveYaml(`types:\n${types}`, { details: 'signed-in', limits })

const tcpMonitor = (type: string, port: number, timeout = '2s'): string =>
  `  ${type}:\n    - {kind: tcp, name: target, host: 127.0.0.1, port: ${port}, expect: hello, depth: Basic, timeout: ${timeout}}\n`

/** Asks and resets the connection a moment later, whether or not an answer has come. */
async function askAndReset(
  port: number,
  path: string,
  headers: readonly string[],
  after: number | Promise<unknown>,
): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`)
  await (typeof after === 'number' ? pause(after) : after)
  socket.resetAndDestroy()
}

const path = (type: string, mode: string): string => `/healthcheck?ExecutionMode=${mode}&ServerType=${type}`
const everyHeader = [[], ['Cache-Control: no-cache'], ['X-Svc-Hops: 1'], ['Cache-Control: no-cache', 'X-Svc-Hops: 1']]
const relayed = 'X-Forwarded-For: 192.0.2.7'

/** How many times something that happens at most `perSecond` times a second may have happened since. */
const most = (perSecond: number, since: number): number =>
  (Math.floor((performance.now() - since) / 1_000) + 1) * perSecond

/** On this machine, the account of svc is exempt from the limits on strangers, and root is a stranger that may read the details. */
const isStrangerHere = process.platform !== 'linux' || process.getuid?.() === 0

test.each([
  ['from elsewhere', 'one connection', [relayed], 1],
  ['on this machine', 'no more connections than their cost allows', [], isStrangerHere ? 4 : 20],
] as const)(
  'H8 S8 W2 hundreds of requests %s that are reset cause %s a second to the monitored server',
  async (_, __, more, perSecond) => {
    await using target = await peer(speaks('hello\n'))
    await using site = await serve(tcpMonitor('App', target.port))
    const started = performance.now()
    for (let round = 0; round < 30; round += 1) {
      const requests = Array.from({ length: 10 }, (_, i) => {
        const headers = [...(everyHeader[i % everyHeader.length] ?? []), ...more]
        return askAndReset(site.port, path('App', 'Basic'), headers, (i * 7) % 60)
      })
      await Promise.all(requests)
    }
    expect(target.connections()).toBeGreaterThan(0)
    expect(target.connections()).toBeLessThanOrEqual(most(perSecond, started))
  },
)

test('S8 anonymous callers that request everything and reset their connections cause at most four connections a second', async () => {
  const types = ['App', 'Sql', 'FtpApi', 'Ftp', 'Batch', 'Identity', 'Qc', 'Mongo']
  await using target = await peer(speaks('hello\n'))
  await using site = await serve(types.map((type) => tcpMonitor(type, target.port)).join(''))
  const started = performance.now()
  for (let round = 0; round < 20; round += 1) {
    const requests = types.flatMap((type, i) =>
      ['Basic', 'Standard', 'Advanced'].map((mode) => {
        const headers = [...(everyHeader[(round + i) % everyHeader.length] ?? []), relayed]
        return askAndReset(site.port, path(type, mode), headers, 20 + ((i * 13) % 80))
      }),
    )
    await Promise.all(requests)
  }
  expect(target.connections()).toBeGreaterThan(0)
  expect(target.connections()).toBeLessThanOrEqual(most(4, started))
})

/** A request as one of a mixture of callers makes it, and how it ends. */
const mixedCall = fc.record({
  afterMs: fc.integer({ min: 0, max: 120 }),
  mode: fc.constantFrom('Basic', 'Standard', 'Advanced'),
  type: fc.constantFrom('App', 'App', 'Sql', 'Ftp'),
  headers: fc.constantFrom(...everyHeader),
  stranger: fc.boolean(),
  /** Milliseconds until it resets its connection; undefined if it stays. */
  resetAfterMs: fc.option(fc.integer({ min: 1, max: 400 }), { freq: 2, nil: undefined }),
})

test('H8 S8 for random callers over HTTP that stay or reset, starts are bounded, and no-cache gets a run that began later', async () => {
  const script = fc.array(mixedCall, { minLength: 40, maxLength: 60 })
  await fc.assert(
    fc.asyncProperty(script, fc.boolean(), async (calls, onlyStrangers) => {
      await using target = await peer(speaks('hello\n', 150))
      await using site = await serve(['App', 'Sql', 'Ftp'].map((type) => tcpMonitor(type, target.port)).join(''))
      const started = performance.now()
      const answers: Promise<void>[] = []
      for (const { afterMs, mode, type, headers, stranger, resetAfterMs } of calls) {
        await pause(afterMs)
        const lines = stranger || onlyStrangers ? [...headers, relayed] : headers
        if (resetAfterMs !== undefined) {
          answers.push(askAndReset(site.port, path(type, mode), lines, resetAfterMs))
          continue
        }
        const askedAt = Date.now()
        // Strangers may have to wait for the end of a result of up to a minute, so they have patience for a moment.
        const patience = ['X-Prometheus-Scrape-Timeout-Seconds', '4']
        const sent = [patience, ...lines.map((line) => line.split(': '))] as [string, string][]
        answers.push(
          fetch(site.url + path(type, mode), { headers: sent }).then(async (got) => {
            expect([200, 503]).toContain(got.status)
            const { ExecutionMetrics } = (await got.json()) as HealthCheckResponse
            if (got.status === 503 || !headers.some((line) => line.includes('no-cache'))) return
            const begin = /\d+/.exec(String(ExecutionMetrics?.StartDateTime))?.[0]
            expect(Number(begin)).toBeGreaterThanOrEqual(askedAt)
          }),
        )
      }
      await Promise.all(answers)
      // Anonymous callers alone start four runs a second, and each of the nine pairs of mode and type begins once.
      expect(target.connections()).toBeGreaterThan(0)
      expect(target.connections()).toBeLessThanOrEqual(most(onlyStrangers ? 4 : 9, started))
    }),
    { numRuns: 4 },
  )
}, 120_000)

test('H8 the run of a caller that left is finished, and answers those that ask meanwhile', async () => {
  await using target = await peer(speaks('hello\n', 700))
  await using site = await serve(tcpMonitor('App', target.port))
  const runs = until(() => target.connections() === 1)
  await askAndReset(site.port, path('App', 'Basic'), [], runs)
  const response = await fetch(`${site.url}${path('App', 'Basic')}`)
  expect(response.status).toBe(200)
  expect(target.connections()).toBe(1)
})

test('S8 exempt and signed-in callers do not wait for the runs of anonymous ones', async () => {
  const { service, runtime } = await testCore({ store: join(folder, 'store', 'svc.db') })
  onTestFinished(() => runtime.close())

  await adminOver(service).users.add({ userName: 'Ann', password, roles: ['Editor'] }, by)
  const elsewhere = from('192.0.2.1')
  const { BearerToken = '' } = await service.authenticate({ UserName: 'Ann', Password: password }, elsewhere)
  const begin = async (mode: ExecutionMode, type: ServerType, call: Call): Promise<number> => {
    const { ExecutionMetrics } = await service.healthCheck({ ExecutionMode: mode, ServerType: type }, call)
    return ExecutionMetrics?.StartDateTime?.getTime() ?? Number.NaN
  }
  const strangers = [
    ...ServerType.values.map((type) => begin('Basic', type, elsewhere)),
    begin('Advanced', 'Sql', elsewhere),
    begin('Advanced', 'Batch', elsewhere),
    // On this machine, under another account.
    begin('Advanced', 'App', { ...from('127.0.0.1'), credential: bearer('nonsense') }),
  ]
  const identified = [
    begin('Standard', 'Mongo', { ...elsewhere, credential: bearer(BearerToken) }),
    begin('Standard', 'Ftp', {
      ...elsewhere,
      caller: { kind: 'http', address: '127.0.0.1', loopback: true, process: peerProcess({ isOwn: async () => true }) },
    }),
    begin('Standard', 'Qc', { ...elsewhere, caller: { kind: 'local', account: 'alice' } }),
  ]
  const [start, slow] = [await Promise.all(identified), await Promise.all(strangers)]
  // Sixteen, at four a second: the one with the bad credential, which came last, begins in the fourth second.
  const last = slow.at(-1) ?? Number.NaN
  expect(last - Math.min(...slow)).toBeGreaterThanOrEqual(2_000)
  expect(Math.max(...start)).toBeLessThan(last)
})

test('S9 checks that still run at the limit are cancelled, with their callers and without any', async () => {
  await using target = await peer(blackHole)
  await using site = await serve(tcpMonitor('App', target.port, '30s') + tcpMonitor('Sql', target.port, '29s'), {
    cancelAfterMs: 200,
    quietMs: 100,
  })
  const stays = fetch(`${site.url}${path('App', 'Advanced')}`)
  const bothRun = until(() => target.connections() === 2)
  await askAndReset(site.port, path('Sql', 'Advanced'), [], bothRun)
  const stopped = site.server.stop()
  expect((await stays).status).toBe(503)
  // The monitors' own deadline is later than that.
  await hungUp(target)
  await stopped
})

/** Notes when the servers of this process begin with a request, in milliseconds. */
function requestTimes(): { readonly at: readonly number[]; readonly [Symbol.dispose]: () => void } {
  const at: number[] = []
  const note = (): void => void at.push(performance.now())
  const started = channel('http.server.request.start')
  started.subscribe(note)
  return { at, [Symbol.dispose]: () => void started.unsubscribe(note) }
}

test('H8 H9 1,000 callers over HTTP of a monitor that hangs cause one run, which lasts for its deadline and leaves nothing open', async () => {
  const deadlineMs = 3_000
  await using hole = await peer(blackHole)
  using requests = requestTimes()
  const site = await serve(
    `  App:\n    - {kind: tcp, name: hole, host: 127.0.0.1, port: ${hole.port}, expect: hello, depth: Basic, timeout: ${deadlineMs}ms}\n`,
    { connectionsPerAddress: 2_000 },
  )
  const { server } = site
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  try {
    const answers = await lastsAtLeast(deadlineMs, () =>
      Promise.all(
        Array.from({ length: 1_000 }, async () => {
          const response = await fetch(`${server.url}/healthcheck?ExecutionMode=Standard&ServerType=App`)
          return { status: response.status, body: (await response.json()) as { StatusMessage?: string } }
        }),
      ),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
    expect(answers[0]?.body.StatusMessage).toContain('tcp hole')
    expect(requests.at).toHaveLength(1_000)
    // One, where all of them come while it hangs. A busy machine takes longer over them than that, and up to a second
    // from the request to the run.
    const cameMs = Math.max(...requests.at) - Math.min(...requests.at)
    expect(hole.connections()).toBeGreaterThan(0)
    expect(hole.connections()).toBeLessThanOrEqual(1 + Math.floor((cameMs + 1_000) / deadlineMs))
    await hungUp(hole)
  } finally {
    await site.close()
  }
  // fetch keeps timers of its own for a moment.
  await until(() => timers() <= before)
})
