/** A text of this run alone, and its replacement on a page. */
export type Replacement = readonly [found: string | RegExp, shown: string]

/** A duration that was measured. One that a threshold allows stays as it is. */
const measured = /(?<!(?:warn|fail|below)\s{1,80})\b\d+(?:\.\d+)?(?=\s+ms\b)/g
/** The duration of the run in the verdict. */
const runDuration = /(?<=· (?:Basic|Standard|Advanced) ·\s+)[\d.]+ m?s\b/g
const certificateDate = /(?<=\b(?:expires|expired) on\s+)\d{4}-\d\d-\d\d(\s+)\d\d:\d\d UTC/g
const correlation = /\b[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b/g

/**
 * A text of this run without what would be another at the next: measured milliseconds, the run's own
 * duration, the age of peers, dates of certificates, correlation ids, and what is given. Nothing grows,
 * so that no line becomes too long.
 */
export function stable(text: string, replacements: readonly Replacement[]): string {
  const own = replacements.reduce(
    (replaced, [original, replacement]) => replaced.replaceAll(asGlobal(original), replacement),
    text,
  )
  return own
    .replace(runDuration, seconds)
    .replace(/\bup for [\d.]+ m?s\b/g, 'up for 5 s')
    .replace(/\brestarted [\d.]+ m?s\b/g, 'restarted 5 s')
    .replace(/(?<=\bafter\s+\d)\.\d+(?=\s+s\b)/g, '')
    .replace(/(?<=\b(?:age|came) )[\d.]+ m?s\b/g, '2 s')
    .replace(measured, '2')
    .replace(/(?<=\boldest (?:1|5|10|25))\.\d(?= min\b)/g, '')
    .replace(certificateDate, (_, gap: string) => `2027-03-01${gap}12:00 UTC`)
    .replace(correlation, '7f3c2a9e-41d0-4c1b-9a57-0d6f3f1f2b11')
    .replace(/[ \t]+$/gm, '')
}

const asGlobal = (result: string | RegExp): string | RegExp =>
  typeof result === 'string' || result.global ? result : new RegExp(result.source, `${result.flags}g`)

/** A run that took less than two seconds took one. */
function seconds(took: string): string {
  const [figure = '', unit] = took.split(' ')
  const value = unit === 'ms' ? Number(figure) / 1_000 : Number(figure)
  return `${value < 2 ? 1 : Math.round(value)} s`
}
