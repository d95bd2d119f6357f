import type { ServerType } from '../protocol/index.ts'
import { count, type Level } from '../reports/index.ts'
import type { Card } from './cards.ts'
import { html, type Markup } from './html.ts'
import { classOf, marks, words } from './page-frame.ts'
import { monitorLink } from './page-words.ts'

/** With more monitors than this the page has a form to find them, and how many it lists at most. */
const [manyMonitors, mostMatches] = [20, 100]

/** Finds monitors by their names, where there are many. Undefined for few, or if the reader may read no name. */
export function searchMarkup(
  cards: readonly Card[],
  {
    find = '',
    reads = () => false,
  }: { readonly find?: string | undefined; readonly reads?: ((type?: ServerType) => boolean) | undefined },
): Markup | undefined {
  const readable = cards.filter(({ type }) => type !== undefined && reads(type))
  const most = readable.reduce((sum, { runs }) => sum + Math.max(0, ...runs.map(({ monitors }) => monitors.length)), 0)
  if (most <= manyMonitors) return undefined
  const text = find.trim().toLowerCase()
  return html`<section id="find">
<form method="get" action="/#find"><label for="name">Find monitors by name</label>
<input id="name" name="find" type="search" maxlength="100" value="${find.trim()}"> <button>find</button></form>
${text === '' ? undefined : matches(readable, text)}
</section>
`
}

type Match = { readonly type: ServerType; readonly monitor: string; readonly level: Level }

function matches(cards: readonly Card[], text: string): Markup {
  const all = cards.flatMap(({ type, runs }) => {
    const names = new Map<string, Level>()
    // The deepest run last: its level is visible.
    for (const { monitors } of runs) for (const { name, level } of monitors) names.set(name, level)
    return type === undefined
      ? []
      : [...names].flatMap(([monitor, level]): readonly Match[] =>
          monitor.toLowerCase().includes(text) ? [{ type, monitor, level }] : [],
        )
  })
  const visible = all
    .toSorted((one, other) => Number(one.level === 'ok') - Number(other.level === 'ok'))
    .slice(0, mostMatches)
  return html`<p class="quiet">${count(all.length, 'monitor')}${all.length > visible.length ? `, the first ${visible.length} of them` : ''}</p>
<ul class="victims">${visible.map(
    ({ level, ...id }) =>
      html`<li><span class="mark ${classOf(level)}" title="${words[level].slice(2)}">${marks[level]}</span>${monitorLink(id)}</li>`,
  )}</ul>`
}
