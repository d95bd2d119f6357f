import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { openStore } from '../../src/core/store/index.ts'
import { migrations } from '../../src/core/store/schema.ts'
import { manySteps } from '../support/store/steps.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const posix = process.platform !== 'win32'
let folder = ''
let path = ''
beforeEach(() => {
  folder = temporaryFolder()
  path = join(folder, 'home', 'svc.db')
})

const make = (): void => openStore({ path, create: true }).close()
const mode = (file: string): string => (statSync(file).mode & 0o777).toString(8)

function refusal(create = true): Fault {
  try {
    openStore({ path, create }).close()
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
  throw new Error('the store was opened')
}
const messagesOf = (fault: Fault): string => [fault.message, ...(fault.details.hints ?? [])].join('\n')

describe('D1 how the store is opened', () => {
  test('D1 WAL, synchronous FULL, a busy timeout and foreign keys hold on every opening', () => {
    make()
    const store = openStore({ path, create: false })
    const value = (name: string): unknown => Object.values(store.database.prepare(`PRAGMA ${name}`).get() ?? {})[0]
    expect(store.journalMode).toBe('wal')
    expect(value('journal_mode')).toBe('wal')
    expect(value('synchronous')).toBe(2)
    expect(value('busy_timeout')).toBeGreaterThanOrEqual(1_000)
    expect(value('foreign_keys')).toBe(1)
    store.close()
    store.close()
  })
  test('D1 the folder is created 0700, the store and its -wal and -shm 0600, whatever the umask', () => {
    const before = process.umask(0)
    const store = openStore({ path, create: true })
    onTestFinished(() => {
      store.close()
      process.umask(before)
    })

    store.database.exec('CREATE TABLE t (x); INSERT INTO t VALUES (1)')
    expect(readdirSync(dirname(path)).sort()).toEqual(['svc.db', 'svc.db-shm', 'svc.db-wal'])
    if (posix) {
      expect(mode(dirname(path))).toBe('700')
      for (const file of [path, `${path}-wal`, `${path}-shm`]) expect([file, mode(file)]).toEqual([file, '600'])
    }
  })
  test.runIf(posix)('D1 a file or folder with wider permissions is refused, with the chmod command to run', () => {
    make()
    chmodSync(path, 0o640)
    expect(messagesOf(refusal())).toBe(`${path} is accessible to other accounts (mode 0640)\nchmod 600 ${path}`)
    chmodSync(path, 0o600)
    chmodSync(dirname(path), 0o755)
    expect(messagesOf(refusal())).toBe(
      `${dirname(path)} is accessible to other accounts (mode 0755)\nchmod 700 ${dirname(path)}`,
    )
    chmodSync(dirname(path), 0o700)
    writeFileSync(`${path}-wal`, '', { mode: 0o644 })
    chmodSync(`${path}-wal`, 0o644)
    expect(messagesOf(refusal())).toContain(`chmod 600 ${path}-wal`)
  })
  test.runIf(posix)('D1 the chmod command works where the path has a space', () => {
    path = join(folder, 'my home', 'svc.db')
    mkdirSync(dirname(path))
    chmodSync(dirname(path), 0o755)
    expect(messagesOf(refusal())).toContain(`chmod 700 '${dirname(path)}'`)
  })
  test.runIf(posix)('a store that is a symbolic link is refused; a linked folder is checked at its target', () => {
    make()
    const real = `${path}.real`
    renameSync(path, real)
    symlinkSync(real, path)
    expect(messagesOf(refusal())).toContain(`${path} is a symbolic link`)
    rmSync(path)
    renameSync(real, path)
    const over = join(folder, 'over')
    symlinkSync(dirname(path), over)
    openStore({ path: join(over, 'svc.db'), create: false }).close()
    chmodSync(dirname(path), 0o750)
    path = join(over, 'svc.db')
    expect(messagesOf(refusal())).toContain('(mode 0750)')
  })
  test('anything but a file or a folder in its place is refused', () => {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    chmodSync(dirname(path), 0o700)
    expect(refusal().message).toBe(`${path} is not a regular file`)
    path = join(folder, 'file', 'svc.db')
    writeFileSync(join(folder, 'file'), '')
    expect(refusal().message).toMatch(/is not a folder|cannot be accessed/)
  })
  test('without create a missing store is a Fault, and nothing is created', () => {
    expect(refusal(false).message).toBe(`No store exists at ${path}`)
    expect(existsSync(dirname(path))).toBe(false)
  })
  test('a store that is closed and reopened has the same content and creation date', () => {
    const first = openStore({ path, create: true })
    const { createdAt, version } = first.database.prepare('SELECT createdAt, version FROM meta').get() as {
      createdAt: string
      version: number
    }
    expect(version).toBe(first.schemaVersion)
    expect(Math.abs(Date.now() - Date.parse(createdAt))).toBeLessThan(60_000)
    first.database.exec('CREATE TABLE t (x); INSERT INTO t VALUES (42)')
    first.close()
    const again = openStore({ path, create: true })
    expect(again.database.prepare('SELECT x FROM t').get()).toMatchObject({ x: 42 })
    expect(again.database.prepare('SELECT createdAt FROM meta').get()).toMatchObject({ createdAt })
    again.close()
  })
  test('creation leaves nothing beside the store, and removes the remains of a killed creation an hour later', () => {
    mkdirSync(dirname(path), { mode: 0o700 })
    const [old, young] = ['.svc.db.new-old', '.svc.db.new-young'].map((name) => join(dirname(path), name))
    for (const file of [old, young]) writeFileSync(file ?? '', 'x', { mode: 0o600 })
    const longAgo = new Date(Date.now() - 2 * 3_600_000)
    utimesSync(old ?? '', longAgo, longAgo)
    make()
    expect(readdirSync(dirname(path)).sort()).toEqual(['.svc.db.new-young', 'svc.db'])
  })
})

describe('D2 a store that cannot be used', () => {
  const unchanged = (run: () => void): void => {
    const before = readFileSync(path)
    run()
    expect(readFileSync(path).equals(before)).toBe(true)
  }
  test('D2 a file that is not SQLite is refused with a remedy, and left unchanged', () => {
    make()
    writeFileSync(path, 'this was a store once '.repeat(500))
    unchanged(() => {
      const text = messagesOf(refusal())
      expect(text).toContain(`The store ${path} is damaged or is not a SQLite database`)
      expect(text).toContain('Restore it from a backup.')
      expect(text).toContain(`mv ${path} ${path}.old`)
    })
  })
  test('D2 a store with a damaged header or damaged pages is refused, and left unchanged', () => {
    make()
    const bytes = readFileSync(path)
    bytes.fill(0xff, 100, bytes.length)
    writeFileSync(path, bytes)
    unchanged(() => expect(messagesOf(refusal())).toContain('is damaged: the database file is corrupt'))
  })
  test('D2 a truncated store is refused as damaged, at every length', () => {
    openStore({ path, create: true }, manySteps(6)).close()
    const whole = statSync(path).size
    for (const size of [whole - 4_096, 4_096, 1_000, 99, 10]) {
      truncateSync(path, size)
      const fault = refusal()
      expect([size, fault.fault, messagesOf(fault)]).toEqual([
        size,
        'Local',
        expect.stringMatching(/is damaged.*backup/s),
      ])
      expect(statSync(path).size).toBe(size)
    }
  })
  test('D2 an empty file never counts as a new store: its content is lost', () => {
    make()
    truncateSync(path, 0)
    expect(messagesOf(refusal())).toContain('is empty (0 bytes): its contents are lost')
    expect(statSync(path).size).toBe(0)
  })
  test('D2 a log without its database is refused: a new database would be damaged by it', () => {
    const store = openStore({ path, create: true })
    store.database.exec('CREATE TABLE t (x)')
    linkSync(`${path}-wal`, join(folder, 'kept'))
    store.close()
    rmSync(path)
    renameSync(join(folder, 'kept'), `${path}-wal`)
    expect(messagesOf(refusal())).toContain(`${path}-wal belongs to a store, but svc.db itself is missing`)
    expect(existsSync(path)).toBe(false)
  })
  test('D2 a database of another program is refused and named as such, and left unchanged', () => {
    mkdirSync(dirname(path), { mode: 0o700 })
    const other = new DatabaseSync(path)
    other.exec('CREATE TABLE songs (name); INSERT INTO songs VALUES (1)')
    other.close()
    if (posix) chmodSync(path, 0o600)
    unchanged(() => expect(messagesOf(refusal())).toContain(`${path} is a SQLite database, but not a store of svc`))
  })
  test('D2 a newer store is refused, and left unchanged', () => {
    openStore({ path, create: true }, manySteps(99)).close()
    unchanged(() => {
      const text = messagesOf(refusal())
      expect(text).toContain(`was written by a newer svc (schema 99; this svc supports schema ${migrations.length})`)
      expect(text).toContain('Update svc')
    })
  })
  test('D2 a header and a table with different versions are reported as damage', () => {
    const store = openStore({ path, create: true }, manySteps(3))
    store.database.exec('UPDATE meta SET version = 2')
    store.close()
    try {
      openStore({ path, create: true }, manySteps(3)).close()
      expect.unreachable()
    } catch (error) {
      expect((error as Fault).message).toContain('its header has schema version 3, its table 2')
    }
  })
  test('D2 a store that another process holds is reported as locked, and opens once it is released', () => {
    make()
    const holder = new DatabaseSync(path)
    holder.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; CREATE TABLE held (x); COMMIT')
    expect(refusal().message).toContain('is locked by another process')
    holder.close()
    make()
  })
  test('D2 a failing step leaves the store at the last complete one', () => {
    make()
    const knownVersion = migrations.length
    const steps = [...manySteps(knownVersion), 'CREATE TABLE failed (x); INSERT INTO nowhere VALUES (1)']
    expect(() => openStore({ path, create: true }, steps)).toThrow(/cannot be opened: .*nowhere/)
    const store = openStore({ path, create: true }, manySteps(knownVersion))
    expect(store.schemaVersion).toBe(knownVersion)
    expect(store.database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'failed'").get()).toBeUndefined()
    store.close()
  })
})
