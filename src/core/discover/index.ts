import { type Identified, identify } from './identify.ts'
import { type OpenPort, openPorts } from './ports.ts'
import { type Proposal, propose } from './propose.ts'

export type { Identified } from './identify.ts'
export type { OpenPort } from './ports.ts'
export type { Proposal, ProposedEntry } from './propose.ts'

export type Discovery = {
  readonly proposals: readonly Proposal[]
  /** Services that were not recognized or are svc's own. */
  readonly others: readonly Identified[]
}

/** Maximum number of ports examined. */
const maxPorts = 128
/** Number of ports examined in parallel; each gets a few requests in sequence. */
const atOnce = 8

/**
 * Examines the listening services of this machine and proposes monitors for them. It connects and greets, but signs in
 * nowhere and changes nothing. `skip`: svc's own ports. Rejects only when the signal aborts.
 */
export async function discover(
  signal: AbortSignal,
  { skip = [], ports }: { readonly skip?: readonly number[]; readonly ports?: readonly OpenPort[] } = {},
): Promise<Discovery> {
  const open = (ports ?? (await openPorts())).filter(({ port }) => !skip.includes(port)).slice(0, maxPorts)
  const identified: Identified[] = []
  const queue = [...open]
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) identified.push(await identify(next, signal))
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  const sorted = identified.sort((a, b) => a.port - b.port)
  return { proposals: propose(sorted), others: sorted.filter((one) => propose([one]).length === 0) }
}
