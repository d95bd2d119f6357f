import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Run, SharedRuns } from '../../src/core/engine/index.ts'
import { Fault } from '../../src/core/errors.ts'
import type { ExecutionMode, ServerType } from '../../src/core/protocol/index.ts'

/** Milliseconds for which a result may be served; a quarter of that for a failure. */
const lives: Record<ExecutionMode, number> = { Basic: 2_000, Standard: 10_000, Advanced: 60_000 }

type Event = {
  /** Milliseconds since the event before. */
  readonly after: number
  readonly mode: ExecutionMode
  readonly type: ServerType
  readonly stranger: boolean
  readonly fresh: boolean
  readonly forPeer: boolean
  /** Milliseconds until the connection is reset, or until the caller's own patience is over. */
  readonly leavesAfter: number | undefined
  readonly patienceMs: number | undefined
}
type Plan = { readonly durationMs: number; readonly outcome: 'passes' | 'fails' | 'breaks off' }

const call = {
  stranger: fc.boolean(),
  fresh: fc.boolean(),
  forPeer: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  leavesAfter: fc.option(fc.integer({ min: 0, max: 3_000 }), { nil: undefined, freq: 2 }),
  patienceMs: fc.option(fc.integer({ min: 1, max: 3_000 }), { nil: undefined, freq: 5 }),
}
/** Many at once, for many types. */
const crowd: fc.Arbitrary<Event> = fc.record({
  after: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(0, 0, 1, 10) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 1_500 }) },
  ),
  mode: fc.constantFrom<ExecutionMode>('Basic', 'Standard', 'Advanced'),
  type: fc.constantFrom<ServerType>('App', 'Sql', 'Ftp', 'Batch', 'Mongo'),
  ...call,
})
/** One after the other, mostly for one type, around the moments at which something expires or may begin. */
const row: fc.Arbitrary<Event> = fc.record({
  after: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(0, 1, 10) },
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 1_500 }) },
    { weight: 2, arbitrary: fc.constantFrom(499, 500, 999, 1_000, 1_001, 2_000, 2_500, 10_000, 60_000) },
  ),
  mode: fc.constantFrom<ExecutionMode>('Basic', 'Standard', 'Standard', 'Standard', 'Advanced'),
  type: fc.constantFrom<ServerType>('App', 'App', 'App', 'Sql'),
  ...call,
})
const scripts = fc.oneof(
  fc.array(crowd, { minLength: 1, maxLength: 60 }),
  fc.array(row, { minLength: 1, maxLength: 60 }),
)
const plans: fc.Arbitrary<Plan> = fc.record({
  durationMs: fc.oneof(fc.constantFrom(0, 1, 50), fc.integer({ min: 0, max: 6_000 })),
  outcome: fc.constantFrom<Plan['outcome']>('passes', 'passes', 'passes', 'fails', 'breaks off'),
})

type RunRecord = {
  readonly order: number
  readonly lane: string
  readonly pair: string
  readonly startedAt: number
  readonly plan: Plan
  /** Whether all callers that waited for it were anonymous, and whether a valid result existed nevertheless. */
  readonly forStrangers: boolean
  readonly renews: RunRecord | undefined
  endedAt: number | undefined
}
type CallRecord = {
  readonly event: Event
  readonly order: number
  readonly lane: string
  readonly at: number
  /** The valid result that was there when it asked. */
  readonly valid: RunRecord | undefined
  ended?: { readonly at: number; readonly run: RunRecord | undefined; readonly error: unknown; readonly age: number }
  /** Left by itself; a hasty caller that was refused is still waited for. */
  left: boolean
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const byLane = <T extends { lane: string }>(all: readonly T[]) => Object.values(Object.groupBy(all, ({ lane }) => lane))

/** Plays the events against real SharedRuns on a simulated clock, and returns all calls and all runs. */
async function play(script: readonly Event[], outcomes: readonly Plan[]) {
  const runs: RunRecord[] = []
  const calls: CallRecord[] = []
  const waiting = new Set<CallRecord>()
  let order = 0
  const now = (): number => performance.now()
  const expires = (run: RunRecord): number => {
    const life = lives[run.pair.split(' ')[0] as ExecutionMode]
    return (run.endedAt ?? 0) + (run.plan.outcome === 'fails' ? life / 4 : life)
  }
  const validIn = (lane: string): RunRecord | undefined => {
    const ended = runs.filter((run) => run.lane === lane && run.endedAt !== undefined)
    const last = ended.filter(({ plan }) => plan.outcome !== 'breaks off').at(-1)
    return last && now() < expires(last) ? last : undefined
  }
  const shared = new SharedRuns(now, (mode, type, forPeer) => {
    const pair = `${mode} ${type}`
    const lane = `${pair} ${forPeer}`
    const plan = outcomes[runs.length % outcomes.length] ?? { durationMs: 1, outcome: 'passes' }
    const callers = [...waiting].filter((one) => one.lane === lane)
    order += 1
    const run: RunRecord = {
      order,
      lane,
      pair,
      startedAt: now(),
      plan,
      forStrangers: callers.every(({ event }) => event.stranger),
      renews: validIn(lane),
      endedAt: undefined,
    }
    runs.push(run)
    for (const one of callers) waiting.delete(one)
    const id = String(runs.length - 1)
    return new Promise<Run>((resolve, reject) => {
      setTimeout(() => {
        run.endedAt = now()
        if (plan.outcome === 'breaks off') reject(new Error('broken off'))
        else resolve(runOf(id, mode, plan.outcome === 'fails'))
      }, plan.durationMs)
    })
  })

  const begin = (event: Event): void => {
    const leaving = new AbortController()
    order += 1
    const lane = `${event.mode} ${event.type} ${event.forPeer}`
    const one: CallRecord = { event, order, lane, at: now(), valid: validIn(lane), left: false }
    calls.push(one)
    waiting.add(one)
    const { signal } = leaving
    const { fresh, stranger, forPeer, patienceMs } = event
    shared.get(event.mode, event.type, { signal, fresh, stranger, forPeer, callerTimeoutMs: patienceMs }).then(
      ({ run, ageMs }) => {
        one.ended = { at: now(), run: runs[Number(run.id)], error: undefined, age: ageMs }
        waiting.delete(one)
      },
      (error: unknown) => {
        one.ended = { at: now(), run: undefined, error, age: 0 }
        // The run that a hasty caller waited for begins nevertheless.
        if (!(error instanceof Fault)) waiting.delete(one)
      },
    )
    if (event.leavesAfter === undefined) return
    setTimeout(() => {
      if (one.ended) return
      one.left = true
      leaving.abort(new Error('gone'))
    }, event.leavesAfter)
  }
  for (const event of script) {
    await vi.advanceTimersByTimeAsync(event.after)
    begin(event)
  }
  // Longer than any queue: every caller has an answer by then.
  await vi.advanceTimersByTimeAsync(600_000)
  return { runs, calls, expires }
}

const runOf = (id: string, mode: ExecutionMode, failing: boolean): Run => ({
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
      depth: 'Basic',
      runsOn: 'network',
      host: false,
      checks: [],
      durationMs: 1,
      attempts: 1,
      results: [{ check: 'c', status: failing ? 'failed' : 'ok', message: '' }],
    },
  ],
})

test('H8 S8 for all sequences of callers that join, leave and repeat, starts are bounded, answers are valid, and no-cache gets a later run', async () => {
  await fc.assert(
    fc.asyncProperty(scripts, fc.array(plans, { minLength: 1, maxLength: 8 }), async (script, outcomes) => {
      const { runs, calls, expires } = await play(script, outcomes)

      for (const group of Object.values(Object.groupBy(runs, ({ pair }) => pair))) {
        for (const [i, run] of (group ?? []).entries()) {
          const before = group?.[i - 1]
          if (before) expect(run.startedAt - before.startedAt).toBeGreaterThanOrEqual(1_000)
        }
      }
      for (const group of byLane(runs)) {
        for (const [i, run] of (group ?? []).entries()) {
          const before = group?.[i - 1]
          if (before) expect(run.startedAt - (before.endedAt ?? Number.NaN)).toBeGreaterThanOrEqual(1_000)
        }
      }
      const strangers = runs.filter(({ forStrangers }) => forStrangers)
      for (const [i, run] of strangers.entries()) {
        const fifth = strangers[i + 4]
        if (fifth) expect(fifth.startedAt - run.startedAt).toBeGreaterThanOrEqual(1_000)
      }
      // In the life of a result, anonymous callers start one run at most; its result has such a life as well.
      const renewals = strangers.filter(({ renews }) => renews)
      expect(new Set(renewals.map(({ renews }) => renews)).size).toBe(renewals.length)
      expect(renewals.filter(({ renews }) => renews?.forStrangers && renews.renews)).toEqual([])

      for (const one of calls) {
        const { event, ended } = one
        if (!ended) throw new Error(`no answer: ${JSON.stringify(one)}`)
        if (!ended.run) {
          const brokeOff = runs.some((run) => run.plan.outcome === 'breaks off' && run.endedAt === ended.at)
          const hasty = event.patienceMs !== undefined && ended.at - one.at >= event.patienceMs
          expect(one.left || hasty || brokeOff).toBe(true)
          continue
        }
        expect(ended.at).toBeLessThan(expires(ended.run))
        expect(ended.age).toBe(ended.at - (ended.run.endedAt ?? Number.NaN))
        if (event.fresh) expect(ended.run.order).toBeGreaterThan(one.order)
        else if (one.valid) expect([ended.run, ended.at]).toEqual([one.valid, one.at])
      }
    }),
    { numRuns: 500 },
  )
})
