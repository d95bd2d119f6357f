import { localWay, untrustedPlaces } from '../../base/own-files.ts'

export type AccountOfTrust = {
  /** The account whose files are trusted besides root's. Undefined on Windows, where access lists protect a folder. */
  readonly uid: number | undefined
}

/** Why a path is not trusted, and the commands that change that. */
export type Distrust = { readonly reason: string; readonly cures: readonly string[] }

/**
 * Why another account could decide what these paths contain: by each folder from the root to the path, and to what each link
 * on the way names. Undefined if root and this account decide alone.
 */
export function distrustOf(paths: readonly string[], { uid }: AccountOfTrust): Distrust | undefined {
  if (uid === undefined) return undefined
  const ways = paths.map((path) => ({ path, ...localWay(path) }))
  const lost = ways.find(({ end }) => end === undefined)
  if (lost) return { reason: `${lost.path} does not exist`, cures: [] }
  const places = new Map(ways.flatMap((way) => way.places.map((place) => [place.path, place] as const)))
  const untrusted = untrustedPlaces([...places.values()], { uid })
  if (untrusted.length === 0) return undefined
  return { reason: untrusted.map(({ reason }) => reason).join('; '), cures: untrusted.map(({ cure }) => cure) }
}
