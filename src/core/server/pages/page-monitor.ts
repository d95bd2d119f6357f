import { Fault } from '../../base/errors.ts'
import { showAvailability, showDuration, showFigure } from '../../base/format.ts'
import { worst } from '../../checks/reports/index.ts'
import type { GetHistoryResponse, HistoryPeriod, HistoryStatus, MonitorHistory } from '../../protocol/index.ts'
import { monitorsNamed, ServerType } from '../../protocol/index.ts'
import type { Call, EndedIncident, Incidents, Service } from '../../protocol/service/service.ts'
import { html, type Markup } from '../html.ts'
import { visibleFault } from '../response.ts'
import { type Card, levelsOfMonitor, type MonitorAway, otherNodes, worstLevel } from './cards.ts'
import {
  chartsMarkup,
  type FigureSeries,
  historyWindows,
  periodDay,
  responseCheck,
  seriesOf,
  summaryOf,
  trendMarkup,
} from './page-chart.ts'
import { framed, type Page } from './page-frame.ts'
import {
  causeOf,
  headingOf,
  incidentLevel,
  incidentsMarkup,
  incidentsOf,
  incidentTitle,
  reloadSeconds,
} from './page-incidents.ts'
import type { PageFacts } from './page-markup.ts'
import { latestReports } from './page-report.ts'
import { silenceMarkup } from './page-silences.ts'
import { runForm } from './page-types.ts'
import { instant, instantText, lasted, type MonitorId, monitorKey, monitorName, type PageClock } from './page-words.ts'

/** The history of one monitor in each of the windows, in their order. */
export type HistoryOfWindows = readonly GetHistoryResponse[]

/** How many figures the page shows of one monitor. */
const mostFigures = 40

/** The monitor that the query names, which may be none of these: `Sql/postgres orders`, `orders`, or `/host`. */
export function monitorIn(
  text: string | undefined,
  all: readonly { readonly type: ServerType; readonly name: string }[] = [],
): MonitorId | undefined {
  const [only, another] = text === undefined ? [] : monitorsNamed(text, all)
  if (only && !another) return { type: only.type, monitor: only.name }
  const slash = text?.indexOf('/') ?? -1
  if (text === undefined || slash < 0) return undefined
  const [typeName, monitor] = [text.slice(0, slash), text.slice(slash + 1)]
  const type = ServerType.values.find((value) => value === typeName)
  if (monitor === '' || (type === undefined && typeName !== '')) return undefined
  return { type, monitor }
}

/** The history of a monitor, or why there is none. */
export type MonitorHistoryAnswer = { readonly windows: HistoryOfWindows; readonly problem?: string | undefined }

/** Reads the history of a monitor. A history that cannot be read costs the page nothing else. */
export async function historyOf(
  service: Service,
  { type, monitor }: MonitorId,
  call: Call,
): Promise<MonitorHistoryAnswer> {
  const windows: GetHistoryResponse[] = []
  try {
    for (const { minutes } of historyWindows) {
      const request = { ServerType: type, MonitorName: monitor, SinceMinutes: minutes }
      const answer = await service.history(request, call)
      // It also knows others by this name, if this monitor has no history.
      windows.push({
        ...answer,
        Monitors: (answer.Monitors ?? []).filter(({ MonitorName }) => MonitorName === monitor),
      })
    }
    return { windows }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { windows: [], problem: error.fault === 'NotFound' ? undefined : visibleFault(error).message }
  }
}

/** How often the page of a monitor reloads itself, in seconds. */
const usualReload = 30

/** The page of one monitor. Undefined if nothing is known of it. */
export function monitorMarkup(
  id: MonitorId,
  cards: readonly Card[],
  { windows, problem }: MonitorHistoryAnswer,
  facts: PageFacts,
): Page | undefined {
  const clock = { now: facts.at.getTime(), zone: facts.zone }
  const { now } = clock
  const latest = levelsOfMonitor(cards, id)
  const isKnown = windows.some(({ Monitors = [] }) => Monitors.length > 0)
  const incidents = facts.incidents && withHistory(incidentsOf(facts.incidents, id), id, windows)
  // What svc says of itself has incidents, and neither results nor a history.
  const hasIncidents = incidents !== undefined && incidents.open.length + incidents.ended.length > 0
  const away = awayOf(cards, id)
  if (latest.length === 0 && !away && !isKnown && !hasIncidents) return undefined
  const own = latest.filter(({ counts }) => counts).map((one) => one.monitor.level)
  const levels = [...own, ...(away?.level ? [away.level] : [])]
  const level = levels.length === 0 ? undefined : worst(levels)
  const state = level
    ? stateWords[level]
    : away
      ? `no confirmed fault on ${away.node ?? otherNodes}`
      : 'not checked yet'
  const problemTitle = incidents && incidentTitle(incidents, [], clock)
  const series = windows.map(({ Monitors: [monitor] = [] }) => seriesOf(monitor?.Periods ?? []))
  const response = responseCheck(series)
  const main = html`<p><a href="/">All monitors</a>${id.type === undefined ? undefined : html` › <a href="/#${id.type}">${id.type}</a>`}</p>
${away && ownerLine(away, id)}
${facts.incidents && causeOf(facts.incidents, id)}
${incidents && incidentsMarkup(incidents, { clock, opened: facts.victims, silences: facts.silences })}
${silenceMarkup(facts.silences, id, { clock, hasIncident: incidents !== undefined && incidents.open.length > 0 })}
${windows.length > 0 ? historyMarkup(windows, clock) : undefined}
${chartsMarkup(response, series, clock)}
${problem === undefined ? undefined : html`<p class="muted">The history cannot be read: ${problem}</p>`}
${latest.length === 0 ? undefined : html`<section><h2>Latest results</h2>${latestReports(latest, facts.zone)}</section>`}
${figuresMarkup(series[0] ?? [], response, now)}`
  return framed(main, {
    ...facts,
    title: problemTitle ? `${problemTitle.what}${problemTitle.why}` : `${monitorName(id)}: ${state}`,
    heading: problemTitle && headingOf(problemTitle),
    summary: id.type === undefined ? undefined : runForm(id.type),
    level: worstLevel([level, incidents && incidentLevel(incidents)]),
    reloadEvery: reloadSeconds(incidents, usualReload),
    stillHref: `/?monitor=${monitorKey(id)}&reload=off`,
  })
}

function awayOf(cards: readonly Card[], { type, monitor }: MonitorId): MonitorAway | undefined {
  const one = cards.find((card) => card.type === type)?.monitors.find(({ name }) => name === monitor)
  return one && 'node' in one ? one : undefined
}

/** Which node runs the monitor, with a link to its page of the monitor. */
function ownerLine({ node, url }: MonitorAway, id: MonitorId): Markup | undefined {
  if (node === undefined) return undefined
  const there = url === undefined ? undefined : new URL(url)
  if (there) there.search = `monitor=${monitorKey(id)}`
  return html`<p>The node ${there ? html`<a href="${there.href}">${node}</a>` : node} runs this monitor. Its latest results are on the page there; confirmed faults and the history are the same here.</p>`
}

/** With the incidents that history has of the monitor, in the longest window. Blips are not among them. */
function withHistory(incidents: Incidents, { type, monitor }: MonitorId, windows: HistoryOfWindows): Incidents {
  const records = windows.at(-1)?.Monitors?.[0]?.Incidents
  if (!records) return incidents
  const ended = records.flatMap(({ From, To, Ending, Status, ...one }): EndedIncident | [] => {
    if (!From || !To || !Ending) return []
    return {
      type,
      monitor,
      check: one.MonitoringName ?? '',
      item: one.Item,
      level: Status === 'Warning' ? 'warning' : 'failed',
      end: Ending === 'Recovered' && Status === 'Unobserved' ? 'observed' : ends[Ending],
      beganAt: From.getTime(),
      endedAt: To.getTime(),
      fault: one.Fault,
      message: one.Message ?? '',
      victims: one.VictimCount ?? 0,
      cause: one.Cause,
    }
  })
  const blips = incidents.ended.filter(({ end }) => end === 'blip')
  return { ...incidents, ended: [...ended, ...blips].toSorted((one, other) => other.endedAt - one.endedAt) }
}

const ends = { Recovered: 'recovered', Removed: 'removed', Unknown: 'unknown' } as const

const stateWords = { ok: 'healthy', warn: 'warning', 'not checked': 'not fully checked', fail: 'unhealthy' } as const

/** The availability of a monitor, its days and hours as bars, and when it was down for longest. */
export function historyMarkup(windows: HistoryOfWindows, clock: PageClock): Markup {
  const rows = windows.map((answer, at) => ({ name: historyWindows[at]?.name ?? '', monitor: answer.Monitors?.[0] }))
  const [dayWindow] = rows
  const whole = rows.at(-1)?.monitor
  const notKept = windows.find(({ NotKept }) => NotKept !== undefined)?.NotKept
  return html`<section id="history">
<h2>History</h2>
<table class="availability"><tr><th scope="col">Last</th><th scope="col">Available</th><th scope="col">Down</th><th scope="col">Not observed</th></tr>
${rows.map(({ name, monitor }, at) => windowRow(name, monitor, { clock, minutes: historyWindows[at]?.minutes ?? 0 }))}</table>
${whole?.Periods && whole.Periods.length > 0 ? html`<h3>Last 90 days</h3>${barsOf(whole.Periods, { clock, step: day, count: 90 })}` : undefined}
${dayWindow?.monitor?.Periods && dayWindow.monitor.Periods.length > 0 ? html`<h3>Last 24 hours</h3>${barsOf(dayWindow.monitor.Periods, { clock, step: hour, count: 24 })}` : undefined}
${worstMarkup(whole, clock)}
${notKept === undefined ? undefined : html`<p class="muted">${notKept}.</p>`}
</section>
`
}

const hour = 3_600_000
const day = 24 * hour

/** Of less than nine tenths of a window, the row says since when something is known. */
const wholeShare = 0.9

function windowRow(
  name: string,
  monitor: MonitorHistory | undefined,
  { clock, minutes }: { readonly clock: PageClock; readonly minutes: number },
): Markup {
  if (!monitor) return html`<tr><th scope="row">${name}</th><td colspan="3" class="muted">nothing known yet</td></tr>`
  const { AvailabilityPercent, Down = 0, Unobserved = 0 } = monitor
  const level = Down > 0 ? 'fail' : 'ok'
  const from = monitor.From?.getTime() ?? clock.now
  const isPart = clock.now - from < wholeShare * minutes * 60_000
  const since = isPart ? html` <span class="when">since ${instant(from, clock)}</span>` : undefined
  return html`<tr><th scope="row">${name}</th><td class="${level}"><b>${showAvailability(AvailabilityPercent)}</b>${since}</td><td>${Down === 0 ? 'never' : showDuration(Down)}</td><td>${Unobserved === 0 ? 'never' : showDuration(Unobserved)}</td></tr>
`
}

const classes: Readonly<Record<HistoryStatus, string>> = {
  Ok: 'ok',
  Warning: 'warn',
  Failed: 'fail',
  Unobserved: 'none',
}

/** One bar for each period up to now. Those of which nothing is known are gray. Each has its text for pointers and readers. */
function barsOf(
  periods: readonly HistoryPeriod[],
  { clock, step, count }: { readonly clock: PageClock; readonly step: number; readonly count: number },
): Markup {
  const first = Math.floor(clock.now / step) * step - (count - 1) * step
  const byStart = new Map(periods.map((period) => [Math.floor((period.From?.getTime() ?? 0) / step) * step, period]))
  const bars = Array.from({ length: count }, (_, at) => {
    const start = first + at * step
    const period = byStart.get(start)
    const level = period?.Status === undefined ? 'none' : classes[period.Status]
    return html`<rect class="${level}" x="${at * 10 + 1}" width="8" y="${level === 'none' ? 20 : 0}" height="${level === 'none' ? 12 : 32}"><title>${barText(step === day ? periodDay(start) : instantText(start, clock), period)}</title></rect>`
  })
  return html`<svg class="bars" viewBox="0 0 ${count * 10} 32" preserveAspectRatio="none" role="img" aria-label="${barsSummary(periods, count)}">${bars}</svg>
<div class="axis" aria-hidden="true"><span>${step === day ? `${count} days ago` : `${count} hours ago`}</span><span>now</span></div>`
}

function barText(when: string, period: HistoryPeriod | undefined): string {
  if (!period || period.AvailabilityPercent === undefined) return `${when}: not observed`
  const { Down = 0, FailedChecks = [] } = period
  const failed =
    Down === 0
      ? ''
      : `, down ${showDuration(Down)}${FailedChecks.length > 0 ? ` (${FailedChecks.slice(0, 3).join(', ')})` : ''}`
  return `${when}: ${showAvailability(period.AvailabilityPercent)}${failed}`
}

function barsSummary(periods: readonly HistoryPeriod[], count: number): string {
  const failed = periods.filter(({ Status }) => Status === 'Failed').length
  return `${count} periods: ${periods.length} observed, ${failed} with failures`
}

/** When it was down for longest. */
function worstMarkup(monitor: MonitorHistory | undefined, clock: PageClock): Markup | undefined {
  const worst = monitor?.Worst ?? []
  if (worst.length === 0) return undefined
  return html`<h3>Down for longest</h3>
<ul class="ended">${worst.map(
    ({ From, To, Down = 0, FailedChecks = [] }) =>
      html`<li><b>${lasted(Down)}</b> between ${instantText(From?.getTime() ?? clock.now, clock)} and ${instantText(To?.getTime() ?? clock.now, clock)} <span class="when">${FailedChecks.slice(0, 5).join(', ')}</span></li>`,
  )}</ul>`
}

/** A line for each figure besides the response time: its range, and its averages over a day. */
function figuresMarkup(all: readonly FigureSeries[], response: string | undefined, now: number): Markup | undefined {
  const others = all.filter(({ check, unit }) => check !== response || unit !== 'milliseconds')
  if (others.length === 0) return undefined
  const visible = others.slice(0, mostFigures)
  return html`<section id="figures"><h2>${response === undefined ? 'Figures' : 'Other figures'} of the last 24 hours</h2>
<table class="figures"><tr><th scope="col">Check</th><th scope="col">Minimum</th><th scope="col">Average</th><th scope="col">Maximum</th><th scope="col">Averages over 24 hours</th></tr>
${visible.map((series) => figureRow(series, now))}</table>
${others.length > visible.length ? html`<p class="muted">and ${others.length - visible.length} more: svc history shows them.</p>` : undefined}</section>`
}

function figureRow({ check, unit, points }: FigureSeries, now: number): Markup {
  const { least, average, most } = summaryOf(points)
  const text = (value: number): string => showFigure(value, unit)
  return html`<tr><th scope="row">${check}</th><td>${text(least)}</td><td>${text(average)}</td><td>${text(most)}</td><td>${trendMarkup(points, { from: now - day, to: now })}</td></tr>
`
}
