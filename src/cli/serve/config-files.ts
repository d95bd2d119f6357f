import { createHash } from 'node:crypto'
import { type ConfiguredFiles, type FileStatus, filesWithin, patienceMs } from '../../core/base/files/index.ts'
import type { Stamp } from '../../core/watch/configuration/index.ts'

/** Access to files that notes in `stamp` what it was asked and a digest of the answer. */
export const filesNotedIn = (stamp: Map<string, string>): ConfiguredFiles => noting(filesWithin(patienceMs), stamp)

/** Asks again what a stamp has: the same files with their owners and modes, and the same lists of names. */
export async function lookAgain(questions: Iterable<string>): Promise<Stamp> {
  const stamp = new Map<string, string>()
  const files = filesNotedIn(stamp)
  for (const question of questions) {
    const [task, input] = JSON.parse(question) as Parameters<ConfiguredFiles>
    // Its digest is the answer, and so is its failure.
    await files(task, input).catch(() => {})
  }
  return stamp
}

function noting(files: ConfiguredFiles, stamp: Map<string, string>): ConfiguredFiles {
  const run = async (...[task, input]: Parameters<ConfiguredFiles>): Promise<unknown> => {
    const question = JSON.stringify([task, input])
    try {
      const answer = await files(task, input)
      stamp.set(question, digest(answer))
      return answer
    } catch (error) {
      stamp.set(question, `error ${(error as NodeJS.ErrnoException).code ?? String(error)}`)
      throw error
    }
  }
  return run as ConfiguredFiles
}

/** Without the time of the change and the size of a folder: both differ where nothing of the configuration does. */
function digest(answer: unknown): string {
  const same = JSON.stringify(answer, (key, value: unknown) => {
    if (key === 'modified') return undefined
    if (key === 'names') return (value as readonly string[]).toSorted()
    return isFolder(value) ? { ...value, bytes: undefined } : value
  })
  return createHash('sha256').update(same).digest('base64')
}

const isFolder = (value: unknown): value is Pick<FileStatus, 'isFolder'> =>
  typeof value === 'object' && value !== null && 'isFolder' in value && value.isFolder === true
