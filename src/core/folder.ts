import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder and those above it that are missing, for this account alone (0700). Throws what the
 * file system says. Not `mkdir` with `recursive`: below /proc and its like, where a folder cannot be
 * made and is never there, Node tries again for ever.
 */
export function makeFolder(path: string): void {
  const missing: string[] = []
  for (let at = resolve(path); !existsSync(at) && at !== dirname(at); at = dirname(at)) missing.push(at)
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder, { mode: 0o700 })
    } catch (error) {
      // Another process may have made it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}
