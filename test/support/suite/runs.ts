import { isQuick } from './tier.ts'

/** Whether this is `npm run prove`, which does everything as often as the specification asks for. */
export const proving = process.env['SVC_PROVE'] === '1'

/**
 * How many runs a property of fast-check has: the whole number in `npm run prove` and in the slow tier, and a sixteenth of it in the
 * quick one, which draws others each time.
 */
export const runsOf = (whole: number): number => (proving || !isQuick() ? whole : Math.ceil(whole / 16))

/** `SVC_SEEDS=100001-110000`: the seeds in place of the usual ones, for somebody who looks for new ones. */
const [from, to] = process.env['SVC_SEEDS']?.split('-').map(Number) ?? []

/** The seeds from the first one on: as many as the slow tier simulates, and in `npm run prove` all of them. */
export const seedsFrom = (first: number, { slow, whole }: { slow: number; whole: number }): readonly number[] =>
  from !== undefined && to !== undefined
    ? Array.from({ length: to - from + 1 }, (_, at) => from + at)
    : Array.from({ length: proving ? whole : slow }, (_, at) => first + at)
