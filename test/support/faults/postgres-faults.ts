import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { expect } from 'vitest'
import { debianPostgres, type PostgresServer } from '../servers/postgres.ts'
import { asServer, remove, serverFolder } from '../servers/server.ts'
import { until } from '../suite/until.ts'

/** A fault on a server, and how to take it back. */
export type PlantedFault = { readonly end: () => Promise<void> }

/** Sets parameters as `ALTER SYSTEM` does. `end` resets all of them. */
export async function configured(
  server: PostgresServer,
  settings: Readonly<Record<string, string>>,
): Promise<PlantedFault> {
  const inForce = async (): Promise<boolean> => {
    const [row] = await server.query(
      `SELECT ${Object.entries(settings)
        .map(([name, value]) => `current_setting('${name}') = '${value}'`)
        .join(' AND ')} AS all`,
    )
    return row?.['all'] === true
  }
  for (const [name, value] of Object.entries(settings)) await server.query(`ALTER SYSTEM SET ${name} = '${value}'`)
  await server.query('SELECT pg_reload_conf()')
  await until(inForce)
  return {
    end: async () => {
      for (const name of Object.keys(settings)) await server.query(`ALTER SYSTEM RESET ${name}`)
      await server.query('SELECT pg_reload_conf()')
      await until(async () => !(await inForce()))
    },
  }
}

/** No standby confirms commits any more, although every commit waits for one. One commit hangs from then on. */
export async function hangingCommits(primary: PostgresServer, names = 'gone'): Promise<PlantedFault> {
  const setting = await configured(primary, { synchronous_standby_names: names })
  const writer = await primary.client()
  let commit: Promise<unknown> | undefined
  await until(async () => {
    // Commits wait only from the time at which the checkpointer has read the setting, which may be after all sessions.
    commit ??= writer.query("COMMENT ON DATABASE postgres IS 'waits for a standby'").then(() => {
      commit = undefined
    })
    return (await primary.query("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")).length > 0
  })
  return {
    end: async () => {
      await setting.end()
      await commit
      await writer.end()
    },
  }
}

/**
 * A publication of the table `events`, and a subscription to it that works: rows of the publisher arrive. `end` drops
 * both.
 */
export async function subscribed(publisher: PostgresServer, subscriber: PostgresServer): Promise<PlantedFault> {
  await publisher.query('CREATE TABLE events (id int PRIMARY KEY)')
  await publisher.query('CREATE PUBLICATION events FOR TABLE events')
  await subscriber.query('CREATE TABLE events (id int PRIMARY KEY)')
  await subscriber.query(`CREATE SUBSCRIPTION events
    CONNECTION 'host=127.0.0.1 port=${publisher.port} user=postgres dbname=postgres' PUBLICATION events`)
  await publisher.query('INSERT INTO events VALUES (1)')
  await until(async () => (await subscriber.query('SELECT 1 FROM events')).length > 0)
  await until(async () => (await subscriber.query("SELECT 1 FROM pg_subscription_rel WHERE srsubstate = 'r'")).length)
  return {
    end: async () => {
      await subscriber.query('ALTER SUBSCRIPTION events ENABLE')
      await subscriber.query('DROP SUBSCRIPTION events')
      await subscriber.query('DROP TABLE events')
      await publisher.query('DROP PUBLICATION events')
      await publisher.query('DROP TABLE events')
    },
  }
}

/** A row that the subscriber already has: the worker of its subscription fails, and fails again at every restart. */
export async function conflictingRow(
  publisher: PostgresServer,
  subscriber: PostgresServer,
  id = 2,
): Promise<PlantedFault> {
  await subscriber.query(`INSERT INTO events VALUES (${id})`)
  await publisher.query(`INSERT INTO events VALUES (${id})`)
  await until(
    async () => (await subscriber.query('SELECT 1 FROM pg_stat_subscription WHERE pid IS NOT NULL')).length === 0,
  )
  return {
    end: async () => {
      await subscriber.query(`DELETE FROM events WHERE id = ${id}`)
      await until(
        async () => (await subscriber.query('SELECT 1 FROM pg_stat_subscription WHERE pid IS NOT NULL')).length > 0,
        30_000,
      )
    },
  }
}

/** A consumer of a physical slot, `pg_receivewal`. `end` ends it, and its slot is without a consumer. */
export async function walConsumer(server: PostgresServer, slot: string): Promise<PlantedFault> {
  const folder = serverFolder('wal')
  const isActive = async (): Promise<boolean> =>
    (await server.query(`SELECT 1 FROM pg_replication_slots WHERE slot_name = '${slot}' AND active`)).length > 0
  const program = spawn(
    join(debianPostgres, 'pg_receivewal'),
    ['-h', '127.0.0.1', '-p', String(server.port), '-U', 'postgres', '-S', slot, '-D', folder],
    { ...asServer, cwd: '/', stdio: 'ignore' },
  )
  await until(isActive)
  return {
    end: async () => {
      const ended = once(program, 'exit')
      program.kill('SIGKILL')
      await ended
      await until(async () => !(await isActive()))
      remove(folder)
    },
  }
}

/** One client keeps the only server connection of a pool, and another waits for it. */
export async function exhaustedPool(
  { port }: { readonly port: number },
  account: { readonly user: string; readonly password: string; readonly database: string },
): Promise<PlantedFault> {
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ host: '127.0.0.1', port, ...account })
    client.on('error', () => {})
    await client.connect()
    return client
  }
  const [holder, waiter] = [await connect(), await connect()]
  await holder.query('BEGIN')
  const waiting = waiter.query('SELECT 1').catch(() => {})
  await wait(50)
  return {
    end: async () => {
      await holder.query('ROLLBACK').catch(() => {})
      await waiting
      await holder.end()
      await waiter.end()
    },
  }
}

/** Why no small tablespace can be made here. */
export const tablespaceMissing =
  process.getuid?.() === 0 && spawnSync('unshare', ['--mount', 'true']).status === 0
    ? undefined
    : 'a small file system for a tablespace needs root that may mount one'

/** A tablespace on a file system of 1 MiB, full to the last byte, which the account writes to by default. */
export async function fullTablespace(server: PostgresServer, account: string): Promise<PlantedFault> {
  const folder = serverFolder('tablespace')
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder], { encoding: 'utf8' })
  if (mounted.status !== 0) throw new Error(`mount: ${mounted.stderr}`)
  if (asServer.uid !== undefined) chownSync(folder, asServer.uid, asServer.gid)
  await server.query(`CREATE TABLESPACE small LOCATION '${folder}'`)
  await server.query(`GRANT CREATE ON TABLESPACE small TO ${account}`)
  await server.query(`ALTER ROLE ${account} SET default_tablespace = small`)
  // It ends with ENOSPC, after all that has a place.
  expect(() => writeFileSync(join(folder, 'filler'), Buffer.alloc(2 * 1024 ** 2))).toThrow('ENOSPC')
  return {
    end: async () => {
      await server.query(`ALTER ROLE ${account} RESET default_tablespace`)
      await server.query('DROP TABLE IF EXISTS svc_probe.round_trip')
      await server.query(`REVOKE ALL ON TABLESPACE small FROM ${account}`)
      // Files of dropped tables may stay until the next checkpoint.
      await server.query('CHECKPOINT')
      await server.query('DROP TABLESPACE small')
      spawnSync('umount', [folder])
      remove(folder)
    },
  }
}

/** A table of which a part of the rows is dead. */
export async function deadRows(
  server: PostgresServer,
  table: string,
  rows: number,
  part: number,
): Promise<PlantedFault> {
  await server.query(`CREATE TABLE ${table} AS SELECT generate_series(1, ${rows}) AS id`)
  await server.query(`DELETE FROM ${table} WHERE id <= ${rows * part}`)
  // A session reports its statistics when it ends, at the latest.
  const counted = `SELECT 1 FROM pg_stat_user_tables WHERE relname = '${table}' AND n_dead_tup = ${rows * part}`
  await until(async () => (await server.query(counted)).length > 0)
  return { end: async () => void (await server.query(`DROP TABLE ${table}`)) }
}

/**
 * The next transaction ID of a server of Debian, as after that many transactions. Returns the server, which was
 * restarted with these settings too.
 */
export async function transactionIdAt(
  server: PostgresServer,
  id: number,
  settings: readonly string[],
): Promise<PostgresServer> {
  await server.stop()
  const data = join(server.folder, 'data')
  // Two bits of status for each transaction, in files of 32 pages.
  const bytes = 32 * 8_192
  const name = Math.floor(id / (bytes * 4))
    .toString(16)
    .toUpperCase()
    .padStart(4, '0')
  const status = join(data, 'pg_xact', name)
  const used = existsSync(status) ? readFileSync(status) : Buffer.alloc(0)
  writeFileSync(status, Buffer.concat([used, Buffer.alloc(bytes - used.length)]), { mode: 0o600 })
  if (asServer.uid !== undefined) chownSync(status, asServer.uid, asServer.gid)
  const done = spawnSync(join(debianPostgres, 'pg_resetwal'), ['-D', data, '-x', String(id)], {
    ...asServer,
    cwd: '/',
    encoding: 'utf8',
  })
  if (done.status !== 0) throw new Error(`pg_resetwal: ${done.stderr}`)
  return await server.restart(settings)
}
