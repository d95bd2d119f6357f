/**
 * How many runs a property of fast-check has: the whole number in `npm run prove`, and a quarter of it in `npm test`, which
 * draws others each time.
 */
export const runsOf = (whole: number): number => (process.env['SVC_PROVE'] === '1' ? whole : Math.ceil(whole / 4))
