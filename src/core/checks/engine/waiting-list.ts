import { entryOf } from '../../base/lazy.ts'
/** Whose slots a run takes. Those that callers wait for and those of a schedule do not wait for each other's lane. */
export type SlotLane = 'callers' | 'schedule'

/** Slots of which there are only so many. Equal names and scopes are the same slots. */
export type SlotKey =
  | { readonly scope: 'lane'; readonly name: SlotLane }
  | { readonly scope: 'host' | 'database'; readonly name: string }

/** An entry that waits for slots of its lane, and of its host and database if it has them. */
export type SlotWaiter = {
  readonly lane: SlotKey
  readonly host: SlotKey | undefined
  readonly database: SlotKey | undefined
  /** The lowest comes first. */
  readonly priority: number
  /** Increases with each arrival. */
  readonly arrival: number
}

/** The entries that wait for the same slots: only the first entry can be next. */
type Queue<W extends SlotWaiter> = {
  readonly group: Group<W>
  readonly database: SlotKey | undefined
  readonly entries: Heap<W>
}
/** The queues of one host in one lane. `free` contains those whose database is free. */
type Group<W extends SlotWaiter> = {
  readonly lane: Lane<W>
  readonly host: SlotKey | undefined
  readonly queues: Map<string | undefined, Queue<W>>
  readonly free: Heap<Queue<W>>
}
/** The groups of one lane. `free` contains those whose host is free, and which have a free queue. */
type Lane<W extends SlotWaiter> = {
  readonly key: SlotKey
  readonly groups: Map<string | undefined, Group<W>>
  readonly free: Heap<Group<W>>
}

/**
 * Finds the first, by priority and arrival, whose slots are all free. All operations take O(log n) for a database of one
 * host: what is blocked is in no heap, and is not looked at until a slot of its host or database becomes free.
 */
export class WaitingList<W extends SlotWaiter> {
  readonly #isFull: (key: SlotKey) => boolean
  readonly #lanes = new Map<string, Lane<W>>()
  readonly #queuesOf = new Map<string, Set<Queue<W>>>()

  constructor(isFull: (key: SlotKey) => boolean) {
    this.#isFull = isFull
  }

  add(entry: W): void {
    const queue = this.#queueOf(entry)
    queue.entries.put(entry)
    this.#placeQueue(queue)
  }

  delete(entry: W): void {
    const queue = this.#queueOf(entry)
    queue.entries.delete(entry)
    this.#placeQueue(queue)
    if (queue.entries.size === 0) this.#forget(queue)
  }

  /** The entry whose turn it is; undefined if each waits for something. */
  next(): W | undefined {
    let next: W | undefined
    for (const { key, free } of this.#lanes.values()) {
      const first = free.first && firstOf(free.first)
      if (first && !this.#isFull(key) && (!next || before(first, next))) next = first
    }
    return next
  }

  /** Must be called when slots have been taken or become free. */
  changed({ scope, name }: SlotKey): void {
    if (scope === 'database') for (const queue of this.#queuesOf.get(name) ?? []) this.#placeQueue(queue)
    if (scope !== 'host') return
    for (const { groups } of this.#lanes.values()) {
      const group = groups.get(name)
      if (group) this.#placeGroup(group)
    }
  }

  #queueOf({ lane: laneKey, host, database }: W): Queue<W> {
    const lane = entryOf(this.#lanes, laneKey.name, () => ({
      key: laneKey,
      groups: new Map(),
      free: heapBy(firstOf<W>),
    }))
    const group = entryOf(lane.groups, host?.name, () => ({ lane, host, queues: new Map(), free: heapBy(headOf<W>) }))
    return entryOf(group.queues, database?.name, () => {
      const made: Queue<W> = { group, database, entries: new Heap<W>(before) }
      if (database) entryOf(this.#queuesOf, database.name, () => new Set()).add(made)
      return made
    })
  }

  #forget(queue: Queue<W>): void {
    const { group, database } = queue
    group.queues.delete(database?.name)
    if (group.queues.size === 0) group.lane.groups.delete(group.host?.name)
    if (!database) return
    const queues = this.#queuesOf.get(database.name)
    queues?.delete(queue)
    if (queues?.size === 0) this.#queuesOf.delete(database.name)
  }

  #placeQueue(queue: Queue<W>): void {
    const { group, database, entries } = queue
    if (entries.size > 0 && !(database && this.#isFull(database))) group.free.put(queue)
    else group.free.delete(queue)
    this.#placeGroup(group)
  }

  #placeGroup(group: Group<W>): void {
    const { lane, host, free } = group
    if (free.size > 0 && !(host && this.#isFull(host))) lane.free.put(group)
    else lane.free.delete(group)
  }
}

const before = (a: SlotWaiter, b: SlotWaiter): boolean =>
  a.priority < b.priority || (a.priority === b.priority && a.arrival < b.arrival)

const headOf = <W extends SlotWaiter>({ entries }: Queue<W>): W | undefined => entries.first
const firstOf = <W extends SlotWaiter>({ free }: Group<W>): W | undefined => free.first && headOf(free.first)

/** A heap of things in the order of their first entries. What is in it has one. */
const heapBy = <T extends object>(first: (of: T) => SlotWaiter | undefined): Heap<T> =>
  new Heap((a, b) => {
    const [one, other] = [first(a), first(b)]
    return one !== undefined && other !== undefined && before(one, other)
  })

/** A heap that finds its entries again: adding, removing and moving one takes O(log n). Entries are distinct objects. */
export class Heap<T extends object> {
  readonly #before: (a: T, b: T) => boolean
  readonly #entries: T[] = []
  readonly #places = new Map<T, number>()

  /** `before` must order all entries. Call `put` again for an entry whose order has changed. */
  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before
  }

  get size(): number {
    return this.#entries.length
  }

  get first(): T | undefined {
    return this.#entries[0]
  }

  /** Adds the entry, or moves it to its new place. */
  put(entry: T): void {
    this.#settle(this.#places.get(entry) ?? this.#entries.length, entry)
  }

  /** Does nothing if the entry is not here. */
  delete(entry: T): void {
    const place = this.#places.get(entry)
    if (place === undefined) return
    this.#places.delete(entry)
    const last = this.#entries.pop()
    if (last === undefined || last === entry) return
    this.#settle(place, last)
  }

  #set(place: number, entry: T): void {
    this.#entries[place] = entry
    this.#places.set(entry, place)
  }

  /** Sets the entry at this place, or as far above or below as its order demands. */
  #settle(place: number, entry: T): void {
    let at = place
    for (;;) {
      const parent = (at - 1) >> 1
      const above = at > 0 ? this.#entries[parent] : undefined
      if (above === undefined || !this.#before(entry, above)) break
      this.#set(at, above)
      at = parent
    }
    for (;;) {
      const [left, right] = [2 * at + 1, 2 * at + 2]
      const child = this.#isBefore(right, left) ? right : left
      const below = this.#entries[child]
      if (below === undefined || !this.#before(below, entry)) break
      this.#set(at, below)
      at = child
    }
    this.#set(at, entry)
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#entries[a], this.#entries[b]]
    return one !== undefined && other !== undefined && this.#before(one, other)
  }
}
