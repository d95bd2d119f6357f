import type { Level } from '../../checks/reports/index.ts'
import type { ServerType } from '../../protocol/index.ts'
import type { Card, CardMonitor } from './cards.ts'
import type { MonitorId } from './page-words.ts'

/** How many failing or warning monitors a card lists; how many an open list has; how many the whole page lists. */
const [mostBad, mostOpen, mostOfPage] = [20, 200, 400]
/** A folded list of at most this many monitors is part of the page, and a page of so many has all lists open. */
const mostFolded = 30

/** The folded monitors of a card with one level. Undefined: without a confirmed fault on other nodes. */
export type Fold = {
  readonly level: 'not checked' | 'ok' | undefined
  readonly count: number
  readonly listed: readonly CardMonitor[]
  /** Why the first one is not checked. */
  readonly isOpen: boolean
  /** Whether the reader can open and fold it for longer than a visit. */
  readonly isKept: boolean
}

/** Which monitors of a card the page lists. */
export type CardList = {
  /** Those that fail or warn. */
  readonly bad: readonly CardMonitor[]
  /** How many further ones fail or warn. */
  readonly moreBad: number
  readonly folds: readonly Fold[]
}

export type ListingOptions = {
  /** The cards whose lists are open, by type; `host` for that of the host. */
  readonly opened?: readonly string[] | undefined
}

export const nameOfCard = ({ type }: Pick<Card, 'type'>): string => type ?? 'host'

/**
 * The list of each card: monitors that fail or warn and, folded, those that are healthy or not checked. Bounded,
 * whatever there is.
 */
export function listingsOf(cards: readonly Card[], { opened = [] }: ListingOptions): ReadonlyMap<Card, CardList> {
  let left = mostOfPage
  const isSmall = cards.reduce((sum, { monitors }) => sum + monitors.length, 0) <= mostFolded
  const take = (monitors: readonly CardMonitor[], most: number): readonly CardMonitor[] => {
    const taken = monitors.slice(0, Math.max(0, Math.min(most, left)))
    left -= taken.length
    return taken
  }
  const byLevel = (card: Card, ...levels: readonly (Level | undefined)[]): readonly CardMonitor[] =>
    card.monitors.filter(({ level }) => levels.includes(level))
  // What is wrong anywhere goes before what is healthy.
  const bad = new Map(cards.map((card) => [card, take(byLevel(card, 'fail', 'warn'), mostBad)]))
  return new Map(
    cards.map((card): [Card, CardList] => {
      const urgent = bad.get(card) ?? []
      const folds = (['not checked', 'ok', undefined] as const).flatMap((level): Fold[] => {
        const monitors = byLevel(card, level)
        if (monitors.length === 0) return []
        const isOpen = isSmall || opened.includes(nameOfCard(card))
        const most = isOpen ? mostOpen : monitors.length <= mostFolded ? mostFolded : 0
        return [{ level, count: monitors.length, listed: take(monitors, most), isOpen, isKept: !isSmall }]
      })
      return [card, { bad: urgent, moreBad: byLevel(card, 'fail', 'warn').length - urgent.length, folds }]
    }),
  )
}

/** The monitors of which the page shows days. */
export const listedIds = (
  listings: ReadonlyMap<Card, CardList>,
  reads: (type?: ServerType) => boolean,
): readonly MonitorId[] =>
  [...listings].flatMap(([{ type }, { bad, folds }]) =>
    reads(type) ? [...bad, ...folds.flatMap(({ listed }) => listed)].map(({ name }) => ({ type, monitor: name })) : [],
  )
