import { count, showAvailability } from '../../base/format.ts'
import type { DayStatus, DaysOfMonitor } from '../../protocol/service/service.ts'
import { html, type Markup } from '../html.ts'
import { type MonitorId, monitorIdOf } from './page-words.ts'

/** The days of monitors, by `monitorIdOf`. */
export type DaysById = ReadonlyMap<string, DaysOfMonitor>

const classes: Readonly<Record<DayStatus, string>> = {
  ok: 'ok',
  warning: 'warn',
  failed: 'fail',
  unobserved: 'none',
}

/** The cells of a row: a bar for each day, and the availability. Empty where history knows nothing. */
export function daysCells(days: DaysById | undefined, id: MonitorId): Markup {
  const history = days?.get(monitorIdOf(id))
  if (!history) return html`<span class="days"></span><span class="share"></span>`
  return html`${barsOfDays(history.days)}<span class="share" title="available in the last ${count(history.days.length, 'day')}">${history.availabilityPercent === undefined ? '' : showAvailability(history.availabilityPercent)}</span>`
}

/**
 * One bar for each day. One dashed line for each run of equal days keeps the page small: a list of a hundred monitors
 * has 9,000 bars.
 */
export function barsOfDays(days: readonly DayStatus[]): Markup {
  const lines = new Map<DayStatus, string>()
  for (let at = 0; at < days.length; ) {
    const status = days[at] ?? 'unobserved'
    let end = at + 1
    while (end < days.length && days[end] === status) end += 1
    lines.set(status, `${lines.get(status) ?? ''}M${at * 10 + 1} 16h${(end - at) * 10 - 2}`)
    at = end
  }
  return html`<svg class="days" viewBox="0 0 ${days.length * 10} 32" preserveAspectRatio="none" role="img" aria-label="${textOfDays(days)}">${[...lines].map(([status, d]) => html`<path class="${classes[status]}" d="${d}"/>`)}</svg>`
}

/** `90 days: 88 healthy, 2 with failures`. */
function textOfDays(days: readonly DayStatus[]): string {
  const countOf = (status: DayStatus): number => days.filter((one) => one === status).length
  const parts = [
    [countOf('failed'), 'with failures'],
    [countOf('warning'), 'with warnings'],
    [countOf('ok'), 'healthy'],
    [countOf('unobserved'), 'not observed'],
  ] as const
  return `${count(days.length, 'day')}: ${parts.flatMap(([n, words]) => (n > 0 ? [`${n} ${words}`] : [])).join(', ')}`
}
