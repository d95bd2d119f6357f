import { open, run, shortly, well } from '../../prove/leak-row.ts'
import { behindTap } from '../../support/engine/costs.ts'
import type { KindRows } from '../../support/engine/kind-rows.ts'
import { blackHole, peer } from '../../support/faults/faults.ts'
import { rdapServer, registered } from '../../support/simulated/rdap.ts'

const domain = 'example.org'
const registry = () => rdapServer((name) => ({ body: registered(name) }))
const at = (port: number) => ({ domain, server: `http://127.0.0.1:${port}/` })

export default {
  // The server of the registry is not what it checks: without its answer, the domain is not checked (H91).
  silent: 'no TCP',
  ended: 'no shared session',
  leaks: {
    missing: undefined,
    simulated: 'RDAP server',
    cost: 'cheap',
    start: async () => {
      const sound = await registry()
      const hole = await peer(blackHole)
      const more = { atOnce: 16 }
      return {
        cases: [
          well(at(sound.port)),
          run('refused', ['data'], at(1), more),
          run('black hole', ['data', 'timeout'], { ...at(hole.port), timeout: shortly }, more),
        ],
        left: () => open('black hole', hole),
        stop: async () => {
          await sound.close()
          await hole.close()
        },
      }
    },
  },
  costs: {
    simulated: 'RDAP server',
    start: behindTap(registry, (server, tapped) => ({
      cases: { plain: at(tapped.port) },
      counted: () => ({ requests: server.requests.length }),
    })),
  },
} satisfies KindRows
