import { type ConfiguredFiles, isOnShare } from '../files/index.ts'
import type { AccountFiles } from '../own-files.ts'
import { untrustedPlaces, wayAlong } from '../own-files.ts'
import { ProbeError } from '../probe-error.ts'

/** The `exec` settings of the system's svc.yaml. */
export type ExecConfig = {
  /** Folders whose programs may be run. Empty: `exec` is off. */
  readonly allow: readonly string[]
  /** Why it is off, as a sentence without a full stop. */
  readonly off?: string | undefined
}

/**
 * The real path of a program that may run: it lies in an allowed folder, and only root and this account can change it
 * or its parent folders. Otherwise throws ProbeError `data` with the reason.
 */
export async function admitted(command: string, exec: ExecConfig | undefined, files: ConfiguredFiles): Promise<string> {
  const paths = await import('node:path')
  if (!paths.isAbsolute(command)) throw refused(`${command} is not an absolute path`)
  if (!exec || exec.allow.length === 0) {
    throw refused(`exec is off: ${exec?.off ?? "only the system's svc.yaml can turn it on"}`)
  }
  const real = await files('realPath', { path: command }).catch((error: unknown) => {
    throw refused(`${command} ${missing(error) ? 'does not exist' : 'cannot be accessed'}`)
  })
  // The target of a link is what runs, so the target must be in an allowed folder.
  const folder = await folderOf(real, exec.allow, files)
  if (folder === undefined) {
    const leads = real === command ? '' : ` leads to ${real}, which`
    throw refused(`${command}${leads} is in no folder that the system's svc.yaml allows: ${exec.allow.join(', ')}`)
  }
  // Anyone who can write to the program, its folder or a parent up to the allowed folder could choose the program.
  const { places } = await wayAlong(real, (path) => files('place', { path }))
  if (!(await files('status', { path: real })).isFile) throw refused(`${command} is not a program`)
  const within = places.filter(
    ({ path }) => path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`),
  )
  const [first] = untrustedPlaces(within, { uid: process.geteuid?.(), accounts: everyGroupShared })
  if (first) throw refused(`${first.reason}: not run`)
  return real
}

/** A program runs with the rights of svc, so that no group may write it. */
const everyGroupShared: AccountFiles = { passwd: () => '', group: () => '' }

/**
 * The allowed folder that a path is in. Folders on shares come last, so that a local program does not wait for them.
 */
async function folderOf(path: string, allowed: readonly string[], files: ConfiguredFiles): Promise<string | undefined> {
  for (const folder of allowed.toSorted((a, b) => Number(isOnShare(a)) - Number(isOnShare(b)))) {
    const real = await files('realPath', { path: folder }).catch(() => undefined)
    if (real !== undefined && path.startsWith(real.endsWith('/') ? real : `${real}/`)) return real
  }
  return undefined
}

const missing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'
const refused = (why: string): ProbeError => new ProbeError('data', why)
