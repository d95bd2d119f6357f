import { maySilence, type RunSilence, type SilenceEntry } from '../../protocol/index.ts'
import type { Call, HealthViews } from '../../protocol/service/service.ts'
import type { ServerContext } from '../context.ts'
import { html, type Markup } from '../html.ts'
import { soon } from './page-soon.ts'
import { instant, type MonitorId, monitorIdOf, monitorKey, type PageClock } from './page-words.ts'

/** The silenced monitors and entries, as far as the reader may know them. */
export type SilenceFacts = {
  /** By `monitorIdOf`, for each monitor the one that lasts longest. */
  readonly byMonitor: ReadonlyMap<string, RunSilence>
  readonly entries: readonly SilenceEntry[]
  /** Whether the reader may silence and acknowledge. */
  readonly maySilence: boolean
}

const nothing: SilenceFacts = { byMonitor: new Map(), entries: [], maySilence: false }

/**
 * The silenced monitors and entries now, and whether the reader may change them, which requires `isSignedIn`. If the store
 * does not answer, the page shows the rest.
 */
export async function silenceFacts(
  { service, runtime }: ServerContext,
  { call, views, isSignedIn }: { readonly call: Call; readonly views: HealthViews; readonly isSignedIn: boolean },
): Promise<SilenceFacts> {
  if (!runtime.confirmed) return nothing
  const [answer, identity] = await Promise.all([
    soon(service.getSilences({}, call)),
    isSignedIn ? soon(service.authenticate({}, { ...call, verb: 'GET' })) : undefined,
  ])
  const entries = answer?.Silences ?? []
  const byMonitor = new Map<string, RunSilence>()
  for (const { type, monitor, silences } of entries.length === 0 ? [] : runtime.confirmed(views).checks) {
    const [first] = silences
    const id = monitorIdOf({ type, monitor })
    if (first && !byMonitor.has(id)) byMonitor.set(id, first)
  }
  const { Roles: roles = [], Permissions: permissions = [] } = identity ?? {}
  return { byMonitor, entries, maySilence: answer !== undefined && maySilence({ roles, permissions }) }
}

const whatOf: Readonly<Record<RunSilence['source'], string>> = {
  hand: 'silenced',
  clock: 'silenced by svc.yaml',
  ack: 'acknowledged',
}

/** `silenced` or `acknowledged`. Undefined for a monitor that is not silenced. */
export function silenceSource(silences: SilenceFacts | undefined, id: MonitorId): string | undefined {
  const one = silences?.byMonitor.get(monitorIdOf(id))
  return one && whatOf[one.source]
}

/** `silenced until 04:00:00 +01:00, alice: patch night`. Undefined for a monitor that is not silenced. */
export function silenceLine(silences: SilenceFacts | undefined, id: MonitorId, clock: PageClock): Markup | undefined {
  const one = silences?.byMonitor.get(monitorIdOf(id))
  return one && html`<p class="why hush">${sentenceOf(one, clock)}</p>`
}

const sentenceOf = ({ source, until, by, reason }: RunSilence, clock: PageClock): Markup =>
  html`${whatOf[source]} until ${instant(until.getTime(), clock)}${by === undefined ? '' : `, ${by.replace(/^local:/, '')}`}${reason === undefined ? '' : `: ${reason}`}`

/** For how long a form silences. The values are those of the field `For`. */
const durations = [
  ['PT1H', '1 hour'],
  ['PT4H', '4 hours'],
  ['PT12H', '12 hours'],
  ['P1D', '1 day'],
  ['P7D', '7 days'],
] as const

/** The silences of a monitor, with the forms for readers who may change them. Undefined if there is nothing to show. */
export function silenceMarkup(
  silences: SilenceFacts | undefined,
  id: MonitorId,
  { clock, hasIncident }: { readonly clock: PageClock; readonly hasIncident: boolean },
): Markup | undefined {
  if (!silences) return undefined
  const name = id.type === undefined ? id.monitor : `${id.type}/${id.monitor}`
  const line = silenceLine(silences, id, clock)
  const entry = entryOf(silences, id, name)
  if (!line && !silences.maySilence) return undefined
  const back = encodeURIComponent(`/?monitor=${monitorKey(id)}`)
  return html`<section id="silences"><h2>Notifications</h2>
${line ?? html`<p class="muted">Receivers are notified about it.</p>`}
${silences.maySilence ? formsOf({ name, back, hasIncident, id: entry?.Id }) : undefined}
</section>
`
}

/** The entry that silences a monitor, if a person can end it. */
function entryOf({ byMonitor, entries }: SilenceFacts, id: MonitorId, name: string): SilenceEntry | undefined {
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
    : html`<form method="post" action="/forms/end-silence?continue=${back}" class="find"><input type="hidden" name="Id" value="${id}"><button>End it now</button></form>
`
}<details><summary>Silence it</summary>
<form method="post" action="/forms/silence?continue=${back}" class="find"><input type="hidden" name="Monitors" value="${quoted(name)}">
${timeField('silence-for')} ${reasonField('silence-reason')} <button>Silence</button></form>
<p class="muted">Receivers get nothing about it until then. States, metrics and this page stay as they are.</p></details>
${
  hasIncident
    ? html`<details><summary>Acknowledge its open incidents</summary>
<form method="post" action="/forms/acknowledge?continue=${back}" class="find"><input type="hidden" name="Monitor" value="${name}">
${timeField('ack-for')} ${reasonField('ack-reason')} <button>Acknowledge</button></form>
<p class="muted">Receivers get no reminders for as long as the faults are the same.</p></details>`
    : undefined
}`

/** As an entry of a list in a form (JSV). */
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

const timeField = (id: string): Markup =>
  html`<label for="${id}">for</label> <select id="${id}" name="For">${durations.map(([value, text]) => html`<option value="${value}">${text}</option>`)}</select>`

const reasonField = (id: string): Markup =>
  html`<label for="${id}">because</label> <input id="${id}" name="Reason" maxlength="200" required>`
