import { count } from '../../base/format.ts'
import { entryOf, oncePerObject } from '../../base/lazy.ts'
import {
  bySeverity,
  isConsequence,
  type MonitorReading,
  messageIn,
  type Reading,
  readMonitor,
  stateWord,
} from '../../checks/reports/index.ts'
import type { ExecutionMode, RunMonitor, ServerType } from '../../protocol/index.ts'
import { html, type Markup, trusted } from '../html.ts'
import type { Card, CardRun } from './cards.ts'
import { classOf, markOf, marks, stateOf } from './page-frame.ts'
import { monitorLink, type PageClock } from './page-words.ts'

/** A report of more monitors lists only those that are not healthy, and how many of them at most. */
const [mostMonitors, mostUnhealthy] = [100, 200]

/** The run whose report is open. */
export type ReportId = { readonly type: ServerType; readonly mode: ExecutionMode }

type ReportOptions = {
  /** The one that the caller requested. */
  readonly isOpen: boolean
  /** Whether the caller may read the details of the type, so that its monitors have pages. */
  readonly reads: boolean
  readonly zone: PageClock['zone']
}

/** The reports of a card, folded unless one of them is the one that the caller requested. */
export function reportsMarkup(
  card: Card,
  { report, ...options }: { readonly report: ReportId | undefined } & Omit<ReportOptions, 'isOpen'>,
): Markup {
  const { type, runs } = card
  const isOpen = (mode: ExecutionMode): boolean => report?.type === type && report?.mode === mode
  const opens = runs.some(({ mode }) => isOpen(mode))
  return html`<details${trusted(opens ? ' open' : '')}><summary>Reports: ${runs.map(({ mode, ageSeconds }) => `${mode} ${age(ageSeconds)}`).join(', ')}</summary>
${runs.toReversed().map((run) => runReport(card, run, { ...options, isOpen: isOpen(run.mode) }))}
</details>`
}

/** The result of the run of a button, in a sentence, and the way back. Undefined if there is no report of it. */
export function ranMarkup(cards: readonly Card[], { type, mode }: ReportId): Markup | undefined {
  const run = cards.find((card) => card.type === type)?.runs.find((one) => one.mode === mode)
  if (!run) return undefined
  return html`<p class="done" role="status">${mode} of ${type}: ${stateOf(run.level)} <span class="when">${whatOf(type, run)}, ${age(run.ageSeconds)}${took(run.duration)}</span> <a href="#${type}-${mode}">See the report</a> or <a href="/#${type}">close it</a></p>`
}

function whatOf(type: ServerType | undefined, { monitors }: CardRun): string {
  const checks = monitors.reduce((sum, { results }) => sum + results.length, 0)
  return type === undefined ? count(checks, 'check') : `${count(monitors.length, 'monitor')}, ${count(checks, 'check')}`
}

/** The report of one run. */
function runReport({ type }: Card, run: CardRun, { isOpen, reads, zone }: ReportOptions): Markup {
  const { mode, monitors, level, ageSeconds, duration } = run
  const unhealthy = monitors.length > mostMonitors ? monitors.filter((one) => one.level !== 'ok') : monitors
  const listed = unhealthy.toSorted(bySeverity).slice(0, mostUnhealthy)
  const left = monitors.length - listed.length
  const id = `${type ?? 'host'}-${mode}`
  return html`<details id="${id}"${trusted(isOpen ? ' open' : '')}><summary>${mode} report: ${whatOf(type, run)} ${stateOf(level)} <span class="when">${age(ageSeconds)}${took(duration)}</span></summary>
<div class="report">${runFacts(run, id, isOpen)}
${listed.map((monitor) => monitorReport(monitor, reads ? type : undefined, zone))}${left > 0 ? html`<p class="muted">${count(left, 'monitor')} not listed, ${count(monitors.length - unhealthy.length, 'healthy monitor')} among them: find them above by their names</p>` : undefined}</div></details>
`
}

const runFacts = ({ correlationId }: CardRun, id: string, isOpen: boolean): Markup =>
  html`<p class="muted">${isOpen ? html`<a href="/#${id.split('-')[0] ?? ''}">Close this report</a>` : html`<a href="/?report=${id}#${id}">Keep this report open</a>`}${correlationId === '' ? '' : ` · correlation id ${correlationId}`}</p>`

/** The latest result of each check of one monitor, once, below the run that found it. The latest run first. */
export function latestReports(
  results: readonly { readonly run: CardRun; readonly monitor: MonitorReading }[],
  zone: PageClock['zone'],
): readonly Markup[] {
  const names = new Set<string>()
  return results
    .toSorted((one, other) => one.run.ageSeconds - other.run.ageSeconds)
    .flatMap(({ run, monitor }) => {
      const fresh = monitor.results.filter(({ check }) => !names.has(check))
      for (const { check } of fresh) names.add(check)
      if (fresh.length === 0) return []
      return html`<h3>${run.mode} <span class="when">${age(run.ageSeconds)}${took(monitor.duration)}</span></h3>${checkList(fresh, zone)}`
    })
}

/** Kept, because most monitors of a page are those of the page before. Of each type, because the name links to its page. */
const reports = new Map<string, (monitor: MonitorReading) => Markup>()

function monitorReport(monitor: MonitorReading, type: ServerType | undefined, zone: PageClock['zone']): Markup {
  return entryOf(reports, `${type} ${zone}`, () =>
    oncePerObject((one: MonitorReading) => html`${headOf(one, type)}\n${checkList(one.results, zone)}`),
  )(monitor)
}

/** Reads what a page shows of a monitor, so that others can have their turns between two monitors. */
export const prepareMonitor = (monitor: RunMonitor): void => void readMonitor(monitor)

const headOf = ({ name, level, duration, host }: MonitorReading, type: ServerType | undefined): Markup =>
  html`<h3>${markOf(level)}${type === undefined || host ? name : monitorLink({ type, monitor: name }, name)}<span class="when">${took(duration).replace(', ', ' ')}</span></h3>`

const checkList = (results: readonly Reading[], zone: PageClock['zone']): Markup =>
  html`<ul class="checks">${results.map(
    (result) =>
      html`<li><span class="mark ${isConsequence(result) ? '' : classOf(result.level)}" role="img" aria-label="${stateWord(result)}">${isConsequence(result) ? '·' : marks[result.level]}</span>${
        result.check === '' ? undefined : html`<b>${result.check}</b> `
      }${messageIn(result, zone)}${result.details.map((detail) => html`<span class="detail">${detail}</span>`)}</li>`,
  )}</ul>`

/** `4 s ago`. */
export function age(seconds: number): string {
  if (seconds < 1) return 'just now'
  if (seconds < 120) return `${seconds} s ago`
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3_600)} h ago`
}

/** `, took 15 ms`. */
export function took(ms: number | undefined): string {
  if (ms === undefined) return ''
  return ms < 1_000 ? `, took ${Math.round(ms)} ms` : `, took ${(ms / 1_000).toFixed(1)} s`
}
