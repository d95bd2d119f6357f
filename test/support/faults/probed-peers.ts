import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** A server of a monitor `tcp` that expects `hello`. It accepts each connection, also while it fails, and notes when. */
export type ProbedPeer = {
  readonly name: string
  readonly port: number
  /** When somebody connected, by `performance.now()`. */
  readonly probes: readonly number[]
  readonly fail: () => void
  readonly recover: () => void
  readonly close: () => Promise<void>
}

export async function probedPeer(name: string, port: number): Promise<ProbedPeer> {
  const probes: number[] = []
  let isWell = true
  const server: Server = createServer((socket) => {
    probes.push(performance.now())
    socket.on('error', () => {})
    socket.end(isWell ? 'hello\n' : 'down\n')
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return {
    name,
    port,
    probes,
    fail: () => {
      isWell = false
    },
    recover: () => {
      isWell = true
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** The longest time without a probe of any peer since then, in milliseconds. */
export const maxGap = (peers: readonly ProbedPeer[], from: number): number =>
  Math.max(
    ...peers.map(({ probes }) => {
      const times = [from, ...probes.filter((at) => at > from), performance.now()]
      return Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? at)))
    }),
  )

/** How often the peers have been probed since then, as a multiple of once in `everyMs`; and how many probes that were. */
export function probeRate(
  peers: readonly ProbedPeer[],
  from: number,
  everyMs: number,
): { readonly ratio: number; readonly count: number; readonly gaps: string } {
  const since = peers.map(({ probes }) => probes.filter((at) => at > from))
  // From the first probe to the last one, so that the edges of the time do not count.
  const ratios = since.map((probes) => {
    const [first = 0] = probes
    return (probes.length - 1) / (((probes.at(-1) ?? 0) - first) / everyMs)
  })
  const gapsOf = (probes: readonly number[]): string =>
    probes.map((at, index) => Math.round(at - (probes[index - 1] ?? at))).join(' ')
  return {
    ratio: ratios.reduce((all, one) => all + one, 0) / ratios.length,
    count: since.reduce((all, { length }) => all + length, 0),
    gaps: since.map(gapsOf).join('\n'),
  }
}
