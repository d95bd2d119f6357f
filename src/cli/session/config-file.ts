import { readFileSync, realpathSync, statSync } from 'node:fs'
import { Fault } from '../../core/base/errors.ts'
import { type ConfiguredFiles, type FileContent, filesWithin, patienceMs } from '../../core/base/files/index.ts'
import { sanitizeText } from '../../core/base/sanitize.ts'
import type { LoadedConfig } from '../../core/config/index.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { machine } from '../io/process.ts'
import { awaitShare, replaceFile, trouble } from '../settings/private-file.ts'
import { configuration, type SessionFlags } from './session.ts'

/** A change of svc.yaml, or of a file that it includes. */
export type ConfigChange = {
  readonly path: string
  /** The text that the change was made from. */
  readonly before: string
  readonly after: string
}

/** The text of a file of the configuration, for a command that changes it. Throws `Fault` Local if it must not. */
export async function textToChange(path: string): Promise<string> {
  await awaitShare(path)
  try {
    demandOwner(path)
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw error instanceof Fault ? error : trouble(path, 'read', error)
  }
}

/** The configuration as it would be with a change. Throws `Fault` Local for any mistake. */
export async function configurationWith(
  { path, after }: ConfigChange,
  flags: Pick<SessionFlags, 'config'>,
  env: ProcessEnvironment,
): Promise<LoadedConfig> {
  const files = filesWithin(patienceMs)
  const withChange = async (...[task, input]: Parameters<ConfiguredFiles>): Promise<unknown> => {
    const answer: unknown = await files(task, input)
    if (task !== 'read' || input.path !== path) return answer
    return { ...(answer as FileContent), content: Buffer.from(after).toString('base64') }
  }
  return await configuration(flags, env, { files: withChange as ConfiguredFiles })
}

/**
 * Replaces the file as a whole, with its owner and mode; a link stays one. Throws `Fault` Conflict if it is no longer what
 * the change was made from, and `Local` if it cannot be written. The file is then as it was.
 */
export function writeChange({ path, before, after }: ConfigChange): void {
  try {
    const file = realpathSync(path)
    if (readFileSync(file, 'utf8') !== before) {
      throw new Fault('Conflict', `${path} has changed meanwhile; nothing was written`, {
        hints: ['Run the command again.'],
      })
    }
    const { mode, uid, gid } = demandOwner(file)
    replaceFile(file, after, mode & 0o7777, { uid, gid })
  } catch (error) {
    throw error instanceof Fault ? error : trouble(path, 'written', error)
  }
}

/** Root may change the files of others, which keep their owner. */
function demandOwner(path: string): { readonly mode: number; readonly uid: number; readonly gid: number } {
  const status = statSync(path)
  const account = machine.accountId()
  if (account === undefined || account === 0 || status.uid === account) return status
  throw new Fault('Local', `${path} belongs to another account (uid ${status.uid}; this is uid ${account})`, {
    hints: [status.uid === 0 ? 'Run the command with sudo.' : 'Run the command as that account.'],
  })
}

/** The lines that a change removes and adds, below the place where it begins. */
export function difference({ path, before, after }: ConfigChange): readonly string[] {
  const [old, next] = [before.split('\n'), after.split('\n')]
  const most = Math.min(old.length, next.length)
  let start = 0
  while (start < most && old[start] === next[start]) start += 1
  let end = 0
  while (end < most - start && old.at(-1 - end) === next.at(-1 - end)) end += 1
  const lines = (sign: string, all: readonly string[]): readonly string[] =>
    all.slice(start, all.length - end).map((line) => sanitizeText(`${sign} ${line}`))
  return [`${path}:${start + 1}`, ...lines('-', old), ...lines('+', next)]
}
