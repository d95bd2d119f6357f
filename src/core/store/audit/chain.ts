import { hash } from 'node:crypto'

/**
 * The chain of seals over the audit log (S13). A seal covers the entries that were committed since the previous seal:
 * it lists them with their hashes, and its own hash covers that list and the hash of the previous seal. Pure.
 */

/** An audit entry, with everything that a seal covers. `at`: milliseconds since 1970. */
export type ChainEntry = {
  readonly id: number
  readonly at: number
  readonly event: string
  readonly who: string
  readonly actorId: string | undefined
  readonly address: string | undefined
  readonly target: string | undefined
  readonly correlationId: string
  readonly before: string | undefined
  readonly after: string | undefined
  readonly reason: string | undefined
}

/** The members of an entry that its hash covers, in this order. */
export const sealedFields = [
  'at',
  'event',
  'who',
  'actorId',
  'address',
  'target',
  'correlationId',
  'before',
  'after',
  'reason',
] as const satisfies readonly (keyof ChainEntry)[]

/**
 * Refusals are entries that anonymous callers can cause. A seal lists them apart from changes, because svc deletes them
 * after a while and keeps changes.
 */
export type Seal = {
  /** The first seal is number 1. */
  readonly number: number
  /** When it was made, in milliseconds since 1970. */
  readonly at: number
  /** A line `id hash` for each change, in the order of the ids. */
  readonly changes: string
  /** The same for refusals. Undefined once they have been deleted. */
  readonly refusals: string | undefined
  /** SHA-256 of that list, in hex. It remains when the list is deleted. */
  readonly refusalsDigest: string
  /** The time of the newest refusal. Undefined: there are none. */
  readonly refusalsUntil: number | undefined
  /** SHA-256 in hex, over all of the above and the hash of the previous seal. */
  readonly hash: string
}

/** The end of a chain. Kept elsewhere, it reveals whether the chain was cut or rebuilt. */
export type ChainHead = Pick<Seal, 'number' | 'hash'>

export const headText = ({ number, hash: ofSeal }: ChainHead): string => `${number}:${ofSeal}`

/** The head from a text `N:HASH`, or undefined for any other text. */
export function readHead(text: string): ChainHead | undefined {
  const [, number, ofSeal] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/i.exec(text.trim()) ?? []
  return number === undefined || ofSeal === undefined
    ? undefined
    : { number: Number(number), hash: ofSeal.toLowerCase() }
}

/**
 * SHA-256 of an entry without its id, in base64url: if the contents of two entries are swapped, so are their hashes.
 */
export const entryHash = (entry: ChainEntry): string =>
  hash('sha256', JSON.stringify(['svc audit entry 1', ...sealedFields.map((name) => entry[name] ?? null)]), 'base64url')

const digestOf = (list: string): string => hash('sha256', list, 'hex')

/** The hash of a seal, from its other members and the hash of the previous seal. */
export const sealHash = (
  { number, at, changes, refusalsDigest, refusalsUntil }: Omit<Seal, 'hash' | 'refusals'>,
  previous: string | undefined,
): string =>
  digestOf(
    JSON.stringify([
      'svc audit seal 1',
      number,
      at,
      previous ?? null,
      digestOf(changes),
      refusalsDigest,
      refusalsUntil ?? null,
    ]),
  )

export const matchesDigest = ({ refusals, refusalsDigest }: Seal): boolean =>
  refusals === undefined || digestOf(refusals) === refusalsDigest

/** The next seal, over at least one entry. */
export function makeSeal(
  head: ChainHead | undefined,
  entries: readonly ChainEntry[],
  { at, isRefusal }: { readonly at: number; readonly isRefusal: (event: string) => boolean },
): Seal {
  const ordered = entries.toSorted((a, b) => a.id - b.id)
  const { true: refused = [], false: changed = [] } = Object.groupBy(ordered, ({ event }) => `${isRefusal(event)}`)
  const refusals = listOf(refused)
  const sealed = {
    number: (head?.number ?? 0) + 1,
    at,
    changes: listOf(changed),
    refusals,
    refusalsDigest: digestOf(refusals),
    refusalsUntil: refused.length === 0 ? undefined : Math.max(...refused.map((entry) => entry.at)),
  }
  return { ...sealed, hash: sealHash(sealed, head?.hash) }
}

const listOf = (entries: readonly ChainEntry[]): string =>
  entries.map((entry) => `${entry.id} ${entryHash(entry)}\n`).join('')

export type Listed = { readonly id: number; readonly hash: string }

/** The entries that a list names. Undefined: it is not a valid list of a seal. */
export function readList(list: string): readonly Listed[] | undefined {
  const lines = list.split('\n')
  if (lines.pop() !== '') return undefined
  const listed: Listed[] = []
  for (const line of lines) {
    const [, id, ofEntry] = /^(\d{1,15}) ([\w-]{43})$/.exec(line) ?? []
    if (ofEntry === undefined) return undefined
    listed.push({ id: Number(id), hash: ofEntry })
  }
  return listed
}
