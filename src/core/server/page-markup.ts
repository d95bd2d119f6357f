import { ExecutionMode, type ServerType } from '../protocol/index.ts'
import { count, type Level, worstFirst } from '../reports/index.ts'
import type { Incidents } from '../service.ts'
import { type Card, type CardRun, headline } from './cards.ts'
import { html, type Markup } from './html.ts'
import { classOf, framed, words } from './page-frame.ts'
import { incidentLevel, incidentsMarkup, incidentTitle, reloadSeconds } from './page-incidents.ts'
import { age, runReport, took } from './page-report.ts'
import { searchMarkup } from './page-search.ts'

export type PageFacts = {
  readonly base: string
  /** The signed-in user, and how the user signed in. */
  readonly user: string | undefined
  /** Undefined when this caller may not see it. */
  readonly configuration: string | undefined
  readonly configured: readonly ServerType[]
  /** The types that svc checks: without a configuration, its own parts. */
  readonly answered: readonly ServerType[]
  /** What is wrong with the monitors that the schedule runs. Absent without a schedule. */
  readonly incidents?: Incidents | undefined
  /** What svc forgets when it ends, and why. Absent: nothing, or the caller may not read it. */
  readonly notKept?: string | undefined
  /** The incident whose victims are listed, by its id on the page. */
  readonly victims?: string | undefined
  /** Whether the caller may read the details of a type. Absent: of none. */
  readonly reads?: ((type?: ServerType) => boolean) | undefined
  /** What the page loads when it reloads itself. Absent: the same. */
  readonly reloadAs?: string | undefined
  /** Whether the page does not reload itself. */
  readonly isStill?: boolean | undefined
  /** What the names of the monitors to list contain. */
  readonly find?: string | undefined
  /** The types that are not configured. */
  readonly others: readonly ServerType[]
  readonly at: Date
  /** The run whose report is open. */
  readonly report: ReportId | undefined
  /** Why a check did not run. */
  readonly refusal: string | undefined
  /** Why the page does not show what was requested. */
  readonly notice?: string | undefined
}
export type ReportId = { readonly type: ServerType; readonly mode: ExecutionMode }

/** How often the page reloads itself while nothing is in doubt, in seconds. */
const usualReload = 30

/** The target that shows the page with this report open, and its place on the page. */
export const reportTarget = ({ type, mode }: ReportId): string => `/?report=${type}-${mode}#${type}-${mode}`

/** The status page. */
export function pageMarkup(cards: readonly Card[], facts: PageFacts): Markup {
  const now = facts.at.getTime()
  const { incidents, victims: opened, refusal, notice = refusal && `The check did not run: ${refusal}` } = facts
  const main = html`${incidents && incidentsMarkup(incidents, { now, opened })}
${searchMarkup(cards, facts)}
<div class="types">${cards.map((card) => cardMarkup(card, cards, facts))}</div>
${ways(facts.answered[0], facts)}
${facts.notKept === undefined ? undefined : html`<p class="quiet">${facts.notKept}.</p>`}`
  return framed(main, {
    ...facts,
    title: (incidents && incidentTitle(incidents, cards, now)) ?? headline(cards),
    level: worstLevel([overall(cards), incidents && incidentLevel(incidents)]),
    reloadEvery: reloadSeconds(incidents, usualReload),
    ...(notice === undefined ? {} : { reloadAs: '/', notice }),
  })
}

export const overall = (cards: readonly Card[]): Level | undefined => worstLevel(cards.map(({ level }) => level))

export const worstLevel = (levels: readonly (Level | undefined)[]): Level | undefined =>
  worstFirst.find((level) => levels.includes(level))

/** How many lines say why a type is not healthy. */
const mostCauses = 20

function cardMarkup(card: Card, all: readonly Card[], { report, reads = () => false }: PageFacts): Markup {
  const { type, level, decisiveRun, runs } = card
  const causes = decisiveRun?.causes ?? []
  const className = classOf(decisiveRun?.ownLevel)
  const more = causes.length - mostCauses
  const lines = [
    ...causes.slice(0, mostCauses).map((cause) => html`<li class="${className}">${cause}</li>`),
    ...(more > 0 ? [html`<li class="${className}">and ${more} more</li>`] : []),
  ]
  const host = hostLine(card, all)
  const isOpen = (mode: ExecutionMode): boolean => report?.type === type && report?.mode === mode
  return html`<section id="${type ?? 'host'}">
<div class="top"><h2>${type ?? 'Host'}</h2>${state(level)}</div>
${lines.length > 0 || host ? html`<ul class="causes">${[...lines, host]}</ul>` : undefined}
${type === undefined ? html`<p class="quiet">The machine of svc, checked together with each type</p>` : form(type, runs)}
${runs.toReversed().map((run) => runReport(card, run, { isOpen: isOpen(run.mode), reads: reads(type) }))}
</section>
`
}

/** Where the host is why the type is not healthy, a link to its card. */
function hostLine({ type, decisiveRun }: Card, all: readonly Card[]): Markup | undefined {
  if (type === undefined || !decisiveRun || decisiveRun.ownLevel === decisiveRun.level) return undefined
  if (!all.some((each) => each.type === undefined)) return undefined
  return html`<li class="${classOf(decisiveRun.level)}">${hostWords[decisiveRun.level]}: see <a href="#host">Host</a></li>`
}
const hostWords: Record<Level, string> = {
  ok: 'The host was healthy',
  warn: 'The host had warnings',
  'not checked': 'The host was not fully checked',
  fail: 'The host was unhealthy',
}

const form = (type: ServerType, runs: readonly CardRun[]): Markup => html`<form method="post" action="/">
<input type="hidden" name="ServerType" value="${type}">
<table>${ExecutionMode.values.map((mode) =>
  row(
    type,
    mode,
    runs.find((run) => run.mode === mode),
  ),
)}</table>
</form>
`

function row(type: ServerType, mode: ExecutionMode, run: CardRun | undefined): Markup {
  const cell = run
    ? html`${state(run.level)} <span class="when">${age(run.ageSeconds)}${took(run.duration)}</span>`
    : html`<span class="when">not checked yet</span>`
  return html`<tr><th scope="row">${mode}</th><td>${cell}</td>
<td class="ask"><button name="ExecutionMode" value="${mode}" aria-label="check ${type} ${mode}">check</button></td></tr>
`
}

const state = (level: Level | undefined): Markup =>
  html`<span class="state ${classOf(level)}">${level ? words[level] : 'not checked yet'}</span>`

function ways(type: ServerType | undefined, { base, configuration, configured, answered, others }: PageFacts): Markup {
  const url = `${base}/healthcheck?ExecutionMode=Standard&ServerType=${type ?? 'App'}`
  return html`<section>
<h2>How to run a check elsewhere</h2>
<div class="many">
<div><p>From a terminal</p><pre>svc health --server ${base}${type === undefined ? '' : ` --type ${type}`}</pre></div>
<div><p>With curl: HTTP 200 means healthy, 503 unhealthy</p><pre>curl '${breakable(url)}'</pre></div>
<div><p>PRTG, Nagios, Prometheus</p><pre>${breakable(`${url}&format=prtg`)}
${breakable(`${url}&format=nagios`)}
${base}/metrics</pre></div>
</div>
${configured.length === 0 ? html`<p>No server type is configured${answered.length === 0 ? ', and every type answers 503' : ''}. <code>svc monitors discover</code> proposes a configuration for this machine.</p>` : notConfigured(others)}
${configuration === undefined ? undefined : html`<p class="quiet">Configuration: ${configuration}</p>`}
</section>
`
}

/** A URL that may break before its path and its parameters on a narrow screen. Copying it yields the URL. */
const breakable = (url: string): Markup =>
  html`${url.split(/(?=\/healthcheck|[?&])/).map((part, at) => (at === 0 ? html`${part}` : html`<wbr>${part}`))}`

const notConfigured = (others: readonly ServerType[]): Markup | undefined =>
  others.length === 0
    ? undefined
    : html`<p class="quiet">${count(others.length, 'type')} not configured (${others.join(', ')})</p>`
