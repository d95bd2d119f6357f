import { type ChainEntry, readList, type Seal } from './chain.ts'
import { ChainCheck, type ChainOptions, type ChainVerdict } from './verify.ts'

/** A store whose audit log is verified, page by page. A page after the last one is empty. */
export type ChainSource = {
  readonly seals: (after: number) => Promise<readonly Seal[]>
  readonly entries: (ids: readonly number[]) => Promise<readonly ChainEntry[]>
  readonly ids: (after: number) => Promise<readonly { readonly id: number; readonly seal: number | undefined }[]>
}

/** A seal with the entries that it lists and that exist. */
export type SealWithEntries = { readonly seal: Seal; readonly entries: readonly ChainEntry[] }

/** How many entries are in memory at a time, approximately. */
const entriesAtOnce = 2_000

/** The chain of a store, seal by seal. `after`: a number of a seal. */
export async function* sealsWithEntries(source: ChainSource, after = 0): AsyncIterable<SealWithEntries> {
  for (let last = after; ; ) {
    const page = await source.seals(last)
    if (page.length === 0) return
    for (let at = 0; at < page.length; ) {
      const group: { seal: Seal; ids: readonly number[] }[] = []
      for (let size = 0; at < page.length && size < entriesAtOnce; at += 1) {
        const seal = page[at] as Seal
        const ids = [...(readList(seal.changes) ?? []), ...(readList(seal.refusals ?? '') ?? [])].map(({ id }) => id)
        group.push({ seal, ids })
        size += ids.length
      }
      const byId = new Map((await source.entries(group.flatMap(({ ids }) => ids))).map((entry) => [entry.id, entry]))
      for (const { seal, ids } of group) yield { seal, entries: ids.flatMap((id) => byId.get(id) ?? []) }
    }
    last = page.at(-1)?.number ?? last
  }
}

/** How many entries without a seal are remembered while newer seals are read. */
const maxUnlisted = 10_000

/**
 * Verifies the audit log of a store, while others write to it. svc did not write an entry that no seal lists and that
 * does not wait for one. Throws the store's errors, and the reason of the signal.
 */
export async function verifyStore(
  source: ChainSource,
  { signal, ...options }: ChainOptions & { readonly signal?: AbortSignal | undefined },
): Promise<ChainVerdict> {
  const check = new ChainCheck(options)
  const addSeals = async (): Promise<void> => {
    for await (const { seal, entries } of sealsWithEntries(source, check.last?.number)) {
      signal?.throwIfAborted()
      const entryById = new Map(entries.map((entry) => [entry.id, [entry]]))
      check.add(seal, (id) => entryById.get(id) ?? [])
    }
  }
  await addSeals()
  const unlisted: { readonly id: number; readonly seal: number | undefined }[] = []
  let unsealed = 0
  for (let last = 0; ; ) {
    const page = await source.ids(last)
    if (page.length === 0) break
    signal?.throwIfAborted()
    for (const row of page) {
      if (check.isListed(row.id)) continue
      if (row.seal === 0) unsealed += 1
      else if (unlisted.length < maxUnlisted) unlisted.push(row)
    }
    last = page.at(-1)?.id ?? last
  }
  // Some may have been sealed since the first look.
  await addSeals()
  for (const row of unlisted) if (!check.isListed(row.id)) check.addUnlisted(row)
  return check.end(unsealed)
}
