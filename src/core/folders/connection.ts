import { createHash, randomBytes, randomUUID } from 'node:crypto'

/** Maximum entries read of one folder. Any others set `more`. */
export const maxEntries = 10_000

/** A file, its age in milliseconds (negative if it is dated in the future), and when it was changed. */
export type DatedFile = { readonly name: string; readonly ms: number; readonly at: Date }

/** The files waiting in a drop folder. */
export type Backlog = {
  readonly files: number
  /** True when there are more entries than were read. */
  readonly more: boolean
  readonly oldest: DatedFile | undefined
  /** Files wait, but the server sends no date that can be trusted. */
  readonly undated: boolean
}

/** The operations on one folder. Every method throws ProbeError, or what its driver throws. */
export type Files = {
  readonly write: (name: string, bytes: Uint8Array) => Promise<void>
  /** Reads at most `max` bytes. */
  readonly read: (name: string, max: number) => Promise<Uint8Array>
  readonly rename: (from: string, to: string) => Promise<void>
  readonly remove: (name: string) => Promise<void>
  readonly names: () => Promise<readonly string[]>
  /** Whether the listing shows a file; undefined if the folder has more entries than are read. */
  readonly isListed: (name: string) => Promise<boolean | undefined>
}

/** The state of the round trip's file. */
export type Trip = {
  readonly files: Files
  readonly file: ProbeFile
  /** Its current name. When writing failed, part of the file may exist. */
  name: string
  /** True once the file has been read back, whether it was equal or not. */
  isBack: boolean
}

/** A connection to a file server, on which the folder checks run. */
export type FolderConnection = {
  /** True once the account has a folder, also after the session has ended. */
  readonly hasFolders: boolean
  /** False once the session has ended. */
  readonly usable: boolean
  /** Reads a folder and finds the age of the oldest file whose name ends in `ending`. */
  readonly backlog: (folder: string, ending: string) => Promise<Backlog>
  /** Opens a folder; by default the one in which the session started. */
  readonly files: (folder: string | undefined) => Promise<Files>
  /** Set when the round trip begins. */
  trip?: Trip
}

/**
 * The names of the file that a round trip writes. They contain a date, so that our own clock dates leftovers, whatever
 * the server reports, and so that svc deletes only its own files.
 */
const pattern = /^svc-probe-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-[0-9a-f-]{36}(?:-renamed)?\.tmp$/
/** Milliseconds. A younger file may belong to another running svc. */
const leftoverAfter = 60 * 60_000

export type ProbeFile = { readonly name: string; readonly renamed: string; readonly bytes: Uint8Array }

export function probeFile(size: number, now: Date): ProbeFile {
  const stamp = now.toISOString().replace(/[-:]|\.\d+/g, '')
  const name = `svc-probe-${stamp}-${randomUUID()}`
  return { name: `${name}.tmp`, renamed: `${name}-renamed.tmp`, bytes: randomBytes(size) }
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Whether a name belongs to a file that an earlier round trip could not delete. */
export function isLeftover(name: string, now: Date): boolean {
  const [, year, month, day, hour, minute, second] = pattern.exec(name) ?? []
  if (year === undefined) return false
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  return now.getTime() - at > leftoverAfter
}
