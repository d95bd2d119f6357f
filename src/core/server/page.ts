import { Fault } from '../errors.ts'
import { ExecutionMode, ServerType } from '../protocol/index.ts'
import { count, type EntryReading, isConsequence, type Level, read, stateWord, worstFirst } from '../reports/index.ts'
import { type Call, type RecentRun, readsHere } from '../service.ts'
import type { HttpAnswer } from './answer.ts'
import { callOf } from './call.ts'
import { baseUrl, type RequestContext, type ServerContext } from './context.ts'
import { presented } from './credential.ts'
import { checkedTypes, depthOf, entryOf } from './health.ts'
import { html, type Markup, pagePolicy, style, trusted } from './html.ts'

/** The status of one server type, from its latest runs. */
export type TypeStatus = {
  readonly type: ServerType
  /** Undefined before the first run. */
  readonly level: Level | undefined
  /** The run behind the level: the newest among the worst runs that still count. */
  readonly decisiveRun: EntryReading | undefined
  /** The latest run of each mode, shallowest first. */
  readonly runs: readonly {
    readonly mode: ExecutionMode
    readonly ageSeconds: number
    readonly reading: EntryReading
  }[]
}

/**
 * Rates a type by its latest runs, newest first. A run counts until a newer one goes at least as deep: a Basic run
 * that passes does not clear what an Advanced run found.
 */
export function typeStatus(type: ServerType, recent: readonly RecentRun[], target: string): TypeStatus {
  const own = recent
    .filter((run) => run.type === type)
    .toSorted((a, b) => a.ageSeconds - b.ageSeconds)
    .map((run) => ({ mode: run.mode, ageSeconds: run.ageSeconds, reading: read(entryOf(run, target)) }))
  const counting = own.filter((run, i) => own.slice(0, i).every((newer) => depthOf(newer.mode) < depthOf(run.mode)))
  const level = worstFirst.find((candidate) => counting.some(({ reading }) => reading.level === candidate))
  return {
    type,
    level,
    decisiveRun: counting.find(({ reading }) => reading.level === level)?.reading,
    runs: own.toSorted((a, b) => depthOf(a.mode) - depthOf(b.mode)),
  }
}

/** How often the page reloads itself, in seconds. */
const reloadEvery = 30

/** The status page at `/`. Shows the latest runs as far as this caller may see them, and starts none. */
export async function statusPage(server: ServerContext, context: RequestContext): Promise<HttpAnswer> {
  const { facts } = server.runtime
  const base = baseUrl(server, context)
  // No other site can read this page, so the browser's own cookie may identify the user. Passwords and digests may not:
  // the page reloads itself, and each would be checked every time.
  const { credential } = presented(context.request.headers, { ambient: true, basic: false, signed: undefined })
  const call = callOf(context, credential, () => {})
  const recent = server.runtime.recent(await server.runtime.viewOf(call))
  // A type that is not configured is never red: somebody only asked for it.
  const checked = new Set(recent.map((run) => run.type))
  const visible = new Set(facts.types.length > 0 ? facts.types : facts.ownTypes.filter((type) => checked.has(type)))
  const standings = ServerType.values
    .filter((type) => visible.has(type))
    .map((type) => typeStatus(type, recent, base))
    .toSorted((a, b) => urgency(a) - urgency(b))
  const configuration = (await readsHere(context.caller)) ? (facts.configuration ?? 'none') : undefined
  const user = credential && (await signedInUser(server, call))
  const page = document(standings, {
    base,
    user,
    configuration,
    configured: facts.types,
    answered: checkedTypes(facts),
    at: new Date(),
  })
  return {
    status: 200,
    contentType: 'text/html; charset=utf-8',
    body: page.markup,
    contentSecurityPolicy: pagePolicy,
  }
}

/** Who is signed in, and by which provider. Undefined without a valid session, and where sign-in is not offered. */
async function signedInUser({ service }: ServerContext, call: Call): Promise<string | undefined> {
  try {
    const { UserName, Sessions = [] } = await service.getSessions({}, call)
    const provider = Sessions.find(({ Current }) => Current)?.Provider
    if (UserName === undefined || provider === undefined) return undefined
    return `${UserName} by ${provider === 'credentials' ? 'password' : provider}`
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

/** Sorts what needs attention first. */
const urgency = ({ level }: TypeStatus): number => [...worstFirst, undefined].indexOf(level)

type Facts = {
  readonly base: string
  /** The signed-in user, and how the user signed in. */
  readonly user: string | undefined
  /** Undefined when this caller may not see it. */
  readonly configuration: string | undefined
  readonly configured: readonly ServerType[]
  /** The types that svc checks: without a configuration, its own parts. */
  readonly answered: readonly ServerType[]
  readonly at: Date
}

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

function document(standings: readonly TypeStatus[], facts: Facts): Markup {
  const level = overall(standings)
  const title = headline(standings)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="${reloadEvery}">
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
<div class="types">${standings.map(card)}</div>
${ways(standings[0]?.type ?? 'App', facts)}
</main>
<footer class="quiet">
<a href="/livez">liveness</a> <a href="/readyz">readiness</a> <a href="/metrics">metrics</a> <a href="/metadata">interface</a>
</footer>
</body>
</html>
`
}

function overall(standings: readonly TypeStatus[]): Level | undefined {
  const levels = standings.map(({ level }) => level)
  return worstFirst.find((level) => levels.includes(level))
}

function headline(standings: readonly TypeStatus[]): string {
  const typesAt = (level: Level): string[] => standings.filter((s) => s.level === level).map(({ type }) => type)
  const failing = typesAt('fail')
  if (failing.length > 0) return `${failing.join(', ')} ${failing.length === 1 ? 'is' : 'are'} unhealthy`
  const unchecked = typesAt('not checked')
  if (unchecked.length > 0) return `${unchecked.join(', ')} ${unchecked.length === 1 ? 'is' : 'are'} not fully checked`
  const warned = typesAt('warn')
  if (warned.length > 0) return `Healthy, with warnings: ${warned.join(', ')}`
  const healthy = typesAt('ok')
  if (healthy.length === 0) return 'Nothing has been checked yet'
  const waiting = standings.length - healthy.length
  return waiting === 0 ? 'All healthy' : `Healthy: ${healthy.join(', ')}; ${waiting} not checked yet`
}

function card({ type, level, decisiveRun, runs }: TypeStatus): Markup {
  const causes = decisiveRun?.causes ?? []
  return html`<section>
<div class="top"><h2>${type}</h2>${state(level)}</div>
${causes.length > 0 ? html`<ul class="causes">${causes.map((cause) => html`<li class="${classOf(level)}">${cause}</li>`)}</ul>` : undefined}
<table>${ExecutionMode.values.map((mode) =>
    row(
      type,
      mode,
      runs.find((run) => run.mode === mode),
    ),
  )}</table>
${runs.toReversed().map(({ mode, reading }) => details(mode, reading))}
</section>
`
}

function row(type: ServerType, mode: ExecutionMode, run: TypeStatus['runs'][number] | undefined): Markup {
  const cell = run
    ? html`${state(levelOf(run.reading))} <span class="when">${age(run.ageSeconds)}${took(run.reading.duration)}</span>`
    : html`<span class="when">not checked yet</span>`
  return html`<tr><th scope="row">${mode}</th><td>${cell}</td>
<td class="ask"><a href="${question(type, mode)}" rel="nofollow" aria-label="check ${type} ${mode}">check</a></td></tr>
`
}

const state = (level: Level | undefined): Markup =>
  html`<span class="state ${classOf(level)}">${level ? words[level] : 'not checked yet'}</span>`

/** Recent runs always have a result. */
const levelOf = ({ level }: EntryReading): Level => (level === 'unknown' ? 'fail' : level)

function details(mode: ExecutionMode, { monitors }: EntryReading): Markup {
  return html`<details><summary>${mode}: ${count(monitors.length, 'monitor')}</summary>${monitors.map(
    (monitor) =>
      html`<h3>${monitor.name}</h3><ul class="checks">${monitor.results.map(
        (result) =>
          html`<li><span class="mark ${isConsequence(result) ? '' : classOf(result.level)}" title="${stateWord(result)}">${isConsequence(result) ? '·' : marks[result.level]}</span>${
            result.check === '' ? '' : `${result.check}: `
          }${result.message}${result.details.map((detail) => html`<span class="detail">${detail}</span>`)}</li>`,
      )}</ul>`,
  )}</details>`
}

const question = (type: ServerType, mode: ExecutionMode): string =>
  `/healthcheck?ExecutionMode=${mode}&ServerType=${type}`

function ways(type: ServerType, { base, configuration, configured, answered }: Facts): Markup {
  const url = `${base}${question(type, 'Standard')}`
  return html`<section>
<h2>How to run a check</h2>
<div class="many">
<div><p>From a terminal</p><pre>svc health --server ${base} --type ${type}</pre></div>
<div><p>With curl: HTTP 200 means healthy, 503 unhealthy</p><pre>curl '${url}'</pre></div>
<div><p>PRTG, Nagios, Prometheus</p><pre>${url}&amp;format=prtg
${url}&amp;format=nagios
${base}/metrics</pre></div>
<div><p>In the browser (Basic)</p><p class="asks">${ServerType.values.map((each) => html`<a href="${question(each, 'Basic')}" rel="nofollow">${each}</a> `)}</p></div>
</div>
${configured.length === 0 ? html`<p>No server type is configured${answered.length === 0 ? ', and every type answers 503' : ''}. <code>svc monitors discover</code> proposes a configuration for this machine.</p>` : notConfigured(configured)}
${configuration === undefined ? undefined : html`<p class="quiet">Configuration: ${configuration}</p>`}
</section>
`
}

function notConfigured(configured: readonly ServerType[]): Markup | undefined {
  const others = ServerType.values.filter((type) => !configured.includes(type))
  return others.length === 0
    ? undefined
    : html`<p class="quiet">${count(others.length, 'type')} not configured (${others.join(', ')})</p>`
}

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
