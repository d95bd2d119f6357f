import type { OutboxRows, StoredRow } from '../outbox/index.ts'
import type { OtherNode, StatesBatch, StatesRows, WatchedMonitor } from '../states/index.ts'
import type { Voice } from './member.ts'
import { aloneMs } from './policy.ts'

/**
 * All that the rest of svc knows of the leases of its node. `soleNode` stands for a svc whose store nobody else can use, so that
 * nobody asks whether there are nodes.
 */
export type NodeLease = {
  /** Whether other nodes may use its store. What an earlier process has stored then comes with the lease. */
  readonly isShared: boolean
  /** The name of the node, for people. Undefined if no other node can exist. */
  readonly node: string | undefined
  /** The key of something on this machine. */
  readonly keyOf: (key: string) => string
  /** The reports of the nodes on each other, as monitors that no schedule runs. */
  readonly reports: readonly WatchedMonitor[]
  /** Whether this process runs a monitor. */
  readonly runs: (key: string) => boolean
  /** Whether states and messages of a monitor are those of this process. What it has but must not run now waits. */
  readonly has: (key: string) => boolean
  /** Whether another node takes care of what is known of it. */
  readonly isElsewhere: (key: string) => boolean
  /** Who can be asked whether it reaches a monitor of the network. */
  readonly otherNode: (key: string) => OtherNode | undefined
  /** The monitors, and the names of receivers, from now on. The caller then configures states and schedule. */
  readonly configured: (monitors: readonly WatchedMonitor[], receivers: readonly string[]) => void
  /** Over how many milliseconds first runs are spread: what another node ran until now waits no longer than necessary. */
  readonly spreadMs: () => number | undefined
  /** Whether the watchdog, the silences of receivers, and what else all nodes have once, are up to this one. */
  readonly leads: () => boolean
  /** Why it stores nothing now, also while there is nothing to store. Undefined: it does, or is about to. */
  readonly problem: () => string | undefined
  /** How soon it tries to store again. Milliseconds. */
  readonly retryMs: number
  /** `rows`: where they go if nobody else can use the store. `again`: another process has some of them by now. */
  readonly writeStates: (
    batch: StatesBatch,
    rows: () => Promise<StatesRows>,
  ) => Promise<'stored' | 'again' | { readonly why: string }>
  /** False: another process has the lease by now, and nothing is stored. Rejects while it cannot store. */
  readonly writeOutbox: (batch: readonly StoredRow[], rows: () => Promise<OutboxRows>) => Promise<boolean>
  /** Whether messages about a key may leave now. `unstoredMs`: for how long nothing could be stored. */
  readonly voice: (key: string, unstoredMs: number) => Voice
  /** Whether messages about a monitor are up to another node, although this one may send others. */
  readonly isUpToOther: (key: string) => boolean
  /** Something was noted that leaves without the store. */
  readonly sentAlone: () => void
}

/** The lease of a svc whose store nobody else can use, or that has none: it has everything, always. */
export const soleNode: NodeLease = {
  isShared: false,
  node: undefined,
  keyOf: (key) => key,
  reports: [],
  runs: () => true,
  has: () => true,
  isElsewhere: () => false,
  otherNode: () => undefined,
  configured: () => {},
  spreadMs: () => undefined,
  leads: () => true,
  problem: () => undefined,
  retryMs: 10_000,
  writeStates: async (batch, rows) =>
    (await (await rows()).write(batch))
      ? 'stored'
      : { why: 'another svc serve stores those that it confirms in the same store' },
  writeOutbox: async (batch, rows) => {
    await (await rows()).write(batch)
    return true
  },
  voice: (_, unstoredMs) => (unstoredMs === 0 ? 'coordinated' : unstoredMs >= aloneMs ? 'alone' : 'silent'),
  isUpToOther: () => false,
  sentAlone: () => {},
}
