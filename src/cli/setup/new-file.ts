import { existsSync, mkdtempSync, rmdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Fault } from '../../core/errors.ts'
import { othersMayWrite } from '../../core/own-files.ts'
import { shellWord } from '../render/hints.ts'
import { trouble } from '../settings/private-file.ts'

/**
 * Throws `Fault` Local for a svc.yaml that cannot be written, or that svc would not trust: before anything connects to
 * the servers of this machine, and before a person answers a question. Leaves nothing behind.
 */
export function demandWritable(path: string): void {
  const folder = dirname(path)
  let existing = folder
  while (!existsSync(existing) && existing !== dirname(existing)) existing = dirname(existing)
  try {
    // Only an attempt shows what modes, read-only file systems and quotas allow.
    rmdirSync(mkdtempSync(join(existing, '.svc-')))
  } catch (error) {
    throw new Fault('Local', trouble(path, 'written', error).message, {
      hints: [`Make ${existing} a folder that this account can write, or name another file: --config FILE`],
      cause: error,
    })
  }
  if (existing !== folder || !othersMayWrite(statSync(folder))) return
  throw new Fault('Local', `${folder} can be written by others, so svc would not trust a svc.yaml in it`, {
    hints: [`chmod go-w ${shellWord(folder)}`, 'Or name a file in another folder: --config FILE'],
  })
}
