import { getEventListeners } from 'node:events'
import { queryObjects } from 'node:v8'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import { type Run, type SharedCall, SharedRuns } from '../../../src/core/checks/engine/index.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => vi.useRealTimers())

/** How long an answer takes that needs no run, and is slow; and the time between two of them. Milliseconds. */
const [slowMs, composedMs] = [5, 100]
const slow = async <T>(made: () => T): Promise<T> => {
  await new Promise((resolve) => setTimeout(resolve, slowMs))
  return made()
}

/**
 * Simulated: runs that end when the test says so, and a clock that it moves. `serves`: the ids of the next answers that need no
 * run.
 */
function harness(...serves: (string | Error)[]) {
  const state: { runs: number; failing: boolean; reused?: Run['reused'] } = { runs: 0, failing: false }
  const pending: { finish: () => void; breakOff: (error: Error) => void }[] = []
  const runOf = (id: string, mode: Run['mode'], durationMs: number): Run => ({
    id,
    mode,
    startedAt: new Date(0),
    endedAt: new Date(0),
    durationMs,
    serverState: {},
    reused: state.reused,
    monitors: [
      {
        name: 'm',
        kind: 'k',
        depth: 'Basic',
        runsOn: 'network',
        host: false,
        checks: [],
        durationMs: 1,
        attempts: 1,
        results: [{ check: 'c', status: state.failing ? 'failed' : 'ok', message: '' }],
      },
    ],
  })
  const shared = new SharedRuns(
    () => performance.now(),
    (mode) => {
      state.runs += 1
      const id = `run ${state.runs}`
      const begunAt = performance.now()
      return new Promise<Run>((resolve, reject) => {
        pending.push({ breakOff: reject, finish: () => resolve(runOf(id, mode, performance.now() - begunAt)) })
      })
    },
    serves.length === 0
      ? undefined
      : async (mode) => {
          const next = serves.shift()
          if (next === 'never') return await new Promise(() => {})
          if (next instanceof Error) throw next
          if (next === 'slow') return await slow(() => runOf(next, mode, slowMs))
          return next === undefined || next === 'none' ? undefined : runOf(next, mode, 0)
        },
  )
  const never = new AbortController().signal
  const ask = (more: Partial<SharedCall> = {}, mode: 'Basic' | 'Standard' | 'Advanced' = 'Standard') =>
    shared.get(mode, 'Sql', { signal: never, fresh: false, stranger: false, ...more })
  const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0)
  const finish = async (): Promise<void> => {
    for (const run of pending.splice(0)) run.finish()
    await settle()
  }
  /** Asks and ends the run that this starts, at the present moment. */
  const result = async (...args: Parameters<typeof ask>): Promise<string> => {
    const pending = ask(...args)
    await settle()
    await finish()
    return (await pending).run.id
  }
  const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)
  return { state, shared, ask, finish, result, pass, settle, pending }
}

/** Whether a promise has settled yet. */
function watch(promise: Promise<unknown>): () => boolean {
  let settled = false
  promise.then(
    () => {
      settled = true
    },
    () => {
      settled = true
    },
  )
  return () => settled
}

describe('runs that callers share', () => {
  test('H8 1,000 concurrent callers cause one run', async () => {
    const { state, ask, finish } = harness()
    const pending = Array.from({ length: 1_000 }, () => ask())
    await finish()
    const answers = await Promise.all(pending)
    expect(state.runs).toBe(1)
    expect(new Set(answers.map(({ run }) => run.id))).toEqual(new Set(['run 1']))
  })

  test('H8 a result is reused while it is valid, and no caller gets it after its expiry', async () => {
    const { state, ask, finish, result, pass } = harness()
    await result()
    await pass(9_999)
    expect((await ask()).ageMs).toBe(9_999)
    expect(state.runs).toBe(1)
    await pass(1)
    const next = ask()
    const answered = watch(next)
    await pass(0)
    expect(answered()).toBe(false)
    await finish()
    expect((await next).run.id).toBe('run 2')
  })

  test('H8 a run that reuses older results has their age and expires with the first of them', async () => {
    const { state, ask, result, pass } = harness()
    state.reused = { ageMs: 7_000, leftMs: 3_000 }
    await result()
    expect((await ask()).ageMs).toBe(7_000)
    await pass(2_999)
    expect((await ask()).ageMs).toBe(9_999)
    expect(state.runs).toBe(1)
    await pass(1)
    expect(await result()).toBe('run 2')
  })

  test.each([
    ['Basic', false, 2_000],
    ['Standard', false, 10_000],
    ['Advanced', false, 60_000],
    ['Standard', true, 2_500],
    ['Advanced', true, 15_000],
  ] as const)('H8 a result of %s is valid for its time, and a failure (%s) for a quarter of that', async (...row) => {
    const [mode, failing, serves] = row
    const { state, ask, finish, result, pass } = harness()
    state.failing = failing
    await result({}, mode)
    await pass(serves - 1)
    await ask({}, mode)
    expect(state.runs).toBe(1)
    await pass(1)
    const second = ask({}, mode)
    expect(state.runs).toBe(2)
    await finish()
    await second
  })

  test('H8 a failure of Basic expires after half a second, and strangers get the next run a second after its end', async () => {
    const { state, ask, finish, result, pass } = harness()
    state.failing = true
    await result({}, 'Basic')
    await pass(499)
    await ask({}, 'Basic')
    await pass(1)
    const next = ask({ stranger: true }, 'Basic')
    await pass(499)
    expect(state.runs).toBe(1)
    await pass(1)
    expect(state.runs).toBe(2)
    await finish()
    expect((await next).run.id).toBe('run 2')
  })

  test('H8 no-cache of a stranger gets a run that begins after the request, a second after the last one ended', async () => {
    const { state, ask, finish, result, pass } = harness()
    await result()
    await pass(300)
    const fresh = ask({ fresh: true, stranger: true })
    await pass(699)
    expect(state.runs).toBe(1)
    await pass(1)
    expect(state.runs).toBe(2)
    await finish()
    expect(await fresh).toMatchObject({ run: { id: 'run 2' }, ageMs: 0 })
  })

  test('H8 no-cache does not join the current run, and all such callers meanwhile get the next one', async () => {
    const { state, ask, finish, pass } = harness()
    const first = ask()
    const fresh = [ask({ fresh: true }), ask({ fresh: true, stranger: true })]
    const joined = ask()
    await finish()
    expect((await first).run.id).toBe('run 1')
    expect((await joined).run.id).toBe('run 1')
    await pass(1_000)
    expect(state.runs).toBe(2)
    await finish()
    expect((await Promise.all(fresh)).map(({ run }) => run.id)).toEqual(['run 2', 'run 2'])
  })

  test('H8 one no-cache caller does not withdraw the valid answer from others', async () => {
    const { ask, finish, result, pass } = harness()
    await result()
    await pass(2_000)
    const fresh = ask({ fresh: true })
    expect(await ask()).toMatchObject({ run: { id: 'run 1' }, ageMs: 2_000 })
    await pass(7_999)
    expect(await ask({ stranger: true })).toMatchObject({ run: { id: 'run 1' }, ageMs: 9_999 })
    await pass(1)
    const joined = ask()
    await finish()
    expect((await fresh).run.id).toBe('run 2')
    expect((await joined).run.id).toBe('run 2')
  })

  test('H8 a run that began is finished when its callers leave, and later callers join it', async () => {
    const { state, ask, finish } = harness()
    const [a, b] = [new AbortController(), new AbortController()]
    const first = ask({ signal: a.signal })
    const second = ask({ signal: b.signal })
    a.abort(new Error('gone'))
    await expect(first).rejects.toThrow('gone')
    b.abort(new Error('gone too'))
    await expect(second).rejects.toThrow('gone too')
    const third = ask()
    await finish()
    expect((await third).run.id).toBe('run 1')
    expect((await ask()).run.id).toBe('run 1')
    expect(state.runs).toBe(1)
    expect(getEventListeners(a.signal, 'abort')).toEqual([])
  })

  test('H8 a run without remaining callers does not begin', async () => {
    const { state, ask, result, pass } = harness()
    await result()
    const leaving = new AbortController()
    const fresh = ask({ fresh: true, signal: leaving.signal })
    leaving.abort(new Error('gone'))
    await expect(fresh).rejects.toThrow('gone')
    await pass(20_000)
    expect(state.runs).toBe(1)
  })

  test('H8 a caller that leaves does not cancel the next run for those that stay', async () => {
    const { ask, finish, result, pass } = harness()
    await result()
    const leaving = new AbortController()
    const left = ask({ fresh: true, signal: leaving.signal })
    const stays = ask({ fresh: true, stranger: true })
    leaving.abort(new Error('gone'))
    await expect(left).rejects.toThrow('gone')
    await pass(1_000)
    await finish()
    expect((await stays).run.id).toBe('run 2')
  })

  test('H8 a run that breaks off is an error for its callers, and the next begins a second later', async () => {
    const { state, ask, finish, pending, pass } = harness()
    const first = ask()
    pending.shift()?.breakOff(new Error('no plan'))
    await expect(first).rejects.toThrow('no plan')
    const second = ask()
    await pass(999)
    expect(state.runs).toBe(1)
    await pass(1)
    await finish()
    expect((await second).run.id).toBe('run 2')
  })

  test('H8 a caller with a short timeout is refused when its time is up, and does not shorten the run of others', async () => {
    const { ask, finish, pass } = harness()
    const hasty = ask({ callerTimeoutMs: 10 })
    const refused = expect(hasty).rejects.toBeInstanceOf(Fault)
    await pass(10)
    await refused
    await finish()
    expect((await ask()).run.id).toBe('run 1')
  })

  test('H8 a caller with a short timeout that is refused before the run begins finds its result at the next attempt', async () => {
    const { state, ask, finish, result, pass } = harness()
    await result({}, 'Basic')
    await pass(500)
    const hasty = ask({ fresh: true, callerTimeoutMs: 100 }, 'Basic')
    const refused = expect(hasty).rejects.toBeInstanceOf(Fault)
    await pass(100)
    await refused
    await pass(400)
    await finish()
    expect(state.runs).toBe(2)
    expect((await ask({}, 'Basic')).run.id).toBe('run 2')
  })

  test('H8 peers share runs among themselves, with nobody else, and start no more often', async () => {
    const { state, ask, finish, pass } = harness()
    const pending = Array.from({ length: 100 }, () => ask({ cause: 'peer', stranger: true }))
    const other = ask({ stranger: true })
    expect(state.runs).toBe(1)
    await finish()
    await Promise.all(pending)
    await pass(999)
    expect(state.runs).toBe(1)
    await pass(1)
    expect(state.runs).toBe(2)
    await finish()
    expect((await other).run.id).toBe('run 2')
    expect((await ask({ cause: 'peer' })).run.id).toBe('run 1')
  })

  test.each([
    [2, 50],
    [30, 270],
    [500, 1_000],
  ])(
    'W2 after a run of %d ms, the next for a caller who may read the details begins %d ms after its end',
    async (runMs, pauseMs) => {
      const { state, ask, finish, pass } = harness()
      const first = ask()
      await pass(runMs)
      await finish()
      await first
      const fresh = ask({ fresh: true })
      await pass(pauseMs - 1)
      expect(state.runs).toBe(1)
      await pass(1)
      expect(state.runs).toBe(2)
      await finish()
      expect((await fresh).run.id).toBe('run 2')
    },
  )

  test('W2 a stranger who may read the details because it runs on this machine waits as long as a run costs, within the limits of strangers', async () => {
    const { state, ask, finish, result, pass, settle } = harness()
    const here = { fresh: true, stranger: async () => true, readsHere: () => true }
    await result()
    const first = ask(here)
    await pass(50)
    expect(state.runs).toBe(2)
    await finish()
    expect((await first).run.id).toBe('run 2')
    const second = ask(here)
    await pass(9_999)
    expect(state.runs).toBe(2)
    await pass(1)
    await finish()
    await settle()
    expect((await second).run.id).toBe('run 3')
  })

  test('W2 a run that is pending for a stranger begins sooner once somebody waits who may read the details', async () => {
    const { state, ask, finish, result, pass } = harness()
    await result()
    const stranger = ask({ fresh: true, stranger: true })
    await pass(10)
    const trusted = ask({ fresh: true })
    await pass(40)
    expect(state.runs).toBe(2)
    await finish()
    expect((await Promise.all([stranger, trusted])).map(({ run }) => run.id)).toEqual(['run 2', 'run 2'])
  })

  test("W2 an answer from what others observe is no run: it waits for no pause and shortens nobody else's", async () => {
    const { state, ask, finish, result, pass } = harness('none', 'served')
    await result({ stranger: true }, 'Basic')
    await pass(100)
    const fresh = ask({ fresh: true, stranger: true }, 'Basic')
    await pass(900)
    await finish()
    await fresh
    expect(state.runs).toBe(2)
    state.reused = { ageMs: 1_500, leftMs: 500 }
    await pass(2_000)
    const answers = await Promise.all([ask({ stranger: true }, 'Basic'), ask({}, 'Basic')])
    expect(answers.map(({ run, ageMs }) => [run.id, ageMs])).toEqual([
      ['served', 1_500],
      ['served', 1_500],
    ])
    await pass(499)
    expect(await ask({ stranger: true }, 'Basic')).toMatchObject({ run: { id: 'served' }, ageMs: 1_999 })
    await pass(1)
    state.reused = undefined
    expect(await result({ stranger: true }, 'Basic')).toBe('run 3')
  })

  test('W2 no-cache and peers get no answer from what others observe', async () => {
    const { ask, result } = harness('served')
    expect(await result({ fresh: true })).toBe('run 1')
    expect(await result({ cause: 'peer' }, 'Advanced')).toBe('run 2')
    expect((await ask({}, 'Basic')).run.id).toBe('served')
  })

  test('W2 a defect of such an answer, or one that has expired when it is complete, leads to a run', async () => {
    const { state, ask, finish, result, pass } = harness(new Error('a defect'), 'served')
    expect(await result()).toBe('run 1')
    state.reused = { ageMs: 2_000, leftMs: 0 }
    const answer = ask({}, 'Basic')
    await pass(composedMs)
    await finish()
    expect((await answer).run.id).toBe('run 2')
  })

  test('W2 whoever asked while all of such an answer was valid gets it, and whoever asked later the next one, 100 ms on', async () => {
    const { state, ask, pass } = harness('slow', 'slow')
    state.reused = { ageMs: 9_998, leftMs: 2 }
    const early = ask()
    await pass(1)
    const also = ask()
    await pass(2)
    const late = ask()
    await pass(2)
    expect((await Promise.all([early, also])).map(({ run }) => run.id)).toEqual(['slow', 'slow'])
    const isAnswered = watch(late)
    await pass(composedMs + slowMs - 1)
    expect(isAnswered()).toBe(false)
    await pass(1)
    expect((await late).run).not.toBe((await early).run)
    expect(state.runs).toBe(0)
  })

  test('W2 W9 an answer that was begun before the plan changed serves nobody', async () => {
    const { shared, ask, finish, settle } = harness('served')
    const answer = ask()
    shared.replan('Sql', () => true)
    await settle()
    await finish()
    expect((await answer).run.id).toBe('run 1')
  })

  test('W2 a caller with a short timeout does not wait for such an answer any longer than for a run', async () => {
    const { ask, pass } = harness('never')
    const refused = expect(ask({ callerTimeoutMs: 10 })).rejects.toBeInstanceOf(Fault)
    await pass(10)
    await refused
  })

  test('H8 modes do not share runs', async () => {
    const { state, ask } = harness()
    ask({}, 'Basic').catch(() => {})
    ask({}, 'Standard').catch(() => {})
    expect(state.runs).toBe(2)
  })

  test('S8 anonymous callers get one run of their own in the life of a result, and the next when it expires', async () => {
    const { state, ask, finish, result, pass } = harness()
    await result()
    await pass(2_000)
    expect(await result({ fresh: true, stranger: true })).toBe('run 2')
    await pass(1_000)
    const second = ask({ fresh: true, stranger: true })
    await pass(8_999)
    expect(state.runs).toBe(2)
    await pass(1)
    await finish()
    expect((await second).run.id).toBe('run 3')
  })

  test('S8 a run that breaks off counts as the one run of anonymous callers', async () => {
    const { state, ask, result, pending, pass } = harness()
    await result()
    await pass(2_000)
    const first = ask({ fresh: true, stranger: true })
    pending.shift()?.breakOff(new Error('no plan'))
    await expect(first).rejects.toThrow('no plan')
    const second = ask({ fresh: true, stranger: true })
    await pass(7_999)
    expect(state.runs).toBe(2)
    await pass(1)
    expect(state.runs).toBe(3)
    pending.shift()?.finish()
    await second
  })

  test('S8 an identified caller gets a new run in the life of one for anonymous callers', async () => {
    const { ask, finish, result, pass } = harness()
    await result()
    await pass(2_000)
    await result({ fresh: true, stranger: true })
    const stranger = ask({ fresh: true, stranger: true })
    await pass(500)
    const identified = ask({ fresh: true })
    await pass(500)
    await finish()
    expect((await identified).run.id).toBe('run 3')
    expect((await stranger).run.id).toBe('run 3')
  })

  test('S8 anonymous callers together start four runs a second, in the order of their requests; others do not wait for them', async () => {
    const { state, shared, finish, pass } = harness()
    const { signal } = new AbortController()
    const types = ['App', 'Sql', 'FtpApi', 'Ftp', 'Batch', 'Identity', 'Qc', 'Mongo', 'Agents'] as const
    const pending = types.map((type) => shared.get('Basic', type, { signal, fresh: false, stranger: true }))
    expect(state.runs).toBe(4)
    const identified = shared.get('Standard', 'Agents', { signal, fresh: false, stranger: false })
    expect(state.runs).toBe(5)
    await finish()
    expect((await identified).run.id).toBe('run 5')
    await pass(999)
    expect(state.runs).toBe(5)
    await pass(1)
    await finish()
    expect(state.runs).toBe(9)
    await pass(1_000)
    await finish()
    const ids = (await Promise.all(pending)).map(({ run }) => run.id)
    expect(ids).toEqual(['run 1', 'run 2', 'run 3', 'run 4', 'run 6', 'run 7', 'run 8', 'run 9', 'run 10'])
  })

  test('S8 nothing remains in memory of callers that leave while their run is pending or in progress', async () => {
    class Disconnected extends Error {}
    const { ask, settle } = harness()
    const leave = async (more: Partial<SharedCall>): Promise<void> => {
      const connections = Array.from({ length: 100 }, () => new AbortController())
      const calls = connections.map(({ signal }) => ask({ signal, stranger: true, ...more }))
      await settle()
      for (const connection of connections) connection.abort(new Disconnected())
      await Promise.allSettled(calls)
    }
    // One that is in progress, and one that somebody else waits for.
    void ask()
    void ask({ fresh: true })
    await leave({})
    await leave({ fresh: true })
    expect(queryObjects(Disconnected, { format: 'count' })).toBe(0)
  })

  test('S9 closing refuses callers that wait for a run to begin, and begins none', async () => {
    const { state, shared, ask, result, pass } = harness()
    await result()
    const waiting = ask({ fresh: true })
    const reason = new Fault('Unavailable', 'Shutting down')
    shared.close(reason)
    await expect(waiting).rejects.toBe(reason)
    await expect(ask()).rejects.toBe(reason)
    await pass(20_000)
    expect(state.runs).toBe(1)
    expect(vi.getTimerCount()).toBe(0)
  })
})
