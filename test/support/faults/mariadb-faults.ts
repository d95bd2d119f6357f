import { spawnSync } from 'node:child_process'
import {
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Connection } from 'mysql2/promise'
import { type MariadbServer, startMariadb } from '../servers/mariadb.ts'
import { asServer, serverFolder } from '../servers/server.ts'
import { until } from '../suite/until.ts'

/** A fault on a server, and how to take it back. */
export type PlantedFault = { readonly end: () => Promise<void> }

/**
 * One session takes a lock, and a write of another session waits for it from then on. `take` are the statements of the
 * first, `wait` is the statement of the second, and `state` is how the server calls the wait. Creates the table
 * `locked.jobs`.
 */
async function lockHeld(
  server: MariadbServer,
  { take, wait, state }: { readonly take: string; readonly wait: string; readonly state: string },
): Promise<PlantedFault> {
  await server.query('CREATE DATABASE IF NOT EXISTS locked; CREATE TABLE IF NOT EXISTS locked.jobs (id int)')
  const holder: Connection = await server.client()
  const writer: Connection = await server.client()
  await holder.query(take)
  const waiting = writer.query(wait).catch(() => {})
  await until(async () => {
    const rows = await server.query(`SELECT id FROM information_schema.processlist WHERE state = '${state}'`)
    return rows.length > 0
  })
  return {
    end: async () => {
      holder.destroy()
      await waiting
      await writer.end()
      await server.query('DROP DATABASE locked')
    },
  }
}

/** `FLUSH TABLES WITH READ LOCK` is held, as by a backup that hangs, and an INSERT waits for it. */
export const globalReadLockHeld = (server: MariadbServer): Promise<PlantedFault> =>
  lockHeld(server, {
    take: 'FLUSH TABLES WITH READ LOCK',
    wait: 'INSERT INTO locked.jobs VALUES (1)',
    state: 'Waiting for backup lock',
  })

/** A transaction that has read a table is open, and an ALTER TABLE waits for it. */
export const metadataLockHeld = (server: MariadbServer): Promise<PlantedFault> =>
  lockHeld(server, {
    take: 'START TRANSACTION; SELECT * FROM locked.jobs',
    wait: 'ALTER TABLE locked.jobs ADD COLUMN added int',
    state: 'Waiting for table metadata lock',
  })

/** `LOCK TABLES … WRITE` is held, and an INSERT waits for it. */
export const tableLockHeld = (server: MariadbServer): Promise<PlantedFault> =>
  lockHeld(server, {
    take: 'LOCK TABLES locked.jobs WRITE',
    wait: 'INSERT INTO locked.jobs VALUES (1)',
    state: 'Waiting for table metadata lock',
  })

/** An open transaction keeps the old row versions of `updates` later transactions. Creates the database `kept`. */
export async function historyKept(server: MariadbServer, updates: number): Promise<PlantedFault> {
  await server.query('CREATE DATABASE kept; CREATE TABLE kept.counter (n int) ENGINE = InnoDB')
  await server.query('INSERT INTO kept.counter VALUES (0)')
  const reader: Connection = await server.client()
  await reader.query('START TRANSACTION WITH CONSISTENT SNAPSHOT')
  const writer: Connection = await server.client()
  await writer.query('UPDATE kept.counter SET n = n + 1;'.repeat(updates))
  await writer.end()
  return {
    end: async () => {
      await reader.end()
      await server.query('DROP DATABASE kept')
    },
  }
}

/** The column `id` of `counted.jobs` is a `smallint unsigned`, and `next` is its next value. */
export async function autoIncrementAt(server: MariadbServer, next: number): Promise<PlantedFault> {
  await server.query(`CREATE DATABASE counted; CREATE TABLE counted.jobs
    (id smallint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = ${next}`)
  return { end: async () => void (await server.query('DROP DATABASE counted')) }
}

/** A source refuses the writes of clients, as after a failover that was not finished. */
export async function readOnly(server: MariadbServer): Promise<PlantedFault> {
  await server.query('SET GLOBAL read_only = 1')
  return { end: async () => void (await server.query('SET GLOBAL read_only = 0')) }
}

/** Why no file system can be mounted here, or undefined. Containers often refuse it even to root. */
export const mountMissing: string | undefined = (() => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'mounting a file system needs root on Linux'
  const folder = serverFolder('mount')
  const made = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', folder])
  if (made.status === 0) spawnSync('umount', [folder])
  rmSync(folder, { recursive: true, force: true })
  return made.status === 0 ? undefined : 'this machine does not let root mount a tmpfs'
})()

/** Appends to a file until no space is left. Returns how many bytes that took. */
function fillOnce(path: string): number {
  const file = openSync(path, 'a')
  let bytes = 0
  for (let size = 1024 ** 2; size >= 1; ) {
    try {
      const written = writeSync(file, Buffer.alloc(size))
      bytes += written
      if (written < size) size = Math.floor(size / 2)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      size = Math.floor(size / 2)
    }
  }
  closeSync(file)
  return bytes
}

/** True while the server holds the file of a table that it has dropped or emptied. */
const deletesTables = (pid: number, data: string): boolean =>
  readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`).endsWith('.ibd (deleted)')
    } catch {
      return false // Closed meanwhile.
    }
  }) || readdirSync(data, { recursive: true }).some((name) => String(name).includes('#sql'))

/** A real MariaDB whose data directory is a file system of its own, with `megabytes` of space. Needs `mountMissing`. */
export async function startMariadbOnSmallDisk(megabytes: number, settings: readonly string[] = []) {
  const folder = serverFolder('mariadb-disk')
  const data = join(folder, 'data')
  mkdirSync(data)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'none', data])
  if (mounted.status !== 0) throw new Error(`mount: ${mounted.stderr}`)
  if (asServer.uid !== undefined) chownSync(data, asServer.uid, asServer.gid)
  const unmount = (): void => void spawnSync('umount', ['-l', data])
  const server = await startMariadb(settings, folder).catch((error: unknown) => {
    unmount()
    throw error
  })
  const filler = join(data, 'filler')
  return {
    ...server,
    /**
     * Fills the file system until `left` bytes are free. The server deletes the old file of a table that it has emptied a
     * moment later: this waits for that, so that no space becomes free afterwards.
     */
    fill: async (left = 0) => {
      await until(() => !deletesTables(server.pid, data))
      fillOnce(filler)
      truncateSync(filler, statSync(filler).size - left)
    },
    free: () => rmSync(filler),
    remove: async () => {
      rmSync(filler, { force: true })
      await server.stop('SIGTERM')
      unmount()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
