import type * as Callers from '../../../src/core/checks/engine/callers.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import type * as Shipped from '../../../src/core/watch/schedule/index.ts'
import { Chance } from './chance.ts'
import { Queue } from './queue.ts'
import { minute, second, Trial, type Outcome as TrialOutcome } from './trial.ts'

/** The schedule, and what serves callers beside it: the shipped ones, or one of them with a defect. */
export type Subject = Pick<typeof Shipped, 'Schedule' | 'timelineOf' | 'beatMs'> & Pick<typeof Callers, 'sourceFor'>

export type Scenario = {
  readonly monitors: number
  readonly minutes: number
  /** How many runs the machine carries at a time. */
  readonly slots: number
  readonly freezes: boolean
  readonly callers: boolean
  readonly restarts: boolean
  readonly clockJumps: boolean
}

export type Outcome = Omit<TrialOutcome, 'counts'> & {
  readonly runs: number
  /** How many monitors callers got without a run. */
  readonly served: number
  readonly highestLateMs: number
}

const depths: readonly ExecutionMode[] = ['Basic', 'Standard', 'Advanced']
const ranks: Readonly<Record<ExecutionMode, number>> = { Basic: 0, Standard: 1, Advanced: 2 }
/** The same depths, as the machine takes them. */
const deepestFirst = depths.toReversed()
const rank = (depth: ExecutionMode): number => ranks[depth]
const includes = (depth: ExecutionMode, other: ExecutionMode): boolean => rank(depth) >= rank(other)
/** The deadline of a monitor in svc. */
const deadlineMs = { Basic: 5 * second, Standard: 10 * second, Advanced: 30 * second }

/** The scenario of a seed. */
export function scenarioOf(seed: number): Scenario {
  const chance = new Chance(seed * 7 + 3)
  const monitors = seed % 40 === 0 ? 3_000 : chance.between(1, 90)
  return {
    monitors,
    minutes: monitors > 500 ? 3 : chance.between(8, 20),
    // Every fifth machine is too slow for what it has to do.
    slots: seed % 5 === 0 ? Math.max(1, Math.floor(monitors / 40)) : 4_000,
    freezes: chance.is(0.4),
    callers: chance.is(0.6),
    restarts: chance.is(0.3),
    clockJumps: chance.is(0.5),
  }
}

type Peer = {
  readonly key: string
  readonly every: { readonly [D in ExecutionMode]?: number }
  readonly latencyMs: number
  readonly isHung: boolean
  /** When it was down, in monotonic milliseconds. */
  readonly down: readonly { readonly from: number; readonly to: number }[]
}

function peersOf({ monitors, minutes }: Scenario, chance: Chance): readonly Peer[] {
  const intervals = [
    () => ({ Standard: minute, Advanced: 10 * minute }),
    () => ({ Standard: minute, Advanced: 10 * minute }),
    () => ({ Standard: 10 * second }),
    () => ({ Basic: 5 * second, Standard: 30 * second, Advanced: 5 * minute }),
    () => ({ Advanced: 6 * minute }),
    () => ({ Standard: chance.between(10 * second, 2 * minute), Advanced: chance.between(3 * minute, 8 * minute) }),
  ]
  return Array.from({ length: monitors }, (_, at) => {
    const isHung = chance.is(0.03)
    const downAt = chance.between(0, minutes * minute)
    return {
      key: `Sql/postgres/${at}`,
      every: chance.of(intervals)(),
      latencyMs: chance.is(0.1) ? chance.between(500, 4_000) : chance.between(2, 60),
      isHung,
      down: isHung
        ? [{ from: 0, to: Number.POSITIVE_INFINITY }]
        : chance.is(0.2)
          ? [{ from: downAt, to: downAt + chance.between(second, 3 * minute) }]
          : [],
    }
  })
}

type Run = {
  readonly peer: Peer
  readonly depth: ExecutionMode
  readonly by: 'schedule' | 'caller'
  readonly order: Shipped.Order | undefined
  /** When it could have begun at the earliest. */
  readonly readyAt: number
  beganAt: number | undefined
}

/** The facts of the rules about a monitor, from their observations and not from the schedule. */
type Facts = {
  /** The beginning of the latest run that counts, at each depth, in this life of the process. */
  readonly began: Map<ExecutionMode, number>
  /** The latest due time that a run has served, at each depth. */
  readonly servesUntil: Map<ExecutionMode, number>
  /** The end of the latest run. */
  freeAt: number
  readonly running: Set<Run>
  /** The verdict of its latest run did not count, since this time. */
  repeatSince: number | undefined
  repeatDepth: ExecutionMode
  /** How long runs have been in progress since the latest beginning, at each depth. */
  readonly busyMs: Map<ExecutionMode, number>
}

/** The result of a run that callers may get. */
type Observed = {
  readonly depth: ExecutionMode
  readonly begunAt: number
  endedAt: number | undefined
  verdict: 'passed' | 'failed' | 'none' | undefined
}
/** How long a result serves callers, as the interface of svc promises. A failure serves for a quarter of it. */
const servesMs = { Basic: 2 * second, Standard: 10 * second, Advanced: minute }

const toleranceMs = 5

/** One process with a schedule, its machine, its peers and its callers, for some simulated minutes. */
export function simulate(subject: Subject, seed: number, scenario: Scenario, keepLines = false): Outcome {
  const queue = new Queue()
  const chance = new Chance(seed)
  /** Of its own, so that a scenario without jumps is the same otherwise. */
  const jumps = new Chance(seed + 1_000_003)
  const peers = peersOf(scenario, chance)
  const trial = new Trial(queue, keepLines)
  const { trace, broken } = trial
  let runs = 0
  let served = 0
  let highestLateMs = 0
  let wallAhead = 1_700_000_000_000 + chance.between(0, 10 * minute)
  // With one slot for one monitor, a caller's run keeps the schedule waiting.
  const isSlow = scenario.slots <= scenario.monitors
  const endAt = scenario.minutes * minute
  /** The due times of each monitor and depth, modulo the interval: the same in all lives of the process. */
  const phases = new Map<string, number>()
  const freezes: { readonly from: number; readonly to: number }[] = []
  const frozenIn = (from: number, to: number): number =>
    freezes.reduce((sum, one) => sum + Math.max(0, Math.min(to, one.to) - Math.max(from, one.from)), 0)

  const earlyMs = (interval: number): number => Math.min(5 * second, interval / 4)

  // One life of the process.
  let kill = (): void => {}
  const live = (): void => {
    let isDead = false
    let isFrozen = false
    let frozenUntil = 0
    let lastFrozeAt = Number.NEGATIVE_INFINITY
    let lastThawAt = Number.NEGATIVE_INFINITY
    let isFrozenLong = false
    const deferred: (() => void)[] = []
    const startedAt = queue.now
    const now = subject.timelineOf({ wall: () => queue.now + wallAhead, monotonic: () => queue.now })
    /** The offset that the rules add to a monotonic time to compare it with those of the schedule. */
    const origin = queue.now + wallAhead - queue.now
    /** A time of the schedule, by the monotonic clock. */
    const monotonic = (time: number): number => time - now() + queue.now
    const schedule = new subject.Schedule(now())
    const factsByKey = new Map<string, Facts>(
      peers.map(({ key }) => [
        key,
        {
          began: new Map(),
          servesUntil: new Map(),
          freeAt: queue.now,
          running: new Set(),
          repeatSince: undefined,
          repeatDepth: 'Basic',
          busyMs: new Map(),
        },
      ]),
    )
    /** The latest observation of each monitor at each depth. */
    const observed = new Map<string, Map<ExecutionMode, Observed>>(peers.map(({ key }) => [key, new Map()]))
    const factsOf = (key: string): Facts => {
      const one = factsByKey.get(key)
      if (!one) throw new Error(`no monitor ${key}`)
      return one
    }
    /** Everything that the process does passes here: it may be dead or frozen. */
    const enter = (work: () => void): void => {
      if (isDead) return
      if (isFrozen) deferred.push(work)
      else work()
    }
    const after = (ms: number, work: () => void): (() => void) => queue.after(ms, () => enter(work))

    // The machine: so many runs at a time, the deepest first, and of one depth the one that has waited longest.
    const waiting = new Map<Peer, Run>()
    const waitingAt = new Map(deepestFirst.map((depth) => [depth, new Set<Run>()]))
    let inProgress = 0
    const wait = (run: Run): void => {
      waiting.set(run.peer, run)
      waitingAt.get(run.depth)?.add(run)
    }
    const waitNoLonger = (run: Run): void => {
      waiting.delete(run.peer)
      waitingAt.get(run.depth)?.delete(run)
    }
    const nextWaiting = (): Run | undefined => {
      for (const runs of waitingAt.values()) for (const run of runs) return run
      return undefined
    }
    const admit = (): void => {
      while (inProgress < scenario.slots) {
        const run = nextWaiting()
        if (!run) return
        waitNoLonger(run)
        beginRun(run)
      }
    }

    const beginRun = (run: Run): void => {
      const { peer, depth, by, order } = run
      const at = queue.now
      inProgress += 1
      run.beganAt = at
      const facts = factsOf(peer.key)
      const late = schedule.began({ key: peer.key, depth, by, now: now() })
      if (order) checkLateness(order, run.readyAt, late)
      if (
        facts.repeatSince !== undefined &&
        !isSlow &&
        at - facts.repeatSince > second + busyOf(facts, facts.repeatDepth, at) &&
        at - lastThawAt > second
      ) {
        broken('repeated', `${peer.key} was repeated after ${at - facts.repeatSince} ms`)
      }
      // A caller's run repeats it as well.
      if (by === 'schedule' || includes(depth, facts.repeatDepth)) facts.repeatSince = undefined
      for (const one of depths) if (includes(depth, one)) checkGap(peer, one, facts, at, late ?? at - readyOf(peer, at))
      for (const one of depths) {
        const before = facts.servesUntil.get(one) ?? 0
        if (includes(depth, one)) facts.servesUntil.set(one, Math.max(before, at + mayBeEarly(peer, one, by)))
      }
      facts.running.add(run)
      const observation: Observed = { depth, begunAt: at, endedAt: undefined, verdict: undefined }
      observed.get(peer.key)?.set(depth, observation)
      trace(`began ${by} ${peer.key} ${depth} late ${late ?? '-'}`)
      runs += 1
      highestLateMs = Math.max(highestLateMs, late ?? 0)
      const isDown = (from: number, to: number): boolean => peer.down.some((one) => one.from <= to && one.to >= from)
      const takes = isDown(at, at + peer.latencyMs) && chance.is(0.5) ? deadlineMs[depth] : peer.latencyMs
      const isStarved = by === 'caller' && chance.is(0.02)
      const failsIfFrozen = chance.is(0.5)
      after(takes, () => {
        const endedAt = queue.now
        inProgress -= 1
        facts.running.delete(run)
        const wasFrozen = lastThawAt > at && isFrozenLong
        const isReallyDown = isDown(at, endedAt)
        const failed = isReallyDown || (wasFrozen && failsIfFrozen)
        observation.endedAt = endedAt
        observation.verdict = isStarved ? 'none' : failed ? 'failed' : 'passed'
        const counts = schedule.ended({
          key: peer.key,
          depth,
          by,
          now: now(),
          beganAt: now() - (endedAt - at),
          failed,
          hadTime: !isStarved,
        })
        if (counts && failed && !isReallyDown)
          broken('no false failure', `${peer.key} failed while the process stood still`)
        if (!counts && failed && !isStarved && !(lastThawAt > at))
          broken('verdicts count', `${peer.key} failed and was not believed`)
        if (!counts && !failed && !isStarved) broken('verdicts count', `${peer.key} passed and was not believed`)
        // A caller's may be deeper than what the schedule runs.
        const own = deepestFirst.find((one) => includes(depth, one) && peer.every[one] !== undefined)
        if (!counts && own !== undefined) {
          facts.repeatSince = endedAt
          facts.repeatDepth = own
        }
        for (const one of depths)
          facts.busyMs.set(one, (facts.busyMs.get(one) ?? 0) + endedAt - Math.max(at, facts.began.get(one) ?? at))
        facts.freeAt = endedAt
        trace(
          `ended ${by} ${peer.key} ${depth} ${failed ? 'failed' : 'passed'} ${counts ? 'counts' : 'does not count'}`,
        )
        admit()
        tick()
      })
    }

    /** A caller's run keeps the schedule from none where each of its results is to last until the next one. */
    const mayBeEarly = ({ every }: Peer, depth: ExecutionMode, by: Run['by']): number => {
      const interval = every[depth] ?? 0
      return by === 'caller' && interval <= servesMs[depth] ? 0 : earlyMs(interval)
    }

    const busyOf = (facts: Facts, depth: ExecutionMode, at: number): number => {
      let busy = facts.busyMs.get(depth) ?? 0
      for (const { beganAt = at } of facts.running) busy += at - Math.max(beganAt, facts.began.get(depth) ?? beganAt)
      return busy
    }

    /** Since when an order of this monitor is waiting. */
    const readyOf = (peer: Peer, otherwise: number): number =>
      isSlow ? (waiting.get(peer)?.readyAt ?? otherwise) : otherwise

    const checkLateness = (order: Shipped.Order, readyAt: number, late: number | undefined): void => {
      const expected = Math.max(0, queue.now - readyAt)
      if (late === undefined || Math.abs(late - expected) > toleranceMs) {
        broken('lateness', `${order.key} was ${expected} ms late, and ${late} ms were reported`)
      }
      if (!isSlow && lastThawAt < readyAt && frozenIn(readyAt, queue.now) === 0 && expected > second) {
        broken('on time', `${order.key} was ${expected} ms late on an idle machine`)
      }
    }

    const checkGap = (peer: Peer, depth: ExecutionMode, facts: Facts, at: number, late: number): void => {
      const interval = peer.every[depth]
      const before = facts.began.get(depth)
      if (interval !== undefined) {
        const allowed =
          before === undefined ? 30 * second : interval + Math.max(0, (facts.servesUntil.get(depth) ?? 0) - before)
        const gap = at - (before ?? startedAt)
        if (gap > allowed + busyOf(facts, depth, at) + late + frozenIn(at - gap, at) + toleranceMs) {
          broken('no long gap', `${peer.key} ${depth} did not run for ${gap} ms, ${late} late`)
        }
      }
      facts.began.set(depth, at)
      facts.busyMs.set(depth, 0)
    }

    /** When a depth is due at the latest, as far as the rules have learned its phase. */
    const expectedDue = (peer: Peer, depth: ExecutionMode): number | undefined => {
      const interval = peer.every[depth]
      const phase = phases.get(`${peer.key} ${depth}`)
      const last = factsOf(peer.key).began.get(depth)
      if (interval === undefined || phase === undefined || last === undefined) return undefined
      const served = origin + (factsOf(peer.key).servesUntil.get(depth) ?? last)
      return phase + (Math.floor((served - phase) / interval) + 1) * interval - origin
    }

    /** The runs that callers wait for, because the schedule owes them. */
    const owed = new Map<string, ExecutionMode>()

    const checkOrder = (order: Shipped.Order, peer: Peer): void => {
      const { key, depth } = order
      const facts = factsOf(key)
      const at = queue.now
      const dueAt = monotonic(order.dueAt)
      for (const run of facts.running) {
        if (run.by === 'schedule') broken('never doubled', `${key} ${depth} beside a run of the schedule`)
        else if (includes(run.depth, depth)) broken('never doubled', `${key} ${depth} beside a caller's ${run.depth}`)
      }
      const waits = waiting.get(peer)
      if (waits && includes(waits.depth, depth)) {
        broken('never doubled', `${key} ${depth} is waiting already`)
      }
      if (dueAt > at + toleranceMs) broken('not early', `${key} ${depth} was due in ${dueAt - at} ms`)
      const isRepeat = facts.repeatSince !== undefined
      const isFirst = !facts.began.has(depth)
      const interval = peer.every[depth]
      if (interval === undefined && !isRepeat) broken('own intervals', `${key} has no interval for ${depth}`)
      if (isRepeat || isFirst || interval === undefined) return
      const expected = expectedDue(peer, depth)
      if (expected !== undefined && expected > at + toleranceMs) {
        broken(
          'nothing needless',
          `${key} ${depth} was due in ${expected - at} ms: a run ${at - (facts.began.get(depth) ?? 0)} ms ago serves it`,
        )
      }
      for (const deeper of depths) {
        if (deeper === depth || !includes(deeper, depth)) continue
        const due = expectedDue(peer, deeper)
        if (due !== undefined && due <= at - toleranceMs)
          broken('deepest first', `${key} ${depth} was run while ${deeper} was due`)
      }
      const serves = depths.filter((one) => includes(depth, one) && peer.every[one] !== undefined)
      if (serves.length === 1) learnPhase(key, depth, dueAt + origin, interval)
    }

    const learnPhase = (key: string, depth: ExecutionMode, dueAt: number, interval: number): void => {
      const phase = ((dueAt % interval) + interval) % interval
      const name = `${key} ${depth}`
      const before = phases.get(name)
      if (before === undefined) phases.set(name, phase)
      else if (Math.min(Math.abs(phase - before), interval - Math.abs(phase - before)) > toleranceMs) {
        broken('phases kept', `${name} was due at ${phase} ms of its interval, and at ${before} ms before`)
      }
    }

    const checkOwed = (key: string, depth: ExecutionMode): void => {
      const peer = byKey.get(key)
      const run = peer && (waiting.get(peer) ?? [...factsOf(key).running].find(({ by }) => by === 'schedule'))
      if (!run || !includes(run.depth, depth)) broken('owed', `a caller of ${depth} waits in vain for a run of ${key}`)
    }

    let cancelTimer = (): void => {}
    const tick = (): void => {
      cancelTimer()
      const { orders, nextAt } = schedule.tick(now())
      let depthBefore = Number.POSITIVE_INFINITY
      for (const order of orders) {
        const peer = byKey.get(order.key)
        if (!peer) throw new Error(`no monitor ${order.key}`)
        checkOrder(order, peer)
        if (rank(order.depth) > depthBefore)
          broken('deepest first', `${order.key} ${order.depth} after a shallower one`)
        depthBefore = rank(order.depth)
        const replaced = waiting.get(peer)
        if (replaced) waitNoLonger(replaced)
        const ready = Math.max(monotonic(order.dueAt), factsOf(peer.key).freeAt)
        const readyAt = Math.min(ready, replaced?.readyAt ?? ready)
        wait({ peer, depth: order.depth, by: 'schedule', order, readyAt, beganAt: undefined })
      }
      for (const [key, depth] of owed) checkOwed(key, depth)
      owed.clear()
      admit()
      if (nextAt < Number.POSITIVE_INFINITY) cancelTimer = after(Math.max(1, Math.ceil(nextAt - now())), tick)
    }

    const beat = (): void => {
      schedule.beat(now())
      after(subject.beatMs, beat)
    }

    /** Of an observation, what a caller of this depth may use: a deeper failure may have kept its checks from running. */
    const candidateFor = (
      request: ExecutionMode,
      one: Observed,
    ): Callers.ServingCandidate & { readonly of: Observed } => {
      const { depth, begunAt, endedAt, verdict } = one
      const isUsable = verdict === 'passed' || (verdict === 'failed' && depth === request)
      return { depth, begunAt, endedAt, joinable: true, outcome: verdict && (isUsable ? verdict : 'unusable'), of: one }
    }

    const checkServed = (
      { key }: Peer,
      request: { readonly depth: ExecutionMode; readonly isFresh: boolean },
      { of: one }: { readonly of: Observed },
    ): void => {
      const age = one.endedAt === undefined ? 0 : queue.now - one.endedAt
      const allowed = one.verdict === 'failed' ? servesMs[request.depth] / 4 : servesMs[request.depth]
      if (age >= allowed)
        broken('never stale', `a caller of ${request.depth} got a result of ${key} that was ${age} ms old`)
      if (!includes(one.depth, request.depth)) {
        broken('deep enough', `a caller of ${request.depth} got a result of ${key} at ${one.depth}`)
      }
      if (request.isFresh && one.begunAt < queue.now) broken('no-cache', `a run of ${key} that began earlier served it`)
    }

    const call = (): void => {
      const depth = chance.of(depths)
      const share = chance.next()
      const isFresh = chance.is(0.2)
      for (const peer of peers) {
        if (!chance.is(share)) continue
        const candidates = [...(observed.get(peer.key)?.values() ?? [])].map((one) => candidateFor(depth, one))
        const notBefore = isFresh ? queue.now : Number.NEGATIVE_INFINITY
        const source = subject.sourceFor({ mode: depth, now: queue.now, notBefore }, candidates)
        if (source.from !== 'run') {
          checkServed(peer, { depth, isFresh }, source.candidate)
          served += 1
          trace(`served ${peer.key} ${depth} from ${source.from} at ${source.candidate.depth}`)
          continue
        }
        const serves = candidates.filter(({ of: one }) => includes(one.depth, depth) && !isFresh)
        const isNeedless = serves.some(
          ({ of: one, outcome }) =>
            one.endedAt === undefined || (outcome === 'passed' && queue.now - one.endedAt < servesMs[depth]),
        )
        if (isNeedless)
          broken('served', `a caller of ${depth} ran ${peer.key} in spite of a result or a run in progress`)
        if (!isFresh && schedule.owes(peer.key, depth, now())) {
          owed.set(peer.key, depth)
          trace(`owed ${peer.key} ${depth}`)
          continue
        }
        if (inProgress >= scenario.slots) continue
        // With no-cache, it may run beside a run of the schedule, and is not joined by the schedule.
        beginRun({ peer, depth, by: 'caller', order: undefined, readyAt: queue.now, beganAt: undefined })
      }
      if (owed.size > 0) tick()
      after(chance.between(200, 40 * second), call)
    }

    const freeze = (): void => {
      const ms = chance.of([300, 900, 1_500, 5_000, 70_000])
      lastFrozeAt = queue.now
      isFrozen = true
      frozenUntil = queue.now + ms
      freezes.push({ from: queue.now, to: frozenUntil })
      trace(`frozen for ${ms}`)
      queue.after(ms, () => {
        if (isDead) return
        isFrozen = false
        lastThawAt = queue.now
        isFrozenLong = queue.now - lastFrozeAt > second
        // Nobody knows which timer fires first.
        const work = deferred.splice(0)
        for (let left = work.length; left > 0; left -= 1)
          enter(work.splice(chance.between(0, left), 1)[0] ?? (() => {}))
      })
      after(ms + chance.between(20 * second, 4 * minute), freeze)
    }

    kill = () => {
      isDead = true
      trace('killed')
    }
    const byKey = new Map(peers.map((peer) => [peer.key, peer]))
    trace('started')
    for (const peer of peers) schedule.watch(peer, now())
    checkSpread(schedule)
    after(subject.beatMs, beat)
    if (scenario.callers) after(chance.between(0, 20 * second), call)
    if (scenario.freezes) after(chance.between(10 * second, 3 * minute), freeze)
    tick()
    if (scenario.restarts) queue.after(chance.between(minute, 6 * minute), restart)
    queue.at(endAt - 1, () => {
      if (isDead) return
      const isDisturbed = isSlow || frozenUntil > queue.now - minute || lastThawAt > queue.now - 2 * minute
      if (isDisturbed) return
      for (const peer of peers) {
        for (const depth of depths) {
          const facts = factsOf(peer.key)
          const interval = peer.every[depth]
          if (interval === undefined) continue
          const before = facts.began.get(depth)
          const allowed = before === undefined ? 30 * second : interval + earlyMs(interval)
          const gap = queue.now - (before ?? startedAt)
          if (gap > allowed + busyOf(facts, depth, queue.now) + second) {
            broken('everything runs', `${peer.key} ${depth} has not run for ${gap} ms`)
          }
        }
      }
      if (!schedule.lateness(now()).keepsUp && !scenario.freezes) broken('keeps up', 'an idle machine does not keep up')
    })

    function checkSpread(fresh: InstanceType<Subject['Schedule']>): void {
      if (peers.length < 60) return
      // A copy that only looks: ticking takes orders away.
      const copy = new subject.Schedule(now())
      for (const peer of peers) copy.watch(peer, now())
      let most = 0
      let sum = 0
      for (let at = 0; at <= 30; at += 1) {
        const { length } = copy.tick(now() + at * second).orders
        most = Math.max(most, length)
        sum += length
      }
      if (sum < fresh.size) broken('first runs', `${fresh.size - sum} monitors are not due within 30 s of the start`)
      if (most > fresh.size / 3) broken('first runs', `${most} of ${fresh.size} monitors begin within one second`)
    }
  }

  const restart = (): void => {
    kill()
    queue.after(chance.between(0, 20 * second), live)
  }
  const jump = (): void => {
    wallAhead += jumps.of([-86_400_000, 86_400_000, 3_600_000, -3_600_000, -40 * 86_400_000, 90])
    queue.after(jumps.between(30 * second, 5 * minute), jump)
  }
  if (scenario.clockJumps) queue.after(jumps.between(second, minute), jump)
  live()
  queue.runUntil(endAt)
  return { ...trial.outcome(), runs, served, highestLateMs }
}
