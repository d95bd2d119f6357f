import { afterAll, describe, expect, test } from 'vitest'
import { StoreError } from '../../../src/core/base/errors.ts'
import { resolveHost } from '../../../src/core/base/net/connect.ts'
import { exceededInMemory } from '../../../src/core/checks/engine/hold-duration.ts'
import {
  atMost,
  type EngineContext,
  fail,
  type Kind,
  notChecked,
  ok,
  type Result,
  runMonitors,
  warn,
} from '../../../src/core/checks/engine/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { engineFixture } from '../../support/engine/engine-fixture.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { withDefaults } from '../../support/engine/run-kind.ts'
import { httpPeer, pages } from '../../support/simulated/http-peer.ts'
import { storeOfTest } from '../../support/store/embedded.ts'
import { Chance } from '../../watch/simulate/chance.ts'

const minute = 60_000
const usual = { depth: 'Basic', host: false, dependsOn: [], retries: 0, deployment: false } as const
const store = await storeOfTest()
const { data } = store
afterAll(() => store[Symbol.asyncDispose]())
let now = Date.UTC(2026, 0, 1)
let series = 0

/** A monitor with `for: 15m` over a real store, whose looks at these depths have configured results. */
function sustainedMonitor(more: Partial<EngineContext> = {}, mode: () => ExecutionMode = () => 'Basic') {
  series += 1
  let matches: readonly Result[] = []
  const kind: Kind = {
    runsOn: 'machine',
    name: 'threshold',
    title: 'says what it is told',
    settings: { name: { type: 'text', observed: true, doc: 'which' } },
    checks: [
      { name: 'slots', depth: 'Basic', doc: 'slots' },
      { name: 'bloat', depth: 'Advanced', doc: 'bloat' },
    ],
    async *run() {
      yield matches
    },
  }
  const context = engineFixture({ date: () => new Date(now), history: data.readings, ...more })
  const settings = { name: `n${series}` }
  const planned = { ...usual, name: 'threshold', kind, settings, forMs: 15 * minute }
  return async (...results: readonly Result[]): Promise<readonly Result[]> => {
    matches = results
    const run = await runMonitors([planned], context, { mode: mode(), signal: new AbortController().signal })
    return run.monitors[0]?.results ?? []
  }
}
const slots = (free: number): Result =>
  atMost({ check: 'slots', what: 'in use:', value: 10 - free, unit: 'count', threshold: { limit: 9 } })

const keeping = (answer: () => Promise<never>) => ({ keep: answer, exceededSince: answer })

describe('for', () => {
  test('H12 an exceeded threshold is shown and counts as ok until it is exceeded in all looks for longer than the time', async () => {
    const look = sustainedMonitor()
    expect(await look(slots(3))).toEqual([slots(3)])
    expect(await look(slots(0))).toEqual([
      expect.objectContaining({
        status: 'ok',
        message: 'in use: 10 (fail 9), exceeded for the first time: counts after 15 min',
      }),
    ])
    now += 15 * minute
    const [boundary] = await look(slots(0))
    expect(boundary?.status).toBe('ok')
    expect(boundary?.fault).toBeUndefined()
    expect(boundary?.message).toBe('in use: 10 (fail 9), exceeded for 15 min: counts after 15 min')
    now += minute
    expect(await look(slots(0))).toEqual([
      expect.objectContaining({
        status: 'failed',
        fault: 'threshold',
        message: 'in use: 10 (fail 9), exceeded for 16 min',
      }),
    ])
    expect(await look(slots(1))).toEqual([slots(1)])
    now += minute
    expect((await look(slots(0)))[0]?.status).toBe('ok')
  })

  test('H12 a warning waits in the same way, and each check separately', async () => {
    const look = sustainedMonitor()
    await look(warn('a', 'much'), ok('b', 'fine'))
    now += 20 * minute
    const results = await look(warn('a', 'much'), warn('b', 'much'))
    expect(results.map(({ status }) => status)).toEqual(['warning', 'ok'])
  })

  test('H12 a shallower run, of the schedule or of a caller, does not begin the time of a deeper check anew', async () => {
    let mode: ExecutionMode = 'Advanced'
    const look = sustainedMonitor({}, () => mode)
    await look(ok('slots', 'fine'), warn('bloat', 'much'))
    mode = 'Standard'
    for (let round = 1; round < 60; round += 1, now += minute) await look(warn('slots', 'few'))
    await look(ok('slots', 'fine'))
    now += minute
    mode = 'Advanced'
    const results = await look(warn('slots', 'few'), warn('bloat', 'much'))
    expect(results.map(({ status, message }) => [status, message])).toEqual([
      ['ok', 'few, exceeded for the first time: counts after 15 min'],
      ['warning', 'much, exceeded for 1 h'],
    ])
    await look(ok('slots', 'fine'), ok('bloat', 'fine'))
    now += minute
    expect((await look(ok('slots', 'fine'), warn('bloat', 'much')))[1]?.status).toBe('ok')
  })

  test('H12 anything but a threshold counts at once', async () => {
    const look = sustainedMonitor()
    const refused = fail('slots', 'refused', '127.0.0.1:1 refused the connection')
    expect(await look(refused)).toEqual([refused])
  })

  test.each([
    ['there is no store', undefined],
    ['the store is in trouble', keeping(() => Promise.reject(new StoreError('disk I/O error')))],
    ['the store does not answer', keeping(() => new Promise<never>(() => {}))],
  ] as const)('H12 where %s it counts at once and reports why', async (_, history) => {
    const look = sustainedMonitor({ history })
    const [result] = await look(slots(0))
    // Not "timeout": a store that never answers does not hold the monitor up until its deadline.
    expect(result).toMatchObject({ status: 'failed', fault: 'threshold' })
    expect(result?.details?.join()).toContain('no store exists to keep values between runs')
  })

  test('H12 a defect in reading the history is not taken for a store in trouble', async () => {
    const history = keeping(() => Promise.reject(new TypeError('a defect')))
    const outcome = sustainedMonitor({ history })(slots(0))
    await expect(outcome).rejects.toThrow('a defect')
  })

  test('H12 each item of one check waits separately', async () => {
    const look = sustainedMonitor()
    const queue = (subject: string, value: number): Result => ({
      ...atMost({ check: 'queue', what: `${subject}:`, value, unit: 'count', threshold: { limit: 5 } }),
      subject,
    })
    await look(queue('a', 9), queue('b', 1))
    now += 20 * minute
    const results = await look(queue('a', 1), queue('b', 9))
    expect(results.map(({ status, message }) => [status, message])).toEqual([
      ['ok', 'a: 1 (fail 5)'],
      ['ok', 'b: 9 (fail 5), exceeded for the first time: counts after 15 min'],
    ])
  })

  test('H12 each measure of one answer waits separately', async () => {
    const figures = { a: 9, b: 1 }
    await using server = await httpPeer(pages(() => ({ '/': figures })))
    const measure = (name: string) => ({ name, path: `$.${name}`, value: '.', atMost: { limit: 5 } })
    const overrides = { url: `http://127.0.0.1:${server.port}/`, measure: [measure('a'), measure('b')] }
    const look = async () => {
      const settings = withDefaults(http.settings, overrides)
      const monitor = { ...usual, name: 'http', kind: http, settings, forMs: 15 * minute }
      const context = engineFixture({ date: () => new Date(now), history: data.readings, resolve: resolveHost })
      const run = await runMonitors([monitor], context, { mode: 'Standard', signal: new AbortController().signal })
      return run.monitors[0]?.results.filter(({ check }) => check === 'measure').map(({ status }) => status)
    }
    expect(await look()).toEqual(['ok', 'ok'])
    now += 20 * minute
    expect(await look()).toEqual(['failed', 'ok'])
    Object.assign(figures, { a: 1, b: 9 })
    expect(await look()).toEqual(['ok', 'ok'])
  })

  test('H12 an item that vanishes and returns starts anew; a refused look does not count', async () => {
    const look = sustainedMonitor()
    const refused = fail('connect', 'refused', '127.0.0.1:1 refused the connection')
    await look(slots(0))
    now += 10 * minute
    await look(refused)
    now += 10 * minute
    expectResult((await look(slots(0)))[0], 'failed: …for 20 min…')
    await look(ok('slots', 'none is asked for'))
    expect((await look(slots(0)))[0]?.message).toContain('exceeded for the first time')
  })

  test('H12 two machines that share a store and see different values do not reset each other', async () => {
    const name = series
    const one = sustainedMonitor({ machine: 'one' })
    series = name
    const two = sustainedMonitor({ machine: 'two' })
    await one(slots(0))
    await two(slots(3))
    now += 20 * minute
    expectResult((await one(slots(0)))[0], 'failed: …exceeded for 20 min…')
  })

  test('H12 H41 another target is another series', async () => {
    await sustainedMonitor()(slots(0))
    now += 20 * minute
    expect((await sustainedMonitor()(slots(0)))[0]?.message).toContain('exceeded for the first time')
  })
})

describe('checks that a kind holds', () => {
  const busy = warn('cpu', 'CPU use 90 %')
  const calm = ok('cpu', 'CPU use 10 %')
  /** The results of a run for the check, and whether its threshold is then exceeded. Undefined: nobody saw. */
  const looks = [
    [busy, true],
    [calm, false],
    [undefined, undefined],
    [notChecked('cpu', 'missing', 'no processor time'), undefined],
    [fail('cpu', 'internal', 'EIO'), undefined],
  ] as const

  /** A machine whose kind holds `cpu` for five minutes, over the store of the test. */
  function machine() {
    series += 1
    let current: readonly Result[] = []
    const kind: Kind = {
      runsOn: 'machine',
      name: 'machine',
      title: 'says what it is told',
      settings: {
        name: { type: 'text', observed: true, doc: 'which' },
        for: { type: 'duration', default: 5 * minute, doc: 'how long' },
      },
      hold: { checks: ['cpu'], setting: 'for' },
      checks: [
        { name: 'cpu', depth: 'Basic', doc: 'cpu' },
        { name: 'disk', depth: 'Basic', doc: 'disk' },
      ],
      async *run() {
        yield current
      },
    }
    const monitor = { ...usual, name: 'machine', kind, settings: { name: `m${series}`, for: 5 * minute } }
    let exceeded: EngineContext['exceeded'] = exceededInMemory()
    return {
      /** Another process begins. Without `serves`, a command. */
      restart: (serves = true) => {
        exceeded = serves ? exceededInMemory() : undefined
      },
      look: async (history: EngineContext['history'], ...results: readonly Result[]): Promise<readonly Result[]> => {
        current = results
        const context = engineFixture({ date: () => new Date(now), history, exceeded })
        const run = await runMonitors([monitor], context, { mode: 'Basic', signal: new AbortController().signal })
        return run.monitors[0]?.results ?? []
      },
    }
  }
  const levelOf = (results: readonly Result[], check: string) => results.find((one) => one.check === check)?.status

  test('M16 count in svc serve after five minutes, without a store too, and its other checks at once', async () => {
    const { look } = machine()
    const full = fail('disk', 'threshold', '3 % free')
    for (let passed = 0; passed <= 5; passed += 1, now += minute) {
      const results = await look(undefined, busy, full)
      expect([levelOf(results, 'cpu'), levelOf(results, 'disk')]).toEqual(['ok', 'failed'])
    }
    const [sixth] = await look(undefined, busy)
    expect(sixth).toMatchObject({ status: 'warning', message: 'CPU use 90 %, exceeded for 6 min', isHeld: true })
  })

  test('M16 count at once in a command, which has one sample', async () => {
    const { look, restart } = machine()
    restart(false)
    expect(await look(data.readings, busy)).toEqual([busy])
  })

  test('M16 that could not be measured are not checked, and never a failure', async () => {
    const { look } = machine()
    const [result] = await look(data.readings, fail('cpu', 'internal', 'EIO'))
    expect(result).toMatchObject({ notChecked: 'missing' })
  })

  const down = { keep: async () => [], exceededSince: () => Promise.reject(new StoreError('disk I/O error')) }

  test.each([...Array(40).keys()])(
    'M16 exactly what all runs of five minutes showed counts, whatever restarts and a store that fails do (%i)',
    async (seed) => {
      const chance = new Chance(seed)
      const { look, restart } = machine()
      /** Since when every run that saw it found it exceeded. */
      let since: number | undefined
      let isUp = true
      let isTold = true
      // A process that began without its store is late, and never early.
      let knows = true
      for (let run = 0; run < 60; run += 1) {
        now += chance.between(20_000, 100_000)
        if (chance.is(0.1)) isUp = !isUp
        // What the store was not told of does not outlive the process.
        if (isTold && chance.is(0.1)) {
          restart()
          knows = false
        }
        knows ||= isUp
        const [result, isExceeded] = chance.is(0.8) ? looks[0] : chance.of(looks)
        if (!isUp) isTold = false
        else if (isExceeded === false) isTold = true
        if (isExceeded === false) since = undefined
        if (isExceeded) since ??= now
        const isDue = since !== undefined && now - since > 5 * minute
        const results = await look(isUp ? data.readings : down, ok('disk', 'free'), ...(result ? [result] : []))
        const level = levelOf(results, 'cpu')
        if (isExceeded && (knows || level === 'warning')) expect(level, `run ${run}`).toBe(isDue ? 'warning' : 'ok')
      }
    },
  )
})
