import type { NodeAnswer, Question } from '../states/index.ts'

/** A node as the store has it. */
export type NodeRow = {
  readonly node: string
  /** Another number at each start, and whenever the node finds that its row has expired. */
  readonly epoch: number
  /** Whether it has renewed its row in time, by the clock of the store, and has not left. */
  readonly isLive: boolean
  /** None of its witnesses answers it. */
  readonly isIsolated: boolean
  /** The digest of the monitors that it knows (`KnownMonitors`). */
  readonly config: string
  /** How long ago it last renewed its row, in milliseconds of the store. */
  readonly silentMs: number
  /** It ended in order: nobody misses it. */
  readonly hasLeft: boolean
  /** The facts about it, for people. Undefined: nobody can read them. The node counts by its other columns. */
  readonly facts: NodeFacts | undefined
}

/** The facts that a node reports about itself. */
export type NodeFacts = {
  readonly version: string
  /** Its page as people reach it. */
  readonly url?: string | undefined
  /** Milliseconds since 1970. */
  readonly startedAt: number
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

/** The monitors of a configuration that look at other machines. */
export type KnownMonitors = {
  /** Their keys, with the group that has one owner. */
  readonly groups: ReadonlyMap<string, string>
  /** Keys that they had before, with the same groups. */
  readonly formerly: ReadonlyMap<string, string>
}

/** Configurations by their digests. */
export type Configurations = ReadonlyMap<string, KnownMonitors>

/** Who writes: a write is refused if another process has what it writes about. */
export type Fence = {
  readonly node: string
  readonly epoch: number
  /**
   * The number of the last write of this epoch that was acknowledged. A store that has gone back in time to before it refuses
   * the next one with `not live`, so that the loss is noticed.
   */
  readonly acknowledged?: number | undefined
}
