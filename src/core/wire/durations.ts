/** N4: durations. In memory milliseconds, with four decimals at most: the wire's unit is the tick of 100 ns. */

const ticksPerMs = 10_000
const ticksPerSecond = 1000 * ticksPerMs
const secondsPerDay = 86_400

/** XSD: `P[nD][T[nH][nM][n[.fffffff]S]]`, zero parts left out; 0 is `PT0S`, five seconds before is `-PT5S`. */
export const writeDuration = (ms: number): string => {
  const ticks = Math.round(Math.abs(ms) * ticksPerMs)
  if (ticks === 0) return 'PT0S'
  const wholeSeconds = Math.floor(ticks / ticksPerSecond)
  const part = (count: number, unit: string) => (count === 0 ? '' : `${count}${unit}`)
  const fraction = String(ticks % ticksPerSecond)
    .padStart(7, '0')
    .replace(/0{1,7}$/, '')
  const seconds = wholeSeconds % 60
  const clock =
    part(Math.floor((wholeSeconds % secondsPerDay) / 3600), 'H') +
    part(Math.floor((wholeSeconds % 3600) / 60), 'M') +
    (fraction === '' ? part(seconds, 'S') : `${seconds}.${fraction}S`)
  const days = part(Math.floor(wholeSeconds / secondsPerDay), 'D')
  return `${ms < 0 ? '-' : ''}P${days}${clock === '' ? '' : `T${clock}`}`
}

const xsd =
  /^(-)?P(?=[\dT])(?:(\d{1,8})D)?(?:T(?=\d)(?:(\d{1,10})H)?(?:(\d{1,12})M)?(?:(\d{1,14})(?:\.(\d{1,9}))?S)?)?$/
const clock = /^(-)?(?:(\d{1,8})\.)?(\d{1,2}):(\d\d):(\d\d)(?:\.(\d{1,9}))?$/

/**
 * Milliseconds from XSD, `hh:mm:ss[.f]` or `d.hh:mm:ss[.f]`; finer than a tick is cut. Undefined when it is none of
 * these: years and months have no length.
 */
export const readDuration = (text: string): number | undefined => {
  const found = xsd.exec(text) ?? clock.exec(text)
  if (!found) return undefined
  const [, sign, days = 0, hours = 0, minutes = 0, seconds = 0, fraction = ''] = found
  const whole = Number(days) * secondsPerDay + Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)
  const ticks = whole * ticksPerSecond + Number(fraction.slice(0, 7).padEnd(7, '0'))
  // One division of whole ticks: adding up parts of a millisecond would not give back the number that was written.
  const ms = ticks / ticksPerMs
  return sign === '-' && ms !== 0 ? -ms : ms
}
