import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openStore } from '../../src/core/store/index.ts'
import { mountMissing } from '../support/faults/mariadb-faults.ts'
import { corpus } from './corpus.ts'
import { type Cure, fails, type Row } from './row.ts'

/** Each fault gets a copy of its own. */
type Fixture = { readonly folder: string; readonly sound: string; readonly path: string }

const monitor =
  (more: object = {}) =>
  ({ path }: Fixture) => ({ kind: 'sqlite', path, diskFree: {}, ...more })

/** Damages the copy of the database. */
const damaged = (damage: (path: string) => void) => ({
  plant: async ({ path, sound }: Fixture): Promise<Cure> => {
    damage(path)
    return () => {
      for (const end of ['', '-wal', '-shm', '-journal']) rmSync(`${path}${end}`, { force: true })
      copyFileSync(sound, path)
    }
  },
})

const overwrite = (path: string, at: number, bytes: number): void => {
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(bytes, 0x5a), 0, bytes, at)
  closeSync(file)
}

const change = (path: string, sql: string): void => {
  const database = new DatabaseSync(path)
  database.exec(sql)
  database.close()
}

/** Changes a row behind the back of an index: the numbers of entries remain the same. */
function changeBehindIndex(path: string): void {
  const changed = (sql: string): void => {
    const database = new DatabaseSync(path, { defensive: false } as object)
    database.exec(`PRAGMA writable_schema = ON; ${sql}`)
    database.close()
  }
  change(path, 'CREATE INDEX by_name ON songs (name)')
  const database = new DatabaseSync(path)
  const row = database.prepare("SELECT rootpage, sql FROM sqlite_schema WHERE name = 'by_name'").get()
  database.close()
  changed("DELETE FROM sqlite_schema WHERE name = 'by_name'")
  change(path, "UPDATE songs SET name = 'changed' WHERE rowid = 3")
  changed(`INSERT INTO sqlite_schema VALUES ('index', 'by_name', 'songs', ${row?.rootpage}, '${row?.sql}')`)
}

/** Another process that holds the file as `sql` says. Returns how to kill it. */
async function lockWith(path: string, sql: string): Promise<Cure> {
  const program = `const { DatabaseSync } = require('node:sqlite')
    const d = new DatabaseSync(${JSON.stringify(path)}); d.exec(${JSON.stringify(sql)}); console.log('held')
    setInterval(() => d.isOpen, 1000)`
  const child = spawn(process.execPath, ['--no-warnings', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return async () => {
    const closed = once(child, 'close')
    child.kill('SIGKILL')
    await closed
  }
}

const many = 'WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300)'
const hour = 3_600

const rows: readonly Row<Fixture>[] = [
  {
    fault: 'a healthy database with a backup of today',
    monitor: ({ path, sound }) => ({
      kind: 'sqlite',
      path,
      diskFree: { warn: '0.01%' },
      schemaVersion: 7,
      backup: sound,
      queries: [{ name: 'songs', sql: 'SELECT count(*) FROM songs', atLeast: 1 }],
    }),
    expected: { state: 'healthy' },
  },
  {
    fault: "svc's own store",
    monitor: ({ folder }) => ({ kind: 'sqlite', path: join(folder, 'store', 'svc.db'), ownStore: true, diskFree: {} }),
    expected: { state: 'healthy' },
  },
  {
    fault: 'the file is missing',
    monitor: monitor(),
    ...damaged((path) => rmSync(path)),
    expected: fails('open', 'data', /does not exist$/),
  },
  {
    fault: 'the file is empty',
    monitor: monitor(),
    ...damaged((path) => truncateSync(path, 0)),
    expected: fails('open', 'data', /is empty \(0 bytes\)/),
  },
  {
    fault: 'the file is not a database',
    monitor: monitor(),
    ...damaged((path) => writeFileSync(path, 'not a database '.repeat(500))),
    expected: fails('open', 'data', /is not a SQLite database/),
  },
  {
    fault: 'the file was cut to half',
    monitor: monitor(),
    ...damaged((path) => truncateSync(path, 4_096)),
    expected: fails('open', 'data', /is damaged: its pages are inconsistent/),
  },
  {
    fault: 'a corrupt page',
    monitor: monitor(),
    ...damaged((path) => overwrite(path, 5 * 4_096, 3_000)),
    expected: fails('quick check', 'data', /damaged/),
  },
  {
    fault: 'rows break their own rules',
    monitor: monitor(),
    ...damaged((path) =>
      change(path, 'PRAGMA ignore_check_constraints = ON; CREATE TABLE a (x CHECK (x > 0)); INSERT INTO a VALUES (-1)'),
    ),
    expected: fails('quick check', 'data', /CHECK constraint failed in a/),
  },
  {
    fault: 'an index differs from its table',
    monitor: monitor(),
    ...damaged(changeBehindIndex),
    expected: fails('quick check', 'data', /row 3 missing from index by_name/),
    before: 'ok',
  },
  {
    fault: 'another process holds it locked',
    monitor: monitor(),
    plant: ({ path }) => lockWith(path, 'BEGIN EXCLUSIVE'),
    expected: fails('open', 'timeout', /is locked by another process/),
  },
  {
    fault: 'another process never ends its write transaction',
    monitor: monitor(),
    plant: ({ path }) => lockWith(path, 'BEGIN IMMEDIATE'),
    expected: fails('round trip', 'timeout', /is locked by another process/),
  },
  {
    fault: 'a process died in the middle of a write',
    monitor: monitor(),
    plant: async (fixture) => {
      const kill = await lockWith(
        fixture.path,
        `PRAGMA cache_size = 2; BEGIN IMMEDIATE; ${many} INSERT INTO songs SELECT hex(zeroblob(2000)) FROM n`,
      )
      await kill()
      return damaged(() => {}).plant(fixture)
    },
    expected: fails('open', 'data', /has an unfinished write from a crashed process/),
  },
  {
    fault: 'a reader keeps the write-ahead log from shrinking',
    monitor: monitor({ walSize: { limit: '1MiB' } }),
    plant: async (fixture) => {
      change(fixture.path, 'PRAGMA journal_mode = WAL')
      const end = await lockWith(fixture.path, 'BEGIN; SELECT count(*) FROM songs')
      change(fixture.path, `${many} INSERT INTO songs SELECT hex(zeroblob(4000)) FROM n`)
      const cure = await damaged(() => {}).plant(fixture)
      return async () => {
        await end()
        await cure()
      }
    },
    expected: fails('wal', 'threshold', /^write-ahead log [\d.]+ MiB/),
  },
  {
    fault: 'the schema is of another version',
    monitor: monitor({ schemaVersion: 8 }),
    expected: fails('schema', 'data', /^schema 7, expected 8/),
  },
  {
    fault: 'the backup is four days old',
    monitor: ({ path, folder }) => ({ kind: 'sqlite', path, diskFree: {}, backup: join(folder, 'backups') }),
    plant: async ({ folder, sound }) => {
      const backups = join(folder, 'backups')
      mkdirSync(backups)
      const old = Date.now() / 1_000 - 96 * hour
      copyFileSync(sound, join(backups, 'songs-1.db'))
      utimesSync(join(backups, 'songs-1.db'), old, old)
      return () => rmSync(backups, { recursive: true })
    },
    expected: fails('backup', 'threshold', /newest backup songs-1\.db .*: age 4 d/),
  },
  {
    fault: 'the newest backup is empty',
    monitor: ({ path, folder }) => ({ kind: 'sqlite', path, diskFree: {}, backup: join(folder, 'backups') }),
    plant: async ({ folder }) => {
      const backups = join(folder, 'backups')
      mkdirSync(backups)
      writeFileSync(join(backups, 'songs-2.db'), '')
      return () => rmSync(backups, { recursive: true })
    },
    expected: fails('backup', 'data', /songs-2\.db is empty \(0 bytes\)/),
  },
  {
    fault: 'nearly no space is left on its disk',
    monitor: monitor({ diskFree: { limit: '100%' } }),
    expected: fails('disk', 'threshold', /of disk space free/),
  },
  {
    fault: "others may read svc's own store",
    monitor: ({ folder }) => ({ kind: 'sqlite', path: join(folder, 'store', 'svc.db'), ownStore: true, diskFree: {} }),
    plant: async ({ folder }) => {
      chmodSync(join(folder, 'store', 'svc.db'), 0o644)
      return () => chmodSync(join(folder, 'store', 'svc.db'), 0o600)
    },
    expected: fails('open', 'data', /is accessible to other accounts \(mode 0644/),
  },
  {
    fault: 'a query of the operator finds too little',
    monitor: monitor({ queries: [{ name: 'songs', sql: 'SELECT count(*) FROM songs', atLeast: 1_000 }] }),
    expected: fails('queries', 'threshold', /^songs: 200/),
  },
]

const start = async (): Promise<Fixture> => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-corpus-'))
  const sound = join(folder, 'sound.db')
  change(
    sound,
    `CREATE TABLE songs (name TEXT); PRAGMA user_version = 7; ${many.replace('300', '200')}
      INSERT INTO songs SELECT hex(zeroblob(200)) FROM n`,
  )
  mkdirSync(join(folder, 'data'))
  const path = join(folder, 'data', 'songs.db')
  copyFileSync(sound, path)
  openStore({ path: join(folder, 'store', 'svc.db'), create: true }).close()
  return { folder, sound, path }
}
const stop = ({ folder }: Fixture): void => rmSync(folder, { recursive: true, force: true })

const mount = (...args: readonly string[]): void => {
  const { status, stderr } = spawnSync('mount', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`mount: ${stderr}`)
}

corpus<Fixture>({ server: `SQLite ${process.versions.sqlite}`, missing: undefined, start, stop, rows })

corpus<Fixture>({
  server: `SQLite ${process.versions.sqlite} on a file system of its own`,
  missing: mountMissing,
  start: async () => {
    const fixture = await start()
    mount('-t', 'tmpfs', '-o', 'size=4m', 'none', join(fixture.folder, 'data'))
    copyFileSync(fixture.sound, fixture.path)
    return fixture
  },
  stop: (fixture) => {
    spawnSync('umount', ['-l', join(fixture.folder, 'data')])
    stop(fixture)
  },
  rows: [
    { fault: 'the folder is writable', monitor: monitor(), expected: { state: 'healthy' } },
    {
      fault: 'the file system has become read-only',
      monitor: monitor(),
      plant: async ({ folder }) => {
        mount('-o', 'remount,ro', join(folder, 'data'))
        return () => mount('-o', 'remount,rw', join(folder, 'data'))
      },
      expected: fails('round trip', 'data', /its file system is read-only/),
    },
    {
      fault: 'the disk is full',
      monitor: monitor({ diskFree: { warn: '20%', limit: '10%' } }),
      plant: async ({ folder }) => {
        const filler = join(folder, 'data', 'filler')
        const file = openSync(filler, 'w')
        try {
          for (;;) writeSync(file, Buffer.alloc(4_096))
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        } finally {
          closeSync(file)
        }
        return () => rmSync(filler)
      },
      expected: fails('disk', 'threshold', /^0 B of disk space free: 0 %/),
    },
  ],
})
