import type { SettingsSpec, Values } from '../settings/index.ts'

/** Bytes: more would be a load, not a probe. */
const largestProbe = 4 * 1024 * 1024

/** What svc.yaml may say of the folders of any file server. */
export const folderSettings = {
  folder: { type: 'text', doc: 'Drop folder whose oldest file is dated (Advanced)' },
  ending: { type: 'text', doc: 'Of the drop folder, only files whose names end so, for example .xml' },
  age: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 15 * 60_000, limit: 60 * 60_000 },
    doc: 'How long the oldest file of the drop folder may wait',
  },
  files: { type: 'threshold', unit: 'count', doc: 'How many files may wait in the drop folder' },
  allowWrites: {
    type: 'flag',
    default: false,
    doc: 'Write a file of our own, read it back, rename and delete it (Advanced)',
  },
  probeFolder: {
    type: 'text',
    doc: 'Folder for that file; without it, the one where a sign-in ends. Its name is svc-probe-….tmp',
  },
  probeSize: { type: 'bytes', default: 64 * 1024, doc: 'Size of that file, up to 4MiB' },
  throughput: {
    type: 'threshold',
    unit: 'bytes',
    doc: 'Bytes a second that writing and reading that file reach at least; with small files latency rules',
  },
} as const satisfies SettingsSpec
export type FolderSettings = Values<typeof folderSettings>

/** Why the settings cannot be used together, or undefined. */
export function folderContradiction(
  given: FolderSettings & { readonly username?: string | undefined },
): string | undefined {
  if (given.username === undefined) {
    if (given.folder !== undefined) return 'folder needs a username'
    if (given.allowWrites) return 'allowWrites needs a username'
  }
  if (given.probeSize < 1 || given.probeSize > largestProbe) return 'probeSize must be 1B to 4MiB'
  for (const name of ['username', 'folder', 'probeFolder'] as const) {
    if (/\p{Cc}/u.test(given[name] ?? '')) return `${name} holds a control character`
  }
  return undefined
}
