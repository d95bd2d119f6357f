import { count } from '../../base/format.ts'
import { type Level, worstFirst } from '../../checks/reports/index.ts'
import type { ServerType } from '../../protocol/index.ts'
import type { Incidents } from '../../protocol/service/service.ts'
import { html, type Markup, trusted } from '../html.ts'
import { type Card, headline, overall, worstLevel } from './cards.ts'
import type { DaysById } from './page-days.ts'
import { classOf, type FrameOfRequest, framed, type Page } from './page-frame.ts'
import { headingOf, incidentLevel, incidentsMarkup, incidentTitle, reloadSeconds } from './page-incidents.ts'
import { type CardList, listedIds, listingsOf } from './page-listing.ts'
import { type ReportId, ranMarkup } from './page-report.ts'
import { foundIds, isAsked, type Search, searchMarkup, stateName } from './page-search.ts'
import type { SilenceFacts } from './page-silences.ts'
import { cardMarkup } from './page-types.ts'
import type { MonitorId } from './page-words.ts'

export type PageFacts = FrameOfRequest & {
  /** Undefined when this caller may not see it. */
  readonly configuration: string | undefined
  readonly configured: readonly ServerType[]
  /** The types that svc checks: without a configuration, its own parts. */
  readonly answered: readonly ServerType[]
  /** The incidents of the monitors that the schedule runs. Absent without a schedule. */
  readonly incidents?: Incidents | undefined
  /** The data that is lost when svc ends, and why. Absent: none, or the caller may not read it. */
  readonly notKept?: string | undefined
  /** The incident whose victims are listed, by its id on the page. */
  readonly victims?: string | undefined
  /** Whether the caller may read the details of a type. Absent: of none. */
  readonly reads?: ((type?: ServerType) => boolean) | undefined
  /** Which monitors the reader looks for. */
  readonly search?: Search | undefined
  /** The cards whose lists are open, by type; `host` for that of the host. */
  readonly opened?: readonly string[] | undefined
  /** The days of the monitors that the page lists. Absent: history says nothing now. */
  readonly days?: DaysById | undefined
  readonly silences?: SilenceFacts | undefined
  /** The types that are not configured. */
  readonly others: readonly ServerType[]
  /** The run whose report is open. */
  readonly report: ReportId | undefined
  /** Why a check did not run. */
  readonly refusal: string | undefined
}

/** How often the page reloads itself while nothing is in doubt, in seconds. */
const usualReload = 30

/** The target that shows the page with this report open, and its place on the page. */
export const reportTarget = ({ type, mode }: ReportId): string => `/?report=${type}-${mode}#${type}-${mode}`

const readsNothing = (): boolean => false

/** The monitors of which the page shows days. Never more than a few hundred. */
export function idsOfPage(
  cards: readonly Card[],
  { reads = readsNothing, search = {}, opened }: PageFacts,
): readonly MonitorId[] {
  return [...listedIds(listingsOf(cards, { opened }), reads), ...foundIds(cards, { search, reads })]
}

/** The status page. */
export function pageMarkup(cards: readonly Card[], facts: PageFacts): Page {
  const clock = { now: facts.at.getTime(), zone: facts.zone }
  const { incidents, victims, refusal, report, reads = readsNothing, days, search = {}, silences } = facts
  const { notice = refusal && `The check did not run: ${refusal}` } = facts
  const listings = listingsOf(cards, facts)
  const results = searchMarkup(cards, { search, reads, days, silences, clock })
  // Whoever looks for something sees what there is of it, and no other lists.
  const isSearch = results !== undefined && isAsked(search)
  const main = html`${report && ranMarkup(cards, report)}
${isSearch ? results : undefined}
${incidents && incidentsMarkup(incidents, { clock, opened: victims, silences })}
${isSearch ? undefined : results}
${isSearch ? undefined : cards.map((card) => cardMarkup(card, { all: cards, listing: listings.get(card) ?? nothing, reads: reads(card.type), days, report, silences, clock }))}
${ways(facts.answered[0], facts)}
${facts.notKept === undefined ? undefined : html`<p class="muted">${facts.notKept}.</p>`}`
  const problem = incidents && incidentTitle(incidents, cards, clock)
  const title = problem ? `${problem.what}${problem.why}` : headline(cards)
  return framed(main, {
    ...facts,
    title,
    heading: problem && headingOf(problem),
    summary: countsMarkup(cards, reads),
    level: worstLevel([overall(cards), incidents && incidentLevel(incidents)]),
    reloadEvery: reloadSeconds(incidents, usualReload),
    place: '/',
    ...(notice === undefined ? {} : { reloadAs: '/', notice }),
  })
}

const nothing: CardList = { bad: [], moreBad: 0, folds: [] }

const countWords: Record<Level, string> = {
  fail: '✗ %d failed',
  'not checked': '? %d not checked',
  warn: '! %d with a warning',
  ok: '✓ %d healthy',
}

/** How many monitors there are of each state, as links to them. The machine counts as one. */
function countsMarkup(cards: readonly Card[], reads: (type?: ServerType) => boolean): Markup | undefined {
  const all = cards.flatMap(({ monitors }) => monitors)
  if (all.length === 0) return undefined
  const isReadable = cards.every(({ type }) => reads(type))
  const entries = worstFirst.flatMap((level) => {
    const n = all.filter((one) => one.level === level).length
    const text = countWords[level].replace('%d', String(n))
    if (n === 0) return []
    return isReadable ? html`<a href="/?state=${stateName(level)}#find">${text}</a>` : html`${text}`
  })
  const levels = worstFirst.filter((level) => all.some((one) => one.level === level))
  return html`<ul class="counts" aria-label="Monitors by state">${entries.map((entry, at) => html`<li class="state ${classOf(levels[at])}">${entry}</li>`)}</ul>`
}

function ways(type: ServerType | undefined, { base, configuration, configured, answered, others }: PageFacts): Markup {
  const url = `${base}/healthcheck?ExecutionMode=Standard&ServerType=${type ?? 'App'}`
  const isUnconfigured = configured.length === 0
  return html`<section>
<details${trusted(isUnconfigured ? ' open' : '')}><summary><h2>How to run a check elsewhere</h2></summary>
<div class="many">
<div><p>From a terminal</p><pre>svc health --server ${base}${type === undefined ? '' : ` --type ${type}`}</pre></div>
<div><p>With curl: HTTP 200 means healthy, 503 unhealthy</p><pre>curl '${breakable(url)}'</pre></div>
<div><p>PRTG, Nagios, Prometheus</p><pre>${breakable(`${url}&format=prtg`)}
${breakable(`${url}&format=nagios`)}
${base}/metrics</pre></div>
</div>
</details>
${isUnconfigured ? html`<p>No server type is configured${answered.length === 0 ? ', and every type answers 503' : ''}. <code>svc monitors discover</code> proposes a configuration for this machine.</p>` : notConfigured(others)}
${configuration === undefined ? undefined : html`<p class="muted">Configuration: ${configuration}</p>`}
</section>
`
}

/** A URL that may break before its path and its parameters on a narrow screen. Copying it yields the URL. */
const breakable = (url: string): Markup =>
  html`${url.split(/(?=\/healthcheck|[?&])/).map((part, at) => (at === 0 ? html`${part}` : html`<wbr>${part}`))}`

const notConfigured = (others: readonly ServerType[]): Markup | undefined =>
  others.length === 0
    ? undefined
    : html`<p class="muted">${count(others.length, 'type')} not configured (${others.join(', ')})</p>`
