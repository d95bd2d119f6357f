import { randomBytes, hash as sha } from 'node:crypto'
import { isObject, type JsonObject } from '../../base/json.ts'
import { type ChainEntry, entryHash, readList, type Seal, sealedFields } from './chain.ts'
import { entryLine, exportLine, noteLine, sealLine, withdrawalLine } from './lines.ts'
import { ChainCheck, type ChainOptions, type ChainVerdict } from './verify.ts'

/** A longer line is not from svc. A seal lists at most 1,000 entries with 70 characters each. */
const maxLineBytes = 16 * 1024 ** 2

/**
 * Verifies an export, or a stream of `svc serve`, without a store. A line counts only if svc would write the same bytes for
 * it. A stream may repeat lines, contain torn ones, and begin with any seal. Rejects with SyntaxError for a file that is
 * neither intact nor broken: one without a seal, of the other kind, or of a newer svc.
 */
export async function verifyLines(
  chunks: AsyncIterable<Uint8Array>,
  file: 'export' | 'stream',
  options: Omit<ChainOptions, 'startsLater'>,
): Promise<ChainVerdict> {
  const check = new LineCheck(file === 'export', options)
  for await (const line of linesIn(chunks)) if (!check.add(line)) break
  return check.end()
}

/** The lines without their line feed. What is longer than a line of svc can be arrives in pieces. */
async function* linesIn(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Buffer> {
  let rest: Buffer[] = []
  let size = 0
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      yield Buffer.concat([...rest, chunk.subarray(from, end)])
      rest = []
      size = 0
      from = end + 1
    }
    rest.push(Buffer.from(chunk.subarray(from)))
    size += chunk.length - from
    if (size <= maxLineBytes) continue
    yield Buffer.concat(rest)
    rest = []
    size = 0
  }
  if (size > 0) yield Buffer.concat(rest)
}

class LineCheck {
  readonly #isExport: boolean
  readonly #check: ChainCheck
  /** Entries that no seal has listed so far, and the withdrawn ones among them. */
  readonly #entries = new Map<number, ChainEntry[]>()
  readonly #withdrawn = new Map<number, ChainEntry[]>()
  /** The line of each id and each seal. */
  readonly #written = { entry: new Map<number, number>(), seal: new Map<number, number>() }
  readonly #digestKey = randomBytes(16)
  readonly #counts = { repeated: 0, torn: 0, withdrawn: 0 }
  #number = 0

  constructor(isExport: boolean, options: Omit<ChainOptions, 'startsLater'>) {
    this.#isExport = isExport
    this.#check = new ChainCheck({ ...options, startsLater: !isExport })
  }

  /** Whether the next line has to be read, too. */
  add(line: Buffer): boolean {
    this.#number += 1
    const text = line.toString()
    const value = objectIn(text)
    if (this.#number === 1 && this.#isExport) return this.#addHeader(line, value)
    if (this.#number === 1 && value?.['svc'] === 'audit export') {
      throw new SyntaxError('it is an export, which svc audit verify --export verifies')
    }
    if (value) this.#addValue(line, value)
    // After an attempt that failed, a stream goes on with a line of its own.
    else if (!this.#isExport && text === '') return true
    else if (!this.#isExport && isTorn(text)) this.#counts.torn += 1
    else this.#report('insertion', 'is not a line that svc writes')
    return true
  }

  #addHeader(line: Buffer, value: JsonObject | undefined): boolean {
    const isHeader = value?.['svc'] === 'audit export'
    if (!isHeader) {
      const stream = 'it was removed, or this is a stream, which svc audit verify --stream FILE verifies'
      this.#report('cut', `is not the header of an export: ${stream}`)
      return false
    }
    const { format, store } = value
    if (isCount(format) && format > 1) throw new SyntaxError('this is an export of a newer svc')
    const at = timeIn(value['at'])
    this.#compare(line, isText(store) && isTime(at) ? exportLine(store, at) : undefined)
    return true
  }

  #addValue(line: Buffer, value: JsonObject): void {
    const at = timeIn(value['at'])
    const { svc, id, hash } = value
    const entry = entryIn(value)
    const sealed = sealIn(value)
    if (sealed) this.#addSeal(line, sealed)
    else if (entry) this.#addEntry(line, entry)
    else if (!this.#isExport && svc === 'audit stream' && isTime(at)) this.#compare(line, noteLine(at))
    else if (!this.#isExport && svc === 'audit withdrawn' && isCount(id) && isText(hash)) {
      if (this.#compare(line, withdrawalLine(id, hash))) this.#withdraw(id, hash)
    } else this.#report('insertion', 'is neither an entry of the audit nor a seal')
  }

  #addEntry(line: Buffer, entry: ChainEntry): void {
    const { id } = entry
    this.#compare(line, entryLine(entry))
    const state = this.#compareEarlier('entry', id, line)
    if (state === 'same' && !this.#isExport) {
      this.#counts.repeated += 1
      return
    }
    if (state !== 'new') this.#report('insertion', `is a second line with the id ${id}`)
    if (state === 'new' || !this.#check.isListed(id)) add(this.#entries, id, entry)
  }

  #addSeal(line: Buffer, { seal, stated }: Sealed): void {
    const { last } = this.#check
    const isNext = last !== undefined && last.number === seal.number - 1
    this.#compare(line, sealLine(seal, seal.number === 1 ? undefined : isNext ? last.hash : stated))
    if (this.#compareEarlier('seal', seal.number, line) === 'same' && !this.#isExport) {
      this.#counts.repeated += 1
      return
    }
    const entriesOf = (id: number) => [...(this.#entries.get(id) ?? []), ...(this.#withdrawn.get(id) ?? [])]
    this.#check.add(seal, entriesOf, stated)
    for (const waiting of [this.#entries, this.#withdrawn]) {
      for (const id of waiting.keys()) if (this.#check.isListed(id)) waiting.delete(id)
    }
  }

  #withdraw(id: number, hash: string): void {
    const entries = this.#entries.get(id) ?? []
    const entry = entries.find((one) => entryHash(one) === hash)
    if (!entry) return
    this.#counts.withdrawn += 1
    this.#written.entry.delete(id)
    add(this.#withdrawn, id, entry)
    this.#entries.set(
      id,
      entries.filter((one) => one !== entry),
    )
    if (entries.length === 1) this.#entries.delete(id)
  }

  /** Whether a line with this number was there before. A keyed digest of 48 bits: nobody can make another line with it. */
  #compareEarlier(what: 'entry' | 'seal', number: number, line: Buffer): 'new' | 'same' | 'other' {
    const digest = Number.parseInt(sha('sha256', Buffer.concat([this.#digestKey, line]), 'hex').slice(0, 12), 16)
    const written = this.#written[what].get(number)
    if (written === undefined) this.#written[what].set(number, digest)
    return written === undefined ? 'new' : written === digest ? 'same' : 'other'
  }

  /** Whether a line has the bytes that svc writes for what it says. Undefined: svc writes none. */
  #compare(line: Buffer, expected: string | undefined): boolean {
    const isEqual = expected !== undefined && Buffer.from(expected).equals(line)
    if (!isEqual) this.#report('edit', 'differs from what svc writes for its content')
    return isEqual
  }

  #report(kind: 'edit' | 'insertion' | 'cut', what: string): void {
    this.#check.addLineProblem(kind, `line ${this.#number} ${what}`)
  }

  end(): ChainVerdict {
    if (this.#number === 0 && this.#isExport) this.#check.addLineProblem('cut', 'the file is empty')
    if (this.#isExport) for (const id of this.#entries.keys()) this.#check.addUnlisted({ id, seal: undefined })
    const verdict = { ...this.#check.end(this.#isExport ? 0 : this.#entries.size), ...this.#counts }
    if (verdict.seals === 0 && !(this.#isExport && verdict.problems.length > 0)) throw new SyntaxError('it has no seal')
    return verdict
  }
}

function add(entries: Map<number, ChainEntry[]>, id: number, entry: ChainEntry): void {
  entries.set(id, [...(entries.get(id) ?? []), entry])
}

function objectIn(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** How lines of a stream begin. A full disk, or a process that was killed, leaves the beginning of one. */
const beginnings = ['{"id":', '{"seal":', '{"svc":']
const isTorn = (text: string): boolean => beginnings.some((one) => text.startsWith(one) || one.startsWith(text))

const isText = (value: unknown): value is string => typeof value === 'string'
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0
const timeIn = (value: unknown): number => (isText(value) ? Date.parse(value) : Number.NaN)
const isTime = (at: number): boolean => !Number.isNaN(at)
const isList = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(isText)

/** The entries of some lines that no seal among them lists. Cut lines and all others are left out. */
export function unsealedIn(text: string): readonly ChainEntry[] {
  const entries = new Map<string, ChainEntry>()
  for (const line of text.split('\n')) {
    const value = objectIn(line)
    const entry = value && entryIn(value)
    if (entry) entries.set(`${entry.id} ${entryHash(entry)}`, entry)
    const seal = value && sealIn(value)?.seal
    for (const { id, hash } of (seal && readList(seal.changes + (seal.refusals ?? ''))) ?? []) {
      entries.delete(`${id} ${hash}`)
    }
  }
  return [...entries.values()]
}

const texts = sealedFields.filter((name) => name !== 'at')

function entryIn(value: JsonObject): ChainEntry | undefined {
  const at = timeIn(value['at'])
  const isEntry = isCount(value['id']) && texts.every((name) => value[name] === undefined || isText(value[name]))
  if (!isEntry || !isTime(at) || !isText(value['event'])) return undefined
  return { ...Object.fromEntries(texts.map((name) => [name, value[name]])), id: value['id'], at } as ChainEntry
}

/** `stated`: the hash of the previous seal, as the line has it. */
type Sealed = { readonly seal: Seal; readonly stated: string | undefined }

function sealIn(value: JsonObject): Sealed | undefined {
  const { seal, changes, refusals, refusalsDigest, refusalsUntil, previous, hash } = value
  const [at, until] = [timeIn(value['at']), timeIn(refusalsUntil)]
  const isWhole =
    isCount(seal) &&
    isList(changes) &&
    (refusals === undefined || isList(refusals)) &&
    isText(refusalsDigest) &&
    isText(hash) &&
    (previous === undefined || isText(previous)) &&
    isTime(at)
  if (!isWhole) return undefined
  const listText = (list: readonly string[]): string => list.map((line) => `${line}\n`).join('')
  return {
    seal: {
      number: seal,
      at,
      changes: listText(changes),
      refusals: refusals && listText(refusals as readonly string[]),
      refusalsDigest,
      refusalsUntil: isTime(until) ? until : undefined,
      hash,
    },
    stated: previous as string | undefined,
  }
}
