import { count } from '../../base/format.ts'
import { type Level, worst } from '../../checks/reports/index.ts'
import { ExecutionMode, type ServerType } from '../../protocol/index.ts'
import { html, type Markup, trusted } from '../html.ts'
import { type Card, otherNodes } from './cards.ts'
import type { DaysById } from './page-days.ts'
import { classOf, stateOf } from './page-frame.ts'
import { type CardList, type Fold, nameOfCard } from './page-listing.ts'
import { age, type ReportId, reportsMarkup } from './page-report.ts'
import { rowsOf } from './page-rows.ts'
import type { SilenceFacts } from './page-silences.ts'
import type { PageClock } from './page-words.ts'

/** How many lines explain why a type is not healthy, if no monitor does. */
const mostCauses = 20

export type CardOptions = {
  readonly all: readonly Card[]
  readonly listing: CardList
  /** Whether the reader may read the details of the card. */
  readonly reads: boolean
  readonly days: DaysById | undefined
  readonly report: ReportId | undefined
  readonly silences: SilenceFacts | undefined
  readonly clock: PageClock
}

/** The card of a type, or of the host. */
export function cardMarkup(card: Card, options: CardOptions): Markup {
  const { type, level, runs, gap } = card
  const { listing, reads, report } = options
  const row = { ...options, type }
  const lines = [...causesOf(card), hostLine(card, options.all)].filter((line) => line !== undefined)
  return html`<section id="${nameOfCard(card)}">
<div class="top"><h2>${type ?? 'Host'}</h2>${level === undefined && card.away ? undefined : stateOf(level)}<span class="sum">${sumOf(card)}</span>${type === undefined ? undefined : runForm(type)}</div>
${gap === undefined ? undefined : html`<p class="muted">${gap}.</p>`}
${lines.length > 0 ? html`<ul class="causes">${lines}</ul>` : undefined}
${listing.bad.length > 0 ? rowsOf(listing.bad, row) : undefined}
${listing.moreBad > 0 ? html`<p class="muted">and ${listing.moreBad} more: <a href="/?type=${nameOfCard(card)}&amp;state=${listing.bad.at(-1)?.level === 'fail' ? 'unhealthy' : 'warning'}#find">find them</a></p>` : undefined}
${listing.folds.map((fold) => foldMarkup(card, fold, options))}
${runs.length > 0 ? reportsMarkup(card, { report, reads, zone: options.clock.zone }) : undefined}
</section>
`
}

/** `3 monitors, 1 failed, 2 on node-b · checked 4 s ago`. */
function sumOf({ type, monitors, runs, away }: Card): string {
  const youngest = runs.reduce<number | undefined>(
    (least, { ageSeconds }) => Math.min(least ?? ageSeconds, ageSeconds),
    undefined,
  )
  if (youngest === undefined && !away) return ''
  const failed = monitors.filter(({ level }) => level === 'fail').length
  const parts = [
    type === undefined ? 'the machine of svc' : count(Math.max(monitors.length, away?.count ?? 0), 'monitor'),
    ...(failed > 0 && type !== undefined ? [`${failed} failed`] : []),
    ...(away ? [`${away.count} on ${away.nodes.length > 0 ? away.nodes.join(' and ') : otherNodes}`] : []),
  ]
  return `${parts.join(', ')}${youngest === undefined ? '' : ` · checked ${age(youngest)}`}`
}

/** The causes that no monitor of the card explains. */
function causesOf({ decisiveRun, monitors }: Card): readonly Markup[] {
  const level = worst(monitors.flatMap((one) => one.level ?? []))
  if (!decisiveRun || level === decisiveRun.ownLevel) return []
  const { causes, ownLevel } = decisiveRun
  const more = causes.length - mostCauses
  return [...causes.slice(0, mostCauses), ...(more > 0 ? [`and ${more} more`] : [])].map(
    (cause) => html`<li class="${classOf(ownLevel)}">${cause}</li>`,
  )
}

/** A link to the card of the host, if the host is why the type is not healthy. */
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

/** A button for each mode. Each returns to the page with the report of its run. */
export const runForm = (type: ServerType): Markup => html`<form method="post" action="/" class="run">
<input type="hidden" name="ServerType" value="${type}">Run ${ExecutionMode.values.map(
  (mode) => html`<button name="ExecutionMode" value="${mode}" aria-label="Run ${mode} of ${type}">${mode}</button> `,
)}</form>`

const foldWords = { ok: 'healthy', 'not checked': 'not checked' } as const
const foldStates = { ok: 'healthy', 'not checked': 'not-checked' } as const

function foldMarkup(card: Card, { level, count: all, listed, isOpen, isKept }: Fold, options: CardOptions): Markup {
  const { type } = card
  const name = nameOfCard(card)
  const monitors = all === 1 && type === undefined ? '' : `${count(all, 'monitor')} `
  const what = `${monitors}${level ? foldWords[level] : 'on other nodes without a confirmed fault'}`
  const search = `/?type=${name}${level ? `&state=${foldStates[level]}` : ''}#find`
  if (listed.length === 0) {
    return html`<p>${what}: <a href="/?open=${name}#${name}">list</a> or <a href="${search}">find</a> them</p>`
  }
  const left = all - listed.length
  const keep = isOpen
    ? html`<a href="/#${name}">Fold this list</a>`
    : html`<a href="/?open=${name}#${name}">Keep this list open</a>`
  return html`<details${trusted(isOpen ? ' open' : '')}><summary>${what}</summary>
${isKept ? html`<p class="muted">${keep}</p>` : undefined}
${rowsOf(listed, { ...options, type })}
${left > 0 ? html`<p class="muted">and ${left} more: <a href="${search}">find them</a></p>` : undefined}
</details>`
}
