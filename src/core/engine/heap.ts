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
    const place = this.#places.get(entry) ?? this.#entries.length
    this.#set(place, entry)
    this.#settle(place, entry)
  }

  /** Does nothing if the entry is not here. */
  delete(entry: T): void {
    const place = this.#places.get(entry)
    if (place === undefined) return
    this.#places.delete(entry)
    const last = this.#entries.pop()
    if (last === undefined || last === entry) return
    this.#set(place, last)
    this.#settle(place, last)
  }

  #set(place: number, entry: T): void {
    this.#entries[place] = entry
    this.#places.set(entry, place)
  }

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
