import { expect, test } from 'vitest'
import { type FloodAnswer, flood } from '../support/faults/flood.ts'
import { suiteWith } from '../support/suite/peer.ts'

const missing = process.platform === 'linux' ? undefined : 'only Linux shows the memory of another process in /proc'

/** The most by which the resident memory may grow, in MiB: garbage, and the answers that may wait in memory of their own. */
const [garbage, waiting] = [64, 32]

suiteWith(missing, 'pipelined requests of a stranger who reads nothing', () => {
  test.each([
    ['26 kB for the largest document', '/openapi-all.json', 26_000, garbage],
    ['10 MB for the largest document', '/openapi-all.json', 10_000_000, garbage],
    ['10 MB for generated types', '/types/csharp', 10_000_000, garbage + waiting],
    ['10 MB for the page of the interface', '/metadata', 10_000_000, garbage + waiting],
  ])(
    'S3 /livez is answered and the memory of a real svc serve stays flat beside %s, each under another Host',
    async (_, path, bytes, mostMib) => {
      const isBounded = ({ answers, before, during, grownMib }: FloodAnswer): boolean =>
        answers > 20 && during < Math.max(100, 40 * before) && grownMib < mostMib
      // The machine is shared, and a collector without a processor is late: one of five floods has to show the bounds. Without
      // them, /livez was silent for two minutes and the memory grew by 190 MB or more in each.
      let last: FloodAnswer | undefined
      for (let i = 0; i < 5 && !(last && isBounded(last)); i += 1) last = await flood(path, bytes)
      expect(last?.answers).toBeGreaterThan(20)
      expect(last?.during).toBeLessThan(Math.max(100, 40 * (last?.before ?? 0)))
      expect(last?.grownMib).toBeLessThan(mostMib)
    },
    240_000,
  )
})
