import { count } from '../../base/format.ts'
import type { Level } from '../../checks/reports/index.ts'
import { ServerType } from '../../protocol/index.ts'
import { html, type Markup, trusted } from '../html.ts'
import { byUrgency, type Card, type CardMonitor } from './cards.ts'
import { nameOfCard } from './page-listing.ts'
import { type RowOptions, rowOf } from './page-rows.ts'
import type { MonitorId } from './page-words.ts'

/** With more monitors than this the page has a form to find them, and how many it lists at most. */
const [manyMonitors, mostMatches] = [20, 100]

/** The criteria of a search. */
export type Search = {
  /** The text that the name contains. */
  readonly find?: string | undefined
  readonly state?: Level | undefined
  /** `host`, or a type. */
  readonly type?: string | undefined
  /** How many matches come before those to list. */
  readonly skip?: number | undefined
}

const states = [
  ['unhealthy', 'fail'],
  ['warning', 'warn'],
  ['not-checked', 'not checked'],
  ['healthy', 'ok'],
] as const satisfies readonly (readonly [string, Level])[]

/** The state that the query names. Undefined for any other value. */
export const stateIn = (text: string | undefined): Level | undefined => states.find(([name]) => name === text)?.[1]
export const stateName = (level: Level): string => states.find(([, one]) => one === level)?.[0] ?? ''

type Match = MonitorId & { readonly one: CardMonitor }

export type SearchOptions = {
  readonly search: Search
  readonly reads: (type?: ServerType) => boolean
}

type ResultOptions = SearchOptions & Pick<RowOptions, 'days' | 'silences' | 'clock'>

/** Whether the reader looks for anything. */
export const isAsked = ({ find = '', state, type }: Search): boolean =>
  find.trim() !== '' || state !== undefined || type !== undefined

/** The monitors to find, the worst first. Nothing unless the reader looks for something. */
function matchesOf(cards: readonly Card[], { search, reads }: SearchOptions): readonly Match[] {
  if (!isAsked(search)) return []
  const text = search.find?.trim().toLowerCase() ?? ''
  const all = cards.flatMap((card) =>
    reads(card.type) && (search.type === undefined || search.type === nameOfCard(card))
      ? card.monitors.flatMap((one): Match | readonly Match[] =>
          one.name.toLowerCase().includes(text) && (search.state === undefined || search.state === one.level)
            ? { type: card.type, monitor: one.name, one }
            : [],
        )
      : [],
  )
  return all.toSorted((a, b) => byUrgency(a.one, b.one))
}

const startOf = ({ skip = 0 }: Search, count: number): number =>
  Math.max(0, Math.min(skip, Math.floor((count - 1) / mostMatches) * mostMatches))

/** Those that the page lists. */
export function foundIds(cards: readonly Card[], options: SearchOptions): readonly MonitorId[] {
  const all = matchesOf(cards, options)
  const start = startOf(options.search, all.length)
  return all.slice(start, start + mostMatches)
}

/** Finds monitors by name and state, where there are many. Undefined for few, or if the reader may read no name. */
export function searchMarkup(cards: readonly Card[], options: ResultOptions): Markup | undefined {
  const { search, reads } = options
  const readable = cards.filter(({ type }) => reads(type))
  const all = readable.reduce((sum, { monitors }) => sum + monitors.length, 0)
  if (all <= manyMonitors && !isAsked(search)) return undefined
  if (readable.length === 0) return undefined
  const types = readable.map(nameOfCard)
  return html`<section id="find">
<form method="get" action="/#find" class="find" role="search"><label for="name">Find monitors</label>
<input id="name" name="find" type="search" maxlength="100" placeholder="by a part of the name" value="${search.find?.trim()}">
<select name="state" aria-label="State"><option value="">in any state</option>${states.map(([name, level]) => optionOf(name, name.replace('-', ' '), level === search.state))}</select>
<select name="type" aria-label="Type"><option value="">of any type</option>${types.map((name) => optionOf(name, name, name === search.type))}</select>
<button>Find</button>${isAsked(search) ? html` <a href="/">Clear</a>` : undefined}</form>
${isAsked(search) ? foundMarkup(cards, options) : undefined}
</section>
`
}

const optionOf = (value: string, text: string, isSelected: boolean): Markup =>
  html`<option value="${value}"${trusted(isSelected ? ' selected' : '')}>${text}</option>`

function foundMarkup(cards: readonly Card[], { search, reads, ...row }: ResultOptions): Markup {
  const all = matchesOf(cards, { search, reads })
  const start = startOf(search, all.length)
  const listed = all.slice(start, start + mostMatches)
  const href = (skip: number): string => `/?${queryOf({ ...search, skip })}#find`
  const end = start + listed.length
  const which = all.length <= mostMatches ? '' : `, ${start + 1} to ${end} of them`
  return html`<p class="muted" role="status">${count(all.length, 'monitor')}${which}</p>
${listed.length > 0 ? html`<ul class="rows">${listed.map(({ type, one }) => rowOf(one, { ...row, type, reads: true, prefix: type === undefined ? '' : `${type} ` }))}</ul>` : undefined}
${all.length > mostMatches ? html`<p>${start > 0 ? html`<a href="${href(start - mostMatches)}">The ${mostMatches} before</a> ` : undefined}${end < all.length ? html`<a href="${href(end)}">The next ${Math.min(mostMatches, all.length - end)}</a>` : undefined}</p>` : undefined}`
}

/** The query that looks for the same. */
function queryOf({ find, state, type, skip }: Search): string {
  const query = new URLSearchParams()
  if (find !== undefined && find !== '') query.set('find', find)
  if (state !== undefined) query.set('state', stateName(state))
  if (type !== undefined) query.set('type', type)
  if (skip !== undefined && skip > 0) query.set('skip', String(skip))
  return query.toString()
}

/** The type that the query names, or the host. Undefined for any other value. */
export const typeIn = (text: string | undefined): string | undefined =>
  text === 'host' || ServerType.values.some((one) => one === text) ? text : undefined
