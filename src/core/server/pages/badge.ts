import { Fault } from '../../base/errors.ts'
import { type Level, worst } from '../../checks/reports/index.ts'
import { monitorsNamed, type ServerType } from '../../protocol/index.ts'
import type { HttpAnswer } from '../answer.ts'
import { baseUrl, type RequestContext, type ServerContext } from '../context.ts'
import { checkedTypes } from '../health.ts'
import { html, type Markup } from '../html.ts'
import type { RequestTarget } from '../routes.ts'
import { type Card, cardsOf, levelsOfMonitor, unlessHealthy } from './cards.ts'

/** The word and the color of a badge, of which white letters stand out. */
const looks: Readonly<Record<Level, readonly [word: string, color: string]>> = {
  ok: ['healthy', '#12683a'],
  warn: ['warning', '#8a5a00'],
  fail: ['unhealthy', '#b0161d'],
  'not checked': ['unknown', '#4a525d'],
}

/**
 * The state of a type or a monitor that `serve.badges` lists, as an image for pages of other sites: `/badge/App/shop.svg`. It
 * contains no text of a peer. Throws NotFound for anything else: nobody learns which monitors there are.
 */
export async function badge(
  server: ServerContext,
  context: RequestContext,
  { route }: RequestTarget,
): Promise<HttpAnswer> {
  const name = route.pathValues
    .map(String)
    .join('/')
    .replace(/\.svg$/i, '')
  if (!server.options.badges.includes(name)) throw new Fault('NotFound', 'There is no such badge')
  const { runtime } = server
  // Whoever wrote svc.yaml allows everybody to see this state.
  const byType = (await runtime.elsewhere?.()) ?? new Map()
  const types = checkedTypes(runtime.facts)
  const recent = await runtime.recent(() => 'full')
  const cards = cardsOf(types, recent, baseUrl(server, context), { byType, reads: () => true })
  return {
    status: 200,
    contentType: 'image/svg+xml; charset=utf-8',
    body: badgeMarkup(name, levelOf(name, cards)).markup,
    isForAnyPage: true,
  }
}

/** The level of a type, or of a monitor: what is too old, or what only another node knows, is not healthy. */
function levelOf(name: string, cards: readonly Card[]): Level {
  const ofType = cards.find(({ type }) => type === name)
  if (ofType) return (ofType.away ? unlessHealthy(ofType.level) : ofType.level) ?? 'not checked'
  const [monitor] = monitorsNamed(name, cards.flatMap(namesOf))
  if (!monitor) return 'not checked'
  const card = cards.find(({ type }) => type === monitor.type)
  const away = card?.monitors.find((one) => 'node' in one && one.name === monitor.name)
  const levels = levelsOfMonitor(cards, { type: monitor.type, monitor: monitor.name }).flatMap((one) =>
    one.counts ? [one.run.isExpired ? 'not checked' : one.monitor.level] : [],
  )
  const all: readonly Level[] = [...levels, ...(away?.level ? [away.level] : [])]
  return all.length === 0 ? 'not checked' : worst(all)
}

const namesOf = ({ type, monitors }: Card): readonly { readonly type: ServerType; readonly name: string }[] =>
  type === undefined ? [] : monitors.map(({ name }) => ({ type, name }))

/** Pixels of a letter of the font, on average, and around a text. */
const letter = 6.6
const padding = 12

/** `App/shop` in grey, and its state in color. */
export function badgeMarkup(name: string, level: Level): Markup {
  const [word, color] = looks[level]
  const [left, right] = [name, word].map((text) => Math.ceil(text.length * letter) + padding) as [number, number]
  const width = left + right
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="20" role="img" aria-label="${name}: ${word}">
<title>${name}: ${word}</title>
<rect width="${width}" height="20" rx="3" fill="#24292f"/>
<path d="M${left} 0h${right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1 -3 3h-${right - 3}z" fill="${color}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="${left / 2}" y="14" textLength="${left - padding}">${name}</text>
<text x="${left + right / 2}" y="14" textLength="${right - padding}">${word}</text>
</g>
</svg>
`
}
