import { count } from '../../base/format.ts'
import { type Level, shorten } from '../../checks/reports/index.ts'
import type { ServerType } from '../../protocol/index.ts'
import type { Incidents, TroubledMonitor } from '../../protocol/service/service.ts'
import { html, type Markup } from '../html.ts'
import { type Card, headline, overall, worstLevel } from './cards.ts'
import { classOf, type Holder, headOf, holderLine, marks, type Page, type PageReader, refreshOf } from './page-frame.ts'
import {
  conditionOf,
  incidentLevel,
  incidentTitle,
  isFailingMonitor,
  isNamed,
  linkOf,
  reasonOf,
  sinceOf,
  victimsOf,
} from './page-incidents.ts'
import { age } from './page-report.ts'
import { type SilenceFacts, silenceSource } from './page-silences.ts'
import { instant, lasted, type PageClock } from './page-words.ts'

export type BoardFacts = PageReader & {
  /** The types that it shows. Undefined: all. */
  readonly types: readonly ServerType[] | undefined
  readonly incidents: Incidents | undefined
  /** `Frame.holder` */
  readonly holder?: Holder | undefined
  readonly silences?: SilenceFacts | undefined
  readonly reads: (type?: ServerType) => boolean
  readonly at: Date
  /** `Frame.zone` */
  readonly zone?: string | undefined
  /** Its path with its query, which it reloads. */
  readonly target: string
}

/** How often it reloads, in seconds. After 45 s without a reload, its style shows that it is stale. */
const reloadEvery = 10
/** How many incidents, or causes of types without incidents, fit on the board beside few types, and beside many. */
const [mostBesideFew, mostBesideMany, fewTypes] = [4, 3, 4]
const reasonCharacters = 140

/** The wallboard, readable from three metres. It omits what does not fit, and counts it. */
export function boardMarkup(all: readonly Card[], facts: BoardFacts): Page {
  const { types, at, target, user, signInHref } = facts
  const clock = { now: at.getTime(), zone: facts.zone }
  const { now } = clock
  const cards = all.filter(({ type }) => types === undefined || (type !== undefined && types.includes(type)))
  const incidents = facts.incidents && ofTypes(facts.incidents, types)
  const sentence = incidents && incidentTitle(incidents, cards, clock)
  const level = levelOf(cards, incidents)
  const title = sentence ? `${sentence.what}${sentence.why}` : headline(cards)
  const open = incidents?.open ?? []
  const most = cards.length > fewTypes ? mostBesideMany : mostBesideFew
  const listed = open.slice(0, most)
  const time = instant(now, clock)
  const hidden = cards.some(({ type }) => !facts.reads(type))
  const { markup } = html`${headOf(title, level)}
<body class="board">
<header class="${classOf(level) || 'none'}">
${facts.holder && holderLine(facts.holder, '/board')}
<h1>${level ? `${marks[level]} ` : ''}${(open.length > 1 ? totalOf(open) : sentence?.what) ?? title}</h1>
<p class="muted">${types === undefined ? '' : `${types.join(', ')} · `}${healthyOf(cards)}as of ${time}${user === undefined ? undefined : html` · ${user}`}</p>
</header>
<main>
<p class="stale" role="status">STALE: svc has shown nothing new since ${time}. <a href="${target}">Reload</a></p>
${listed.map((one) => incidentMarkup(one, clock, facts.silences))}
${restMarkup(open.length - listed.length, incidents?.hidden ?? 0)}
${open.length === 0 ? causesMarkup(cards, most) : undefined}
${hidden && user === undefined && signInHref ? html`<p>States only: <a href="${signInHref}">sign in</a> for names and reasons.</p>` : undefined}
<ul class="types" aria-label="Types">${cards.map((card) => typeMarkup(card, cards.length <= fewTypes))}</ul>
</main>
</body>
</html>
`
  return { markup, refresh: refreshOf(reloadEvery, undefined) }
}

/** `7 of 10 monitors healthy · `. Empty where none is known. The machine counts as one. */
function healthyOf(cards: readonly Card[]): string {
  const all = cards.flatMap(({ monitors }) => monitors)
  const healthy = all.filter(({ level }) => level === 'ok').length
  return all.length === 0 ? '' : `${healthy} of ${count(all.length, 'monitor')} healthy · `
}

/** The counts of what does not fit and of what the reader may not see. */
function restMarkup(more: number, hidden: number): Markup | undefined {
  const parts = [
    ...(more > 0 ? [`${more} more with incidents`] : []),
    ...(hidden > 0 ? [`${hidden} of types that you may not read`] : []),
  ]
  return parts.length === 0 ? undefined : html`<p>and ${parts.join(', ')}</p>`
}

/** The incidents of these types, and of those the victims of these types. */
function ofTypes(incidents: Incidents, types: readonly ServerType[] | undefined): Incidents {
  if (types === undefined) return incidents
  const concerns = (type: ServerType | undefined): boolean => type !== undefined && types.includes(type)
  return {
    ...incidents,
    open: incidents.open.filter((one) => concerns(one.type) || one.victims.some(({ type }) => concerns(type))),
  }
}

/** The worst of the types and the incidents. A type without any result is not healthy, unless other nodes check it. */
function levelOf(cards: readonly Card[], incidents: Incidents | undefined): Level | undefined {
  const ofIncidents = incidents && incidentLevel(incidents)
  if (cards.every(({ level }) => level === undefined)) return ofIncidents
  const isMissing = cards.some(({ level, away }) => level === undefined && !away)
  return worstLevel([overall(cards), isMissing ? 'not checked' : undefined, ofIncidents])
}

/** `2 monitors have failed, 1 may have failed, 1 has a warning`. */
function totalOf(open: readonly TroubledMonitor[]): string {
  const conditions = open.map(conditionOf)
  const parts = conditionWords.flatMap(([condition, one, many]) => {
    const n = conditions.filter((each) => each === condition).length
    return n === 0 ? [] : [{ n, verb: n === 1 ? one : many }]
  })
  return parts.map(({ n, verb }, at) => `${at === 0 ? count(n, 'monitor') : n} ${verb}`).join(', ')
}

const conditionWords = [
  ['failing', 'has failed', 'have failed'],
  ['in doubt', 'may have failed', 'may have failed'],
  ['recovering', 'recovers', 'recover'],
  ['warning', 'has a warning', 'have a warning'],
] as const

function incidentMarkup(one: TroubledMonitor, clock: PageClock, silences: SilenceFacts | undefined): Markup {
  const level = isFailingMonitor(one) ? 'fail' : 'warn'
  const victims = victimsOf(one)
  const reach =
    victims > 0
      ? html`<b>${count(victims, 'monitor')} ${victims === 1 ? 'fails' : 'fail'} because of it</b> · `
      : undefined
  return html`<article class="${level}"><div class="top"><h2>${marks[level]} ${linkOf(one)}</h2><p class="muted">since ${instant(sinceOf(one), clock)} (${lasted(clock.now - sinceOf(one))})</p></div>
<p class="cause">${isNamed(one) && silenceSource(silences, one) ? html`<b>${silenceSource(silences, one)}</b> · ` : undefined}${reach}${shorten(reasonOf(one), reasonCharacters)}</p></article>
`
}

/** Why types are not healthy, if no incident explains that. */
function causesMarkup(cards: readonly Card[], most: number): readonly Markup[] {
  const lines = cards.flatMap(({ type, level, gap, decisiveRun }) =>
    level === undefined || level === 'ok'
      ? []
      : [...(gap === undefined ? [] : [`${gap}.`]), ...(decisiveRun?.causes ?? [])].map((text) => ({
          type,
          level,
          text,
        })),
  )
  const more = lines.length - most
  return [
    ...lines
      .slice(0, most)
      .map(
        ({ type, level, text }) =>
          html`<article class="${classOf(level)}"><h2>${marks[level]} ${type ?? 'Host'}</h2><p class="cause">${shorten(text, reasonCharacters)}</p></article>`,
      ),
    ...(more > 0 ? [html`<p>and ${more} more</p>`] : []),
  ]
}

function typeMarkup({ type, level, runs, away }: Card, isTimed: boolean): Markup {
  const youngest = runs.reduce<number | undefined>(
    (least, { ageSeconds }) => Math.min(least ?? ageSeconds, ageSeconds),
    undefined,
  )
  const name = type ?? 'Host'
  if (level === undefined)
    return html`<li class="state">? ${name}: ${away ? 'no confirmed fault' : 'not checked yet'}</li>`
  const when = youngest === undefined || !isTimed ? '' : ` ${age(youngest)}`
  return html`<li class="state ${classOf(level)}">${marks[level]} ${name}${when}</li>`
}
