import { type StoredRow, withNews, withoutSentEnds } from '../outbox/index.ts'
import {
  type IncidentRecord,
  type StatesBatch,
  type StoredState,
  type StoredSubject,
  subjectId,
} from '../states/index.ts'
import { nodeOfKey, ownersOf } from './owner.ts'
import { outMs } from './policy.ts'
import type { Configurations, Fence, KnownMonitors, NodeFacts, NodeRow } from './types.ts'

/** A renewal of the row of a node. */
export type RenewalRequest = {
  readonly node: string
  /** A random text that no other process has. */
  readonly process: string
  /** Of the last renewal that succeeded. */
  readonly epoch: number | undefined
  /** The highest epoch that this process has had so far. 0: none. */
  readonly latestEpoch: number
  /** Whether it takes the row from another process: the first renewal of a process does. */
  readonly claims: boolean
  readonly config: string
  readonly isIsolated: boolean
  readonly facts: NodeFacts
}

export type RenewalAnswer =
  | {
      readonly what: 'renewed'
      readonly epoch: number
      readonly rows: readonly NodeRow[]
      /** The number of the last write of this epoch that the store has. */
      readonly writes: number
      /** For how many keys it has the stamp of this epoch. */
      readonly stamped: number
    }
  /** Another process has the name; or this one has left, and the renewal is late. */
  | { readonly what: 'taken'; readonly rows: readonly NodeRow[] }

/** The stored data of the monitors that a node takes over. */
export type Taken = {
  readonly keys: readonly string[]
  /** `silentMs`: for how long the owner before had not renewed its row. Undefined: nobody knows. */
  readonly states: readonly (StoredState & { readonly silentMs: number | undefined })[]
  /** The open ones. */
  readonly incidents: readonly IncidentRecord[]
  readonly outbox: readonly StoredRow[]
}

/**
 * - `stored`
 * - `not live`: the row of the node has expired, is taken or has left, or the store has gone back to before a write that it
 *   had acknowledged (`Fence.acknowledged`), or has this write or a later one already. Nothing is stored.
 * - `lost`: other nodes have these keys. Nothing is stored.
 */
export type Fenced = 'stored' | 'not live' | { readonly lost: readonly string[] }

/** The keys that a node is to take over: those that it owns, of those that anybody knows or that are stored. */
export type Choose = (rows: readonly NodeRow[], stored: readonly string[]) => readonly string[]

/** Nodes and what they store, fenced. Every method is one transaction and may throw the faults of a store. */
export type NodesRows = {
  /**
   * Renews the live row of the process, or makes one with a new epoch. The row goes on if it has the epoch of the request, or
   * a higher one than the process has ever had: then the answer to the renewal that began it was lost, or this renewal is late,
   * and its sender must not lose the epoch that it has by now. A process that has left gets no row.
   */
  readonly renew: (request: RenewalRequest) => Promise<RenewalAnswer>
  /** Rows as they are now, for people. */
  readonly list: () => Promise<readonly NodeRow[]>
  /** Stores the monitors of a configuration under their digest. To be called before a renewal names it. */
  readonly putConfiguration: (digest: string, known: KnownMonitors) => Promise<void>
  /** The configurations of these digests. */
  readonly configurations: (digests: readonly string[]) => Promise<Configurations>
  /**
   * Stamps the keys that `choose` names with the epoch, and reads what is stored under them: nobody who owned them before can
   * write after that. `notices`: what this node told receivers while it was cut off, which is added to what is stored
   * (`withNews`), and whose owner reads it again. Undefined: the row of the node is not live.
   */
  readonly takeOver: (fence: Fence, choose: Choose, notices: readonly StoredRow[]) => Promise<Taken | undefined>
  /** `number`: of this attempt, counted from 1 for each epoch. One write of a node is in progress at a time. */
  readonly writeStates: (fence: Fence, number: number, batch: StatesBatch) => Promise<Fenced>
  readonly writeOutbox: (fence: Fence, number: number, rows: readonly StoredRow[]) => Promise<Fenced>
  /** The node ends in order. */
  readonly leave: (fence: Fence) => Promise<void>
}

type StoredNode = {
  readonly node: string
  readonly process: string
  readonly epoch: number
  renewedAt: number
  leftAt: number | undefined
  config: string
  isIsolated: boolean
  facts: NodeFacts
  writes: number
}

/**
 * The same in memory, as the store does it: for the simulation of several nodes. It has no clock: `now` is milliseconds of
 * the clock of the store.
 */
export class NodesTable {
  /** By epoch. Those of before tell until when a node watched. */
  readonly #nodes = new Map<number, StoredNode>()
  readonly #stamps = new Map<string, number>()
  /** No epoch is given twice, also when its row has been removed: its stamps may still be there. */
  #epochs = 0
  readonly #configurations = new Map<string, KnownMonitors>()
  readonly #states = new Map<string, StoredState>()
  readonly #incidents = new Map<string, IncidentRecord>()
  readonly #outbox = new Map<string, StoredRow>()

  renew(request: RenewalRequest, now: number): RenewalAnswer {
    const { node, process, epoch, latestEpoch, claims, config, isIsolated, facts } = request
    const before = this.#latest(node)
    const isOwn = before?.process === process
    const isAnothers = before !== undefined && !isOwn && this.#isLive(before, now)
    if ((isAnothers && !claims) || (isOwn && before.leftAt !== undefined))
      return { what: 'taken', rows: this.rows(now) }
    const goesOn = before !== undefined && (before.epoch === epoch || before.epoch > latestEpoch)
    const row: StoredNode =
      isOwn && goesOn && this.#isLive(before, now)
        ? before
        : {
            node,
            process,
            epoch: ++this.#epochs,
            renewedAt: now,
            leftAt: undefined,
            config,
            isIsolated,
            facts,
            writes: 0,
          }
    Object.assign(row, { renewedAt: now, config, isIsolated, facts })
    this.#nodes.set(row.epoch, row)
    const stamped = [...this.#stamps.values()].filter((one) => one === row.epoch).length
    return { what: 'renewed', epoch: row.epoch, rows: this.rows(now), writes: row.writes, stamped }
  }

  rows(now: number): readonly NodeRow[] {
    const names = new Set([...this.#nodes.values()].map(({ node }) => node))
    return [...names].flatMap((name): readonly NodeRow[] => {
      const row = this.#latest(name)
      if (!row) return []
      const { node, epoch, isIsolated, config, renewedAt, leftAt, facts } = row
      const silentMs = now - renewedAt
      return [
        {
          node,
          epoch,
          isLive: this.#isLive(row, now),
          isIsolated,
          config,
          silentMs,
          hasLeft: leftAt !== undefined,
          facts,
        },
      ]
    })
  }

  putConfiguration(digest: string, monitors: KnownMonitors): void {
    this.#configurations.set(digest, monitors)
  }

  configurations(digests: readonly string[]): Configurations {
    return new Map(
      digests.flatMap((digest) => {
        const monitors = this.#configurations.get(digest)
        return monitors ? [[digest, monitors] as const] : []
      }),
    )
  }

  takeOver(fence: Fence, choose: Choose, news: readonly StoredRow[], now: number): Taken | undefined {
    if (!this.#mayWrite(fence, now)) return undefined
    for (const one of news) {
      const before = this.#outbox.get(rowName(one))?.row
      const row = one.row && (before ? withNews(before, one.row) : withoutSentEnds(one.row))
      if (!row || row === before) continue
      this.#outbox.set(rowName(one), { ...one, row })
      this.#revoke(one.subject.key)
    }
    const stored = new Set([
      ...this.#stamps.keys(),
      ...[...this.#states.values()].map(({ row }) => row.key),
      ...[...this.#outbox.values()].map(({ subject }) => subject.key),
    ])
    const keys = choose(this.rows(now), [...stored])
    const silent = new Map(keys.map((key) => [key, this.#silentMs(key, now)]))
    for (const key of keys) this.#stamps.set(key, fence.epoch)
    const isOwn = ({ key }: Pick<StoredSubject, 'key'>): boolean => silent.has(key)
    return {
      keys,
      states: [...this.#states.values()]
        .filter(({ row }) => isOwn(row))
        .map((one) => ({ ...one, silentMs: silent.get(one.row.key) })),
      incidents: [...this.#incidents.values()].filter((one) => isOwn(one) && one.endedAt === undefined),
      outbox: [...this.#outbox.values()].filter(({ subject }) => isOwn(subject)),
    }
  }

  writeStates(fence: Fence, number: number, { states, gone, incidents }: StatesBatch, now: number): Fenced {
    const keys = [
      ...states.map(({ row }) => row.key),
      ...gone.map(({ key }) => key),
      ...incidents.map(({ key }) => key),
    ]
    const verdict = this.#fenced(fence, keys, number, now)
    if (verdict !== 'stored') return verdict
    for (const one of states) this.#states.set(subjectId(one.row), one)
    for (const row of gone) this.#states.delete(subjectId(row))
    for (const one of incidents) this.#incidents.set(one.id, one)
    return 'stored'
  }

  writeOutbox(fence: Fence, number: number, rows: readonly StoredRow[], now: number): Fenced {
    const keys = rows.map(({ subject }) => subject.key)
    const verdict = this.#fenced(fence, keys, number, now)
    if (verdict !== 'stored') return verdict
    for (const one of rows) {
      if (one.row === undefined) this.#outbox.delete(rowName(one))
      else this.#outbox.set(rowName(one), one)
    }
    return 'stored'
  }

  leave({ node, epoch }: Fence, now: number): void {
    const row = this.#latest(node)
    if (row?.epoch === epoch) row.leftAt = now
  }

  /** Removes a node that is not live. False: there is no such node. */
  forget(node: string, now: number): boolean {
    const row = this.#latest(node)
    if (!row || this.#isLive(row, now)) return false
    for (const [epoch, one] of this.#nodes) if (one.node === node) this.#nodes.delete(epoch)
    this.#forgetMachine(node, row.renewedAt)
    return true
  }

  /** The stored data of all monitors. */
  get stored(): Omit<Taken, 'keys'> {
    const states = [...this.#states.values()].map((one) => ({ ...one, silentMs: undefined }))
    return { states, incidents: [...this.#incidents.values()], outbox: [...this.#outbox.values()] }
  }

  /** Its open incidents end when it last watched. */
  #forgetMachine(node: string, watchedUntil: number): void {
    const isOf = (key: string): boolean => nodeOfKey(key) === node
    for (const key of this.#stamps.keys()) if (isOf(key)) this.#stamps.delete(key)
    for (const [name, { row }] of this.#states) if (isOf(row.key)) this.#states.delete(name)
    for (const [name, { subject }] of this.#outbox) if (isOf(subject.key)) this.#outbox.delete(name)
    for (const [id, one] of this.#incidents) {
      if (!isOf(one.key) || one.endedAt !== undefined) continue
      this.#incidents.set(id, { ...one, endedAt: Math.max(one.beganAt, watchedUntil), ending: 'unknown' })
    }
  }

  /** Everything as it is now, for a failover that goes back to it. */
  snapshot(): () => void {
    const nodes = [...this.#nodes].map(([epoch, row]) => [epoch, { ...row }] as const)
    const maps = [this.#stamps, this.#configurations, this.#states, this.#incidents, this.#outbox] as Map<
      string,
      unknown
    >[]
    const copies = maps.map((map) => [...map])
    return () => {
      this.#nodes.clear()
      for (const [epoch, row] of nodes) this.#nodes.set(epoch, { ...row })
      for (const [at, map] of maps.entries()) {
        map.clear()
        for (const [key, value] of copies[at] ?? []) map.set(key, value)
      }
    }
  }

  #latest(node: string): StoredNode | undefined {
    return [...this.#nodes.values()].filter((one) => one.node === node).sort((a, b) => b.epoch - a.epoch)[0]
  }

  #isLive({ renewedAt, leftAt }: StoredNode, now: number): boolean {
    return leftAt === undefined && now - renewedAt < outMs
  }

  #mayWrite({ node, epoch, acknowledged = 0 }: Fence, now: number): boolean {
    const row = this.#latest(node)
    return row?.epoch === epoch && this.#isLive(row, now) && row.writes >= acknowledged
  }

  #fenced(fence: Fence, keys: readonly string[], number: number, now: number): Fenced {
    if (!this.#mayWrite(fence, now) || number <= (this.#nodes.get(fence.epoch)?.writes ?? 0)) return 'not live'
    const lost = [...new Set(keys)].filter((key) => this.#stamps.get(key) !== fence.epoch)
    if (lost.length > 0) return { lost }
    const row = this.#nodes.get(fence.epoch)
    if (row) row.writes = Math.max(row.writes, number)
    return 'stored'
  }

  /** Its owner can no longer write it, and reads it again. A negative epoch still tells who had it. */
  #revoke(key: string): void {
    const epoch = this.#stamps.get(key)
    if (epoch !== undefined && epoch > 0) this.#stamps.set(key, -epoch)
  }

  /** For how long the owner before has been silent. */
  #silentMs(key: string, now: number): number | undefined {
    const epoch = this.#stamps.get(key)
    const owner = epoch === undefined ? undefined : this.#nodes.get(Math.abs(epoch))
    return owner && now - owner.renewedAt
  }
}

/** The keys that a node owns, of those that are stored and those that any configuration of a live node has. */
export const ownedBy =
  (node: string, configurations: Configurations): Choose =>
  (rows, stored) => {
    const keys = new Set(stored)
    for (const { isLive, config } of rows) {
      if (isLive) for (const key of configurations.get(config)?.groups.keys() ?? []) keys.add(key)
    }
    const ownerOf = ownersOf(rows, configurations)
    return [...keys].filter((key) => ownerOf(key) === node)
  }

const rowName = ({ receiver, subject }: StoredRow): string => `${receiver} ${subjectId(subject)}`
