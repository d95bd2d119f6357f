import { zonedTime } from '../../base/zone.ts'

/** The values that were measured in a period. Instants are milliseconds since 1970, values milliseconds. */
export type ChartPoint = {
  readonly from: number
  readonly to: number
  readonly least: number
  readonly average: number
  readonly most: number
}

/** A mark of an axis: its place from 0 to 1, from the left or from the top, and its label. */
export type AxisMark = { readonly place: number; readonly label: string }

/** A time of a chart, and which of its instants have labels. */
export type TimeAxis = {
  readonly from: number
  readonly to: number
  /** Only multiples of this since 1970 can have labels. Milliseconds. */
  readonly step: number
  readonly zone: string | undefined
  /** The label of an instant, by its date and time in the zone. Undefined: none. */
  readonly label: (date: string, time: string) => string | undefined
}

export type Chart = {
  /** The averages as the data of an SVG path, in `chartBox`. */
  readonly line: string
  /** The area between the lowest and the highest values. */
  readonly band: string
  /** The value at the top, in milliseconds. */
  readonly top: number
  /** Whether higher values than that were measured. */
  readonly isCut: boolean
  readonly values: readonly AxisMark[]
  readonly times: readonly AxisMark[]
}

/** The width and the height in which paths are drawn. A browser stretches them to any size. */
export const chartBox = { width: 1_000, height: 100 } as const

/** A single slow answer does not flatten all others: the axis ends at so many times the highest average. */
const mostOverAverage = 4
/** Of `chartBox`: so wide is a period at least that has no other beside it, so that it can be seen. */
const leastWidth = 6
/** Between these a time has room for its label, beside the lowest value and the edge, on a phone too. */
const [leastPlace, mostPlace] = [0.08, 0.97]
/** How many steps of the axis of values there are at most. */
const mostSteps = 4

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const units = [
  { name: 'h', ms: hour },
  { name: 'min', ms: minute },
  { name: 's', ms: second },
  { name: 'ms', ms: 1 },
] as const
type Unit = (typeof units)[number]
const unitOf = (value: number): Unit => units.find(({ ms }) => value >= ms) ?? units[3]

/**
 * A chart of durations over a time: pure decisions without markup. Between two periods in which something was
 * measured, and in which nothing was, there is a gap. A gap is neither zero nor bridged by a line.
 */
export function chartOf(points: readonly ChartPoint[], axis: TimeAxis): Chart {
  const highestAverage = Math.max(0, ...points.map(({ average }) => average))
  const highest = Math.max(0, ...points.map(({ most }) => most))
  const height = Math.min(highest, mostOverAverage * highestAverage)
  const step = stepFor(height)
  const steps = Math.max(1, Math.ceil(height / step))
  const top = steps * step
  const scale = { ...axis, low: 0, high: top }
  return {
    line: linePath(points, scale),
    band: bandPath(points, scale),
    top,
    isCut: highest > top,
    values: Array.from({ length: steps + 1 }, (_, at) => ({
      place: 1 - at / steps,
      label: at === 0 ? '0' : valueLabel(at * step, unitOf(height)),
    })),
    times: timeTicks(axis),
  }
}

/** The smallest round step of which at most `mostSteps` reach this value. */
function stepFor(highest: number): number {
  if (highest === 0) return 1
  const unit = unitOf(highest).ms
  const least = highest / mostSteps / unit
  // Parts of an hour or a minute are round in sixties, all else in tens.
  const sixties = [1, 2, 5, 10, 15, 30, 60].find((one) => one >= least && one <= 60)
  if (unit >= minute && sixties !== undefined) return sixties * unit
  const power = 10 ** Math.floor(Math.log10(least))
  return ([1, 2, 5, 10].find((one) => one * power >= least) ?? 10) * power * unit
}

/** `250 ms`, `1.5 s`: in one unit on the whole axis. */
const valueLabel = (value: number, { name, ms }: Unit): string => `${Number((value / ms).toPrecision(6))} ${name}`

/** Where a value and a time are in `chartBox`. */
export type Scale = { readonly from: number; readonly to: number; readonly low: number; readonly high: number }

const rounded = (value: number): number => Number(value.toFixed(1))
const xOf = (at: number, { from, to }: Scale): number =>
  rounded(Math.max(0, Math.min(1, (at - from) / (to - from))) * chartBox.width)
const yOf = (value: number, { low, high }: Scale): number =>
  rounded((1 - Math.max(0, Math.min(1, (value - low) / (high - low || 1)))) * chartBox.height)

/** The points in groups without a gap between them. */
function unbroken(points: readonly ChartPoint[]): readonly (readonly ChartPoint[])[] {
  const groups: ChartPoint[][] = []
  for (const point of points) {
    const group = groups.at(-1)
    if (group && point.from <= (group.at(-1)?.to ?? 0)) group.push(point)
    else groups.push([point])
  }
  return groups
}

/** A value over a group: at the middle of each period, and level to the ends of the group. */
function places(group: readonly ChartPoint[], value: (point: ChartPoint) => number, scale: Scale): readonly string[] {
  const [first, last] = [group[0], group.at(-1)]
  if (!first || !last) return []
  const end = xOf(last.to, scale)
  const start = Math.max(0, Math.min(xOf(first.from, scale), end - leastWidth))
  const middle = (one: ChartPoint): string => `${xOf((one.from + one.to) / 2, scale)} ${yOf(value(one), scale)}`
  return [`${start} ${yOf(value(first), scale)}`, ...group.map(middle), `${end} ${yOf(value(last), scale)}`]
}

/** The averages as the data of an SVG path: a line for each group of periods without a gap. */
export const linePath = (points: readonly ChartPoint[], scale: Scale): string =>
  unbroken(points)
    .map((group) => `M${places(group, ({ average }) => average, scale).join('L')}`)
    .join('')

const bandPath = (points: readonly ChartPoint[], scale: Scale): string =>
  unbroken(points)
    .map((group) => {
      const up = places(group, ({ most }) => most, scale)
      const down = places(group, ({ least }) => least, scale).toReversed()
      return `M${[...up, ...down].join('L')}Z`
    })
    .join('')

function timeTicks({ from, to, step, zone, label }: TimeAxis): readonly AxisMark[] {
  const ticks: AxisMark[] = []
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const { date, time } = zonedTime(new Date(at), zone)
    const text = label(date, time)
    const place = (at - from) / (to - from)
    if (text !== undefined && place >= leastPlace && place <= mostPlace) ticks.push({ place, label: text })
  }
  return ticks
}
