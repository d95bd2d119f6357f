import { count, showFigure } from '../../base/format.ts'
import { usualZone, zonedTime } from '../../base/zone.ts'
import type { HistoryPeriod } from '../../protocol/index.ts'
import { html, type Markup } from '../html.ts'
import { type ChartPoint, chartBox, chartOf, linePath, type TimeAxis } from './chart.ts'
import { instantText, type PageClock } from './page-words.ts'

const minute = 60_000
const day = 24 * 60 * minute

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const
/** `Nov 9`, of `2026-11-09`. */
const dayLabel = (date: string): string => `${months[Number(date.slice(5, 7)) - 1] ?? ''} ${Number(date.slice(8))}`
const isMonday = (date: string): boolean => new Date(date).getUTCDay() === 1

/** The times of which the page shows the availability and the response time. Days are those of the history, in UTC. */
export const historyWindows = [
  {
    name: '24 h',
    minutes: 24 * 60,
    title: 'Last 24 hours',
    // Some zones are a quarter of an hour off.
    step: 15 * minute,
    isLocal: true,
    label: (_: string, time: string) => (/^(?:00|06|12|18):00:00$/.test(time) ? time.slice(0, 5) : undefined),
  },
  {
    name: '30 days',
    minutes: 30 * 24 * 60,
    title: 'Last 30 days',
    step: day,
    isLocal: false,
    label: (date: string) => (isMonday(date) ? dayLabel(date) : undefined),
  },
  {
    name: '90 days',
    minutes: 90 * 24 * 60,
    title: 'Last 90 days',
    step: day,
    isLocal: false,
    label: (date: string) => (date.endsWith('-01') ? dayLabel(date) : undefined),
  },
] as const

type Measured = ChartPoint & { readonly runs: number }

/** The figures of one check with one unit, in the periods in which it was measured. */
export type FigureSeries = {
  readonly check: string
  readonly unit: string | undefined
  readonly points: readonly Measured[]
}

/** The figures of these periods by their check and unit, in the order in which they appear. */
export function seriesOf(periods: readonly HistoryPeriod[]): readonly FigureSeries[] {
  const all = new Map<string, FigureSeries & { readonly points: Measured[] }>()
  for (const { From, To, Figures = [] } of periods) {
    for (const { MonitoringName = '', Unit, Minimum = 0, Average = 0, Maximum = 0, Count = 0 } of Figures) {
      const key = JSON.stringify([MonitoringName, Unit])
      const series = all.get(key) ?? { check: MonitoringName, unit: Unit, points: [] }
      all.set(key, series)
      const [from, to] = [From?.getTime() ?? 0, To?.getTime() ?? 0]
      series.points.push({ from, to, least: Minimum, average: Average, most: Maximum, runs: Count })
    }
  }
  return [...all.values()]
}

/** The lowest, the average and the highest value. */
export function summaryOf(points: readonly Measured[]): Pick<ChartPoint, 'least' | 'average' | 'most'> {
  const runs = points.reduce((sum, one) => sum + one.runs, 0)
  const least = Math.min(...points.map((one) => one.least))
  const total = points.reduce((sum, one) => sum + one.average * one.runs, 0)
  return { least, average: runs === 0 ? least : total / runs, most: Math.max(...points.map((one) => one.most)) }
}

/** The checks that measure how long a service takes to answer, the most telling one first. Each network kind has one. */
export const responseChecks: readonly string[] = [
  'latency',
  'ping',
  'banner',
  'handshake',
  'discovery',
  'management',
  'connect',
  // That of FTP and Redis writes, and comes last.
  'round trip',
]

/** The check whose figures are the response time of a monitor. Undefined: it has none. */
export function responseCheck(all: readonly (readonly FigureSeries[])[]): string | undefined {
  const checks = new Set(all.flat().flatMap(({ check, unit }) => (unit === 'milliseconds' ? [check] : [])))
  return responseChecks.find((check) => checks.has(check))
}

/** The response time of a monitor, as a chart for each of `historyWindows`. Undefined: it has none. */
export function chartsMarkup(
  check: string | undefined,
  all: readonly (readonly FigureSeries[])[],
  clock: PageClock,
): Markup | undefined {
  if (check === undefined) return undefined
  return html`<section id="response-time">
<h2>Response time <span class="when">${check}: the average as a line, from the lowest to the highest value as an area</span></h2>
<div class="charts">${historyWindows.map((window, at) => {
    const points = all[at]?.find((one) => one.check === check && one.unit === 'milliseconds')?.points ?? []
    return chartMarkup(window, points, clock)
  })}</div>
</section>
`
}

const time = (value: number): string => showFigure(value, 'milliseconds')

function chartMarkup(
  { title, minutes, step, isLocal, label }: (typeof historyWindows)[number],
  points: readonly Measured[],
  clock: PageClock,
): Markup {
  const zone = isLocal ? clock.zone : usualZone
  const axis: TimeAxis = { from: clock.now - minutes * minute, to: clock.now, step, zone, label }
  const offset = zonedTime(new Date(clock.now), zone).offset
  if (points.length === 0) return html`<figure><figcaption><b>${title}</b> nothing measured</figcaption></figure>`
  const { line, band, top, isCut, values, times } = chartOf(points, axis)
  const { least, average, most } = summaryOf(points)
  const text = `${time(average)} on average, ${time(least)} to ${time(most)}${isCut ? `; higher than ${time(top)} is cut off` : ''}`
  const { width, height } = chartBox
  return html`<figure><figcaption><b>${title}</b> ${text} <span class="when">${isLocal ? 'times' : 'days'} in ${offset === usualZone ? offset : `UTC${offset}`}</span></figcaption>
<svg class="chart" role="img" aria-label="Response time, ${title}: ${text}">
${values.map(({ place, label: value }) => html`<line x2="100%" y1="${percent(place)}" y2="${percent(place)}"/><text class="value" y="${percent(place)}">${value}</text>`)}
${times.map(({ place, label: value }) => html`<line x1="${percent(place)}" x2="${percent(place)}" y2="100%"/><text class="time" x="${percent(place)}" y="100%">${value}</text>`)}
<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none"><path class="band" d="${band}"/><path class="line" d="${line}"/>
${points.map((point) => hitMarkup(point, axis, clock))}</svg>
</svg></figure>`
}

const percent = (place: number): string => `${Number((place * 100).toFixed(2))}%`

/** The values of a period, for pointers. */
function hitMarkup({ from, to, least, average, most, runs }: Measured, axis: TimeAxis, clock: PageClock): Markup {
  const x = (at: number): number => Math.round(((at - axis.from) / (axis.to - axis.from)) * chartBox.width)
  const left = Math.max(0, x(from))
  const when = to - from > day / 2 && axis.step === day ? periodDay(from) : instantText(from, clock)
  return html`<rect x="${left}" width="${Math.max(1, x(to) - left)}" height="${chartBox.height}"><title>${when}: ${time(average)} (${time(least)} to ${time(most)}, ${count(runs, 'run')})</title></rect>`
}

/** A day of the history, which is one of UTC. */
export const periodDay = (at: number): string => `${zonedTime(new Date(at), usualZone).date} ${usualZone}`

/** The averages as a small line without axes, from the lowest to the highest of them. */
export function trendMarkup(
  points: readonly ChartPoint[],
  { from, to }: { readonly from: number; readonly to: number },
): Markup {
  const averages = points.map(({ average }) => average)
  const [low, high] = [Math.min(...averages), Math.max(...averages)]
  const margin = (high - low || 1) / 8
  const d = linePath(points, { from, to, low: low - margin, high: high + margin })
  return html`<svg class="trend" viewBox="0 0 ${chartBox.width} ${chartBox.height}" preserveAspectRatio="none" aria-hidden="true"><path d="${d}"/></svg>`
}
