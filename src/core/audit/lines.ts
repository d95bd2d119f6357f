import { isObject, type JsonObject } from '../json.ts'
import { type ChainEntry, type Seal, sealedFields } from './chain.ts'
import { ChainCheck, type ChainOptions, type ChainVerdict } from './verify.ts'
import { type ChainSource, sealsWithEntries } from './verify-store.ts'

/**
 * The audit log as JSON lines, in an export and in the stream of `svc serve`: a line for each entry, with its `id`, and
 * a line for each seal, with its number as `seal`, after the entries that it lists. Times are in ISO 8601.
 */

const iso = (at: number): string => new Date(at).toISOString()

export function entryLine({ id, at, ...entry }: ChainEntry): string {
  const rest = sealedFields.flatMap((name) => (name === 'at' ? [] : [[name, entry[name]]]))
  return JSON.stringify({ id, at: iso(at), ...Object.fromEntries(rest) })
}

/** `previous`: the hash of the previous seal, with which this one can be verified alone. */
export const sealLine = (seal: Seal, previous: string | undefined): string =>
  JSON.stringify({
    seal: seal.number,
    at: iso(seal.at),
    changes: seal.changes.split('\n').slice(0, -1),
    refusals: seal.refusals?.split('\n').slice(0, -1),
    refusalsDigest: seal.refusalsDigest,
    refusalsUntil: seal.refusalsUntil === undefined ? undefined : iso(seal.refusalsUntil),
    previous,
    hash: seal.hash,
  })

/** The first line of an export. Its chain begins with seal 1, and every entry in it is sealed. */
const exportLine = (store: string, at: number): string =>
  JSON.stringify({ svc: 'audit export', format: 1, store, at: iso(at) })

/** The complete audit log of a store, as far as it is sealed. Throws the store's errors. */
export async function* exportLines(
  source: ChainSource,
  { store, now }: { readonly store: string; readonly now: number },
): AsyncIterable<string> {
  yield exportLine(store, now)
  let previous: string | undefined
  for await (const { seal, entries } of sealsWithEntries(source)) {
    for (const entry of entries) yield entryLine(entry)
    yield sealLine(seal, previous)
    previous = seal.hash
  }
}

/** How many of the latest seals are kept, to recognize their repetition in a stream. */
const maxRepeated = 100_000

/**
 * Verifies an export, or a stream of `svc serve`, without a store. Rejects with SyntaxError, whose message names the
 * line, for anything else.
 */
export async function verifyLines(
  lines: AsyncIterable<string>,
  options: Omit<ChainOptions, 'startsLater'>,
): Promise<ChainVerdict> {
  const entries = new Map<number, ChainEntry[]>()
  const hashes = new Map<number, string>()
  let check: ChainCheck | undefined
  let isExport = false
  let number = 0
  for await (const line of lines) {
    number += 1
    if (line === '') continue
    const value = parsedLine(line)
    if (value === undefined) {
      // A full disk leaves the beginning of a line in a stream. The seal of a missing entry reveals it.
      if (isExport || check === undefined) throw new SyntaxError(`line ${number} is not a JSON object`)
      continue
    }
    if (number === 1 && value['svc'] === 'audit export') {
      if (value['format'] !== 1) throw new SyntaxError('this is an export of a newer svc')
      isExport = true
      continue
    }
    check ??= new ChainCheck({ ...options, startsLater: !isExport })
    if (value['svc'] === 'audit stream') continue
    if (!('seal' in value)) {
      const entry = entryIn(value, number)
      if (check.isListed(entry.id) && !isExport) continue
      entries.set(entry.id, [...(entries.get(entry.id) ?? []), entry])
      continue
    }
    const { seal, previous } = sealIn(value, number)
    // After a restart, a stream repeats what svc was writing when it stopped.
    if (!isExport && hashes.get(seal.number) === seal.hash) continue
    hashes.set(seal.number, seal.hash)
    if (hashes.size > maxRepeated) hashes.delete(hashes.keys().next().value ?? 0)
    check.add(seal, (id) => entries.get(id) ?? [], previous)
    for (const id of entries.keys()) if (check.isListed(id)) entries.delete(id)
  }
  if (check === undefined || check.last === 0) throw new SyntaxError('it has no seal')
  if (isExport) for (const id of entries.keys()) check.addUnlisted({ id, seal: undefined })
  return check.end(isExport ? 0 : entries.size)
}

function parsedLine(line: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0
const timeIn = (value: unknown): number => (isText(value) ? Date.parse(value) : Number.NaN)
const isList = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(isText)

/** An entry. svc writes only text into its members, except for `id`: a line with other types is not from svc. */
function entryIn(value: JsonObject, number: number): ChainEntry {
  const at = timeIn(value['at'])
  const texts = sealedFields.filter((name) => name !== 'at')
  const isEntry = isCount(value['id']) && texts.every((name) => value[name] === undefined || isText(value[name]))
  if (!isEntry || Number.isNaN(at)) throw new SyntaxError(`line ${number} is neither an entry of the audit nor a seal`)
  return { ...Object.fromEntries(texts.map((name) => [name, value[name]])), id: value['id'], at } as ChainEntry
}

function sealIn(value: JsonObject, number: number): { readonly seal: Seal; readonly previous: string | undefined } {
  const { seal, changes, refusals, refusalsDigest, refusalsUntil, previous, hash } = value
  const [at, until] = [timeIn(value['at']), timeIn(refusalsUntil)]
  const isWhole =
    isCount(seal) &&
    isList(changes) &&
    (refusals === undefined || isList(refusals)) &&
    isText(refusalsDigest) &&
    isText(hash) &&
    (previous === undefined || isText(previous)) &&
    !Number.isNaN(at)
  if (!isWhole) throw new SyntaxError(`line ${number} is not a whole seal`)
  const listText = (list: readonly string[]): string => list.map((line) => `${line}\n`).join('')
  return {
    seal: {
      number: seal,
      at,
      changes: listText(changes),
      refusals: refusals && listText(refusals as readonly string[]),
      refusalsDigest,
      refusalsUntil: Number.isNaN(until) ? undefined : until,
      hash,
    },
    previous: previous as string | undefined,
  }
}
