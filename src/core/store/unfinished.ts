import { randomUUID } from 'node:crypto'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { companions, statOf } from './path.ts'

/** The files that SQLite keeps beside a database in any journal mode. */
export const allCompanions = (path: string): readonly string[] => [...companions(path), `${path}-journal`]

/** A name for a file that is being made. It begins with `prefix`, by which `removeLeftovers` recognizes it. */
export const unfinishedName = (folder: string, prefix: string): string => join(folder, `${prefix}${randomUUID()}`)

/** Removes a file and those that SQLite keeps beside it. */
export function removeDatabase(path: string): void {
  for (const file of [path, ...allCompanions(path)]) rmSync(file, { force: true })
}

const anHour = 3_600_000

/** Removes files that killed processes have left. Newer ones may belong to a process that is still running. */
export function removeLeftovers(folder: string, prefix: string): void {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(prefix)) continue
    const age = Date.now() - (statOf(join(folder, name))?.mtimeMs ?? Date.now())
    if (age > anHour) rmSync(join(folder, name), { force: true })
  }
}
