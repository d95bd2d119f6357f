import { maySilence, type QuietEntry, type RunQuiet } from '../../protocol/index.ts'
import type { Call, HealthViews } from '../../protocol/service/service.ts'
import type { ServerContext } from '../context.ts'
import { html, type Markup } from '../html.ts'
import { soon } from './page-soon.ts'
import { instant, type MonitorId, monitorIdOf, monitorKey } from './page-words.ts'

/** The quiet monitors and entries, as far as the reader may know them. */
export type QuietFacts = {
  /** By `monitorIdOf`, for each monitor the one that lasts longest. */
  readonly byMonitor: ReadonlyMap<string, RunQuiet>
  readonly entries: readonly QuietEntry[]
  /** Whether the reader may silence and acknowledge. */
  readonly maySilence: boolean
}

const nothing: QuietFacts = { byMonitor: new Map(), entries: [], maySilence: false }

/**
 * The quiet monitors and entries now, and whether the reader may change them, which requires `isSignedIn`. If the store
 * does not answer, the page shows the rest.
 */
export async function quietFacts(
  { service, runtime }: ServerContext,
  { call, views, isSignedIn }: { readonly call: Call; readonly views: HealthViews; readonly isSignedIn: boolean },
): Promise<QuietFacts> {
  if (!runtime.confirmed) return nothing
  const [answer, identity] = await Promise.all([
    soon(service.getQuiet({}, call)),
    isSignedIn ? soon(service.authenticate({}, { ...call, verb: 'GET' })) : undefined,
  ])
  const entries = answer?.Quiet ?? []
  const byMonitor = new Map<string, RunQuiet>()
  for (const { type, monitor, quiet } of entries.length === 0 ? [] : runtime.confirmed(views).checks) {
    const [first] = quiet
    const id = monitorIdOf({ type, monitor })
    if (first && !byMonitor.has(id)) byMonitor.set(id, first)
  }
  const { Roles: roles = [], Permissions: permissions = [] } = identity ?? {}
  return { byMonitor, entries, maySilence: answer !== undefined && maySilence({ roles, permissions }) }
}

const whatOf: Readonly<Record<RunQuiet['source'], string>> = {
  hand: 'quiet',
  clock: 'quiet by svc.yaml',
  ack: 'acknowledged',
}

/** `quiet` or `acknowledged`. Undefined for a monitor that is not quiet. */
export function quietSource(quiet: QuietFacts | undefined, id: MonitorId): string | undefined {
  const one = quiet?.byMonitor.get(monitorIdOf(id))
  return one && whatOf[one.source]
}

/** `quiet until 04:00:00 UTC, alice: patch night`. Undefined for a monitor that is not quiet. */
export function quietLine(quiet: QuietFacts | undefined, id: MonitorId, now: number): Markup | undefined {
  const one = quiet?.byMonitor.get(monitorIdOf(id))
  return one && html`<p class="why hush">${sentenceOf(one, now)}</p>`
}

const sentenceOf = ({ source, until, by, reason }: RunQuiet, now: number): Markup =>
  html`${whatOf[source]} until ${instant(until.getTime(), now)}${by === undefined ? '' : `, ${by.replace(/^local:/, '')}`}${reason === undefined ? '' : `: ${reason}`}`

/** For how long a form silences. The values are those of the field `For`. */
const durations = [
  ['PT1H', '1 hour'],
  ['PT4H', '4 hours'],
  ['PT12H', '12 hours'],
  ['P1D', '1 day'],
  ['P7D', '7 days'],
] as const

/** The silences of a monitor, with the forms for readers who may change them. Undefined if there is nothing to show. */
export function quietMarkup(
  quiet: QuietFacts | undefined,
  id: MonitorId,
  { now, hasIncident }: { readonly now: number; readonly hasIncident: boolean },
): Markup | undefined {
  if (!quiet) return undefined
  const name = id.type === undefined ? id.monitor : `${id.type}/${id.monitor}`
  const line = quietLine(quiet, id, now)
  const entry = entryOf(quiet, id, name)
  if (!line && !quiet.maySilence) return undefined
  const back = encodeURIComponent(`/?monitor=${monitorKey(id)}`)
  return html`<section id="quiet"><h2>Notifications</h2>
${line ?? html`<p class="quiet">Receivers are notified about it.</p>`}
${quiet.maySilence ? formsOf({ name, back, hasIncident, id: entry?.Id }) : undefined}
</section>
`
}

/** The entry that makes a monitor quiet, if a person can end it. */
function entryOf({ byMonitor, entries }: QuietFacts, id: MonitorId, name: string): QuietEntry | undefined {
  const one = byMonitor.get(monitorIdOf(id))
  return entries.find(({ Id, Until, By, Reason, Monitors = [] }) => {
    if (Id === undefined) return false
    const isSame = one && Until?.getTime() === one.until.getTime() && By === one.by && Reason === one.reason
    return isSame || (!one && Monitors.includes(name))
  })
}

type FormFacts = {
  readonly name: string
  /** The page that the forms come back to, as a part of a URL. */
  readonly back: string
  readonly hasIncident: boolean
  readonly id: string | undefined
}

const formsOf = ({ name, back, hasIncident, id }: FormFacts): Markup => html`${
  id === undefined
    ? undefined
    : html`<form method="post" action="/forms/end-quiet?continue=${back}" class="find"><input type="hidden" name="Id" value="${id}"><button>End it now</button></form>
`
}<details><summary>Silence it</summary>
<form method="post" action="/forms/quiet?continue=${back}" class="find"><input type="hidden" name="Monitors" value="${quoted(name)}">
${timeField('quiet-for')} ${reasonField('quiet-reason')} <button>Silence</button></form>
<p class="quiet">Receivers get nothing about it until then. States, metrics and this page stay as they are.</p></details>
${
  hasIncident
    ? html`<details><summary>Acknowledge its open incidents</summary>
<form method="post" action="/forms/acknowledge?continue=${back}" class="find"><input type="hidden" name="Monitor" value="${name}">
${timeField('ack-for')} ${reasonField('ack-reason')} <button>Acknowledge</button></form>
<p class="quiet">Receivers get no reminders for as long as the faults are the same.</p></details>`
    : undefined
}`

/** As an entry of a list in a form (JSV). */
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

const timeField = (id: string): Markup =>
  html`<label for="${id}">for</label> <select id="${id}" name="For">${durations.map(([value, text]) => html`<option value="${value}">${text}</option>`)}</select>`

const reasonField = (id: string): Markup =>
  html`<label for="${id}">because</label> <input id="${id}" name="Reason" maxlength="200" required>`
