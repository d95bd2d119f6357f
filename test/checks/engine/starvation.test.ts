import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type AnyKind,
  type CheckContext,
  type MonitorReport,
  type PlannedMonitor,
  type Result,
  runMonitors,
} from '../../../src/core/checks/engine/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import { engineFixture } from '../../support/engine/engine-fixture.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { withDefaults } from '../../support/engine/run-kind.ts'
import { type Peer, peer } from '../../support/faults/faults.ts'
import { type Home, svcHome } from '../../support/program/svc.ts'

const usual = { depth: 'Basic', host: false, dependsOn: [], retries: 0, deployment: false } as const
const never = new AbortController().signal

describe.concurrent('nine silent servers and five healthy ones at one address', () => {
  let silent: readonly Peer[]
  let healthy: readonly Server[]
  beforeAll(async () => {
    silent = await Promise.all(Array.from({ length: 9 }, () => peer(() => {})))
    healthy = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const server = createServer((_, response) => response.end('fine')).listen(0, '127.0.0.1')
        await once(server, 'listening')
        return server
      }),
    )
  })
  afterAll(async () => {
    for (const server of healthy) server.close()
    await Promise.all(silent.map(({ close }) => close()))
  })
  const ports = () => [
    ...silent.map(({ port }, at) => [`silent-${at}`, port] as const),
    ...healthy.map((server, at) => [`healthy-${at}`, (server.address() as AddressInfo).port] as const),
  ]

  const statusesOf = (monitors: readonly MonitorReport[], name: RegExp) =>
    monitors
      .filter((one) => name.test(one.name))
      .map(({ results }) => [...new Set(results.map(({ status }) => status))])

  test('H9 the healthy ones pass, and the silent ones fail after their own full time', async () => {
    const plan = ports().map(([name, port]) => ({
      ...usual,
      name,
      kind: http as AnyKind,
      settings: withDefaults(http.settings, { url: `http://127.0.0.1:${port}/` }),
    }))
    const { monitors } = await runMonitors(plan, engineFixture(), { mode: 'Basic', signal: never })
    expect(monitors.map(({ name }) => name)).toEqual(plan.map(({ name }) => name))
    expect(statusesOf(monitors, /^healthy/)).toEqual(Array.from({ length: 5 }, () => ['ok']))
    const failures = monitors.filter(({ name }) => name.startsWith('silent')).map(({ results }) => results.at(-1))
    expect(failures.map((result) => [result?.status, result?.notChecked])).toEqual(
      Array.from({ length: 9 }, () => ['failed', undefined]),
    )
    for (const result of failures) {
      const [, seconds] = / accepted the connection but sent nothing for ([\d.]+) s$/.exec(result?.message ?? '') ?? []
      expect(Number(seconds), result?.message).toBeGreaterThan(4)
    }
  })

  test('H9 svc health counts exactly the silent ones', async () => {
    const home: Home = svcHome()
    try {
      const { writeFileSync } = await import('node:fs')
      const lines = ports().map(([name, port]) => `    - {kind: http, name: ${name}, url: "http://127.0.0.1:${port}/"}`)
      writeFileSync(`${home.folder}/svc.yaml`, `types:\n  App:\n${lines.join('\n')}\n`, { mode: 0o600 })
      const ran = await home.svc(['health', '-t', 'App', '-m', 'Basic', '-o', 'ndjson'])
      expect(ran.code).toBe(3)
      const records = ran.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { readonly MonitorName: string; readonly Level: string })
      const levels = (name: RegExp) => [
        ...new Set(records.filter((one) => name.test(one.MonitorName)).map(({ Level }) => Level)),
      ]
      expect(levels(/healthy/)).toEqual(['ok'])
      const failed = new Set(records.filter(({ Level }) => Level === 'fail').map(({ MonitorName }) => MonitorName))
      expect([...failed].toSorted()).toEqual(Array.from({ length: 9 }, (_, at) => `http silent-${at}`))
    } finally {
      home.remove()
    }
  })
})

type Observe = (context: CheckContext) => AsyncIterable<Result>
type Target = { readonly host?: string; readonly database?: string }

const ok: Result = { check: 'probe', status: 'ok', message: 'fine' }

const made = (name: string, target: Target, observe: Observe, more: Partial<PlannedMonitor> = {}): PlannedMonitor => ({
  ...usual,
  name,
  kind: {
    name: 'made',
    title: 'made for a test',
    settings: {},
    checks: [{ name: 'probe', depth: 'Basic', doc: '' }],
    runsOn: 'network',
    target: () => target,
    run: (_: never, context) => observe(context),
  },
  settings: { name },
  ...more,
})

const passes: Observe = async function* () {
  yield ok
}
/** Never answers. Ends with its signal. */
const hangs: Observe = async function* ({ signal, step }) {
  step('probe', '10.0.0.9:80')
  await pause(60_000, undefined, { signal })
  yield ok
}
/** Shows that it is at work, and never ends. */
const works: Observe = async function* ({ signal }) {
  for (;;) {
    await pause(100, undefined, { signal })
    yield ok
  }
}
const lastOf = (monitors: readonly MonitorReport[], name: string): Result | undefined =>
  monitors.find((one) => one.name === name)?.results.at(-1)

describe.concurrent('waiting for a slot', () => {
  test('H9 a monitor that never got a slot is not checked, and names what it waited for', async () => {
    const target = { host: 'db1' }
    const plan = [...['a', 'b', 'c', 'd', 'e'].map((name) => made(name, target, works)), made('late', target, passes)]
    const { monitors } = await runMonitors(plan, engineFixture(), { mode: 'Basic', signal: never, timeoutMs: 1_500 })
    expect(lastOf(monitors, 'late')).toMatchObject({
      check: 'not run',
      status: 'failed',
      notChecked: 'budget',
      message: expect.stringMatching(
        /^not checked: waited [\d.]+ s for a, b, c and 1 more \(4 monitors at a time per host\); the time limit of this run is 1\.5 s$/,
      ),
    })
  })

  test('H9 a database whose server is silent does not keep its other monitors from running', async () => {
    const target = { host: 'db1', database: 'orders' }
    const plan = [made('silent', target, hangs, { timeoutMs: 3_000 }), made('healthy', target, passes)]
    const { monitors } = await runMonitors(plan, engineFixture(), { mode: 'Basic', signal: never })
    expect(lastOf(monitors, 'healthy')).toMatchObject({ status: 'ok' })
    expectResult(lastOf(monitors, 'silent'), 'failed: 10.0.0.9:80 did not answer within 3 s')
    expect(lastOf(monitors, 'silent')?.notChecked).toBeUndefined()
  })

  test('H9 a database that has answered and is at work keeps the others waiting', async () => {
    const target = { host: 'db1', database: 'orders' }
    let atWork = false
    let together = false
    const slow: Observe = async function* () {
      yield ok
      atWork = true
      await pause(1_600)
      atWork = false
    }
    const second: Observe = async function* () {
      together = atWork
      yield ok
    }
    const { monitors } = await runMonitors(
      [made('slow', target, slow), made('second', target, second)],
      engineFixture(),
      { mode: 'Basic', signal: never },
    )
    expect(together).toBe(false)
    expect(monitors.flatMap(({ results }) => results.map(({ status }) => status))).toEqual(['ok', 'ok'])
  })

  test('H9 at most 32 silent monitors of a host wait outside its slots', async () => {
    let running = 0
    let most = 0
    const counted: Observe = async function* ({ signal }) {
      running += 1
      most = Math.max(most, running)
      await pause(60_000, undefined, { signal })
      yield ok
    }
    const plan = Array.from({ length: 60 }, (_, at) => made(`m${at}`, { host: 'db1' }, counted, { timeoutMs: 60_000 }))
    await runMonitors(plan, engineFixture(), { mode: 'Basic', signal: never, timeoutMs: 12_000 })
    expect(most).toBe(36)
  })

  test('H9 monitors that passed last time go first', async () => {
    const context = engineFixture()
    const order: string[] = []
    const noting = (name: string, observe: Observe) =>
      made(name, { host: 'db1', database: 'one' }, async function* (inner) {
        order.push(name)
        yield* observe(inner)
      })
    const fails: Observe = async function* () {
      yield { check: 'probe', status: 'failed', fault: 'refused', message: 'refused' }
    }
    const plan = [noting('a', fails), noting('b', passes), noting('c', fails), noting('d', passes)]
    const options = { mode: 'Basic', signal: never } as const
    await runMonitors(plan, context, options)
    expect(order.splice(0)).toEqual(['a', 'b', 'c', 'd'])
    const { monitors } = await runMonitors(plan, context, options)
    expect(order).toEqual(['b', 'd', 'a', 'c'])
    expect(monitors.map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd'])
  })
})

describe.concurrent('a shortened deadline', () => {
  const target = { host: 'db1', database: 'one' }
  const slow = (ms: number): Observe =>
    async function* ({ signal }) {
      yield ok
      await pause(ms, undefined, { signal })
    }

  test('H9 a timeout that the run cut short is not checked, and its message contains both figures and the reason', async () => {
    const plan = [made('first', target, slow(1_500), { timeoutMs: 5_000 }), made('second', target, hangs)]
    const { monitors } = await runMonitors(plan, engineFixture({ now: shifted(5_000) }), {
      mode: 'Basic',
      signal: never,
    })
    expect(lastOf(monitors, 'first')?.status).toBe('ok')
    const second = lastOf(monitors, 'second')
    expect(second).toMatchObject({ status: 'failed', notChecked: 'starved' })
    expect(second?.message).toMatch(
      /^not checked: 10\.0\.0\.9:80 did not answer within [\d.]+ s of its 5 s: the run ended after 8 s$/,
    )
    expect(second?.details?.at(-1)).toMatch(/^it waited [\d.]+ s for first \(1 monitor at a time per database\)$/)
  })

  /** A clock that jumps ahead once, after the first second: time that other work has taken. */
  function shifted(ms: number): () => number {
    const start = performance.now()
    return () => performance.now() + (performance.now() - start > 1_000 ? ms : 0)
  }

  test('H9 a timeout of a monitor that had the whole time of the run is a failure, even if its own time is longer', async () => {
    const plan = [made('long', target, hangs, { timeoutMs: 60_000 })]
    const { monitors } = await runMonitors(plan, engineFixture(), { mode: 'Basic', signal: never })
    expect(lastOf(monitors, 'long')).toMatchObject({ status: 'failed', fault: 'timeout' })
    expect(lastOf(monitors, 'long')?.notChecked).toBeUndefined()
    expect(lastOf(monitors, 'long')?.message).toMatch(
      /^10\.0\.0\.9:80 did not answer within [\d.]+ s of its 60 s: the run ended after 8 s$/,
    )
  })

  test("H9 a timeout that the caller's time limit cut short is not checked, and its message contains the limit", async () => {
    const { monitors } = await runMonitors([made('one', target, hangs)], engineFixture(), {
      mode: 'Basic',
      signal: never,
      timeoutMs: 300,
    })
    expect(lastOf(monitors, 'one')).toMatchObject({
      notChecked: 'budget',
      message: expect.stringMatching(
        /^not checked: 10\.0\.0\.9:80 did not answer within [\d.]+ s of its 5 s: the time limit of this run is 0\.3 s$/,
      ),
    })
  })

  test('another attempt that had no time does not replace the failure of the one before', async () => {
    const plan = [made('one', target, hangs, { timeoutMs: 700, retries: 3 })]
    const { monitors } = await runMonitors(plan, engineFixture(), { mode: 'Basic', signal: never, timeoutMs: 1_000 })
    expectResult(lastOf(monitors, 'one'), 'failed: 10.0.0.9:80 did not answer within 0.7 s')
    expect(lastOf(monitors, 'one')?.notChecked).toBeUndefined()
    expect(monitors[0]?.attempts).toBe(1)
  })

  test('a monitor that waited for another one until the end of the run names it', async () => {
    const parent = made('parent', { host: 'a' }, slow(400))
    const child = made('child', { host: 'b' }, hangs, { dependsOn: ['parent'] })
    const { monitors } = await runMonitors([parent, child], engineFixture(), {
      mode: 'Basic',
      signal: never,
      timeoutMs: 900,
    })
    expect(lastOf(monitors, 'child')).toMatchObject({ notChecked: 'budget' })
    expect(lastOf(monitors, 'child')?.details?.at(-1)).toMatch(/^it waited [\d.]+ s for parent$/)
  })
})
