import { firstSeedOf, type Plant, plantedFolder } from './planted-folder.ts'
import { type Subject, scenarioOf, simulate } from './simulated-schedule.ts'

export const plants: readonly Plant[] = [
  {
    what: 'a run in progress is begun once more',
    file: 'due.ts',
    from: ': []\n}',
    to: ': depths\n}',
    rule: 'never doubled',
  },
  {
    what: "a caller's run in progress does not keep the schedule from running the same",
    file: 'due.ts',
    from: 'if (isInProgress(row, depth)) return Number.POSITIVE_INFINITY',
    to: '',
    rule: 'never doubled',
  },
  {
    what: 'a deeper run does not count for shallower ones',
    file: 'due.ts',
    from: 'if (!covers(depth, one)) continue',
    to: 'if (depth !== one) continue',
    rule: 'nothing needless',
  },
  {
    what: 'a shallower run counts for deeper ones',
    file: 'due.ts',
    from: 'if (!covers(depth, one)) continue',
    to: '',
    rule: 'no long gap',
  },
  {
    what: 'the phase begins anew with each start',
    file: 'timeline.ts',
    from: 'wall() - monotonic()',
    to: '0 * wall() - monotonic()',
    rule: 'phases kept',
    seed: 73,
  },
  {
    what: 'a due time is one interval after the last run',
    file: 'due.ts',
    from: 'return phase + (Math.floor((served - phase) / interval) + 1) * interval',
    to: 'return last + interval',
    rule: 'phases kept',
  },
  {
    what: 'a wall clock that is set moves the time line',
    file: 'timeline.ts',
    from: 'return () => origin + monotonic()',
    to: 'return () => wall() + 0 * origin',
    rule: 'no long gap',
  },
  {
    what: 'a run counts for any due time of its interval',
    file: 'due.ts',
    from: 'Math.min(5_000, every / 4)',
    to: 'every * 0.9',
    rule: 'no long gap',
  },
  {
    what: 'first runs begin at once',
    file: 'due.ts',
    from: '(untilShare < 0 ? untilShare + shortest : untilShare)',
    to: '0 * untilShare',
    rule: 'first runs',
    seed: 54,
  },
  {
    what: 'first runs are spread over the whole interval',
    file: 'due.ts',
    from: 'Math.min(spread, ...depths',
    to: 'Math.max(spread, ...depths',
    rule: 'first runs',
    seed: 54,
  },
  {
    what: 'the verdict of a process that stood still counts',
    file: 'stillness.ts',
    from: 'untilAt > from',
    to: 'untilAt > from + 1e9',
    rule: 'no false failure',
    seed: 101,
  },
  {
    what: 'a verdict that does not count is not repeated',
    file: 'due.ts',
    from: 'again: counts ? ended.again : repeated(row, depth, now)',
    to: 'again: ended.again',
    rule: 'repeated',
  },
  {
    what: 'a failure counts only after a quiet minute',
    file: 'stillness.ts',
    from: 'untilAt > from',
    to: 'untilAt > from - 60_000',
    rule: 'verdicts count',
  },
  {
    what: 'the shallowest depth that is due runs first',
    file: 'due.ts',
    from: 'const depth = due.at(-1)',
    to: 'const depth = due.at(0)',
    rule: 'never doubled',
  },
  {
    what: 'an order that is waiting keeps deeper ones waiting',
    file: 'due.ts',
    from: 'return order.beganAt === undefined ? depths.filter((depth) => !covers(order.depth, depth)) : []',
    to: 'return []',
    rule: 'no long gap',
    seed: 65,
  },
  {
    what: 'the heap keeps the place of a row whose due time has changed',
    file: 'schedule.ts',
    from: 'else this.#soonest.put(place)',
    to: 'else if (place.row.order !== undefined || place.row.covered.Standard === undefined) this.#soonest.put(place)',
    rule: 'no long gap',
  },
  {
    what: 'a deeper result serves callers as long as at its own depth',
    file: 'callers.ts',
    from: 'lifeFor(mode, outcome)',
    to: 'lifeFor(candidate.depth, outcome)',
    rule: 'never stale',
  },
  {
    what: 'a failure serves callers as long as a success',
    file: 'callers.ts',
    from: 'lifeFor(mode, outcome)',
    to: "lifeFor(mode, 'passed')",
    rule: 'never stale',
  },
  {
    what: 'a shallower result serves callers',
    file: 'callers.ts',
    from: 'rank(depth) >= rank(mode) && ',
    to: '',
    rule: 'deep enough',
  },
  {
    what: 'a caller with no-cache gets what began earlier',
    file: 'callers.ts',
    from: ' && begunAt >= notBefore',
    to: '',
    rule: 'no-cache',
  },
  {
    what: 'a caller joins nothing that is in progress',
    file: 'callers.ts',
    from: 'endedAt === undefined && joinable)',
    to: 'endedAt === undefined && !joinable)',
    rule: 'served',
  },
  {
    what: 'an early run of a caller keeps each later result from lasting until the next',
    file: 'due.ts',
    from: 'servesNoLater(by, every, one) ? at - earlyMs(every) : at',
    to: 'at + 0 * Number(servesNoLater(by, every, one))',
    rule: 'no long gap',
  },
  {
    what: 'a caller waits for a shallower run than it needs',
    file: 'schedule.ts',
    from: 'return due !== undefined && covers(due.depth, depth)',
    to: 'return due !== undefined',
    rule: 'owed',
  },
  {
    what: 'lateness is not reported for runs that waited for their slots',
    file: 'schedule.ts',
    from: 'const lateMs = Math.max(0, now - readyAt)',
    to: 'const lateMs = 0 * Math.max(0, now - readyAt)',
    rule: 'lateness',
  },
]

const callers = new URL('../../../src/core/checks/engine/callers.ts', import.meta.url)

/** Loads the schedule with a defect. */
export async function planted(plant: Plant): Promise<{ subject: Subject; remove: () => void }> {
  const { index, load, remove } = await plantedFolder<object>('schedule', plant, [callers])
  return { subject: { ...index, ...(await load('callers.ts')) } as Subject, remove }
}

/** The first seed in which the rule of a defect is broken. */
export const firstSeed = (subject: Subject, plant: Plant, seeds: readonly number[]): number | undefined =>
  firstSeedOf(plant, seeds, (seed) => simulate(subject, seed, scenarioOf(seed)).violations)
