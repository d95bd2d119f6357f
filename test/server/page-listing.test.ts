import { expect, test } from 'vitest'
import type { RunDocument } from '../../src/core/protocol/index.ts'
import { cardsOf } from '../../src/core/server/pages/cards.ts'
import { listingsOf } from '../../src/core/server/pages/page-listing.ts'
import { recentRun } from './recent.ts'

const at = new Date('2026-03-01T03:00:00.000Z')
/** The lists of a page with so many healthy monitors: which are open, and which a reader can keep so. */
function folds(healthy: number) {
  const document: RunDocument = {
    ...{ version: 1, type: 'App', mode: 'Basic', view: 'full', status: 'ok', message: 'App is healthy' },
    ...{ startedAt: at, endedAt: at, durationMs: 15 },
    monitors: Array.from({ length: healthy }, (_, n) => ({
      ...{ name: `tcp m${n}`, kind: 'tcp', status: 'ok' as const },
      results: [{ check: 'connect', status: 'ok' as const, message: 'accepted' }],
    })),
  }
  const listings = listingsOf(cardsOf(['App'], [recentRun(document, 3)], 'http://svc'), {})
  return [...listings.values()].flatMap((one) =>
    one.folds.map(({ listed, isOpen, isKept }) => [listed.length, isOpen, isKept]),
  )
}

test('W25 a page of at most 30 monitors lists all of them, and a longer one folds those that are healthy', () => {
  expect(folds(1)).toEqual([[1, true, false]])
  expect(folds(30)).toEqual([[30, true, false]])
  expect(folds(31)).toEqual([[0, false, true]])
})
