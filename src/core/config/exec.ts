import { Fault } from '../base/errors.ts'
import { filesWithin, lookMs, patienceMs, SilentShareError } from '../base/files/index.ts'
import { ProbeError } from '../base/probe-error.ts'
import { isMap, type Problem, readSettings, type SettingsContext, type SettingsSpec } from '../base/settings/index.ts'
import type { Services } from '../checks/engine/index.ts'
import { configTrust, readFile, systemConfig, type WhereOptions } from './find.ts'

/** The `exec:` section of the system's svc.yaml: the folders whose programs may run. */
export const execSettings = {
  allow: {
    type: 'texts',
    required: true,
    doc: 'Absolute paths of folders whose programs svc may run, for example /usr/lib/nagios/plugins',
  },
} as const satisfies SettingsSpec

/** Reads the `exec:` section. Paths of problems are relative to it. */
export function readExecPart(
  raw: unknown,
  context: SettingsContext,
): { readonly allow: readonly string[]; readonly problems: readonly Problem[] } {
  const { values, problems } = readSettings(execSettings, raw, context)
  const allow = values.allow ?? []
  const folderProblems = allow.flatMap((folder, index) =>
    // Everything is below the root, including folders that anyone may write to.
    folder === '' || /^\/[^/]/.test(folder)
      ? []
      : [{ path: ['allow', index], message: 'must be the absolute path of a folder, like /usr/lib/nagios/plugins' }],
  )
  return { allow, problems: [...problems, ...folderProblems] }
}

/** Warnings about programs of svc.yaml that would not run. No mistakes, because a program may be installed later. */
export async function warningsOfPrograms(
  programs: readonly { readonly command: string; readonly path: Problem['path'] }[],
  exec: Services['exec'],
): Promise<readonly Problem[]> {
  const { admitted } = await import('../base/system/allowed-program.ts')
  const files = filesWithin(lookMs)
  const warnings = await Promise.all(
    programs.map(async ({ command, path }): Promise<readonly Problem[]> => {
      try {
        await admitted(command, exec, files)
        return []
      } catch (error) {
        if (error instanceof SilentShareError) return []
        if (error instanceof ProbeError) return [{ path, message: `will fail: ${error.message}` }]
        throw error
      }
    }),
  )
  return warnings.flat()
}

/** The result of `readExec`. Others may control what leads to the file: a warning in this version. */
type ReadExec = { readonly exec: Services['exec']; readonly warnings: readonly string[] }

/**
 * The programs that the system's svc.yaml allows, whichever svc.yaml is in use: a flag, a variable and a user's file
 * can never allow any. Only a file owned by root counts, in a folder owned by root. Never throws: an unsuitable file
 * turns it off, with a reason.
 */
export async function readExec(options: WhereOptions): Promise<ReadExec> {
  const path = systemConfig(options)
  const trust = configTrust({ platform: options.platform, uid: 0, files: filesWithin(patienceMs) })
  const off = (why: string): ReadExec => ({ exec: { allow: [], off: why }, warnings: trust.warnings() })
  if (options.platform === 'win32') return off('on Windows, svc cannot verify who wrote the file that would allow it')
  const { parseDocument } = await import('./document.ts')
  let text: string | undefined
  try {
    // Trust only root's files here; elsewhere, those of this account are trusted too.
    text = await readFile({ path, from: 'system' }, trust)
  } catch (error) {
    if (error instanceof Fault) return off(error.message)
    throw error
  }
  if (text === undefined) return off(`${path}, the only file that can allow it, does not exist`)
  const { value, problems } = await parseDocument(text)
  const part = isMap(value) ? value['exec'] : undefined
  if (problems.length > 0) return off(`${path} cannot be read as YAML`)
  if (part === undefined) return off(`${path} does not allow it (exec: {allow: [/usr/lib/nagios/plugins]})`)
  const read = readExecPart(part, { env: {}, folder: '/' })
  const [problem] = read.problems
  if (problem) return off(`in ${path} exec.${problem.path.join('.')} ${problem.message}`)
  return { exec: { allow: read.allow }, warnings: trust.warnings() }
}
