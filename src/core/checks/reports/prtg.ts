import { count } from '../../base/format.ts'
import { type MeasuredReading, measuredResults } from './figure.ts'
import { read } from './read.ts'
import { bySeverity, countedLevel, type EntryReading, figureName, type Level, type Report, shorten } from './reading.ts'

type Channel = { readonly channel: string; readonly value: number } & Readonly<Record<string, string | number>>

/** PRTG advises against more channels per sensor. The counts come first and include failures that do not fit. */
const maxChannels = 50
const textLength = 2_000
/** The states of Nagios. */
const values: Record<Level, number> = { ok: 0, warn: 1, fail: 2, 'not checked': 3 }

/**
 * The JSON of PRTG's advanced custom sensors. Health sets the sensor's state through channel limits, not through
 * `error`, which would discard the channels' values; `error` means that nothing was measured. PRTG keeps the limits
 * and their messages from the first answer, so they never depend on the result.
 */
export default {
  name: 'prtg',
  contentType: 'application/json; charset=utf-8',
  impliesSuppress: true,
  render: (entries) => {
    const readings = entries.map(read)
    const answered = readings.filter((reading) => reading.error === undefined)
    const all = answered.length === 0 ? [] : channels(readings, answered)
    const more = all.length > maxChannels ? ` (${count(all.length - maxChannels, 'channel')} omitted)` : ''
    const text = shorten(readings.map(summary).join(' / ') || 'nothing was checked', textLength - more.length) + more
    const body = answered.length === 0 ? { error: 1, text } : { result: all.slice(0, maxChannels), text }
    return `${JSON.stringify({ prtg: body })}\n`
  },
} satisfies Report

/** In PRTG, `#` ends a sensor's message. */
const noHash = (text: string): string => text.replaceAll('#', '＃')

const summary = (reading: EntryReading): string =>
  noHash([reading.server, reading.headline, ...reading.causes].filter(Boolean).join(': '))

function channels(readings: readonly EntryReading[], answered: readonly EntryReading[]): readonly Channel[] {
  const several = readings.length > 1 || readings.some(({ server }) => server !== '')
  const unanswered = readings.length - answered.length
  const byName = new Map<string, Channel>()
  const add = (channel: Channel): void => {
    // Channel names are unique in a sensor. For duplicates, the worse value wins.
    const existing = byName.get(channel.channel)
    if (!existing || channel.value > existing.value) byName.set(channel.channel, channel)
  }
  const sum = (of: (reading: EntryReading) => number): number => answered.reduce((all, r) => all + of(r), 0)
  add({ channel: 'Failed monitors', value: sum((r) => r.failed), unit: 'Count', ...errorAbove(0, 'A monitor failed') })
  add({
    channel: 'Not checked',
    value: sum((r) => r.unchecked),
    unit: 'Count',
    ...errorAbove(0, 'A monitor was not checked'),
  })
  add({ channel: 'Warnings', value: sum((r) => r.warnings), unit: 'Count', ...warningAbove(0, 'A check warns') })
  if (several) {
    add({ channel: 'Not answered', value: unanswered, unit: 'Count', ...errorAbove(0, 'A server did not answer') })
  }
  for (const reading of answered) {
    const name = (what: string): string => noHash(several ? `${reading.type} ${what} ${reading.target}` : what)
    // Foreign servers may report a failure without a failed monitor, so the status has its own channel.
    const status = values[reading.level === 'unknown' ? 'fail' : reading.level]
    add({ channel: name('Status'), value: status, ...judged })
    if (reading.duration !== undefined) {
      add({ channel: name('Duration'), value: Math.round(reading.duration), unit: 'TimeResponse' })
    }
    const { state } = reading
    if (state?.cpu !== undefined) add({ channel: name('CPU used'), value: tenth(state.cpu), float: 1, unit: 'Percent' })
    if (state?.freeMb !== undefined) {
      add({ channel: name('RAM available'), value: Math.round(state.freeMb * 2 ** 20), unit: 'BytesMemory' })
    }
  }
  const monitors = answered.flatMap((reading) =>
    reading.monitors.map((monitor) => ({
      channel: noHash(several ? `${reading.type} ${monitor.name} ${reading.target}` : `Monitor ${monitor.name}`),
      level: countedLevel(monitor),
    })),
  )
  for (const { channel, level } of monitors.toSorted(bySeverity)) {
    if (!byName.has(channel)) add({ channel, value: values[level], ...judged })
  }
  const figures = answered.flatMap((reading) =>
    measuredResults(reading).map((result) => {
      const what = figureName(result)
      const channel = noHash(several ? `${reading.type} ${what} ${reading.target}` : what)
      return { level: result.level, channel: { channel, ...figureChannel(result) } }
    }),
  )
  // Failures come first, in case not everything fits.
  for (const { channel } of figures.toSorted(bySeverity)) add(channel)
  return [...byName.values()]
}

/** PRTG's names of units. Other units keep their own names. */
const units: Readonly<Record<string, string>> = {
  milliseconds: 'TimeResponse',
  percent: 'Percent',
  bytes: 'BytesDisk',
  count: 'Count',
}

/** The channel of a measurement, with its unit and its limits. */
function figureChannel({ measurement: { value, unit, warn, limit, bound }, isLoad }: MeasuredReading) {
  const name = Object.hasOwn(units, unit) ? units[unit] : undefined
  const side = bound === 'atLeast' ? 'min' : 'max'
  const limits = {
    ...(warn === undefined ? {} : { [`limit${side}warning`]: warn }),
    ...(limit === undefined ? {} : { [`limit${side}error`]: limit }),
  }
  return {
    value: unit === 'bytes' ? Math.round(value) : value,
    ...(unit === 'bytes' ? {} : { float: 1 }),
    ...(name === undefined ? { unit: 'Custom', customunit: noHash(unit) } : { unit: name }),
    // PRTG judges a channel with limits by itself.
    ...(bound === undefined || isLoad === true || Object.keys(limits).length === 0 ? {} : { limitmode: 1, ...limits }),
  }
}

const errorAbove = (limit: number, message: string) => ({ limitmode: 1, limitmaxerror: limit, limiterrormsg: message })
const warningAbove = (limit: number, message: string) => ({
  limitmode: 1,
  limitmaxwarning: limit,
  limitwarningmsg: message,
})
/** 0 is ok, 1 is a warning, 2 is a failure, 3 is not checked. */
const judged = { unit: 'Custom', customunit: 'level', limitmode: 1, limitmaxwarning: 0, limitmaxerror: 1 } as const
const tenth = (value: number): number => Number(value.toFixed(1))
