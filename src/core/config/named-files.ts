import { resolve } from 'node:path'
import { fileProblem } from '../base/file-errors.ts'
import { type ConfiguredFiles, filesWithin, lookMs, readText, SilentShareError } from '../base/files/index.ts'
import { fileSecret, type NamedFile, secretMistake, willFail } from '../base/settings/index.ts'
import { isMissing } from '../base/system/files.ts'

/** Bytes. A larger file is left to the monitors. */
const maxLooked = 64 * 1_024

/** Where files are read from, and the account that reads them: undefined where accounts have no numbers. */
type Reading = { readonly folder: string; readonly uid: number | undefined }

/**
 * Reads the files that svc.yaml names, as the monitors will. Returns what is wrong with each, in words that follow its name: a file may
 * still come, so that nothing of it is a mistake. Files on a share that does not answer in time are left to the monitors, which wait longer.
 */
export async function warningsOfFiles(
  all: readonly NamedFile[],
  reading: Reading,
): Promise<ReadonlyMap<NamedFile, string>> {
  const files = filesWithin(lookMs)
  const warnings = await Promise.all(
    all.map(async (file) => {
      const warning = await warningOf(file, reading, files).catch((error: unknown) => {
        if (error instanceof SilentShareError) return undefined
        return `${isMissing(error) ? 'which' : 'which svc cannot use, because it'} ${fileProblem(error)}: ${willFail}`
      })
      return warning === undefined ? [] : [[file, warning] as const]
    }),
  )
  return new Map(warnings.flat())
}

async function warningOf(
  { path, content }: NamedFile,
  { folder, uid }: Reading,
  files: ConfiguredFiles,
): Promise<string | undefined> {
  const isSecret = content !== 'certificates' && content !== 'text'
  const whole = isSecret ? resolve(folder, path) : path
  const { uid: owner, bytes, isFile } = await files('status', { path: whole })
  if (isSecret && (await files('exposure', { path: whole })) === 'readable by everyone')
    return `which every account of this machine can read: chmod o= ${path}`
  if (isFile && uid !== undefined && owner !== 0 && owner !== uid)
    return 'which belongs to another account, so that svc has not looked at it'
  if (bytes > maxLooked && !isSecret) return undefined
  const why = await (isSecret
    ? fileSecret(path, { env: {}, folder })
        .reveal(files)
        .then((secret) => secretMistake(secret, content === 'secret' ? undefined : content))
    : content === 'certificates'
      ? withCertificates(path, files)
      : filled(path, files)
  ).catch((error: unknown) => {
    if (error instanceof SilentShareError) throw error
    return `which svc cannot use: ${fileProblem(error)}; ${willFail}`
  })
  return why
}

const withCertificates = async (path: string, files: ConfiguredFiles): Promise<undefined> => {
  const { readCaFile } = await import('../base/net/certificates.ts')
  await readCaFile(path, files)
}

const filled = async (path: string, files: ConfiguredFiles): Promise<string | undefined> =>
  (await readText(files, path, maxLooked)).text.trim() === '' ? `which is empty: ${willFail}` : undefined
