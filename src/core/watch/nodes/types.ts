import type { StoredRow } from '../outbox/index.ts'
import type { IncidentRecord, NodeAnswer, Question, StatesBatch, StoredState } from '../states/index.ts'
import type { LeaseAsk, LeaseRow } from './lease.ts'

/** A node as the store has it. */
export type NodeRow = {
  readonly node: string
  /** Another number for each process. */
  readonly epoch: number
  /** Whether it has renewed its row in time, by the clock of the store, and has not left. */
  readonly isLive: boolean
  /** None of its witnesses answers it. */
  readonly isIsolated: boolean
  /** That of `leaseConfig`; a node of a version before has the digest of monitors that it shares with others. */
  readonly config: string
  /** How long ago it last renewed its row, in milliseconds of the store. */
  readonly silentMs: number
  /** It ended in order: nobody misses it. */
  readonly hasLeft: boolean
  /** The facts about it, for people. Undefined: nobody can read them. The node counts by its other columns. */
  readonly facts: NodeFacts | undefined
}

/** The configuration of every node of this version, for nodes of versions before: it has no monitors that they could share. */
export const leaseConfig = 'lease'

/** The facts that a node reports about itself. */
export type NodeFacts = {
  readonly version: string
  /** Its page as people reach it. */
  readonly url?: string | undefined
  /** Its address for other nodes. */
  readonly peer?: string | undefined
  /** Milliseconds since 1970. */
  readonly startedAt: number
  /** The digest of its network monitors. */
  readonly digest?: string | undefined
  /** Absent in nodes of versions that neither ask nor answer. */
  readonly crossChecks?: CrossChecks | undefined
}

/** The questions of a node to others, and its answers to theirs: whether it reaches a peer. Both are bounded. */
export type CrossChecks = {
  readonly questions: readonly Question[]
  /** Of `node`, in its `epoch`, the question `id`. */
  readonly answers: readonly (NodeAnswer & { readonly node: string; readonly epoch: number })[]
}

/** A question of another node to this one. */
export type OthersQuestion = Question & { readonly from: string; readonly epoch: number }

/** The two things that a node has by leases: the monitors of the network, or those of the machine of one node. */
export type Shard = 'network' | 'machine'
export const shards: readonly Shard[] = ['network', 'machine']

/** The renewal of what a node has in the store. */
export type BeatRequest = {
  readonly node: string
  /** A random text that no other process has. */
  readonly process: string
  readonly isIsolated: boolean
  readonly facts: NodeFacts
  readonly asks: Readonly<Record<Shard, LeaseAsk>>
}
export type BeatAnswer = {
  readonly rows: readonly NodeRow[]
  readonly leases: Readonly<Record<Shard, { readonly isOk: boolean; readonly row: LeaseRow | undefined }>>
  /** The number of the last hand-over of the process that the store has. 0: none. */
  readonly handedOver: number
}

/** The rows of messages that a process sent without the store. `number`: a later hand-over has a higher one. */
export type HandOver = {
  readonly node: string
  readonly process: string
  readonly number: number
  readonly rows: readonly StoredRow[]
}

/** Who writes. A write is refused unless the lease is of this process and epoch, and has just the writes that it knows. */
export type Fence = {
  readonly shard: Shard
  readonly node: string
  readonly process: string
  readonly epoch: number
  /** The number of the last write that was acknowledged: a store that has gone back in time to before it refuses. */
  readonly acknowledged: number
  /** The number of this attempt. A write that is late is refused. */
  readonly number: number
}
export type Fenced = 'stored' | { readonly refused: readonly Shard[] }

/** The stored data of monitors. */
export type Stored = {
  /** For how long nobody had stored that it watches the network. Undefined: nobody ever did. */
  readonly ageMs: number | undefined
  readonly states: readonly StoredState[]
  /** The open ones. */
  readonly incidents: readonly IncidentRecord[]
  readonly outbox: readonly StoredRow[]
}
/** The stored data of the monitors that a node takes; none of those that it gives up. */
export type Taken = Omit<Stored, 'ageMs'> & {
  readonly keys: ReadonlySet<string>
  /** For how long the holder before had not renewed its lease. Undefined: nobody knows. */
  readonly silentMs: number | undefined
}

/** Nodes and what they store. Every method may throw the faults of a store. */
export type NodesRows = {
  /** One transaction. */
  readonly beat: (request: BeatRequest) => Promise<BeatAnswer>
  /** Rows as they are now, for people. */
  readonly list: () => Promise<readonly NodeRow[]>
  /** The node that holds the lease of the network. */
  readonly holder: () => Promise<string | undefined>
  readonly stored: () => Promise<Stored>
  /** The key by which nodes recognize each other without the store: a random text of the store, in hex. */
  readonly key: () => Promise<string>
  /** Each is one transaction, which begins with the fences. */
  readonly writeStates: (fences: readonly Fence[], batch: StatesBatch) => Promise<Fenced>
  readonly writeOutbox: (fences: readonly Fence[], rows: readonly StoredRow[]) => Promise<Fenced>
  /**
   * Adds what a node told without the store to what is stored. The holder notices it by the number of writes. False: the store
   * has no row of the process, or a later hand-over.
   */
  readonly handOver: (what: HandOver) => Promise<boolean>
  /** The process ends in order. */
  readonly leave: (node: string, process: string) => Promise<void>
}
/** How many writes a hand-over counts for: a holder never tries so many at a time. */
export const handOverWrites = 1_000
