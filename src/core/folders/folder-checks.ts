import { backlog } from './backlog.ts'
import { deletion, rename, roundTrip, sweep } from './round-trip.ts'

/** The checks of the folders of any file server. */
export const folderChecks = [backlog, roundTrip, rename, deletion, sweep] as const

/** Bytes: more would be a load, not a probe. */
const maxProbeSize = 4 * 1024 * 1024

type FolderValues = {
  readonly username?: string | undefined
  readonly folder?: string | undefined
  readonly allowWrites: boolean
  readonly probeFolder?: string | undefined
  readonly probeSize: number
}

/** Why the settings cannot be used together, or undefined. */
export function validateFolders(settings: FolderValues): string | undefined {
  if (settings.username === undefined) {
    if (settings.folder !== undefined) return 'folder needs a username'
    if (settings.allowWrites) return 'allowWrites needs a username'
  }
  if (settings.probeSize < 1 || settings.probeSize > maxProbeSize) return 'probeSize must be 1B to 4MiB'
  for (const name of ['username', 'folder', 'probeFolder'] as const) {
    if (/\p{Cc}/u.test(settings[name] ?? '')) return `${name} holds a control character`
  }
  return undefined
}
