import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { MissingPrivilegeError, ProbeError } from '../../../src/core/base/probe-error.ts'
import {
  type AnyKind,
  atMost,
  type CheckContext,
  checksOn,
  fail,
  loadServing,
  loadSignIns,
  networkKind,
  ok,
  type PlannedMonitor,
  type RunOptions,
  runIncludes,
  runMonitors,
  warn,
} from '../../../src/core/checks/engine/index.ts'
import { isDeclaredBy, runDocument } from '../../../src/core/checks/reports/index.ts'
import { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { engineFixture } from '../../support/engine/engine-fixture.ts'
import { isQuick } from '../../support/suite/tier.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => vi.useRealTimers())

const { servingFrom } = await loadServing()
// Simulated time passes faster than files load.
await loadSignIns()

/** The behaviour of the simulated peer, at each look of a check. */
const behaviours = [
  'passes',
  'passes',
  'passes',
  'passes',
  'warns',
  'exceeds its limit',
  'finds wrong data',
  'throws',
  'loses the connection',
  'may not read',
  'hangs',
  'takes 6 s',
  'is deeper in Standard',
  'is deeper in Advanced',
  'reads the mode',
] as const
type Behaviour = (typeof behaviours)[number]
type SimulatedCheck = {
  readonly depth: ExecutionMode
  readonly behaviour: Behaviour
  readonly gate: boolean
  /** Observed together with the check before it. */
  readonly together: boolean
}
type Connection = { usable: boolean; readonly close: () => void }

const never = new AbortController().signal

/** A kind whose checks find what their behaviours say, and how often it ran. */
function kindOf(checks: readonly SimulatedCheck[], signsInFrom: ExecutionMode | undefined) {
  const counts = { runs: 0 }
  const check = checksOn<Connection>()
  const look = (behaviour: Behaviour) => async (connection: Connection, _: unknown, context: CheckContext) => {
    if (behaviour === 'throws') throw new ProbeError('protocol', 'no sense')
    if (behaviour === 'may not read') throw new MissingPrivilegeError('may not read', [])
    if (behaviour === 'loses the connection') {
      connection.usable = false
      throw new ProbeError('protocol', 'the connection ended')
    }
    if (behaviour === 'hangs') await new Promise(() => {})
    if (behaviour === 'takes 6 s') await new Promise((resolve) => setTimeout(resolve, 6_000))
    if (behaviour === 'is deeper in Standard') return `standard ${runIncludes(context, 'Standard')}`
    if (behaviour === 'is deeper in Advanced') return `advanced ${runIncludes(context, 'Advanced')}`
    if (behaviour === 'reads the mode') return context.mode
    return behaviour
  }
  let shared = look('passes')
  const declared = checks.map(({ depth, behaviour, gate, together }, at) => {
    const name = `check ${at}`
    shared = together ? shared : look(behaviour)
    return check({
      depth,
      results: { [name]: name },
      settings: {},
      ...(gate ? { gate: true as const } : {}),
      observe: shared,
      evaluate: (text) => {
        if (behaviour === 'warns') return warn(name, text)
        if (behaviour === 'finds wrong data') return fail(name, 'data', text)
        if (behaviour === 'exceeds its limit')
          return atMost({ check: name, value: 7, unit: 'count', threshold: { limit: 5 } })
        return ok(name, text)
      },
    })
  })
  const made = networkKind({
    name: 'simulated',
    title: 'finds what the test says',
    settings: {},
    target: () => ({ host: '10.0.0.1', port: 1 }),
    signsIn: (_, mode) =>
      signsInFrom && ExecutionMode.values.indexOf(mode) >= ExecutionMode.values.indexOf(signsInFrom)
        ? { account: 'ann', secrets: ['secret'] }
        : undefined,
    connect: {
      results: { connect: 'it connects' },
      open: async () => ({ usable: true, close: () => {} }),
      evaluate: () => ok('connect', 'connected'),
    },
    checks: declared,
  })
  const kind: AnyKind = {
    ...(made as unknown as AnyKind),
    run: (settings, context) => {
      counts.runs += 1
      return made.run(settings as never, context)
    },
  }
  return { kind, counts }
}

const plannedOf = (kind: AnyKind): PlannedMonitor => ({
  name: 'simulated',
  kind,
  settings: {},
  depth: 'Basic',
  host: false,
  dependsOn: [],
  retries: 0,
  deployment: false,
})

/** Lets the simulated time pass until a promise settles. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false
  const watched = promise.finally(() => {
    isSettled = true
  })
  while (!isSettled) {
    await new Promise((resolve) => setImmediate(resolve))
    await vi.advanceTimersByTimeAsync(100)
  }
  return await watched
}

/** The document that a caller reads, without times and ids. */
function documentOf(run: Awaited<ReturnType<typeof runMonitors>>) {
  const document = runDocument(run, { type: 'Sql', correlationId: '', flags: {}, view: 'full' })
  return {
    ...document,
    runId: '',
    startedAt: undefined,
    endedAt: undefined,
    durationMs: 0,
    monitors: document.monitors.map((monitor) => ({ ...monitor, durationMs: 0 })),
  }
}

function fixture() {
  const context = engineFixture()
  const serving = servingFrom(context, isDeclaredBy)
  const run = (one: PlannedMonitor, options: Partial<RunOptions> & { readonly mode: ExecutionMode }) =>
    runMonitors([one], { ...context, serving }, { signal: never, notBefore: Number.NEGATIVE_INFINITY, ...options })
  return { run, serving }
}

const depth = fc.constantFrom(...ExecutionMode.values)
const checks = fc.array(
  fc.record({
    depth,
    behaviour: fc.constantFrom(...behaviours),
    gate: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    together: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  }),
  { minLength: 1, maxLength: 5 },
)
const pairs = fc.constantFrom<readonly [ExecutionMode, ExecutionMode]>(
  ['Basic', 'Standard'],
  ['Basic', 'Advanced'],
  ['Standard', 'Advanced'],
)
/** From which depth on the monitor signs in. While one run signs in, another one with its account waits in any case. */
const signsInFrom = (state: string) =>
  state === 'has ended' ? fc.constantFrom(undefined, undefined, ...ExecutionMode.values) : fc.constant(undefined)

describe('W2 simulated: the document of a served answer equals that of an own run at the same moment', () => {
  test.each(['has ended', 'is in progress'])('while the deeper run %s', async (state) => {
    let served = 0
    let other = 0
    let composed = 0
    await fc.assert(
      fc.asyncProperty(checks, pairs, signsInFrom(state), async (some, [mode, deeper], from) => {
        const own = await settled(fixture().run(plannedOf(kindOf(some, from).kind), { mode }))
        const { run, serving } = fixture()
        const { kind, counts } = kindOf(some, from)
        const monitor = plannedOf(kind)
        const scheduled = run(monitor, { mode: deeper, cause: 'schedule' })
        if (state === 'has ended') await settled(scheduled)
        else await vi.advanceTimersByTimeAsync(0)
        const answer = await settled(run(monitor, { mode }))
        if (counts.runs === 1) served += 1
        else other += 1
        expect(documentOf(answer)).toEqual(documentOf(own))
        await settled(scheduled)
        const runs = counts.runs
        const pinned = serving.allFor([monitor], mode, performance.now())?.chosen
        if (!pinned) return
        const ofEnded = serving.runOfEnded([monitor], { mode, pinned }, performance.now())
        if (ofEnded) composed += 1
        expect(ofEnded ? documentOf(ofEnded) : documentOf(own)).toEqual(documentOf(own))
        expect(documentOf(await settled(run(monitor, { mode, pinned })))).toEqual(documentOf(own))
        expect(counts.runs).toBe(runs)
      }),
      { numRuns: process.env.SVC_PROVE === '1' ? 20_000 : isQuick() ? 150 : 300 },
    )
    // Both have to occur; how often is up to chance.
    expect(Math.min(served, other, composed)).toBeGreaterThan(0)
  })
})

test.each([
  ['passes', undefined, true],
  ['passes', 60_000, true],
  ['warns', undefined, true],
  ['warns', 60_000, false],
  ['exceeds its limit', 60_000, false],
  ['finds wrong data', undefined, false],
] as const)(
  'W2 a caller gets the report of a check that %s with for: %s without a run: %s',
  async (behaviour, forMs, isServed) => {
    const { run, serving } = fixture()
    const { kind } = kindOf([{ depth: 'Basic', behaviour, gate: false, together: false }], undefined)
    const monitor = { ...plannedOf(kind), forMs }
    const own = await settled(run(monitor, { mode: 'Standard', cause: 'schedule' }))
    const pinned = serving.allFor([monitor], 'Standard', performance.now())?.chosen
    const served = serving.runOfEnded([monitor], { mode: 'Standard', pinned }, performance.now())
    expect(served?.monitors[0] === own.monitors[0]).toBe(isServed)
  },
)

test('W2 what waits for its slot is about to begin, and what nobody has begun is not unless the schedule owes it', async () => {
  const { run, serving } = fixture()
  const { kind } = kindOf([{ depth: 'Basic', behaviour: 'takes 6 s', gate: false, together: false }], undefined)
  // Four monitors at a time per host.
  const monitors = Array.from({ length: 5 }, (_, at) => ({ ...plannedOf(kind), name: `${at}`, settings: { at } }))
  const running = monitors.map((one) => run(one, { mode: 'Standard', cause: 'schedule' }))
  await vi.advanceTimersByTimeAsync(0)
  const all = (isOwed?: () => boolean) => {
    const choice = serving.allFor(monitors, 'Standard', performance.now(), isOwed)
    return choice && [choice.chosen.size, choice.missing.map(({ name }) => name)]
  }
  expect(all()).toEqual([4, ['4']])
  await settled(Promise.all(running))
  expect(all()).toEqual([5, []])
  await vi.advanceTimersByTimeAsync(10_000)
  expect(all()).toBeUndefined()
  expect(all(() => true)).toEqual([0, ['0', '1', '2', '3', '4']])
})
