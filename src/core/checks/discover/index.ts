import type { ServerType } from '../../protocol/index.ts'
import {
  type Machine,
  noteOf,
  type OpenPort,
  type Proposed,
  type Recognition,
  type RecognizedServer,
} from '../recognition/index.ts'
import { type CandidateProtocol, candidatesOf, identify, type Recognized, type Unrecognized } from './identify.ts'
import { thisMachine } from './machine.ts'
import { openPorts } from './ports.ts'

export type { OpenPort, ProposedEntry } from '../recognition/index.ts'

export type Proposal = Proposed & {
  readonly type: ServerType
  /** Why the entry does not work as it is, once it has been run: the whole entry is then a comment. */
  readonly problem?: string | undefined
}

export type Discovery = {
  readonly proposals: readonly Proposal[]
  /** Services that no kind recognizes. */
  readonly others: readonly Unrecognized[]
}

/** Maximum number of ports examined. */
const maxPorts = 128
/** Number of ports examined in parallel; each gets a few requests in sequence. */
const atOnce = 8

/**
 * Examines the listening services of this machine and proposes monitors for them. It connects and greets, but signs in
 * nowhere and changes nothing. `skip`: svc's own ports. `candidates`: the protocols to recognize, by default those that
 * kinds declare. Rejects only when the signal aborts.
 */
export async function discover(
  signal: AbortSignal,
  {
    skip = [],
    ports,
    candidates,
    machine,
  }: {
    readonly skip?: readonly number[]
    readonly ports?: readonly OpenPort[]
    readonly candidates?: readonly CandidateProtocol[]
    readonly machine?: Machine
  } = {},
): Promise<Discovery> {
  const [listening, protocols, own] = await Promise.all([
    ports ?? openPorts(),
    candidates ?? candidatesOf(),
    machine ?? thisMachine(),
  ])
  const queue = listening.filter(({ port }) => !skip.includes(port)).slice(0, maxPorts)
  const proposals: (Proposal & { readonly port: number })[] = []
  const others: Unrecognized[] = []
  const examine = async (at: OpenPort): Promise<void> => {
    const identified = await identify(at, protocols, own, signal)
    if ('recognition' in identified) proposals.push({ ...(await proposalOf(identified)), port: at.port })
    else others.push(identified)
  }
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) await examine(next)
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return { proposals: byPort(proposals).map(({ port: _, ...proposal }) => proposal), others: byPort(others) }
}

const byPort = <T extends { readonly port: number }>(all: readonly T[]): readonly T[] =>
  all.toSorted((a, b) => a.port - b.port)

/** The monitors for a server, with a unique name that contains the port. */
async function proposalOf({ ports, recognition, server }: Recognized): Promise<Proposal> {
  const { name, product, propose } = recognition
  const proposed = await propose(server, `${product?.(server.reply) ?? name}-${server.port}`)
  const type = typeOf(ports, server.port)
  if (!(await isPool(recognition, server))) return { type, ...proposed }
  const { entry, note } = proposed
  const pooled = `several servers answer here in turn: each run opens ${samples} connections; a monitor for each server would name it`
  return { type, ...proposed, entry: { ...entry, samples }, note: noteOf(note, pooled) }
}

/** The connections of each run at a pool: as many as an ordinary pool has members, so that a balancer in turn reaches each. */
const samples = 5
/** Maximum number of replies that are compared: a balancer that takes turns leads the second connection to another server. */
const maxReplies = 4

/** Whether different servers answer at a port. */
async function isPool({ pool, greeting, isWhole }: Recognition, server: RecognizedServer): Promise<boolean> {
  if (pool === 'alike') return false
  const { question = greeting, differ } = pool
  let earlier: Buffer | undefined
  for (let replies = 0; replies < maxReplies; replies += 1) {
    const reply = await server.ask(question, isWhole)
    if (earlier && reply && differ(earlier, reply)) return true
    earlier = reply
  }
  return false
}

/** The server type of which a port is a standard port, otherwise the first type of the kind. */
function typeOf(ports: CandidateProtocol['ports'], port: number): ServerType {
  const types = Object.keys(ports) as ServerType[]
  return types.find((type) => Object.hasOwn(ports[type] ?? {}, port)) ?? types[0] ?? 'App'
}
