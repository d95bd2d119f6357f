import { dirname, posix, win32 } from 'node:path'
import { Fault } from '../base/errors.ts'
import { fileProblem } from '../base/file-errors.ts'
import { type ConfiguredFiles, type FileContent, type FileStatus, SilentShareError } from '../base/files/index.ts'
import { entryOf } from '../base/lazy.ts'
import { type PathPlace, quoted, type UntrustedPlace, untrustedPlaces, type Way, wayAlong } from '../base/own-files.ts'

export type WhereOptions = {
  /** `--config`. */
  readonly path?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  /** The user's home folder. */
  readonly home: string
  /** The system's folder, if it is not that of the platform. */
  readonly systemFolder?: string | undefined
}

export type ConfigCandidate = {
  readonly path: string
  /** The source of the path. Only the files of the user and of the system may be missing. */
  readonly from: '--config' | 'SVC_CONFIG' | 'user' | 'system' | 'include' | '--fleet'
}

const fileName = 'svc.yaml'

/**
 * The possible places of svc.yaml; the first that exists wins. The working directory is never among them: a cloned
 * repository must not choose what runs or where secrets go. Throws Fault `Usage` for a flag or variable that is set but
 * empty: a missing CI secret must not count as "not given".
 *
 * @example
 * ```ts
 * candidates({ env: { SVC_HOME: '/srv/svc' }, platform: 'linux', home: '/root' })[0] // { path: '/srv/svc/svc.yaml', from: 'user' }
 * ```
 */
export function candidates(options: WhereOptions): readonly ConfigCandidate[] {
  const { env, platform, home } = options
  const paths = platform === 'win32' ? win32 : posix
  if (options.path !== undefined) return [{ path: paths.resolve(required(options.path, '--config')), from: '--config' }]
  const path = env['SVC_CONFIG']
  if (path !== undefined) return [{ path: paths.resolve(required(path, 'SVC_CONFIG')), from: 'SVC_CONFIG' }]
  const svcHome = env['SVC_HOME']
  const user = svcHome === undefined ? userFolder(env, platform, home) : paths.resolve(required(svcHome, 'SVC_HOME'))
  return [
    { path: paths.join(user, fileName), from: 'user' },
    { path: systemConfig(options), from: 'system' },
  ]
}

/** The svc.yaml of the whole machine. */
export function systemConfig({ env, platform, systemFolder }: WhereOptions): string {
  const paths = platform === 'win32' ? win32 : posix
  const usual = platform === 'win32' ? win32.join(variable(env, 'ProgramData') ?? 'C:\\ProgramData', 'svc') : '/etc/svc'
  return paths.join(systemFolder ?? usual, fileName)
}

function userFolder(env: WhereOptions['env'], platform: NodeJS.Platform, home: string): string {
  if (platform === 'win32') return win32.join(variable(env, 'APPDATA') ?? win32.join(home, 'AppData', 'Roaming'), 'svc')
  if (platform === 'darwin') return posix.join(home, 'Library', 'Application Support', 'svc')
  const xdg = env['XDG_CONFIG_HOME']
  // The XDG specification: an empty or relative one is ignored.
  return posix.join(xdg !== undefined && posix.isAbsolute(xdg) ? xdg : posix.join(home, '.config'), 'svc')
}

function required(value: string, name: string): string {
  if (value.trim() !== '') return value
  const hint = name.startsWith('--') ? `Give ${name} a path, or leave it out.` : `Give ${name} a path, or unset it.`
  throw new Fault('Usage', `${name} is set but empty`, { hints: [hint] })
}

/** Looks up a variable in any letter case, as Windows does. A copy of the environment is case-sensitive. */
function variable(env: WhereOptions['env'], name: string): string | undefined {
  const key = Object.keys(env).find((candidate) => candidate.toLowerCase() === name.toLowerCase())
  return (key === undefined ? undefined : env[key]) || undefined
}

/** MiB. Handwritten files are far smaller, and parsing more would waste memory. A list of 10,000 servers may have one. */
const maxMebibytes = (from: ConfigCandidate['from']): number => (from === '--fleet' ? 8 : 1)

/**
 * The text of the file, or undefined when it does not exist. Throws Fault `Local` when it cannot be read, is not a
 * UTF-8 file of at most 1 MiB, or could have been written by another account.
 */
export async function readFile(candidate: ConfigCandidate, trust: ConfigTrust): Promise<string | undefined> {
  const { path } = candidate
  try {
    const file = await opened(candidate, trust.files)
    if (!file) return undefined
    await trust.demandFile(path, file.status)
    return decode(path, Buffer.from(file.content, 'base64'))
  } catch (error) {
    if (!(error instanceof SilentShareError)) throw error
    throw local(`${path} cannot be read: ${error.message}`, ['Check the mount.'], error)
  }
}

async function opened({ path, from }: ConfigCandidate, files: ConfiguredFiles): Promise<FileContent | undefined> {
  try {
    return await files('read', { path, maxBytes: maxMebibytes(from) * 1024 * 1024 })
  } catch (error) {
    if (error instanceof SilentShareError) throw error
    const code = (error as NodeJS.ErrnoException).code
    const missing = code === 'ENOENT' || code === 'ENOTDIR'
    if (missing) await refuseIfPresent(path, files)
    if (missing && (from === 'user' || from === 'system')) return undefined
    if (missing) throw local(`${from} names ${path}, which does not exist`, [`Correct ${from}, or create the file.`])
    if (code === 'EACCES') throw local(`${path} is not readable for this account`, [`chmod u+r ${quoted(path)}`])
    if (code === 'EFTYPE') throw local(`${path} is not a regular file`, ['Name a regular file.'])
    if (code === 'EFBIG') throw local(`${path} is larger than ${maxMebibytes(from)} MiB`, ['Is it the right file?'])
    throw local(`${path} ${fileProblem(error)}`, ['Check the file.'], error)
  }
}

/**
 * Throws Local for a name that exists although nothing can be read under it: the configuration is lost, and what svc
 * checks without one would pass.
 */
async function refuseIfPresent(path: string, files: ConfiguredFiles): Promise<void> {
  for (const name of [path, dirname(path)]) {
    const status = await files('status', { path: name, link: true }).catch(() => undefined)
    if (status?.isLink && (await files('status', { path: name }).catch(() => undefined)) === undefined) {
      throw local(`${name} is a link to a file that does not exist`, ['Correct the link, or remove it.'])
    }
    if (name !== path && status?.isFile) throw local(`${name} is a file and not a folder`, ['Rename or remove it.'])
  }
}

/** A warning for a `svc.yml` in place of the svc.yaml that is missing: svc does not read it. */
export async function misnamedFile({ path }: ConfigCandidate, files: ConfiguredFiles): Promise<string | undefined> {
  const misnamed = path.replace(/\.yaml$/, '.yml')
  if (misnamed === path) return undefined
  const there = await files('status', { path: misnamed, link: true }).catch(() => undefined)
  return there && `${misnamed} is not read: rename it to ${fileName}`
}

function decode(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw local(`${path} is not UTF-8 text`, ['Save it as UTF-8.'])
  }
}

const local = (message: string, hints: readonly string[], cause?: unknown): Fault =>
  new Fault('Local', message, { hints, cause })

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
