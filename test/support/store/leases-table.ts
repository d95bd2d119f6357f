import {
  type BeatAnswer,
  type BeatRequest,
  type Fence,
  type Fenced,
  type HandOver,
  handOverWrites,
  type LeaseRow,
  leaseConfig,
  type NodeFacts,
  type NodeRow,
  nodeOfKey,
  outMs,
  type Shard,
  type Stored,
  shards,
} from '../../../src/core/watch/nodes/index.ts'
import { isEmpty, type StoredRow, withHandedOver } from '../../../src/core/watch/outbox/index.ts'
import {
  type IncidentRecord,
  type StatesBatch,
  type StoredState,
  subjectId,
} from '../../../src/core/watch/states/index.ts'

type StoredLease = Omit<LeaseRow, 'hasLeft' | 'silentMs'> & { renewedAt: number; leftAt: number | undefined }
type StoredNode = {
  readonly node: string
  readonly process: string
  readonly epoch: number
  readonly config: string
  readonly renewedAt: number
  readonly leftAt: number | undefined
  readonly isIsolated: boolean
  readonly facts: NodeFacts
}

export const nameOf = (shard: Shard, node: string): string => (shard === 'network' ? shard : `@${node}`)

/**
 * Leases, nodes and what they store, in memory as the store has them. It has no clock: `now` is milliseconds of the clock of the
 * store.
 */
export class LeasesTable {
  #leases = new Map<string, StoredLease>()
  #nodes = new Map<string, StoredNode>()
  /** The node of each process that has a row, and the number of the last hand-over of the process. */
  #handedOver = new Map<string, { readonly node: string; readonly number: number }>()
  #epochs = 0
  #states = new Map<string, StoredState>()
  #incidents = new Map<string, IncidentRecord>()
  #outbox = new Map<string, StoredRow>()

  beat(request: BeatRequest, now: number): BeatAnswer {
    const { node, process } = request
    const done = new Map(shards.map((shard) => [shard, this.#ask(shard, request, now)]))
    const own = this.#leases.get(nameOf('machine', node))
    if (own?.process === process && own.leftAt === undefined) this.#renewRow(request, now)
    const leaseOf = (shard: Shard) => ({ isOk: done.get(shard) === true, row: this.lease(nameOf(shard, node), now) })
    const handedOver = this.#handedOver.get(process)?.number ?? 0
    return { rows: this.rows(now), leases: { network: leaseOf('network'), machine: leaseOf('machine') }, handedOver }
  }

  lease(name: string, now: number): LeaseRow | undefined {
    const row = this.#leases.get(name)
    if (!row) return undefined
    const { renewedAt, leftAt, ...lease } = row
    return { ...lease, hasLeft: leftAt !== undefined, silentMs: Math.max(0, now - renewedAt) }
  }

  #ask(shard: Shard, { node, process, asks }: BeatRequest, now: number): boolean {
    const name = nameOf(shard, node)
    const ask = asks[shard]
    const row = this.#leases.get(name)
    if (ask.type === 'read') return true
    const isOwn = row?.process === process && row.epoch === ask.epoch && row.leftAt === undefined
    if (ask.type === 'renew') {
      if (isOwn) this.#leases.set(name, { ...row, beats: row.beats + 1, renewedAt: now })
      return isOwn
    }
    if (ask.type === 'leave') {
      if (isOwn) this.#leases.set(name, { ...row, leftAt: now })
      return isOwn
    }
    const { expected, epoch } = ask
    const machine = this.#leases.get(nameOf('machine', node))
    const mayTake = shard === 'machine' || (machine?.process === process && machine.leftAt === undefined)
    const isSame =
      row?.process === expected?.process &&
      row?.epoch === expected?.epoch &&
      row?.beats === expected?.beats &&
      row?.writes === expected?.writes &&
      (row?.leftAt !== undefined) === (expected?.hasLeft ?? false)
    if (!isSame || !mayTake) return false
    const writes = row?.writes ?? 0
    this.#leases.set(name, { node, process, epoch, beats: 0, writes, base: writes, renewedAt: now, leftAt: undefined })
    return true
  }

  #renewRow({ node, process, isIsolated, facts }: BeatRequest, now: number): void {
    const before = this.#nodes.get(node)
    const epoch = before?.process === process ? before.epoch : ++this.#epochs
    const row = { node, process, epoch, config: leaseConfig, renewedAt: now, leftAt: undefined, isIsolated, facts }
    this.#nodes.set(node, row)
    if (!this.#handedOver.has(process)) this.#handedOver.set(process, { node, number: 0 })
  }

  /** The row of a node of a version before. */
  oldNode(node: string, now: number, hasLeft: boolean): void {
    const facts = { version: '0', startedAt: 0 }
    const row = {
      node,
      process: `old ${node}`,
      config: 'digest',
      renewedAt: now,
      leftAt: hasLeft ? now : undefined,
      facts,
    }
    this.#nodes.set(node, { ...row, epoch: ++this.#epochs, isIsolated: false })
  }

  rows(now: number): readonly NodeRow[] {
    return [...this.#nodes.values()].map(({ node, epoch, config, renewedAt, leftAt, isIsolated, facts }) => {
      const silentMs = Math.max(0, now - renewedAt)
      const hasLeft = leftAt !== undefined
      return { node, epoch, isLive: !hasLeft && silentMs < outMs, isIsolated, config, silentMs, hasLeft, facts }
    })
  }

  writeStates(fences: readonly Fence[], { states, gone, incidents }: StatesBatch): Fenced {
    const verdict = this.#fenced(fences)
    if (verdict !== 'stored') return verdict
    for (const one of states) this.#states.set(subjectId(one.row), one)
    for (const row of gone) this.#states.delete(subjectId(row))
    for (const one of incidents) this.#incidents.set(one.id, one)
    return 'stored'
  }

  writeOutbox(fences: readonly Fence[], rows: readonly StoredRow[]): Fenced {
    const verdict = this.#fenced(fences)
    if (verdict !== 'stored') return verdict
    for (const one of rows) {
      if (one.row === undefined) this.#outbox.delete(rowName(one))
      else this.#outbox.set(rowName(one), one)
    }
    return 'stored'
  }

  handOver({ node, process, number, rows }: HandOver): boolean {
    if ((this.#handedOver.get(process)?.number ?? number) >= number) return false
    this.#handedOver.set(process, { node, number })
    for (const one of rows) {
      const before = this.#outbox.get(rowName(one))?.row ?? nothing
      const row = one.row && withHandedOver(before, one.row)
      if (!row || row === before) continue
      if (isEmpty(row)) this.#outbox.delete(rowName(one))
      else this.#outbox.set(rowName(one), { ...one, row })
    }
    const machines = rows.flatMap(({ subject: { key } }) => nodeOfKey(key) ?? [])
    for (const name of new Set(['network', ...machines.map((node) => nameOf('machine', node))])) {
      const lease = this.#leases.get(name)
      if (lease) this.#leases.set(name, { ...lease, writes: lease.writes + handOverWrites })
    }
    return true
  }

  leave(node: string, process: string, now: number): void {
    for (const [name, lease] of this.#leases)
      if (lease.process === process && lease.leftAt === undefined) this.#leases.set(name, { ...lease, leftAt: now })
    const row = this.#nodes.get(node)
    if (row?.process === process) this.#nodes.set(node, { ...row, leftAt: now })
  }

  /** Removes a node that is not live. False: there is no such node. */
  forget(node: string, now: number): boolean {
    const row = this.rows(now).find((one) => one.node === node)
    if (!row || row.isLive) return false
    const watchedUntil = this.#nodes.get(node)?.renewedAt ?? now
    const isOf = (key: string): boolean => nodeOfKey(key) === node
    this.#nodes.delete(node)
    for (const [process, one] of this.#handedOver) if (one.node === node) this.#handedOver.delete(process)
    this.#leases.delete(nameOf('machine', node))
    for (const [name, { row: of }] of this.#states) if (isOf(of.key)) this.#states.delete(name)
    for (const [name, { subject }] of this.#outbox) if (isOf(subject.key)) this.#outbox.delete(name)
    for (const [id, one] of this.#incidents) {
      if (!isOf(one.key) || one.endedAt !== undefined) continue
      this.#incidents.set(id, { ...one, endedAt: Math.max(one.beganAt, watchedUntil), ending: 'unknown' })
    }
    return true
  }

  /** The stored data of all monitors. */
  get stored(): Stored {
    const incidents = [...this.#incidents.values()].filter(({ endedAt }) => endedAt === undefined)
    return { ageMs: undefined, states: [...this.#states.values()], incidents, outbox: [...this.#outbox.values()] }
  }

  /** Everything as it is now, for a failover that goes back to it. */
  snapshot(): () => void {
    const [leases, nodes, handedOver] = [new Map(this.#leases), new Map(this.#nodes), new Map(this.#handedOver)]
    const [states, incidents, outbox] = [new Map(this.#states), new Map(this.#incidents), new Map(this.#outbox)]
    return () => {
      this.#leases = leases
      this.#nodes = nodes
      this.#handedOver = handedOver
      this.#states = states
      this.#incidents = incidents
      this.#outbox = outbox
    }
  }

  /** A shard that refuses keeps none of the others from counting the attempt. */
  #fenced(fences: readonly Fence[]): Fenced {
    const refused: Shard[] = []
    for (const { shard, node, process, epoch, acknowledged, number } of fences) {
      const name = nameOf(shard, node)
      const row = this.#leases.get(name)
      const isOwn = row?.process === process && row.epoch === epoch && row.leftAt === undefined
      if (!isOwn || row.writes < acknowledged || row.writes >= number) refused.push(shard)
      else this.#leases.set(name, { ...row, writes: number })
    }
    return refused.length > 0 ? { refused } : 'stored'
  }
}

const nothing = { ends: [] }

const rowName = ({ receiver, subject }: StoredRow): string => `${receiver} ${subjectId(subject)}`
