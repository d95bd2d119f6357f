import { type Identified, identify } from './identify.ts'
import { type OpenPort, openPorts } from './ports.ts'
import { type Proposal, propose } from './propose.ts'

export type { Identified } from './identify.ts'
export type { OpenPort } from './ports.ts'
export type { Proposal, ProposedEntry } from './propose.ts'

export type Discovery = {
  readonly proposals: readonly Proposal[]
  /** What listens and was not recognised, or is svc's own. */
  readonly others: readonly Identified[]
}

/** A machine with more ports than this is looked at as far as this. */
const maxPorts = 128
/** Each port is asked a few things one after the other; so many ports at a time. */
const atOnce = 8

/**
 * Looks at what listens on this machine and says what to watch of it. Connects and greets, signs in
 * nowhere and changes nothing. `skip`: ports that are svc's own. Rejects only when the signal aborts.
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
