import {
  type ChainEntry,
  type ChainHead,
  entryHash,
  headText,
  type Listed,
  matchesDigest,
  readList,
  type Seal,
  sealHash,
} from './chain.ts'

/** A problem, at the seal that reveals it. */
export type ChainProblem = {
  readonly seal: number
  readonly kind: 'edit' | 'deletion' | 'swap' | 'insertion' | 'seal' | 'cut'
  /** The description: a sentence without its full stop. */
  readonly sentence: string
}

export type ChainVerdict = {
  /** In the order of the seals. Empty: the chain is intact. */
  readonly problems: readonly ChainProblem[]
  /** Problems beyond those that are listed. */
  readonly more: number
  readonly seals: number
  /** Sealed entries that exist. */
  readonly entries: number
  /** Refusals that were deleted because of their age. */
  readonly pruned: number
  /** Entries that no seal has yet. */
  readonly unsealed: number
  /** The end of the chain. Undefined: there is no seal. */
  readonly head: ChainHead | undefined
  /** The first seal: the chain says nothing about changes before it. */
  readonly began: { readonly number: number; readonly at: number } | undefined
  /** How many of the entries are older than the first seal. */
  readonly entriesBefore: number
  /** Lines of a stream: those that repeat an earlier one, those that are cut off, and entries whose change was refused. */
  readonly repeated: number
  readonly torn: number
  readonly withdrawn: number
  /** Entries of a stream that begins later, which its first seals list and which were written before it. */
  readonly earlier: number
}

/** A node whose clock is a day ahead deletes refusals this much earlier. */
const prunedSlackMs = 86_400_000
/**
 * Milliseconds. An entry with a lower id than entries of an earlier seal is late: its transaction was in progress when
 * that seal was made. No transaction of the store takes this long.
 */
const maxLateMs = 600_000
/**
 * Milliseconds after the first seal of a stream that begins later, in which seals may list entries from before it: an entry
 * is written before its change commits, and is sealed a second later.
 */
const maxEarlierMs = 10_000
/** How many problems are listed. */
const maxProblems = 100
/** How many entries are compared with each other, to recognize swapped contents. */
const maxCompared = 10_000

type Mismatch = Listed & { readonly seal: number; readonly actual: string }

export type ChainOptions = {
  /** Milliseconds since 1970, and how long refusals are kept. They decide which refusals may be absent. */
  readonly now: number
  readonly refusalsKeptMs: number
  /** Whether the chain may begin with any seal, as in a stream. */
  readonly startsLater?: boolean | undefined
  /** A head that was kept elsewhere. */
  readonly head?: ChainHead | undefined
}

/** Verifies a chain, seal by seal in their order. The entries come from a store or a file. */
export class ChainCheck {
  readonly #prunedBefore: number
  readonly #startsLater: boolean
  readonly #problems: ChainProblem[] = []
  readonly #mismatches: Mismatch[] = []
  readonly #listed = new IdSet()
  #moreProblems = 0
  #first: Seal | undefined
  #last: Seal | undefined
  /** The highest id that a seal has listed, and when svc made that seal. */
  #highest = { id: 0, at: 0 }
  #seals = 0
  #entries = 0
  #pruned = 0
  #entriesBefore = 0
  #earlier = 0
  /** The seal that a head names. */
  readonly #head: ChainHead | undefined
  #atHead: Seal | undefined

  constructor({ now, refusalsKeptMs, startsLater = false, head }: ChainOptions) {
    this.#prunedBefore = now - refusalsKeptMs + prunedSlackMs
    this.#startsLater = startsLater
    this.#head = head
  }

  /** The last seal so far. */
  get last(): ChainHead | undefined {
    return this.#last
  }
  get #lastNumber(): number {
    return this.#last?.number ?? 0
  }

  /** Whether a seal lists this entry. */
  isListed(id: number): boolean {
    return this.#listed.has(id)
  }

  /**
   * The next seal. `entriesOf`: the entries with an id; in a file there may be several. `stated`: the hash of the
   * previous seal, as the line of the seal states it; it counts only if the previous seal is not known.
   */
  add(seal: Seal, entriesOf: (id: number) => readonly ChainEntry[], stated?: string): void {
    const { number } = seal
    const previous = this.#last
    this.#first ??= seal
    const expected = previous ? previous.number + 1 : this.#startsLater ? number : 1
    if (number > expected) {
      const missing = number - expected === 1 ? `seal ${expected} is` : `seals ${expected} to ${number - 1} are`
      this.#report('deletion', expected, `${missing} missing`)
    } else if (number < expected) this.#report('seal', number, `seal ${number} is there twice or out of order`)
    // After a gap, only the statement of the line is known about the previous seal.
    const before = number === expected && previous ? previous.hash : number === 1 ? undefined : stated
    const isKnown = number === 1 || before !== undefined
    if (isKnown && sealHash(seal, before) !== seal.hash) {
      this.#report(
        'seal',
        number,
        `seal ${number} does not match its hash: it or the hash of the seal before was changed`,
      )
    }
    if (!matchesDigest(seal)) this.#report('seal', number, `the refusals that seal ${number} lists were changed`)
    this.#addEntries(seal, entriesOf)
    if (number === this.#head?.number) this.#atHead = seal
    this.#last = seal
    this.#seals += 1
  }

  #addEntries(seal: Seal, entriesOf: (id: number) => readonly ChainEntry[]): void {
    const changes = readList(seal.changes)
    const refusals = seal.refusals === undefined ? [] : readList(seal.refusals)
    if (!changes || !refusals) {
      this.#report('seal', seal.number, `seal ${seal.number} has no readable list of its entries`)
      return
    }
    const mayBePruned = seal.refusalsUntil !== undefined && seal.refusalsUntil <= this.#prunedBefore
    if (seal.refusals === undefined && !mayBePruned) {
      this.#report('deletion', seal.number, `the refusals of seal ${seal.number} are missing before their time`)
    }
    for (const listed of changes) this.#addEntry(seal, listed, entriesOf(listed.id), false)
    for (const listed of refusals) this.#addEntry(seal, listed, entriesOf(listed.id), mayBePruned)
    const highest = Math.max(changes.at(-1)?.id ?? 0, refusals.at(-1)?.id ?? 0)
    if (highest > this.#highest.id) this.#highest = { id: highest, at: seal.at }
  }

  #addEntry({ number, at }: Seal, { id, hash }: Listed, entries: readonly ChainEntry[], mayBePruned: boolean): void {
    if (this.#listed.has(id)) this.#report('seal', number, `entry ${id} is in two seals`)
    this.#listed.add(id)
    if (entries.length === 0) {
      if (mayBePruned) this.#pruned += 1
      else if (this.#beganLater && at <= (this.#first?.at ?? at) + maxEarlierMs) this.#earlier += 1
      else this.#report('deletion', number, `entry ${id} is missing`)
      return
    }
    this.#entries += 1
    const hashes = entries.map(entryHash)
    const entry = entries[hashes.indexOf(hash)]
    if (entry === undefined) {
      this.#mismatches.push({ id, hash, seal: number, actual: hashes.at(-1) ?? '' })
      if (this.#mismatches.length > maxCompared) this.#settleMismatches()
      return
    }
    if (entry.at < (this.#first?.at ?? at)) this.#entriesBefore += 1
    const { id: highest, at: sealedAt } = this.#highest
    if (id < highest && entry.at < sealedAt - maxLateMs) {
      this.#report('insertion', number, `entry ${id} was added after later entries were sealed`)
    }
  }

  /** Entries whose contents differ from the sealed ones: swapped or edited. */
  #settleMismatches(): void {
    const owners = new Map(this.#mismatches.map(({ hash, id }) => [hash, id]))
    for (const { id, seal, actual } of this.#mismatches.splice(0)) {
      const owner = owners.get(actual)
      if (owner === undefined) this.#report('edit', seal, `entry ${id} was changed`)
      else this.#report('swap', seal, `entry ${id} has the content of entry ${owner}`)
    }
  }

  /** An entry that no seal lists although it should be in one. `seal`: the number that it claims. */
  addUnlisted({ id, seal }: { readonly id: number; readonly seal: number | undefined }): void {
    if (seal !== undefined && seal > this.#lastNumber) {
      const sentence = `entry ${id} was in seal ${seal}, which is missing: seals were cut from the end`
      this.#report('cut', this.#lastNumber, sentence)
      return
    }
    const where = seal || this.#lastNumber
    const why = seal ? `is not in seal ${seal}, to which it claims to belong` : 'is in no seal: svc did not write it'
    this.#report('insertion', where, `entry ${id} ${why}`)
  }

  get #beganLater(): boolean {
    return this.#startsLater && (this.#first?.number ?? 1) > 1
  }

  /** A line of a file that is wrong by itself. It belongs to the next seal. */
  addLineProblem(kind: ChainProblem['kind'], sentence: string): void {
    this.#report(kind, this.#lastNumber + 1, sentence)
  }

  #report(kind: ChainProblem['kind'], seal: number, sentence: string): void {
    if (this.#problems.length < maxProblems) this.#problems.push({ seal, kind, sentence })
    else this.#moreProblems += 1
  }

  /** `unsealed`: entries that wait for the next seal. */
  end(unsealed: number): ChainVerdict {
    this.#settleMismatches()
    if (this.#head) this.#compareHead(this.#head)
    return {
      problems: this.#problems
        .map((problem) => ({ ...problem, seal: Math.min(problem.seal, this.#lastNumber) }))
        .toSorted((a, b) => a.seal - b.seal),
      more: this.#moreProblems,
      seals: this.#seals,
      entries: this.#entries,
      pruned: this.#pruned,
      unsealed,
      head: this.#last && { number: this.#last.number, hash: this.#last.hash },
      began: this.#first && { number: this.#first.number, at: this.#first.at },
      entriesBefore: this.#entriesBefore,
      repeated: 0,
      torn: 0,
      withdrawn: 0,
      earlier: this.#earlier,
    }
  }

  #compareHead(head: ChainHead): void {
    if (this.#atHead?.hash === head.hash) return
    const last = this.#lastNumber
    if (head.number > last) {
      this.#report(
        'cut',
        last,
        `the chain ends at seal ${last}, and the head ${headText(head)} is missing: its end was cut`,
      )
    } else if (this.#first && head.number < this.#first.number) {
      this.#report('cut', this.#first.number, `the chain begins after the head ${headText(head)}`)
    } else {
      const sentence = `seal ${head.number} is not the one of the head: seals up to it were made again`
      this.#report('cut', head.number, sentence)
    }
  }
}

/** Many ids in little memory: one bit for each, in blocks that exist only where there are ids. */
class IdSet {
  readonly #blocks = new Map<number, Uint8Array>()

  has(id: number): boolean {
    const block = this.#blocks.get(Math.floor(id / bitsPerBlock))
    return block !== undefined && ((block[(id % bitsPerBlock) >> 3] ?? 0) & (1 << (id & 7))) !== 0
  }

  add(id: number): void {
    const key = Math.floor(id / bitsPerBlock)
    const block = this.#blocks.get(key) ?? new Uint8Array(bitsPerBlock / 8)
    this.#blocks.set(key, block)
    const at = (id % bitsPerBlock) >> 3
    // `& 7` is right for every id that a list can have: the low bits of a safe integer.
    block[at] = (block[at] ?? 0) | (1 << (id & 7))
  }
}
const bitsPerBlock = 65_536
