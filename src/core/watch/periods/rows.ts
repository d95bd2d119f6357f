/**
 * The rows of history, and the store for them. Times are milliseconds since 1970. Every method may throw the faults of
 * a store.
 */

/** A monitor that history knows. */
export type HistoryMonitor = {
  readonly number: number
  /** Its key, `Sql/postgres/orders`, after its type: the machine itself belongs to several types. */
  readonly key: string
  readonly type: string
  /** The MonitorName. */
  readonly name: string
  /** The end of its first run. */
  readonly firstAt: number
}

/** Periods of one monitor: a block of a tier (`tiers.ts`), encoded by `block.ts`. */
export type BlockRow = {
  /** The index of the tier. */
  readonly tier: number
  /** The beginning. */
  readonly at: number
  /** The number of the monitor. */
  readonly monitor: number
  /** How many runs it contains. Of two blocks for the same time, the one with more runs counts. */
  readonly runs: number
  readonly times: Uint8Array
  readonly figures: Uint8Array
}

/** A block as it is read, with or without its figures. */
export type StoredBlock = Omit<BlockRow, 'figures'> & Partial<Pick<BlockRow, 'figures'>>

/** Runs that ended within about a second, encoded by `runs.ts`. */
export type RunsRow = { readonly at: number; readonly body: Uint8Array }
/** Runs as they are stored. `writer`: a number of the process that stored them. */
export type RunsId = { readonly at: number; readonly writer: number }
export type StoredRuns = RunsId & RunsRow

/** One transaction. */
export type HistoryBatch = {
  readonly runs?: RunsRow | undefined
  readonly blocks: readonly BlockRow[]
  /** Deletes runs that ended before this. */
  readonly deleteRunsBefore: number
  /** The numbers of names and monitors that are in use. Those that were not in use for longer than history are deleted. */
  readonly used?:
    | { readonly at: number; readonly names: readonly number[]; readonly monitors: readonly number[] }
    | undefined
  /** Deletes the blocks of each tier that begin before these times. Absent: none yet. */
  readonly deleteBlocksBefore?: readonly number[] | undefined
}

/** Names without a number, and monitors without one. */
export type Unnumbered = {
  readonly names: readonly string[]
  readonly monitors: readonly Omit<HistoryMonitor, 'number'>[]
}
export type Numbered = {
  readonly names: readonly { readonly number: number; readonly text: string }[]
  readonly monitors: readonly HistoryMonitor[]
}

export type BlockQuery = {
  readonly tier: number
  /** The beginnings of the blocks. */
  readonly ats: readonly number[]
  /** The numbers of the monitors. */
  readonly monitors: readonly number[]
  /** Whether the figures are read, too. */
  readonly figures: boolean
}

export type HistoryRows = {
  /** Opens the database, and makes it if there is none. */
  readonly open: () => Promise<void>
  /** The monitors and names with larger numbers than these. Without them, all. */
  readonly numbered: (after?: { readonly names: number; readonly monitors: number }) => Promise<Numbered>
  /** Gives numbers to new ones. Those of names and monitors that have one already stay. */
  readonly number: (unnumbered: Unnumbered) => Promise<Numbered>
  /** Gives a monitor the key and the name of its successor, unless that exists already. */
  readonly rename: (
    moves: readonly { readonly from: string; readonly to: Omit<HistoryMonitor, 'number' | 'firstAt'> }[],
  ) => Promise<void>
  readonly write: (batch: HistoryBatch) => Promise<void>
  /** The rows of runs, the earliest first: at most `most` of them, without the first `skip`. */
  readonly runs: (skip: number, most: number) => Promise<readonly StoredRuns[]>
  /** The rows of runs that other processes have stored and that ended at this time or later. */
  readonly othersSince: (at: number) => Promise<readonly RunsId[]>
  /** These rows, the earliest first. Those that are deleted meanwhile are missing. */
  readonly runsOf: (ids: readonly RunsId[]) => Promise<readonly StoredRuns[]>
  readonly blocks: (query: BlockQuery) => Promise<readonly StoredBlock[]>
  /** The monitors that have blocks of the tier below between `at` and `to`, and none of this tier at `at`. */
  readonly unpacked: (tier: number, at: number, to: number) => Promise<readonly number[]>
}
