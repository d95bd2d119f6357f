import { expect, test } from 'vitest'
import { flood } from '../support/faults/flood.ts'
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
      const { before, during, answers, grownMib } = await flood(path, bytes)
      // Without the bounds, /livez was silent for two minutes and the memory grew by 1.3 GB. The machine is shared.
      expect(answers).toBeGreaterThan(20)
      expect(during).toBeLessThan(Math.max(100, 40 * before))
      // Ten megabytes are 190,000 requests: what they leave to the garbage collector is more than what waits.
      expect(grownMib).toBeLessThan(bytes > 1_000_000 ? 400 : 64)
    },
    120_000,
  )
})
