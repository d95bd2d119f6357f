import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The last commit of version 0.1, before the first that is to be 0.2. */
export const version01 = '3de4d32108731653a7e492378b3d27bf39d3a47d'
/** A svc.yaml with every kind and most settings, all of which 0.1 knows. */
export const everyKind = '25350209377a13b0b9fdb74cb5b16df686bc8c7c:test/snapshot/svc.yaml'

const root = new URL('../../..', import.meta.url).pathname

/** The output of git. Throws where it fails. */
export const git = (...args: readonly string[]): Buffer =>
  execFileSync('git', args, { cwd: root, maxBuffer: 64 * 2 ** 20, stdio: ['ignore', 'pipe', 'ignore'] })

/** Whether the history that is here has an object. */
export const isHere = (object: string): boolean =>
  spawnSync('git', ['cat-file', '-e', object], { cwd: root, stdio: 'ignore' }).status === 0
/** Why version 0.1 cannot be built here, or undefined. */
export const version01Missing = [version01, everyKind].every(isHere)
  ? undefined
  : 'the commits of version 0.1 are not in the history that is here'

/** Builds a commit in a folder of its own, with the packages that are installed here. */
export function buildVersion(commit: string): { readonly program: string; readonly remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'svc-earlier-'))
  execFileSync('tar', ['-x', '-C', folder], { input: git('archive', commit) })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  execFileSync(process.execPath, ['tools/build.ts'], { cwd: folder, stdio: 'ignore' })
  return { program: join(folder, 'bin/run.js'), remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export const buildVersion01 = () => buildVersion(version01)
