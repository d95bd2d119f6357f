import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/errors.ts'
import { type Run, SharedRuns } from '../../src/core/health/index.ts'

function harness() {
  const state = { clock: 0, runs: 0, failing: false, cancelled: 0 }
  const pending: { finish: () => void; signal: AbortSignal }[] = []
  const shared = new SharedRuns(
    () => state.clock,
    (mode, _type, signal) => {
      state.runs += 1
      const id = `run ${state.runs}`
      return new Promise<Run>((resolve, reject) => {
        signal.addEventListener('abort', () => {
          state.cancelled += 1
          reject(signal.reason as Error)
        })
        pending.push({
          signal,
          finish: () =>
            resolve({
              id,
              mode,
              startedAt: new Date(0),
              endedAt: new Date(0),
              durationMs: 1,
              serverState: {},
              monitors: [
                {
                  name: 'm',
                  kind: 'k',
                  host: false,
                  durationMs: 1,
                  attempts: 1,
                  findings: [{ check: 'c', level: state.failing ? 'fail' : 'ok', message: '' }],
                },
              ],
            }),
        })
      })
    },
  )
  const never = new AbortController().signal
  const ask = (
    more: { signal?: AbortSignal; fresh?: boolean; patienceMs?: number; forPeer?: boolean } = {},
    mode: 'Basic' | 'Standard' | 'Advanced' = 'Standard',
  ) => shared.get(mode, 'Sql', { signal: never, fresh: false, ...more })
  const finish = async (): Promise<void> => {
    for (const run of pending.splice(0)) run.finish()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { state, shared, ask, finish, pending }
}

describe('runs shared by everyone who asks', () => {
  test('H8 1,000 concurrent callers cause one run', async () => {
    const { state, ask, finish } = harness()
    const asked = Array.from({ length: 1_000 }, () => ask())
    await finish()
    const answers = await Promise.all(asked)
    expect(state.runs).toBe(1)
    expect(new Set(answers.map(({ run }) => run.id))).toEqual(new Set(['run 1']))
  })

  test('H8 a result serves for its time, and a caller after its expiry never gets the old answer', async () => {
    const { state, ask, finish } = harness()
    const first = ask()
    await finish()
    await first
    state.clock = 9_999
    expect((await ask()).ageMs).toBe(9_999)
    expect(state.runs).toBe(1)
    state.clock = 10_000
    const next = ask()
    let answered = false
    next.then(() => {
      answered = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(answered).toBe(false)
    await finish()
    expect((await next).run.id).toBe('run 2')
  })

  test('H8 a failure serves for a quarter of the time', async () => {
    const { state, ask, finish } = harness()
    state.failing = true
    const first = ask()
    await finish()
    await first
    state.clock = 2_499
    await ask()
    expect(state.runs).toBe(1)
    state.clock = 2_500
    ask().catch(() => {})
    expect(state.runs).toBe(2)
  })

  test.each([
    ['Basic', 2_000],
    ['Standard', 10_000],
    ['Advanced', 60_000],
  ] as const)('H8 a result of %s serves for %i ms, and a failure for a quarter of that', async (mode, ms) => {
    for (const [failing, serves] of [
      [false, ms],
      [true, ms / 4],
    ] as const) {
      const { state, ask, finish } = harness()
      state.failing = failing
      const first = ask({}, mode)
      await finish()
      await first
      state.clock = serves - 1
      const again = ask({}, mode)
      expect(state.runs).toBe(1)
      await again
      state.clock = serves
      const second = ask({}, mode)
      expect(state.runs).toBe(2)
      await finish()
      await second
    }
  })

  test('H8 no-cache gets a new run, no sooner than a second after the last one ended', async () => {
    const { state, ask, finish } = harness()
    const first = ask()
    await finish()
    await first
    state.clock = 999
    await ask({ fresh: true })
    expect(state.runs).toBe(1)
    state.clock = 1_000
    const second = ask({ fresh: true })
    expect(state.runs).toBe(2)
    await finish()
    expect((await second).ageMs).toBe(0)
  })

  test('H8 one caller that leaves does not end the run of the others; the last one does', async () => {
    const { state, ask, finish } = harness()
    const [a, b] = [new AbortController(), new AbortController()]
    const first = ask({ signal: a.signal })
    const second = ask({ signal: b.signal })
    a.abort(new Error('gone'))
    await expect(first).rejects.toThrow('gone')
    expect(state.cancelled).toBe(0)
    b.abort(new Error('gone too'))
    await expect(second).rejects.toThrow('gone too')
    expect(state.cancelled).toBe(1)
    // Whoever asks next begins anew instead of joining the cancelled run.
    const third = ask()
    await finish()
    expect((await third).run.id).toBe('run 2')
    expect(getEventListeners(a.signal, 'abort')).toEqual([])
  })

  test('H8 a hasty caller is refused when its time is up, and shortens nobody else’s run', async () => {
    const { state, ask, finish } = harness()
    const hasty = ask({ patienceMs: 10 })
    await expect(hasty).rejects.toBeInstanceOf(Fault)
    expect(state.cancelled).toBe(0)
    await finish()
    expect((await ask()).run.id).toBe('run 1')
  })

  test('H8 callers that are peers share among themselves, and with nobody else', async () => {
    const { state, ask, finish } = harness()
    const asked = Array.from({ length: 100 }, () => ask({ forPeer: true }))
    ask().catch(() => {})
    expect(state.runs).toBe(2)
    await finish()
    await Promise.all(asked)
    await ask({ forPeer: true })
    expect(state.runs).toBe(2)
  })

  test('H8 modes do not share', async () => {
    const { state, ask } = harness()
    ask({}, 'Basic').catch(() => {})
    ask({}, 'Standard').catch(() => {})
    expect(state.runs).toBe(2)
  })
})
