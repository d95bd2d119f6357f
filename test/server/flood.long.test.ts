import { expect, test } from 'vitest'
import { type FloodAnswer, flood } from '../support/faults/flood.ts'
import { suiteWith } from '../support/suite/peer.ts'

const missing = process.platform === 'linux' ? undefined : 'only Linux shows the memory of another process in /proc'

suiteWith(missing, 'pipelined requests of a stranger who reads nothing', () => {
  test.each([
    ['26 kB for the largest document', '/openapi-all.json', 26_000],
    ['10 MB for the largest document', '/openapi-all.json', 10_000_000],
    ['10 MB for generated types', '/types/csharp', 10_000_000],
    ['10 MB for the page of the interface', '/metadata', 10_000_000],
  ])(
    'S3 /livez is answered and the memory of a real svc serve stays flat beside %s, each under another Host',
    async (_, path, bytes) => {
      const floods: FloodAnswer[] = []
      for (let i = 0; i < 5; i += 1) floods.push(await flood(path, bytes))
      const middle = (figure: keyof FloodAnswer) => floods.map((one) => one[figure]).toSorted((a, b) => a - b)[2]
      // Without the bounds, /livez was silent for two minutes and the memory grew by 1.3 GB. The machine is shared.
      expect(middle('answers')).toBeGreaterThan(20)
      expect(middle('during')).toBeLessThan(Math.max(100, 40 * (middle('before') ?? 0)))
      // On a busy machine, the collector may be late in one of them.
      expect(middle('grownMib')).toBeLessThan(64)
    },
    240_000,
  )
})
