import type { Stats } from 'node:fs'
import type { ExecConfig } from '../../engine/index.ts'
import { ProbeError } from '../../probe-error.ts'

/**
 * The real path of a program that may be run: in an allowed folder, and with nobody but root and this
 * account able to change it or what leads to it. Throws ProbeError `data` that says what is in the way.
 */
export async function admitted(command: string, exec: ExecConfig | undefined): Promise<string> {
  const [{ realpath, stat }, paths] = await Promise.all([import('node:fs/promises'), import('node:path')])
  if (!paths.isAbsolute(command)) throw refused(`${command} is not a whole path`)
  if (!exec || exec.allow.length === 0) {
    throw refused(
      `no program is run here: ${exec?.off ?? "exec is off, and only the system's svc.yaml can turn it on"}`,
    )
  }
  const real = await realpath(command).catch((error: unknown) => {
    throw refused(`${command} ${missing(error) ? 'is not there' : 'cannot be looked at'}`)
  })
  const folders = await Promise.all(exec.allow.map((folder) => realpath(folder).catch(() => undefined)))
  // What a link leads to is what is run, so that is what must be allowed.
  const folder = folders.find(
    (one) => one !== undefined && real.startsWith(one.endsWith(paths.sep) ? one : `${one}${paths.sep}`),
  )
  if (folder === undefined) {
    const leads = real === command ? '' : ` leads to ${real}, which`
    throw refused(`${command}${leads} is in no folder that the system's svc.yaml allows: ${exec.allow.join(', ')}`)
  }
  // Whoever can write the program, its folder or one above it up to the allowed one chooses what is run.
  for (let place = real; ; place = paths.dirname(place)) {
    const stats = await stat(place)
    if (place === real && !stats.isFile()) throw refused(`${command} is not a program`)
    const why = changeable(stats)
    if (why !== undefined) throw refused(`${place} ${why}: it is not run`)
    if (place === folder || place === paths.dirname(place)) return real
  }
}

function changeable({ uid, mode }: Stats): string | undefined {
  const account = process.geteuid?.()
  if (account === undefined) return undefined
  if (uid !== 0 && uid !== account) return `belongs to another account (uid ${uid})`
  return (mode & 0o022) === 0 ? undefined : `can be changed by others (mode ${(mode & 0o7777).toString(8)})`
}

const missing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'
const refused = (why: string): ProbeError => new ProbeError('data', why)
