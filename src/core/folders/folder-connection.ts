import type { ProbeFile } from './probe-file.ts'

/** Entries of one folder that are read: the rest is counted as "more". */
export const maxEntries = 10_000

/** What waits in a drop folder. */
export type Backlog = {
  readonly files: number
  /** True when there are more entries than were read. */
  readonly more: boolean
  readonly oldest: { readonly name: string; readonly ms: number } | undefined
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
