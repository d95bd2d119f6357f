import { Fault } from '../../core/base/errors.ts'
import { filesWithin, patienceMs, problemOnShare } from '../../core/base/files/index.ts'

/** The free percentage of a folder's disk, as available to this account. Throws `Fault` Local. */
export async function freePercent(folder: string): Promise<number> {
  try {
    const { available, blocks } = await filesWithin(patienceMs)('space', { path: folder })
    return blocks === 0 ? 0 : Math.min(100, Math.round((available / blocks) * 1_000) / 10)
  } catch (error) {
    throw new Fault('Local', `--disk: ${folder} ${problemOnShare(error)}`)
  }
}
