import { oncePerObject } from '../lazy.ts'
import { ExecutionMode, type RunMonitor, type ServerType } from '../protocol/index.ts'
import {
  bySeverity,
  count,
  isConsequence,
  type Level,
  type MonitorReading,
  readMonitor,
  stateWord,
  worstFirst,
} from '../reports/index.ts'
import { type Card, type CardRun, headline } from './cards.ts'
import { html, type Markup, style, trusted } from './html.ts'

export type PageFacts = {
  readonly base: string
  /** The signed-in user, and how the user signed in. */
  readonly user: string | undefined
  /** Undefined when this caller may not see it. */
  readonly configuration: string | undefined
  readonly configured: readonly ServerType[]
  /** The types that svc checks: without a configuration, its own parts. */
  readonly answered: readonly ServerType[]
  /** The types that are not configured. */
  readonly others: readonly ServerType[]
  readonly at: Date
  /** The run whose report is open. */
  readonly report: ReportId | undefined
  /** Why a check did not run. */
  readonly refusal: string | undefined
}
export type ReportId = { readonly type: ServerType; readonly mode: ExecutionMode }

/** How often the page reloads itself, in seconds. */
const reloadEvery = 30

const words: Record<Level, string> = {
  ok: '✓ healthy',
  warn: '! warning',
  'not checked': '? not fully checked',
  fail: '✗ unhealthy',
}
const marks: Record<Level, string> = { ok: '✓', warn: '!', 'not checked': '?', fail: '✗' }
/** CSS classes. */
const classes: Record<Level, string> = { ok: 'ok', warn: 'warn', 'not checked': 'unchecked', fail: 'fail' }
const classOf = (level: Level | undefined): string => (level ? classes[level] : '')

/** The target that shows the page with this report open, and its place on the page. */
export const reportTarget = ({ type, mode }: ReportId): string => `/?report=${type}-${mode}#${type}-${mode}`

/** The status page. Its policy of referrers lets the browser say that the form comes from this page. */
export function pageMarkup(cards: readonly Card[], facts: PageFacts): Markup {
  const level = overall(cards)
  const title = headline(cards)
  const reloaded = facts.refusal === undefined ? '' : '; url=/'
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin">
<meta http-equiv="refresh" content="${reloadEvery}${reloaded}">
<title>${title} · svc</title>
<link rel="icon" href="${icon(level)}">
<style>${trusted(style)}</style>
</head>
<body>
<header class="${classOf(level) || 'none'}">
<h1>${title}</h1>
<p class="quiet">${facts.base} · ${facts.at.toISOString().slice(0, 19).replace('T', ' ')} UTC · reloads every ${reloadEvery} s${facts.user === undefined ? '' : ` · signed in as ${facts.user}`}</p>
</header>
<main>
${facts.refusal === undefined ? undefined : html`<p class="refusal" role="alert">The check did not run: ${facts.refusal}</p>`}
<div class="types">${cards.map((card) => cardMarkup(card, cards, facts.report))}</div>
${ways(facts.answered[0], facts)}
</main>
<footer class="quiet">
<a href="/livez">liveness</a> <a href="/readyz">readiness</a> <a href="/metrics">metrics</a> <a href="/metadata">interface</a>
</footer>
</body>
</html>
`
}

function overall(cards: readonly Card[]): Level | undefined {
  const levels = cards.map(({ level }) => level)
  return worstFirst.find((level) => levels.includes(level))
}

function cardMarkup(card: Card, all: readonly Card[], report: ReportId | undefined): Markup {
  const { type, level, decisiveRun, runs } = card
  const causes = decisiveRun?.causes ?? []
  const lines = causes.map((cause) => html`<li class="${classOf(decisiveRun?.ownLevel)}">${cause}</li>`)
  const host = hostLine(card, all)
  return html`<section id="${type ?? 'host'}">
<div class="top"><h2>${type ?? 'Host'}</h2>${state(level)}</div>
${lines.length > 0 || host ? html`<ul class="causes">${[...lines, host]}</ul>` : undefined}
${type === undefined ? html`<p class="quiet">The machine of svc, checked together with each type</p>` : form(type, runs)}
${runs.toReversed().map((run) => reportOf(card, run, report?.type === type && report?.mode === run.mode))}
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

/** The report of one run. `isOpen`: the one that the caller asked for. */
function reportOf({ type }: Card, run: CardRun, isOpen: boolean): Markup {
  const { mode, monitors, correlationId } = run
  const checks = monitors.reduce((sum, { results }) => sum + results.length, 0)
  const what =
    type === undefined ? count(checks, 'check') : `${count(monitors.length, 'monitor')}, ${count(checks, 'check')}`
  return html`<details id="${type ?? 'host'}-${mode}"${trusted(isOpen ? ' open' : '')}><summary>${mode} report: ${what}</summary>
<p class="quiet">${age(run.ageSeconds)}${took(run.duration)}${correlationId === '' ? '' : ` · correlation id ${correlationId}`}</p>
${monitors.toSorted(bySeverity).map(monitorReport)}</details>
`
}

/** Makes what a page keeps of a monitor, so that others can have their turns between two monitors. */
export const prepareMonitor = (monitor: RunMonitor): void => void monitorReport(readMonitor(monitor))

/** Kept, because most monitors of a page are those of the page before. */
const monitorReport = oncePerObject(
  ({
    name,
    level,
    duration,
    results,
  }: MonitorReading): Markup => html`<h3><span class="mark ${classOf(level)}" title="${words[level].slice(2)}">${marks[level]}</span>${name}<span class="when">${took(duration).replace(', ', ' ')}</span></h3>
<ul class="checks">${results.map(
    (result) =>
      html`<li><span class="mark ${isConsequence(result) ? '' : classOf(result.level)}" title="${stateWord(result)}">${isConsequence(result) ? '·' : marks[result.level]}</span>${
        result.check === '' ? undefined : html`<b>${result.check}</b> `
      }${result.message}${result.details.map((detail) => html`<span class="detail">${detail}</span>`)}</li>`,
  )}</ul>`,
)

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

function age(seconds: number): string {
  if (seconds < 1) return 'just now'
  if (seconds < 120) return `${seconds} s ago`
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3_600)} h ago`
}

function took(ms: number | undefined): string {
  if (ms === undefined) return ''
  return ms < 1_000 ? `, took ${Math.round(ms)} ms` : `, took ${(ms / 1_000).toFixed(1)} s`
}

const colours: Record<Level, string> = { ok: '#1f9d55', warn: '#d99100', 'not checked': '#d99100', fail: '#d92d33' }

/** The favicon: a dot in the color of the level. */
const icon = (level: Level | undefined): string =>
  `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="${level ? colours[level] : '#8a929c'}"/></svg>`,
  )}`
