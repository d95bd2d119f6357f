import { expect, test } from 'vitest'
import { peerSuite } from '../support/suite/peer.ts'
import { compare } from './compare.ts'
import { missingOf, readers } from './readers.ts'

// Those in Go and Java take minutes to build: `npm run readers` has them all.
for (const reader of readers.filter(({ from }) => from === 'npm' || from === 'Python')) {
  peerSuite(missingOf(reader), `${reader.name} as a reader of ${reader.format}`, () => {
    test('sees the counts, failures and figures of the run documents, but for its limits, each of which shows', async () => {
      const { differences, limits } = await compare(reader)
      expect(differences).toEqual([])
      expect(limits.filter(({ runs }) => runs === 0)).toEqual([])
    })
  })
}
