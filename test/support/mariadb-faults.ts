import type { Connection } from 'mysql2/promise'
import type { MariadbServer } from './mariadb.ts'
import { until } from './until.ts'

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

/** A source refuses the writes of clients, as after a failover that was not finished. */
export async function readOnly(server: MariadbServer): Promise<PlantedFault> {
  await server.query('SET GLOBAL read_only = 1')
  return { end: async () => void (await server.query('SET GLOBAL read_only = 0')) }
}
