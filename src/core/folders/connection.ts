import { createHash, randomBytes, randomUUID } from 'node:crypto'

/** Entries of one folder that are read: the rest is counted as "more". */
export const maxEntries = 10_000

/** A file, how many milliseconds ago it was changed, and when. */
export type DatedFile = { readonly name: string; readonly ms: number; readonly at: Date }

/** What waits in a drop folder. */
export type Backlog = {
  readonly files: number
  /** True when there are more entries than were read. */
  readonly more: boolean
  readonly oldest: DatedFile | undefined
  /** Files wait, but the server sends no date that can be trusted. */
  readonly undated: boolean
}

/** The files of one folder. Every method throws ProbeError, or what its driver throws. */
export type Files = {
  readonly write: (name: string, bytes: Uint8Array) => Promise<void>
  /** Reads at most `max` bytes. */
  readonly read: (name: string, max: number) => Promise<Uint8Array>
  readonly rename: (from: string, to: string) => Promise<void>
  readonly remove: (name: string) => Promise<void>
  readonly names: () => Promise<readonly string[]>
}

/** Where our own file is. */
export type Trip = {
  readonly files: Files
  readonly file: ProbeFile
  /** Its current name; part of it may be there, too, where writing failed. */
  name: string
  /** True once its bytes have come back, the same or not. */
  isBack: boolean
}

/** A connection to a file server, for the checks of its folders to run on. */
export type FolderConnection = {
  /** True from the sign-in on, for as long as the session lasts. */
  readonly hasFolders: boolean
  /** False once the session has ended. */
  readonly usable: boolean
  /** Reads a folder and dates the oldest file whose name ends in `ending`. */
  readonly backlog: (folder: string, ending: string) => Promise<Backlog>
  /** Opens a folder, or the one in which the sign-in ended. */
  readonly files: (folder: string | undefined) => Promise<Files>
  /** Set once the round trip has begun. */
  trip?: Trip
}

/**
 * Names of the file that a round trip writes. They carry their date, so that a leftover is dated by
 * our own clock, whatever the server tells of it, and nothing but our own is ever deleted.
 */
const pattern = /^svc-probe-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-[0-9a-f-]{36}(?:-renamed)?\.tmp$/
/** Milliseconds: a younger one may belong to another svc that is at work. */
const leftoverAfter = 60 * 60_000

export type ProbeFile = { readonly name: string; readonly renamed: string; readonly bytes: Uint8Array }

export function probeFile(size: number, now: Date): ProbeFile {
  const stamp = now.toISOString().replace(/[-:]|\.\d+/g, '')
  const name = `svc-probe-${stamp}-${randomUUID()}`
  return { name: `${name}.tmp`, renamed: `${name}-renamed.tmp`, bytes: randomBytes(size) }
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Whether a name is that of a file which an earlier round trip could not delete. */
export function isLeftover(name: string, now: Date): boolean {
  const [, year, month, day, hour, minute, second] = pattern.exec(name) ?? []
  if (year === undefined) return false
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  return now.getTime() - at > leftoverAfter
}
