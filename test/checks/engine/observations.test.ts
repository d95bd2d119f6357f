import { AsyncResource } from 'node:async_hooks'
import { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { noteConnection, silenceOf } from '../../../src/core/base/net/connect.ts'
import { Secret } from '../../../src/core/base/settings/index.ts'
import {
  type AnyKind,
  type CheckContext,
  type EngineContext,
  limits,
  type PlannedMonitor,
  type Result,
  type RunOptions,
  runMonitors,
  Slots,
} from '../../../src/core/checks/engine/index.ts'
import { Observation } from '../../../src/core/checks/engine/limits.ts'
import { resultLifeMs } from '../../../src/core/protocol/index.ts'
import { engineFixture } from '../../support/engine/engine-fixture.ts'
import { until } from '../../support/suite/until.ts'

const ok: Result = { check: 'probe', status: 'ok', message: 'fine' }
const bad: Result = { check: 'probe', status: 'failed', fault: 'refused', message: 'refused' }
/** A run that does not sign in has joined an observation, or begun one, by then. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const never = new AbortController().signal

/** A kind whose observations wait until `answer` is called, and the number of those that began and were cancelled. */
function heldKind() {
  const waiting = new Set<(results: readonly Result[]) => void>()
  const counts = { starts: 0, cancelled: 0 }
  const kind: AnyKind = {
    name: 'held',
    title: 'waits for the test',
    settings: {},
    checks: [{ name: 'probe', depth: 'Basic', doc: '' }],
    runsOn: 'network',
    async *run(_: never, { signal, step, history }: CheckContext) {
      counts.starts += 1
      step('probe')
      yield { check: 'connect', status: 'ok', message: 'connected' } as const
      await history('figure', 7, 0)
      const { promise, resolve, reject } = Promise.withResolvers<readonly Result[]>()
      waiting.add(resolve)
      signal.addEventListener('abort', () => {
        counts.cancelled += 1
        waiting.delete(resolve)
        reject(signal.reason)
      })
      yield await promise
    },
  }
  const answer = async (results: readonly Result[] = [ok]): Promise<void> => {
    await until(() => waiting.size > 0, undefined, 1)
    for (const resolve of waiting) resolve(results)
    waiting.clear()
  }
  return { kind, counts, answer }
}

const planned = (kind: AnyKind, more: Partial<PlannedMonitor> = {}): PlannedMonitor => ({
  name: 'held',
  kind,
  settings: {},
  depth: 'Basic',
  host: false,
  dependsOn: [],
  retries: 0,
  deployment: false,
  ...more,
})

/** A fixture with a clock that the test can set ahead. */
function fixture(more: Partial<EngineContext> = {}) {
  let aheadMs = 0
  const context = engineFixture({ now: () => performance.now() + aheadMs, ...more })
  const run = (one: PlannedMonitor, options: Partial<RunOptions> = {}) =>
    runMonitors([one], context, { mode: 'Basic', signal: never, notBefore: Number.NEGATIVE_INFINITY, ...options })
  return {
    context,
    run,
    passes: (ms: number): void => {
      aheadMs += ms
    },
  }
}

const checksOf = ({ monitors }: Awaited<ReturnType<typeof runMonitors>>): readonly string[] =>
  monitors.flatMap(({ results }) => results.map(({ check, status }) => `${check} ${status}`))

describe('runs of several types', () => {
  test('H8 share the observation of an equal monitor that is under way', async () => {
    const { kind, counts, answer } = heldKind()
    const { run } = fixture()
    const runs = [run(planned(kind, { type: 'App' })), run(planned(kind, { type: 'Sql', name: 'held b' }))]
    await answer()
    const both = await Promise.all(runs)
    expect(counts.starts).toBe(1)
    for (const one of both) expect(checksOf(one)).toEqual(['connect ok', 'probe ok'])
    expect(both.map(({ monitors }) => monitors[0]?.name)).toEqual(['held', 'held b'])
  })

  test.each<[string, Partial<PlannedMonitor>, Partial<RunOptions>]>([
    ['other settings, such as a threshold', { settings: { limit: 2 } }, {}],
    ['another secret', { settings: { password: new Secret('{env: B}', async () => 'b') } }, {}],
    ['other settings given in svc.yaml', { configured: new Set(['password']) }, {}],
    ['another timeout', { timeoutMs: 4_000 }, {}],
    ['another depth', {}, { mode: 'Standard' }],
    ['a peer that asks', {}, { cause: 'peer' }],
    ['a run that must be fresh', {}, { notBefore: undefined }],
  ])('H8 do not share it with %s', async (_, more, options) => {
    const { kind, counts, answer } = heldKind()
    const { run } = fixture()
    const first = run(planned(kind, { settings: { password: new Secret('{env: A}', async () => 'a') } }))
    await until(() => counts.starts === 1, undefined, 1)
    const settings = more.settings ?? { password: new Secret('{env: A}', async () => 'a') }
    const second = run(planned(kind, { ...more, settings }), options)
    await until(() => counts.starts === 2, undefined, 1)
    await answer()
    await Promise.all([first, second])
    expect(counts.starts).toBe(2)
  })

  test.each<[string, readonly Result[], number]>([
    ['a success is reused for the life of a result', [ok], resultLifeMs.Basic],
    ['a failure for a quarter of it', [bad], resultLifeMs.Basic / 4],
  ])('H8 %s and no longer', async (_, results, lifeMs) => {
    const { kind, counts, answer } = heldKind()
    // This clock stands still unless the test moves it.
    let at = 1_000
    const { run } = fixture({ now: () => at })
    const first = run(planned(kind))
    await answer(results)
    await first
    at += lifeMs - 1
    const again = await run(planned(kind, { type: 'Sql' }))
    expect(counts.starts).toBe(1)
    expect(again.reused).toEqual({ ageMs: lifeMs - 1, leftMs: 1 })
    at += 1
    const later = run(planned(kind, { type: 'Sql' }))
    await answer()
    expect((await later).reused).toBeUndefined()
    expect(counts.starts).toBe(2)
  })

  test('H8 a run that ends leaves an observation to those that still wait for it', async () => {
    const { kind, counts, answer } = heldKind()
    const { run } = fixture()
    const aborted = new AbortController()
    const leaves = run(planned(kind), { signal: aborted.signal })
    await until(() => counts.starts === 1, undefined, 1)
    const stays = run(planned(kind, { type: 'Sql' }))
    await nextTurn()
    aborted.abort(new Error('the caller has left'))
    await expect(leaves).rejects.toThrow('the caller has left')
    await answer()
    expect(checksOf(await stays)).toEqual(['connect ok', 'probe ok'])
    expect(counts).toEqual({ starts: 1, cancelled: 0 })
  })

  test('H8 an observation that nobody waits for any more is cancelled, and serves nobody', async () => {
    const { kind, counts, answer } = heldKind()
    const { run } = fixture()
    const aborted = new AbortController()
    const leave = [run(planned(kind), { signal: aborted.signal }), run(planned(kind), { signal: aborted.signal })]
    await until(() => counts.starts === 1, undefined, 1)
    aborted.abort(new Error('both callers have left'))
    const later = run(planned(kind, { type: 'Sql' }))
    for (const one of leave) await expect(one).rejects.toThrow('both callers have left')
    await until(() => counts.starts === 2, undefined, 1)
    expect(counts.cancelled).toBe(1)
    await answer()
    expect(checksOf(await later)).toEqual(['connect ok', 'probe ok'])
  })

  test('H8 H9 a shorter time limit ends only the own waiting, and keeps the results from before it', async () => {
    const { kind, counts, answer } = heldKind()
    const { run } = fixture()
    const patient = run(planned(kind))
    await until(() => counts.starts === 1, undefined, 1)
    const hasty = await run(planned(kind, { type: 'Sql' }), { timeoutMs: 50 })
    expect(checksOf(hasty)).toEqual(['connect ok', 'probe failed'])
    expect(hasty.monitors[0]?.results[1]).toMatchObject({ notChecked: 'budget' })
    await answer()
    expect(checksOf(await patient)).toEqual(['connect ok', 'probe ok'])
    expect(counts).toEqual({ starts: 1, cancelled: 0 })
  })

  test('H8 H9 a shorter time limit of the first does not shorten the observation of those that joined it', async () => {
    const { kind, counts, answer } = heldKind()
    const { run, context } = fixture()
    // All slots are taken, so that both wait before the observation begins.
    const targeted: AnyKind = { ...kind, target: () => ({ database: 'one' }) }
    const slot = await context.limits.slots.take({ target: { database: 'one' }, name: 'other' }, never)
    const hasty = run(planned(targeted), { timeoutMs: 50 })
    const patient = run(planned(targeted, { type: 'Sql' }))
    const [cut] = (await hasty).monitors
    expect(cut?.results).toMatchObject([{ check: 'not run', notChecked: 'budget' }])
    slot.release()
    await answer()
    expect(checksOf(await patient)).toEqual(['connect ok', 'probe ok'])
    expect(counts).toEqual({ starts: 1, cancelled: 0 })
  })

  test('H8 H9 what had too little time is not reused', async () => {
    const { kind, counts, answer } = heldKind()
    const { run } = fixture()
    await run(planned(kind), { timeoutMs: 20 })
    const second = run(planned(kind))
    await answer()
    expect(checksOf(await second)).toEqual(['connect ok', 'probe ok'])
    expect(counts.starts).toBe(2)
  })

  test('H8 H10 a retry observes anew, once for all who retry', async () => {
    const { kind, counts, answer } = heldKind()
    const { run } = fixture()
    const runs = [run(planned(kind, { retries: 1 })), run(planned(kind, { retries: 1, type: 'Sql' }))]
    await answer([bad])
    await until(() => counts.starts === 2, undefined, 1)
    await answer()
    for (const { monitors } of await Promise.all(runs)) {
      expect(monitors).toMatchObject([{ attempts: 2 }])
      expect(monitors[0]?.results.at(-1)?.status).toBe('ok')
    }
    expect(counts.starts).toBe(2)
  })

  test('H8 a monitor whose own results follow from settings of its entry gets them from a shared observation', async () => {
    const { kind, answer } = heldKind()
    const { run } = fixture()
    const runs = [run(planned(kind)), run(planned(kind, { type: 'Sql', deployment: true }))]
    await answer([bad])
    const [plain, deploying] = await Promise.all(runs)
    expect(plain?.monitors[0]?.results.some(({ deployment }) => deployment)).toBe(false)
    expect(deploying?.monitors[0]?.results.every(({ deployment }) => deployment)).toBe(true)
  })

  test('H8 the values that a shared observation keeps reach the history of each monitor', async () => {
    const { kind, counts, answer } = heldKind()
    const values: number[] = []
    const { run } = fixture({
      history: {
        keep: async ({ value }) => {
          values.push(value)
          return []
        },
        exceededSince: async () => new Map(),
      },
    })
    const runs = [run(planned(kind, { type: 'App' })), run(planned(kind, { type: 'Sql' }))]
    await answer()
    await Promise.all(runs)
    expect(counts.starts).toBe(1)
    expect(values).toEqual([7, 7])
  })

  test('W2 a caller does not wait for an observation of the schedule that waits for its slot', async () => {
    const { kind, counts, answer } = heldKind()
    const { run } = fixture({ limits: { ...limits(), slots: new Slots({ schedule: 0 }) } })
    const stopped = new AbortController()
    const scheduled = run(planned(kind), { cause: 'schedule', signal: stopped.signal })
    await nextTurn()
    const caller = run(planned(kind))
    await answer()
    expect(checksOf(await caller)).toEqual(['connect ok', 'probe ok'])
    expect(counts.starts).toBe(1)
    stopped.abort(new Error('the test is over'))
    await expect(scheduled).rejects.toThrow('the test is over')
  })

  test('W1 H13 a run of the schedule and a run of a caller that share an observation keep its value once', async () => {
    const { kind, counts, answer } = heldKind()
    const values: number[] = []
    const { run } = fixture({
      history: {
        keep: async ({ value }) => {
          values.push(value)
          return []
        },
        exceededSince: async () => new Map(),
      },
    })
    const one = planned(kind, { type: 'App' })
    const runs = [run(one, { cause: 'schedule' }), run(one, { cause: 'caller' })]
    await answer()
    await Promise.all(runs)
    expect(counts.starts).toBe(1)
    expect(values).toEqual([7])
  })
})

describe('what is kept of an observation that is over', () => {
  test('its connections are not', async () => {
    let silence: () => string | undefined = () => undefined
    let late: () => void = () => {}
    const during: (string | undefined)[] = []
    const kind: AnyKind = {
      ...heldKind().kind,
      async *run() {
        noteConnection(new Socket(), '192.0.2.1:1')
        silence = AsyncResource.bind(() => silenceOf('192.0.2.1:1'))
        late = AsyncResource.bind(() => noteConnection(new Socket(), '192.0.2.1:1'))
        during.push(silence())
        yield ok
      },
    }
    const { run } = fixture()
    await run(planned(kind))
    expect(during).toEqual([expect.stringContaining('accepted the connection but sent nothing')])
    expect(silence()).toBeUndefined()
    late()
    expect(silence()).toBeUndefined()
  })

  test('the runs that waited for it are not', async () => {
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const first = { signal: new AbortController().signal, ends: 1 }
    const observation = new Observation(0, first, () => ({
      ended,
      view: () => [ok],
      whole: () => [ok],
      upTo: () => undefined,
    }))
    const outcome = observation.outcome(first)
    expect(observation.latest).toBe(first)
    observation.end(1)
    resolve()
    expect(await outcome).toEqual([ok])
    expect(() => observation.latest).toThrow('the observation has ended')
    expect(observation.signal.aborted).toBe(false)
    const later = { signal: AbortSignal.abort(), ends: 2 }
    expect(await observation.outcome(later)).toEqual([ok])
  })

  test('its results are: an equal monitor gets them', async () => {
    const { kind, counts, answer } = heldKind()
    const { run } = fixture()
    const first = run(planned(kind))
    await answer()
    await first
    expect(checksOf(await run(planned(kind)))).toEqual(['connect ok', 'probe ok'])
    expect(counts.starts).toBe(1)
  })

  test('what its kind says of the settings is: they are validated once for each monitor', async () => {
    let validated = 0
    const kind: AnyKind = {
      ...heldKind().kind,
      validate: () => {
        validated += 1
        return 'settings that cannot be used'
      },
    }
    const { run } = fixture()
    const one = planned(kind)
    expect(checksOf(await run(one))).toEqual(['settings failed'])
    expect(checksOf(await run(one))).toEqual(['settings failed'])
    expect(validated).toBe(1)
    await run(planned(kind))
    expect(validated).toBe(2)
  })
})
