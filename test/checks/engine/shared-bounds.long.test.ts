import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import { type Run, SharedRuns } from '../../../src/core/checks/engine/index.ts'
import type { ExecutionMode, ServerType } from '../../../src/core/protocol/index.ts'

/** Milliseconds for which a result may be served; a quarter of that for a failure. */
const lives: Record<ExecutionMode, number> = { Basic: 2_000, Standard: 10_000, Advanced: 60_000 }

/** Who calls, and how long it takes to recognize that, in milliseconds. Undefined: it is known at once. */
type Who = {
  readonly name: 'in process' | 'process of this account' | 'signed in' | 'stranger'
  readonly recognizedAfter: number | undefined
}
type Event = {
  /** Milliseconds since the event before, or since the latest result expired if that is later. */
  readonly after: number | { readonly expiry: number }
  readonly mode: ExecutionMode
  readonly type: ServerType
  readonly who: Who
  /** `Cache-Control: no-cache`. */
  readonly fresh: boolean
  readonly forPeer: boolean
  /** Milliseconds until the connection is reset, or until the caller's own patience is over. */
  readonly leavesAfter: number | undefined
  readonly patienceMs: number | undefined
}
type Plan = { readonly durationMs: number; readonly outcome: 'passes' | 'fails' | 'breaks off' }

const recognizedAfter = fc.constantFrom(0, 0, 1, 40, 400)
const who: fc.Arbitrary<Who> = fc.oneof(
  { weight: 1, arbitrary: fc.constant<Who>({ name: 'in process', recognizedAfter: undefined }) },
  { weight: 1, arbitrary: fc.record({ name: fc.constant('process of this account' as const), recognizedAfter }) },
  { weight: 1, arbitrary: fc.record({ name: fc.constant('signed in' as const), recognizedAfter }) },
  { weight: 3, arbitrary: fc.record({ name: fc.constant('stranger' as const), recognizedAfter }) },
)
const call = {
  who,
  fresh: fc.boolean(),
  forPeer: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  leavesAfter: fc.option(fc.integer({ min: 0, max: 3_000 }), { nil: undefined, freq: 2 }),
  patienceMs: fc.option(fc.integer({ min: 1, max: 3_000 }), { nil: undefined, freq: 5 }),
}
/** The longest that a run takes. */
const maxRunMs = 6_000
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
/** Gates of deployments that ask again and again, and the moments at which a result expires. */
const gates: fc.Arbitrary<Event> = fc.record({
  ...call,
  after: fc.oneof(fc.constantFrom(1, 1_000, 2_000), fc.record({ expiry: fc.constantFrom(-1, 0, 1) })),
  mode: fc.constantFrom<ExecutionMode>('Basic', 'Advanced'),
  type: fc.constant<ServerType>('App'),
  who: fc.oneof(who, fc.constant<Who>({ name: 'stranger', recognizedAfter: 0 })),
  fresh: fc.constantFrom(true, true, true, false),
  forPeer: fc.constant(false),
})
const scripts = fc.oneof(
  fc.array(gates, { minLength: 1, maxLength: 30 }),
  fc.array(crowd, { minLength: 1, maxLength: 60 }),
  fc.array(row, { minLength: 1, maxLength: 60 }),
)
const plans: fc.Arbitrary<Plan> = fc.record({
  durationMs: fc.oneof(fc.constantFrom(1, 50), fc.integer({ min: 1, max: maxRunMs })),
  outcome: fc.constantFrom<Plan['outcome']>('passes', 'passes', 'fails', 'breaks off'),
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
  /** Those of the same mode and type that were in progress when it began. */
  readonly overlaps: readonly RunRecord[]
}
type CallRecord = {
  readonly event: Event
  readonly order: number
  readonly lane: string
  readonly at: number
  /** The valid result that was there when it asked. */
  readonly valid: RunRecord | undefined
  /** The run in progress when it asked. */
  readonly running: RunRecord | undefined
  /** When it was known who it is: only then may it cause a run. */
  recognizedAt: number | undefined
  ended?: { readonly at: number; readonly run: RunRecord | undefined; readonly error: unknown; readonly age: number }
  /** Left by itself; a hasty caller that was refused is still waited for. */
  left: boolean
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => vi.useRealTimers())

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
  const runningIn = (lane: string): RunRecord | undefined =>
    runs.findLast((run) => run.lane === lane && run.endedAt === undefined)
  const shared = new SharedRuns(now, (mode, type, { cause }) => {
    const pair = `${mode} ${type}`
    const lane = `${pair} ${cause === 'peer'}`
    const plan = outcomes[runs.length % outcomes.length] ?? { durationMs: 1, outcome: 'passes' }
    const callers = [...waiting].filter((one) => one.lane === lane)
    order += 1
    const run: RunRecord = {
      order,
      lane,
      pair,
      startedAt: now(),
      plan,
      forStrangers: callers.every(({ event }) => event.who.name === 'stranger'),
      renews: validIn(lane),
      endedAt: undefined,
      overlaps: runs.filter((other) => other.pair === pair && other.endedAt === undefined),
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
    const one: CallRecord = {
      event,
      order,
      lane,
      at: now(),
      valid: validIn(lane),
      running: runningIn(lane),
      recognizedAt: undefined,
      left: false,
    }
    calls.push(one)
    const { signal } = leaving
    const { fresh, who, forPeer, patienceMs } = event
    const cause = forPeer ? 'peer' : 'caller'
    const isStranger = who.name === 'stranger'
    const recognize = (): boolean => {
      one.recognizedAt = now()
      const running = runningIn(lane)
      // Otherwise it joins that run.
      if (!one.left && (!running || (fresh && running.order < one.order))) waiting.add(one)
      return isStranger
    }
    const { recognizedAfter } = who
    const stranger =
      recognizedAfter === undefined
        ? isStranger
        : async () => {
            await new Promise((resolve) => setTimeout(resolve, recognizedAfter))
            return recognize()
          }
    if (recognizedAfter === undefined) recognize()
    shared.get(event.mode, event.type, { signal, fresh, stranger, cause, callerTimeoutMs: patienceMs }).then(
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
    const { after } = event
    const latest = runs.findLast((run) => run.endedAt !== undefined)
    const expiry = latest ? expires(latest) : now()
    await vi.advanceTimersByTimeAsync(typeof after === 'number' ? after : Math.max(0, expiry + after.expiry - now()))
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

/** The longest that a caller which stays can wait for a run, whatever the others do. */
const maxWaitMs = ({ event }: CallRecord): number => {
  const pauses = 4_000
  // A run in progress, one that the other lane begins first, and the own one.
  const trusted = (event.who.recognizedAfter ?? 0) + 3 * maxRunMs + pauses
  // Strangers also wait for the end of a result, and for their turn among all lanes, four a second.
  return event.who.name === 'stranger' ? trusted + lives[event.mode] + (allLanes / 4) * 1_000 : trusted
}
/** Modes, types of `crowd`, and for peers as well as for others. */
const allLanes = 3 * 5 * 2

test('H8 S8 simulated: whatever callers do, starts are bounded, everyone who stays is answered with a valid result, and no-cache with a later run', async () => {
  await fc.assert(
    fc.asyncProperty(scripts, fc.array(plans, { minLength: 1, maxLength: 8 }), async (script, outcomes) => {
      const { runs, calls, expires } = await play(script, outcomes)

      for (const group of Object.values(Object.groupBy(runs, ({ pair }) => pair))) {
        for (const [i, run] of (group ?? []).entries()) {
          const before = group?.slice(0, i) ?? []
          // The cost of each run decides, except for strangers and after a run that broke off.
          const pauseAfter = ({ plan: { durationMs, outcome } }: RunRecord): number =>
            run.forStrangers || outcome === 'breaks off' ? 1_000 : Math.min(1_000, Math.max(50, 9 * durationMs))
          for (const { startedAt } of before) {
            expect(run.startedAt - startedAt).toBeGreaterThanOrEqual(run.forStrangers ? 1_000 : 50)
          }
          // Only a run for a peer and another run may overlap.
          for (const { lane } of run.overlaps) expect(lane).not.toBe(run.lane)
          for (const other of before.filter((one) => !run.overlaps.includes(one))) {
            expect(run.startedAt - (other.endedAt ?? Number.NaN)).toBeGreaterThanOrEqual(pauseAfter(other))
          }
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
      // Also those that all callers have left.
      for (const { startedAt, endedAt, plan } of runs) expect(endedAt).toBe(startedAt + plan.durationMs)

      for (const one of calls) {
        const { event, ended, at, order, recognizedAt = at } = one
        if (!ended) throw new Error(`no answer: ${JSON.stringify(one)}`)
        expect(ended.at - at).toBeLessThanOrEqual(maxWaitMs(one))
        // The first run that may answer it: all who ask join that run.
        const first = runs.find(
          (run) =>
            run.lane === one.lane &&
            (run.order > order || (!event.fresh && run === one.running)) &&
            (run.endedAt ?? Number.NaN) >= recognizedAt,
        )
        if (!ended.run) {
          const brokeOff = first?.plan.outcome === 'breaks off' && first.endedAt === ended.at
          const hasty = event.patienceMs !== undefined && ended.at - recognizedAt >= event.patienceMs
          expect(one.left || hasty || brokeOff).toBe(true)
          continue
        }
        expect(ended.at).toBeLessThan(expires(ended.run))
        expect(ended.age).toBe(ended.at - (ended.run.endedAt ?? Number.NaN))
        if (event.fresh) expect(ended.run.order).toBeGreaterThan(order)
        if (!event.fresh && one.valid) expect([ended.run, ended.at]).toEqual([one.valid, one.at])
        else if (!event.fresh && ended.at < (ended.run.endedAt ?? 0)) throw new Error('answered before the run ended')
        else if (event.fresh || ended.run.endedAt === ended.at) expect(ended.run).toBe(first)
      }
    }),
    { numRuns: Number(process.env.SVC_PROVE === '1' ? 20_000 : 500) },
  )
})
