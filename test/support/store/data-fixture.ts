import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import type { Pool } from 'pg'
import { Fault } from '../../../src/core/base/errors.ts'
import { type Actor, type Data, type Grants, openData } from '../../../src/core/store/index.ts'
import { compiledCode } from '../program/compiled-code.ts'
import { type PostgresServer, startPostgres } from '../servers/postgres.ts'
import { isQuick } from '../suite/tier.ts'
import { farMs, until } from '../suite/until.ts'
import { placeStore } from './embedded.ts'

/** Two nodes of a new store, which may take the place of `done`. */
export async function twoNodes(
  fresh: Backend['fresh'],
  done?: string,
  now?: () => number,
): Promise<{ readonly store: string; readonly data: Data; readonly other: Data }> {
  const store = await fresh(done)
  const clock = now === undefined ? {} : { now }
  const data = await openData({ store, create: true, ...clock })
  return { store, data, other: await openData({ store, create: false, ...clock }) }
}

/** A database system that a store can be in. */
export type Backend = {
  readonly name: 'SQLite' | 'PostgreSQL'
  readonly start: () => Promise<void>
  /** The name of a store that is empty or not made yet. It may take the place of `done`, which nobody uses any more. */
  readonly fresh: (done?: string) => Promise<string>
  /** SQL beside the store's own connections. */
  readonly raw: (store: string, sql: string) => Promise<readonly Record<string, unknown>[]>
  readonly stop: () => Promise<void>
}

function sqliteBackend(): Backend {
  let folder = ''
  return {
    name: 'SQLite',
    start: async () => {
      folder = mkdtempSync(join(tmpdir(), 'svc-data-'))
    },
    fresh: async () => {
      const store = join(folder, randomUUID(), 'svc.db')
      placeStore(store)
      return store
    },
    raw: async (store, sql) => {
      const database = new DatabaseSync(store, { timeout: 2_000 })
      try {
        if (/^\s*select/i.test(sql)) return database.prepare(sql).all()
        database.exec(sql)
        return []
      } finally {
        database.close()
      }
    },
    stop: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

export const storePassword = 'pa55/word-of-the-store'

/** A database that an account with a password owns; gives its URL, with the password. */
export async function freshDatabase(server: PostgresServer): Promise<string> {
  const name = `s${randomBytes(6).toString('hex')}`
  // Tests that run at the same time may both be the first.
  await server.query(`DO $$ BEGIN CREATE ROLE svc LOGIN PASSWORD '${storePassword}';
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
  await server.query(`CREATE DATABASE ${name} OWNER svc`)
  return `postgres://svc:${encodeURIComponent(storePassword)}@127.0.0.1:${server.port}/${name}`
}

const nameOf = (store: string): string => new URL(store).pathname.slice(1)

/** Empties each table but those with the versions of the store and of its history. */
const emptied = `DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT oid::regclass::text FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT IN ('meta', 'historyMeta')
  LOOP EXECUTE 'DELETE FROM ' || name; END LOOP; END $$`

function postgresBackend(): Backend {
  let server: PostgresServer | undefined
  /** By database: a new connection for each statement costs more than most statements. */
  const connections = new Map<string, Pool>()
  const query = async (sql: string, database: string): Promise<Record<string, unknown>[]> => {
    const connection = connections.get(database) ?? running().pool(database)
    connections.set(database, connection)
    return (await connection.query(sql)).rows
  }
  /** Stores whose tables or version a test has changed. */
  const changed = new Set<string>()
  const running = (): PostgresServer => {
    if (!server) throw new Error('not started')
    return server
  }
  return {
    name: 'PostgreSQL',
    start: async () => {
      server = await startPostgres(['max_connections=80'])
    },
    fresh: async (done = '') => {
      if (done === '') return await freshDatabase(running())
      // To empty a database costs a tenth of making one, and to empty its tables a quarter of making them.
      const name = nameOf(done)
      const others = 'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
      await until(async () => (await query(others, name)).length === 0)
      if (!changed.delete(done)) {
        await query(emptied, name)
        return done
      }
      await query(
        `DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION pg_database_owner;
          GRANT USAGE ON SCHEMA public TO PUBLIC`,
        name,
      )
      return done
    },
    raw: (store, sql) => {
      if (/\b(?:ALTER|CREATE|DROP|meta)\b/i.test(sql)) changed.add(store)
      return query(sql, nameOf(store))
    },
    stop: async () => {
      for (const connection of connections.values()) await connection.end()
      connections.clear()
      await server?.remove()
    },
  }
}

const sqlite = sqliteBackend()
const onPostgres = postgresBackend()
export const backends: readonly Backend[] = [sqlite, onPostgres]

/** SQLite in the quick tier. A file of the slow tier that imports the same tests runs them on PostgreSQL. */
export const backendsOfTier = (): readonly Backend[] => [isQuick() ? sqlite : onPostgres]

/**
 * Calls until the store answers. It refuses what takes longer than its own limits, and on a busy machine anything may: for
 * tests of what it answers.
 */
export async function answered<T>(call: () => Promise<T>): Promise<T> {
  const ends = performance.now() + farMs
  for (;;) {
    try {
      return await call()
    } catch (error) {
      const isLate = error instanceof Fault && error.fault === 'Unavailable'
      if (!isLate || performance.now() > ends) throw error
    }
  }
}

export const nobody: Grants = { roles: [], permissions: [] }
export const actor = (correlationId: string = randomUUID(), more: Partial<Actor> = {}): Actor => ({
  who: 'local:test',
  correlationId,
  ...more,
})
type NewUser = Parameters<Data['users']['add']>[0]
export const newUser = (userName: string, more: Partial<NewUser> = {}): NewUser => ({
  userName,
  email: undefined,
  displayName: undefined,
  passwordHash: undefined,
  ...nobody,
  ...more,
})

/** The fault that something ends with. */
export async function faultOf(work: Promise<unknown>): Promise<Fault> {
  try {
    await work
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error('it was done')
}

/** Counts a failed sign-in and returns the counter. */
export async function failed({ failures }: Data, key: string, at: number, windowMs: number): Promise<number> {
  const [count = 0] = await failures.add(at, [{ key, windowMs, window: 'sliding' }])
  return count
}
export const failuresOf = async ({ failures }: Data, key: string) => (await failures.read([key])).get(key)

export type Program = {
  readonly child: ChildProcess
  readonly lines: string[]
  /** Resolves to the first line of its output that begins with this text. */
  readonly waitForLine: (start: string) => Promise<string>
  readonly go: () => void
  readonly ended: () => Promise<void>
}

/** A separate process that has loaded all modules, and opens the store on command. */
export async function program(
  args: readonly string[],
  { before = [], env = {} }: { readonly before?: readonly string[]; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Program> {
  const file = fileURLToPath(new URL('./data-child.ts', import.meta.url))
  const [command = '', ...rest] = [...before, process.execPath, file, ...args]
  const child = spawn(command, rest, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...compiledCode, ...env },
  })
  // Killed while it is spoken to.
  child.stdin.on('error', () => {})
  const lines: string[] = []
  const reader = createInterface({ input: child.stdout })
  const closed = once(child, 'close')
  const listeners = new Set<() => void>()
  reader.on('line', (line) => {
    lines.push(line)
    for (const listener of listeners) listener()
  })
  const waitForLine = async (start: string): Promise<string> => {
    const findLine = (): string | undefined => lines.find((line) => line.startsWith(start))
    const lineRead = new Promise<void>((resolve) => {
      const listener = (): void => {
        if (findLine() === undefined) return
        listeners.delete(listener)
        resolve()
      }
      listeners.add(listener)
      listener()
    })
    await Promise.race([lineRead, closed])
    const line = findLine()
    if (line === undefined) throw new Error(`it ended without saying ${start}: ${lines.join('; ')}`)
    return line
  }
  await waitForLine('ready')
  return {
    child,
    lines,
    waitForLine,
    go: () => child.stdin.write('go\n'),
    ended: async () => {
      await closed
    },
  }
}

/** A sign-in of a user, and the hashes in it. */
export function signInOf(
  user: { readonly id: string; readonly epoch: number },
  kind: 'fixed' | 'rotating' = 'rotating',
) {
  const familyId = randomUUID()
  const common = { userId: user.id, epoch: user.epoch, familyId }
  const hash = (): string => randomBytes(32).toString('hex')
  const lasting = {
    permanent: false,
    idleMs: 1_000_000,
    endsAt: 10_000_000,
    lastUsedAt: 1_000,
    provider: 'credentials',
  }
  return {
    session: { ...common, ...lasting, hash: hash(), createdAt: 1_000 },
    access: { ...common, hash: hash(), expiresAt: 900_000 },
    refresh: {
      ...common,
      ...lasting,
      hash: hash(),
      kind,
      createdAt: 1_000,
      usedAt: undefined,
      sealedSuccessor: undefined,
    },
    endsSession: undefined as string | undefined,
  }
}
export type SignInMade = ReturnType<typeof signInOf>

/** The successor with which a rotation replaces a refresh token. */
export function successorOf({ access, refresh }: SignInMade, sealed = `sealed ${randomUUID()}`) {
  const hash = (): string => randomBytes(32).toString('hex')
  return { access: { ...access, hash: hash() }, refresh: { ...refresh, hash: hash() }, sealed }
}

/** Opens a store and runs; closes it whatever happens. */
export async function withData<T>(store: string, work: (data: Data) => Promise<T>): Promise<T> {
  const data = await openData({ store, create: true })
  try {
    return await work(data)
  } finally {
    await data.close()
  }
}
