import { hash } from 'node:crypto'

/**
 * The chain of seals over the audit (S13). A seal covers the entries that were committed since the seal before: it lists them
 * with their hashes, and its own hash covers that list and the hash of the seal before. Nothing here reads a store or a clock.
 */

/** An entry of the audit, with everything that is sealed. `at`: milliseconds since 1970. */
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
 * Refusals are entries that anonymous callers can cause. They are listed apart from changes, because they are deleted after
 * a while, and changes are not.
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
  /** SHA-256 of that list, in hex. It stays. */
  readonly refusalsDigest: string
  /** The time of the newest refusal. Undefined: there is none. */
  readonly refusalsUntil: number | undefined
  /** SHA-256 in hex, over all of the above and the hash of the seal before. */
  readonly hash: string
}

/** The end of a chain. Whoever keeps it elsewhere notices when the chain is cut or made again. */
export type ChainHead = Pick<Seal, 'number' | 'hash'>

export const headText = ({ number, hash: ofSeal }: ChainHead): string => `${number}:${ofSeal}`

/** The head in a text `N:HASH`, or undefined if it is none. */
export function readHead(text: string): ChainHead | undefined {
  const [, number, ofSeal] = /^(\d{1,15}):([0-9a-f]{64})$/i.exec(text.trim()) ?? []
  return number === undefined || ofSeal === undefined || Number(number) < 1
    ? undefined
    : { number: Number(number), hash: ofSeal.toLowerCase() }
}

/** SHA-256 of an entry without its id, in base64url: two entries that have exchanged their contents have exchanged this. */
export const entryHash = (entry: ChainEntry): string =>
  hash('sha256', JSON.stringify(['svc audit entry 1', ...sealedFields.map((name) => entry[name] ?? null)]), 'base64url')

const digestOf = (list: string): string => hash('sha256', list, 'hex')

/** The hash of a seal, from its other members and the hash of the seal before. */
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

/** The entries that a list names. Undefined: it is no list of a seal. */
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
