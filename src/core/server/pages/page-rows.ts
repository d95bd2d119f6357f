import { bySeverity, isConsequence, messageIn, type Reading } from '../../checks/reports/index.ts'
import type { ServerType } from '../../protocol/index.ts'
import { html, type Markup } from '../html.ts'
import { type CardMonitor, type MonitorAway, otherNodes } from './cards.ts'
import { type DaysById, daysCells } from './page-days.ts'
import { classOf, markOf } from './page-frame.ts'
import { age, took } from './page-report.ts'
import { type SilenceFacts, silenceLine } from './page-silences.ts'
import { monitorLink, type PageClock } from './page-words.ts'

/** For how many checks of one monitor the page explains why it is not healthy. */
const mostReasons = 3

export type RowOptions = {
  /** Undefined for the host. */
  readonly type: ServerType | undefined
  /** Whether the reader may read the details of the type, so that its monitors have pages. */
  readonly reads: boolean
  readonly days: DaysById | undefined
  readonly silences?: SilenceFacts | undefined
  readonly clock: PageClock
  /** The prefix of the name. Absent: none. */
  readonly prefix?: string | undefined
}

/** Monitors as rows: state, name, days, availability, when, and why. */
export const rowsOf = (monitors: readonly CardMonitor[], options: RowOptions): Markup =>
  html`<ul class="rows">${monitors.map((one) => rowOf(one, options))}</ul>`

export function rowOf(one: CardMonitor, options: RowOptions): Markup {
  const { name, level } = one
  const { type, reads, days, silences, clock, prefix = '' } = options
  const id = { type, monitor: name }
  const label = `${prefix}${type === undefined && name === 'host' ? 'this machine' : name}`
  return html`<li class="${classOf(level)}">${level ? markOf(level) : html`<span class="mark"></span>`}<span class="name">${reads ? monitorLink(id, label) : label}</span>${daysCells(reads ? days : undefined, id)}<span class="when">${'node' in one ? html`on ${one.node ?? otherNodes}` : html`${age(one.run.ageSeconds)}${took(one.reading.duration)}`}</span>${'node' in one ? reasonAway(one) : reasonsOf(one.reading.results, clock)}${reads ? silenceLine(silences, id, clock) : undefined}</li>
`
}

/** The fault that the node of the monitor has confirmed. */
const reasonAway = ({ level, reason }: MonitorAway): Markup =>
  level === 'not checked' ? html`<p class="why">The store does not answer</p>` : html`${reason && whyMarkup(reason)}`

const whyMarkup = ({ check, message }: { readonly check: string; readonly message: string }): Markup =>
  html`<p class="why">${check === '' ? undefined : html`<b>${check}</b> `}${message}</p>`

/** Why it is not healthy, the worst first. */
function reasonsOf(results: readonly Reading[], { zone }: PageClock): Markup {
  const bad = results.filter(({ level }) => level !== 'ok').toSorted(bySeverity)
  const causes = bad.filter((result) => !isConsequence(result))
  const listed = (causes.length > 0 ? causes : bad).slice(0, mostReasons)
  const more = bad.length - listed.length
  return html`${listed.map((one) => whyMarkup({ check: one.check, message: messageIn(one, zone) }))}${more > 0 ? html`<p class="why muted">and ${more} more</p>` : undefined}`
}
