import { count } from '../../base/format.ts'
import { type Level, shorten } from '../../checks/reports/index.ts'
import type { ServerType } from '../../protocol/index.ts'
import type { EndedIncident, Incidents, OpenFault, TroubledMonitor, Victim } from '../../protocol/service/service.ts'
import { html, type Markup, trusted } from '../html.ts'
import type { Card } from './cards.ts'
import { type SilenceFacts, silenceLine } from './page-silences.ts'
import {
  instant,
  instantText,
  lasted,
  type MonitorId,
  monitorKey,
  monitorLink,
  monitorName,
  type PageClock,
} from './page-words.ts'

/** How many monitors with incidents, checks and victims of one, and incidents that are over, the page lists. */
const [mostMonitors, mostFaults, mostVictims, mostEnded] = [100, 10, 200, 20]
/** The longest message of a fault, in the title and below it. */
const [titleCharacters, messageCharacters] = [120, 400]
/** How often the page reloads itself while something may change soon, in seconds. */
const reloadInDoubt = 5

type MonitorLabel = { readonly type?: ServerType | undefined; readonly monitor?: string | undefined }

export const isNamed = (one: MonitorLabel): one is MonitorId => one.monitor !== undefined
/** The name, or what stands for a monitor that the reader may not read. */
const nameOf = (one: MonitorLabel): string => (isNamed(one) ? monitorName(one) : 'A monitor of another type')
export const linkOf = (one: MonitorLabel): Markup => (isNamed(one) ? monitorLink(one) : html`${nameOf(one)}`)

export const victimsOf = ({ victims, hiddenVictims }: TroubledMonitor): number => victims.length + hiddenVictims
export const sinceOf = ({ faults, victims }: TroubledMonitor): number => faults[0]?.since ?? victims[0]?.since ?? 0
const isConfirmed = ({ certainty }: OpenFault): boolean => certainty !== 'in doubt'
/** Whether runs are healthy again, and nothing else is wrong. */
const isRecovering = ({ faults }: TroubledMonitor): boolean =>
  faults.length > 0 && faults.every(({ recoveringSince }) => recoveringSince !== undefined)

/** A monitor that a reader may not read, and one whose victims still fail, has no fault here and a confirmed failure. */
const isFailing = ({ faults }: TroubledMonitor): boolean =>
  faults.length === 0 || faults.some((fault) => fault.level === 'failed' && isConfirmed(fault))
const isDoubtful = ({ faults }: TroubledMonitor): boolean =>
  faults.some((fault) => fault.level === 'failed' && !isConfirmed(fault))

/** The level of what is open, for the color of the page. Undefined if nothing is. */
export function incidentLevel({ open }: Pick<Incidents, 'open'>): Level | undefined {
  if (open.length === 0) return undefined
  return open.some(isFailing) ? 'fail' : 'warn'
}

/** Seconds until the page reloads itself: fewer while svc is about to confirm something. */
export function reloadSeconds(incidents: Incidents | undefined, usual: number): number {
  const isAboutToChange = incidents?.open.some(
    ({ faults }) =>
      faults.some(({ certainty }) => certainty !== 'confirmed') || faults.some((one) => one.recoveringSince),
  )
  return isAboutToChange ? reloadInDoubt : usual
}

/** The problem and its beginning, and the reason: the rest of the sentence, with its separator. */
export type ProblemTitle = { readonly what: string; readonly why: string }

/** The sentence with its reason on lines of its own, where nobody sees what separates the two. */
export function headingOf({ what, why }: ProblemTitle): Markup {
  if (why === '') return html`${what}`
  const [, separator = '', reason = ''] = /^([:;,] )?(.*)$/s.exec(why) ?? []
  return html`${what}<span class="why"><span class="hidden">${separator}</span>${reason}</span>`
}

/**
 * The title of the page while something is wrong: what, since when and why. `cards` has the verdicts of the types, so that
 * the title names a type that fails for another reason, too. Undefined if no failure and no warning is open.
 */
export function incidentTitle(
  { open }: Pick<Incidents, 'open'>,
  cards: readonly Card[],
  clock: PageClock,
): ProblemTitle | undefined {
  const failing = open.filter(isFailing)
  const doubtful = open.filter((one) => !isFailing(one) && isDoubtful(one))
  const warned = open.filter((one) => !isFailing(one) && !isDoubtful(one))
  const title =
    sentenceOf(failing, ['has failed', 'have failed'], clock) ??
    sentenceOf(doubtful, ['may have failed', 'may have failed'], clock) ??
    sentenceOf(warned, ['has had a warning', 'have had warnings'], clock)
  const mentioned = new Set(
    [...failing, ...doubtful].flatMap((one) => [one.type, ...one.victims.map(({ type }) => type)]),
  )
  const others = cards.filter(({ type, level }) => level === 'fail' && type !== undefined && !mentioned.has(type))
  const isHostMentioned = [...failing, ...doubtful].some(
    ({ type, monitor }) => type === undefined && monitor === 'host',
  )
  const rest = others.filter(({ decisiveRun }) => !isHostMentioned || decisiveRun?.ownLevel === 'fail')
  return title && rest.length > 0
    ? { ...title, why: `${title.why}; unhealthy, too: ${rest.map(({ type }) => type).join(', ')}` }
    : title
}

function sentenceOf(
  monitors: readonly TroubledMonitor[],
  [singular, plural]: readonly [string, string],
  clock: PageClock,
): ProblemTitle | undefined {
  const [first, ...more] = monitors
  if (!first) return undefined
  if (more.length === 0) {
    const why = whyOf(first)
    const since = `since ${instantText(sinceOf(first), clock)}`
    if (isRecovering(first))
      return { what: `${nameOf(first)} is healthy again, not confirmed yet`, why: `; ${since}${why}` }
    if (first.faults.length === 0 && first.monitor !== undefined) {
      const dependents = `${count(victimsOf(first), 'monitor')} that ${victimsOf(first) === 1 ? 'depends' : 'depend'} on it not yet`
      return { what: `${nameOf(first)} is healthy again, and ${dependents}`, why: '' }
    }
    const verb = first.faults[0]?.isFlapping ? 'has been flapping' : singular
    return { what: `${nameOf(first)} ${verb} ${since}`, why }
  }
  const earliest = Math.min(...monitors.map(sinceOf))
  const names = monitors.slice(0, 3).map(nameOf)
  const left = monitors.length - names.length
  const listed =
    left > 0 ? `${names.join(', ')} and ${left} more` : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
  const because = reasonOf(first)
  return {
    what: `${listed} ${plural}, the first since ${instantText(earliest, clock)}`,
    why: because === '' ? '' : `; ${nameOf(first)}: ${because}`,
  }
}

function whyOf(one: TroubledMonitor): string {
  const because = reasonOf(one)
  const victims = victimsOf(one)
  return `${because === '' ? '' : `: ${because}`}${victims === 0 ? '' : `, and ${count(victims, 'monitor')} because of it`}`
}

export const reasonOf = ({ faults: [worst] }: TroubledMonitor): string =>
  worst ? shorten(`${checkOf(worst)} ${worst.message}`.trim(), titleCharacters) : ''

const checkOf = ({ check, item }: Pick<OpenFault, 'check' | 'item'>): string =>
  item === undefined || check.includes(item) ? check : `${check} ${item}`

/** The name of a monitor in the query, to keep its victims open while the page reloads. */
const idOf = (one: MonitorLabel): string | undefined => (isNamed(one) ? monitorKey(one) : undefined)

/** The incidents of one monitor, open and ended. */
export const incidentsOf = (incidents: Incidents, id: MonitorId): Incidents => ({
  ...incidents,
  open: incidents.open.filter((one) => isSame(one, id)),
  ended: incidents.ended.filter((one) => isSame(one, id)),
  hidden: 0,
})

/** The monitor because of which this one fails. */
export const causeOf = ({ open }: Incidents, id: MonitorId): Markup | undefined => {
  const cause = open.find(({ victims }) => victims.some((victim) => isSame(victim, id)))
  return cause && html`<p class="fault fail">It fails because of <b>${linkOf(cause)}</b>.</p>`
}

const isSame = (one: MonitorLabel, { type, monitor }: MonitorId): boolean =>
  one.type === type && one.monitor === monitor

/** When, and with which lists open, incidents are shown. */
type ShownAt = {
  readonly clock: PageClock
  /** The monitor whose victims are listed. */
  readonly opened: string | undefined
  readonly silences?: SilenceFacts | undefined
}

/** The open incidents, and those that are over. Undefined if there are none. `opened`: whose victims are listed. */
export function incidentsMarkup(
  { open, hidden, ended, isIsolated }: Incidents,
  { clock, opened, silences }: ShownAt,
): Markup | undefined {
  if (open.length === 0 && hidden === 0 && ended.length === 0 && isIsolated !== true) return undefined
  const visible = open.slice(0, mostMonitors)
  return html`<section id="incidents">
<h2>Incidents</h2>
${isIsolated ? html`<p class="refusal" role="alert">No witness answers: svc knows nothing of other machines.</p>` : undefined}
${open.length === 0 ? html`<p class="muted">None is open${hidden > 0 ? ' that you may read' : ''}.</p>` : visible.map((one) => monitorMarkup(one, { clock, opened, silences }))}
${open.length > visible.length ? html`<p class="muted">${count(open.length - visible.length, 'more monitor has', 'more monitors have')} open incidents: <a href="/metrics">metrics</a> list all of them.</p>` : undefined}
${hidden > 0 ? html`<p class="muted">${count(hidden, 'monitor')} of types that you may not read ${hidden === 1 ? 'has' : 'have'} an open incident.</p>` : undefined}
${ended.length > 0 ? endedMarkup(ended, clock) : undefined}
</section>
`
}

/** Whether it is shown as failing: not if all of it recovers, is in doubt or is a warning. */
export const isFailingMonitor = (one: TroubledMonitor): boolean => isFailing(one) && !isRecovering(one)

/** The condition of a monitor with incidents, in one word. */
export function conditionOf(one: TroubledMonitor): 'failing' | 'in doubt' | 'recovering' | 'warning' {
  if (isRecovering(one)) return 'recovering'
  if (isFailing(one)) return 'failing'
  return isDoubtful(one) ? 'in doubt' : 'warning'
}

function monitorMarkup(one: TroubledMonitor, { clock, opened, silences }: ShownAt): Markup {
  const { faults } = one
  const level = isFailingMonitor(one) ? 'fail' : 'warn'
  const visible = faults.slice(0, mostFaults)
  const id = idOf(one)
  return html`<article class="${level}"${id === undefined ? undefined : html` id="incident-${id}"`}>
<div class="top"><h3>${linkOf(one)}</h3><span class="state ${level}">${stateOf(one)}</span></div>
${isNamed(one) ? silenceLine(silences, one, clock) : undefined}
${visible.map((fault) => faultMarkup(fault, clock))}
${faults.length > visible.length ? html`<p class="muted">and ${count(faults.length - visible.length, 'more check')}</p>` : undefined}
${faults.length === 0 && one.monitor !== undefined ? html`<p>It is healthy again. What depends on it has not recovered yet.</p>` : undefined}
${victimsOf(one) === 0 ? undefined : victimsMarkup(one, { id, clock, isOpen: id !== undefined && opened === id })}
</article>
`
}

function stateOf(one: TroubledMonitor): string {
  const {
    faults: [worst],
  } = one
  if (!worst) return '✗ its dependents fail'
  if (isRecovering(one)) return '↑ recovering'
  if (worst.certainty === 'in doubt') return '? in doubt'
  if (worst.isUnobserved) return '? unobserved'
  if (worst.isFlapping) return '↕ flapping'
  return worst.level === 'failed' ? '✗ failed' : '! warning'
}

function faultMarkup(fault: OpenFault, clock: PageClock): Markup {
  const { message, since, level } = fault
  return html`<p class="fault ${level === 'failed' ? 'fail' : 'warn'}"><b>${checkOf(fault)}</b> ${shorten(message, messageCharacters)}</p>
<p class="muted">since ${instant(since, clock)} (${lasted(clock.now - since)}) · ${certaintyOf(fault, clock)}</p>
`
}

function certaintyOf({ certainty, recoveringSince, isFlapping, isUnobserved }: OpenFault, clock: PageClock): Markup {
  if (recoveringSince !== undefined) {
    return html`healthy since ${instant(recoveringSince, clock)}, confirmed by the next healthy run`
  }
  if (isUnobserved) return html`no verdict since then`
  if (certainty === 'in doubt') return html`in doubt: not confirmed yet`
  if (certainty === 'deciding') return html`confirmed; svc looks at what it depends on`
  return isFlapping ? html`confirmed; it fails and recovers again and again` : html`confirmed`
}

/** The count first; the names are folded. */
function victimsMarkup(
  one: TroubledMonitor,
  { id, clock, isOpen }: { readonly id: string | undefined; readonly clock: PageClock; readonly isOpen: boolean },
): Markup {
  const { victims, hiddenVictims } = one
  const all = victimsOf(one)
  const left = victims.length - mostVictims
  const verb = isDoubtful(one) && !isFailing(one) ? 'may fail' : all === 1 ? 'fails' : 'fail'
  const keep = isOpen
    ? html`<a href="/">Fold this list</a>`
    : html`<a href="/?victims=${id}#incident-${id}">Keep this list open</a>`
  return html`<details${trusted(isOpen ? ' open' : '')}><summary>${count(all, 'monitor')} ${verb} because of it</summary>
${victims.length > 0 && id !== undefined ? html`<p class="muted">${keep}</p>` : undefined}
<ul class="victims">${victims.slice(0, mostVictims).map((victim) => victimMarkup(victim, clock))}</ul>
${left > 0 ? html`<p class="muted">and ${left} more</p>` : undefined}
${hiddenVictims > 0 ? html`<p class="muted">${hiddenVictims} of types that you may not read</p>` : undefined}
</details>`
}

const victimMarkup = (victim: Victim, clock: PageClock): Markup =>
  html`<li>${linkOf(victim)} <span class="when">since ${instant(victim.since, clock)}</span></li>`

const endedMarkup = (ended: readonly EndedIncident[], clock: PageClock): Markup =>
  html`<details><summary>${ended.length > mostEnded ? `The last ${mostEnded} that are over` : `${count(ended.length, 'incident')} over`}, the last at ${instant(ended[0]?.endedAt ?? clock.now, clock)}</summary>
<ul class="ended">${ended.slice(0, mostEnded).map((one) => endedLine(one, clock))}</ul>
</details>`

const ends: Readonly<Record<EndedIncident['end'], string>> = {
  recovered: 'recovered',
  observed: 'observed again',
  removed: 'no longer exists',
  blip: 'blip: over before it was confirmed',
  unknown: 'nothing known of its end',
}

/** One incident that is over, with its beginning, its end and its duration. */
function endedLine(one: EndedIncident, clock: PageClock): Markup {
  const { beganAt, endedAt, message, end, victims, cause } = one
  return html`<li><b>${linkOf(one)}</b> ${checkOf(one)} ${shorten(message, messageCharacters)} <span class="when">${instant(beganAt, clock)} to ${instant(endedAt, clock)} (${lasted(endedAt - beganAt)}) · ${ends[end]}${victims > 0 ? ` · ${count(victims, 'monitor')} failed because of it` : ''}${cause === undefined ? '' : ` · because of ${cause}`}</span></li>`
}
