import { posix, win32 } from 'node:path'
import { Fault } from '../base/errors.ts'
import { fileProblem } from '../base/file-errors.ts'
import { problemOnShare, SilentShareError } from '../base/files/index.ts'
import { type Problem, readSettings, type SettingsContext, type SettingsSpec } from '../base/settings/index.ts'
import { type ConfigTrust, isMissing } from './find.ts'

/** The section of svc.yaml that names further files. */
export const includeSettings = {
  include: {
    type: 'texts',
    doc: 'Files with more types and profiles, relative to this file; the name may have `*` for any characters and `?` for one',
  },
} as const satisfies SettingsSpec

/** More are a mistake in a pattern. */
const maxFiles = 10_000
/** Bytes of all included files together, and in words. */
const maxTotal = 32 * 1024 * 1024
const maxTotalText = '32 MiB'

type Where = {
  /** The path of svc.yaml. */
  readonly main: string
  readonly platform: NodeJS.Platform
  readonly trust: Pick<ConfigTrust, 'files' | 'demandFolder'>
  readonly reload?: ReloadedIncludes | undefined
}

/** The state of `include:` that a reload compares with. */
export type ReloadedIncludes = {
  /** The patterns that matched files at the last load, as `IncludedFiles.matched`. */
  readonly matched: readonly string[]
  /** Accepts such a pattern without a file, if its folder is trusted. */
  readonly emptyInclude: boolean
}

export type IncludedFiles = {
  /** Each once, in the order of their paths, whatever the order of the patterns. */
  readonly paths: readonly string[]
  readonly problems: readonly Problem[]
  /** Patterns that match nothing. */
  readonly warnings: readonly Problem[]
  /** The patterns that match files, as absolute paths. */
  readonly matched: readonly string[]
}

/**
 * Finds the files that `include:` names. Throws Fault `Local` for a folder that cannot be read or is not trusted, and for
 * too many files.
 */
export async function findIncluded(raw: unknown, context: SettingsContext, where: Where): Promise<IncludedFiles> {
  const { values, problems: mistakes } = readSettings(includeSettings, { include: raw }, context)
  const problems: Problem[] = [...mistakes]
  const warnings: Problem[] = []
  const includedPaths = new Set<string>()
  const matched: string[] = []
  for (const [index, pattern] of (values.include ?? []).entries()) {
    const at = { path: Array.isArray(raw) ? ['include', index] : ['include'] }
    const { problem, path, paths, isTrusted } = await matching(pattern, where)
    if (problem !== undefined) problems.push({ ...at, message: problem })
    else if (paths.length > 0) matched.push(path)
    else if (!where.reload?.matched.includes(path)) warnings.push({ ...at, message: `matches no file: ${pattern}` })
    else if (!where.reload.emptyInclude || !isTrusted) {
      problems.push({ ...at, message: `matches no file any more: ${pattern} (${isTrusted ? intended : untrusted})` })
    }
    for (const path of paths) includedPaths.add(path)
    if (includedPaths.size > maxFiles) throw tooMuch(where.main, `more than ${maxFiles.toLocaleString('en')} files`)
  }
  return { paths: [...includedPaths].sort(), problems, warnings, matched }
}

const intended = 'if this is intended: svc serve reload --empty-include'
const untrusted = 'its folder is missing or not trusted'

type Match = {
  readonly problem?: string
  /** The pattern as an absolute path. */
  readonly path: string
  readonly paths: readonly string[]
  /** Whether nobody but root and this account controls the folder, or what leads to it. */
  readonly isTrusted: boolean
}

async function matching(pattern: string, { main, platform, trust }: Where): Promise<Match> {
  const of = platform === 'win32' ? win32 : posix
  const path = of.resolve(of.dirname(main), pattern)
  const [folder, name] = [of.dirname(path), of.basename(path)]
  const matched = (paths: readonly string[], isTrusted = true): Match => ({ path, paths, isTrusted })
  const refused = (problem: string): Match => ({ ...matched([]), problem })
  if (hasWildcard(folder)) return refused('may have `*` and `?` only in the name of the file')
  if (!hasWildcard(name)) return path === main ? refused('is this file itself') : matched([path])
  try {
    // Others could not only change files there, but also add some and remove all.
    const isTrusted = await trust.demandFolder(folder)
    const { names } = await trust.files('names', { path: folder, pattern: name, most: maxFiles + 1 })
    const paths = names.map((one) => of.join(folder, one)).filter((one) => one !== main)
    return matched(paths, isTrusted)
  } catch (error) {
    if (error instanceof Fault) throw error
    if (isMissing(error)) return matched([], false)
    const why = error instanceof SilentShareError ? problemOnShare(error) : fileProblem(error)
    throw new Fault('Local', `${folder} ${why}`, { hints: ['Its files are included.'], cause: error })
  }
}

const hasWildcard = (text: string): boolean => /[*?]/.test(text)

/** Reads the files. Throws Fault `Local` like `read`, and for more than 32 MiB in all. */
export async function readAll(
  paths: readonly string[],
  main: string,
  read: (path: string) => Promise<string>,
): Promise<readonly { readonly file: string; readonly text: string }[]> {
  const sources: { readonly file: string; readonly text: string }[] = []
  let total = 0
  for (const file of paths) {
    const text = await read(file)
    total += Buffer.byteLength(text)
    if (total > maxTotal) throw tooMuch(main, `more than ${maxTotalText}`)
    sources.push({ file, text })
  }
  return sources
}

const tooMuch = (main: string, what: string): Fault =>
  new Fault('Local', `${main} includes ${what}`, { hints: ['Does a pattern of include: match other files?'] })
