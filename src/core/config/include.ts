import { posix, win32 } from 'node:path'
import { Fault } from '../errors.ts'
import { fileProblem } from '../file-errors.ts'
import { type ConfiguredFiles, problemOnShare, SilentShareError } from '../files/index.ts'
import { type Problem, readSettings, type SettingsContext, type SettingsSpec } from '../settings/index.ts'

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
  readonly files: ConfiguredFiles
}

export type IncludedFiles = {
  /** Each once, in the order of their paths, whatever the order of the patterns. */
  readonly paths: readonly string[]
  readonly problems: readonly Problem[]
  /** Patterns that match nothing. */
  readonly warnings: readonly Problem[]
}

/** Finds the files that `include:` names. Throws Fault `Local` for a folder that cannot be read, and for too many files. */
export async function findIncluded(raw: unknown, context: SettingsContext, where: Where): Promise<IncludedFiles> {
  const { values, problems: mistakes } = readSettings(includeSettings, { include: raw }, context)
  const problems: Problem[] = [...mistakes]
  const warnings: Problem[] = []
  const matched = new Set<string>()
  for (const [index, pattern] of (values.include ?? []).entries()) {
    const at = { path: Array.isArray(raw) ? ['include', index] : ['include'] }
    const { problem, paths } = await matching(pattern, where)
    if (problem !== undefined) problems.push({ ...at, message: problem })
    else if (paths.length === 0) warnings.push({ ...at, message: `matches no file: ${pattern}` })
    for (const path of paths) matched.add(path)
    if (matched.size > maxFiles) throw tooMuch(where.main, `more than ${maxFiles.toLocaleString('en')} files`)
  }
  return { paths: [...matched].sort(), problems, warnings }
}

async function matching(
  pattern: string,
  { main, platform, files }: Where,
): Promise<{ readonly problem?: string; readonly paths: readonly string[] }> {
  const of = platform === 'win32' ? win32 : posix
  const path = of.resolve(of.dirname(main), pattern)
  const [folder, name] = [of.dirname(path), of.basename(path)]
  if (hasWildcard(folder)) return { problem: 'may have `*` and `?` only in the name of the file', paths: [] }
  if (!hasWildcard(name)) return path === main ? { problem: 'is this file itself', paths: [] } : { paths: [path] }
  const { names } = await files('names', { path: folder, pattern: name, most: maxFiles + 1 }).catch(
    (error: unknown) => {
      if (isMissing(error)) return { names: [] }
      const why = error instanceof SilentShareError ? problemOnShare(error) : fileProblem(error)
      throw new Fault('Local', `${folder} ${why}`, { hints: ['Its files are included.'], cause: error })
    },
  )
  return { paths: names.map((one) => of.join(folder, one)).filter((one) => one !== main) }
}

const hasWildcard = (text: string): boolean => /[*?]/.test(text)
const isMissing = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException | null)?.code))

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
