import { type ChainEntry, type Seal, sealedFields } from './chain.ts'
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

/** A line of a stream that says nothing of the audit: it shows that the file can be written. */
export const noteLine = (at: number): string => JSON.stringify({ svc: 'audit stream', at: iso(at) })

/**
 * A line of a stream about an earlier one: the database refused the change of that entry, and may use its id again. The
 * hash is that of the entry. Where a seal lists the entry with this hash all the same, the entry is valid.
 */
export const withdrawalLine = (id: number, hash: string): string => JSON.stringify({ svc: 'audit withdrawn', id, hash })

/** The first line of an export. Its chain begins with seal 1, and every entry in it is sealed. */
export const exportLine = (store: string, at: number): string =>
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
