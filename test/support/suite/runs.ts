import { isQuick } from './tier.ts'

/**
 * How many runs a property of fast-check has: the whole number in `npm run prove` and in the slow tier, and a sixteenth of it in the
 * quick one, which draws others each time.
 */
export const runsOf = (whole: number): number =>
  process.env['SVC_PROVE'] === '1' || !isQuick() ? whole : Math.ceil(whole / 16)
