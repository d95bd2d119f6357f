import { posix } from 'node:path'
import { Fault } from '../errors.ts'
import type { ConfiguredFiles, FileStatus } from '../files/index.ts'
import { entryOf } from '../lazy.ts'
import { type PathPlace, type UntrustedPlace, untrustedPlaces, type Way, wayAlong } from '../trusted-path.ts'

export type TrustOptions = {
  readonly platform: NodeJS.Platform
  /** The numeric id of this account, whose files are trusted besides root's. */
  readonly uid: number | undefined
  readonly files: ConfiguredFiles
}

/** Whose word the configuration is: the checks of one load, which reads each folder once and warns about it once. */
export type ConfigTrust = {
  readonly files: ConfiguredFiles
  /**
   * Throws Fault `Local` for a file that others control, by itself or by its folder. What they control above that is a
   * warning in this version.
   */
  readonly demandFile: (path: string, status: FileStatus) => Promise<void>
  /** The same for a folder whose files a pattern names. Whether nobody but root and this account controls any of the way. */
  readonly demandFolder: (path: string) => Promise<boolean>
  readonly warnings: () => readonly string[]
}

export function configTrust({ platform, uid, files }: TrustOptions): ConfigTrust {
  const placeByPath = new Map<string, Promise<PathPlace | undefined>>()
  const warned = new Map<string, string>()
  const placeAt = (path: string): Promise<PathPlace | undefined> =>
    entryOf(placeByPath, path, () =>
      files('place', { path }).catch((error: unknown) => {
        if (isMissing(error)) return undefined
        throw error
      }),
    )
  // Windows has access lists, which a mode does not show. There the folder's own rights protect the file.
  const wayOf = async (path: string): Promise<Way> =>
    platform === 'win32' ? { places: [], end: path } : await wayAlong(path, placeAt)
  /** `own`: the places that decide by themselves. Others are above them. */
  const demand = (places: readonly PathPlace[], own: ReadonlySet<string | undefined>): boolean => {
    const untrusted = untrustedPlaces(unique(places), { uid })
    const refused = untrusted.filter(({ path }) => own.has(path))
    if (refused.length > 0) throw notTrusted(refused)
    for (const { reason, cure } of untrusted) {
      warned.set(reason, `the way to the configuration is not trusted: ${reason}; the next version refuses it: ${cure}`)
    }
    return untrusted.length === 0
  }
  return {
    files,
    demandFile: async (path, status) => {
      const { places, end } = await wayOf(path)
      if (end === undefined) throw new Fault('Local', `${path} was removed while svc read it`, { hints: [again] })
      // For a link, both its own folder and that of its target decide what is read.
      const folder = (await wayOf(posix.dirname(path))).end
      // The open file, which may have been replaced since.
      const ofFile = places.map((place) => (place.path === end ? { ...place, ...statusOf(status) } : place))
      demand(ofFile, new Set([end, posix.dirname(end), folder]))
    },
    demandFolder: async (path) => {
      const { places, end } = await wayOf(path)
      return demand(places, new Set([end])) && end !== undefined
    },
    warnings: () => [...warned.values()],
  }
}

const again = 'Run the command again.'

const statusOf = ({ mode, uid, gid }: FileStatus): Pick<PathPlace, 'mode' | 'uid' | 'gid'> => ({ mode, uid, gid })

export const isMissing = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException | null)?.code))

/** A way goes through a folder again after a link. */
const unique = (places: readonly PathPlace[]): readonly PathPlace[] => [
  ...new Map(places.map((one) => [one.path, one])).values(),
]

const notTrusted = (places: readonly UntrustedPlace[]): Fault =>
  new Fault('Local', `The configuration is not trusted: ${places.map(({ reason }) => reason).join('; ')}`, {
    hints: [
      'Anyone who can write it controls what svc checks and where it sends passwords.',
      ...places.map(({ cure }) => cure),
    ],
  })
