import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { migrations } from '../../src/core/store/schema.ts'
import { schemaErrors } from '../support/program/documents.ts'
import { type Home, type Ran, svcHome } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const password = 'violet-harbour-42'
const home = temporaryHome()
let other: Home
let file: string
let store: string
const run = (line: string, more?: Parameters<Home['run']>[1]): Promise<Ran> => home.run(line.split(' '), more)
const done = async (line: string, more?: Parameters<Home['run']>[1]): Promise<Ran> => {
  const ran = await run(line, more)
  expect(ran, line).toMatchObject({ code: 0 })
  return ran
}

beforeAll(async () => {
  store = join(home.folder, 'store', 'svc.db')
  file = join(home.folder, 'backup.db')
  await done('users add ann --role Admin --password-stdin', { stdin: password })
  for (const name of ['bob', 'cleo', 'dan']) await done(`users add ${name} --no-password --role Ops`)
  await done('keys create ci --user ann --expires 90d')
  await done('keys create lab --user ann --expires 90d')
  await done(`backup ${file}`)
})
beforeEach(() => {
  other = svcHome()
  return () => other.remove()
})

const names = async (at: Home): Promise<readonly string[]> => {
  const { stdout } = await at.run(['users', 'list', '--json'])
  const { users } = JSON.parse(stdout) as { users: { userName: string; disabled: boolean; roles: string[] }[] }
  return users.map(({ userName, disabled, roles }) => `${userName}${disabled ? ' disabled' : ''} ${roles.join()}`)
}
const storeIn = (at: Home): string => join(at.folder, 'store', 'svc.db')
const inStore = <T>(at: string, work: (database: DatabaseSync) => T): T => {
  const database = new DatabaseSync(at)
  try {
    return work(database)
  } finally {
    database.close()
  }
}

describe('svc backup', () => {
  test('W15 writes one file with mode 600 and nothing else, and says what it contains', async () => {
    const folder = join(other.folder, 'backups')
    expect((await run(`backup ${join(folder, 'b.db')}`)).stderr).toContain('does not exist')
    const at = join(other.folder, 'b.db')
    const { stdout } = await done(`backup ${at} --json`)
    const document = JSON.parse(stdout) as object
    expect(document).toEqual({
      store,
      backups: [{ file: at, bytes: statSync(at).size, schemaVersion: migrations.length, users: 4, keys: 2 }],
    })
    expect(schemaErrors('backup', document)).toEqual([])
    expect(statSync(at).mode & 0o777).toBe(0o600)
    expect(readdirSync(other.folder)).toEqual(['b.db'])
    expect(inStore(at, (database) => database.prepare('PRAGMA journal_mode').get())).toEqual({ journal_mode: 'delete' })
    const output = await done(`backup ${at} --overwrite`, { columns: 200 })
    expect(output.stdout).toMatch(/b\.db is written and verified: 4 users, 2 keys, \d/)
  })

  test('W15 leaves a file that exists as it is without --overwrite, and replaces it as a whole with it', async () => {
    const at = join(other.folder, 'b.db')
    writeFileSync(at, 'mine')
    const refused = await run(`backup ${at}`)
    expect(refused).toMatchObject({ code: 12, stdout: '' })
    expect(refused.stderr).toContain(`${at} exists already`)
    expect(refused.stderr).toContain('--overwrite')
    expect(readFileSync(at, 'utf8')).toBe('mine')
    await done(`backup ${at} --overwrite`)
    expect(statSync(at).mode & 0o777).toBe(0o600)
    expect(readdirSync(other.folder)).toEqual(['b.db'])
  })

  test('W15 refuses the store itself, a folder, a store that does not exist and a PostgreSQL database', async () => {
    expect(await run(`backup ${store} --overwrite`)).toMatchObject({ code: 2 })
    expect((await run(`backup ${other.folder} --overwrite`)).stderr).toContain('is not a regular file')
    expect(await other.run(['backup', join(other.folder, 'b.db')])).toMatchObject({
      code: 12,
      stderr: expect.stringContaining('No store exists'),
    })
    const url = 'postgres://svc:secret@db.example.com/svc'
    const refused = await run(`backup ${other.folder}/b.db --store ${url}`)
    expect(refused).toMatchObject({ code: 12, stdout: '' })
    expect(refused.stderr).toContain(
      'pg_dump --format=custom --file=svc.dump --host=db.example.com --username=svc --dbname=svc\n',
    )
    expect(refused.stderr).not.toContain('secret')
  })

  test('W15 a damaged store gives no backup, and the file of an earlier one stays', async () => {
    const at = join(other.folder, 'b.db')
    await done(`backup ${at}`)
    const before = readFileSync(at)
    await other.run(['restore', at])
    const bytes = readFileSync(storeIn(other))
    // Somewhere in the middle of the pages.
    bytes.fill(0xff, 20_000, 90_000)
    writeFileSync(storeIn(other), bytes)
    const refused = await other.run(['backup', at, '--overwrite'])
    expect(refused).toMatchObject({ code: 12, stdout: '' })
    expect(refused.stderr).toMatch(/damaged/)
    expect(readFileSync(at).equals(before)).toBe(true)
    expect(readdirSync(other.folder).sort()).toEqual(['b.db', 'store'])
  })
})

describe('svc restore', () => {
  test('W15 on another machine brings back users, roles, keys and passwords, with the modes that a store needs', async () => {
    const ran = await other.run(['restore', file])
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    expect(await names(other)).toEqual(await names(home))
    expect(statSync(storeIn(other)).mode & 0o777).toBe(0o600)
    expect(statSync(join(other.folder, 'store')).mode & 0o777).toBe(0o700)
    expect(readdirSync(join(other.folder, 'store'))).toEqual(['svc.db'])
    const audit = await other.run(['audit', 'list', '--json'])
    expect(audit.stdout).toContain('store.restored')
  })

  test('W15 lists what the backup lacks and what comes back, and what was withdrawn after the backup stays withdrawn', async () => {
    await other.run(['restore', file])
    const at = (line: string, more?: Parameters<Home['run']>[1]): Promise<Ran> => other.run(line.split(' '), more)
    for (const line of [
      'users add eve --no-password --role Ops --permission deploy',
      'users remove cleo --yes',
      'users disable dan',
      'roles unassign bob --role Ops',
      'roles assign bob --role Dev',
      'keys revoke ci',
      'keys create new --user ann --expires 9d',
    ]) {
      expect(await at(line), line).toMatchObject({ code: 0 })
    }
    await at('users passwd ann --password-stdin', { stdin: 'copper-lantern-77' })
    const { code, stdout, stderr } = await at(`restore ${file} --json --reason drill`)
    expect(code).toBe(0)
    const document = JSON.parse(stdout) as { keptAs: string; changes: readonly Record<string, unknown>[] }
    expect(schemaErrors('restore', document)).toEqual([])
    expect(document).toMatchObject({ isLater: true, unreadable: null, hasAdmin: true })
    const changes = document.changes.map(({ what, userName, name, change, action }) =>
      [what, userName, name, change, action].filter((word) => word !== null).join(' '),
    )
    expect(changes).toEqual([
      'user eve lost',
      'user cleo back disabled',
      'user dan back disabled',
      'role bob Dev lost',
      'role eve Ops lost',
      'role bob Ops back',
      'role cleo Ops back',
      'permission eve deploy lost',
      'key ann new lost',
      'key ann ci back revoked',
      'password ann earlier',
    ])
    expect(stderr).toContain('Only the previous store has ')
    expect(await names(other)).toEqual(['ann Admin', 'bob Ops', 'cleo disabled Ops', 'dan disabled Ops'])
    const keys = JSON.parse((await at('keys list --json')).stdout) as { keys: { name: string; state: string }[] }
    expect(keys.keys.map(({ name, state }) => `${name} ${state}`).sort()).toEqual(['ci revoked', 'lab active'])
    // The previous store is whole, and can be restored in turn.
    expect(await at(`restore ${document.keptAs}`)).toMatchObject({ code: 0 })
    expect(await names(other)).toEqual(['ann Admin', 'bob Dev', 'dan disabled Ops', 'eve Ops'])
  })

  test('M8 W15 a permission that the previous store has by its former name is no difference', async () => {
    const own = (line: string) => other.run(line.split(' '))
    const at = join(other.folder, 'silence.db')
    await own('users add root --no-password --role Admin')
    await own('users add eve --no-password --permission silence --permission health')
    await own(`backup ${at}`)
    inStore(storeIn(other), (database) =>
      database.exec(`UPDATE "grants" SET "name" = 'quiet' WHERE "name" = 'silence'`),
    )
    await own('roles unassign eve --permission health')
    const { code, stdout } = await own(`restore ${at} --json`)
    expect(code).toBe(0)
    const { changes } = JSON.parse(stdout) as { changes: readonly object[] }
    expect(changes).toEqual([expect.objectContaining({ what: 'permission', change: 'back', name: 'health' })])
  })

  test('O8 W15 lists roles whose end differs, and leaves out those that have ended', async () => {
    const own = (line: string) => other.run(line.split(' '))
    const at = join(other.folder, 'ends.db')
    await own('users add root --no-password --role Admin')
    await own('users add eve --no-password --role Ops')
    await own('roles assign eve --role Short --for 2h')
    await own(`backup ${at}`)
    inStore(at, (database) => database.exec(`UPDATE "grants" SET "endsAt" = 1 WHERE "name" = 'Short'`))
    await own('roles unassign eve --role Short')
    await own('roles assign eve --role Ops --for 2h')
    const { code, stdout } = await own(`restore ${at} --json`)
    expect(code).toBe(0)
    const { changes } = JSON.parse(stdout) as { changes: readonly object[] }
    expect(changes).toEqual([
      expect.objectContaining({ what: 'role', change: 'earlier', userName: 'eve', name: 'Ops' }),
    ])
    expect((await own('roles show eve')).stdout).toContain('[Ops]')
  })

  test('W15 with --keep, users and keys work as in the backup', async () => {
    await other.run(['restore', file])
    await other.run(['users', 'disable', 'dan'])
    await other.run(['keys', 'revoke', 'ci'])
    const { stdout } = await other.run(['restore', file, '--keep'])
    expect(stdout.split('\n').slice(1, 3)).toEqual([
      `${storeIn(other)}\tuser\tdan\t\tback\t`,
      `${storeIn(other)}\tkey\tann\tci\tback\t`,
    ])
    expect(await names(other)).toContain('dan Ops')
  })

  test('W15 ends every session and refresh family, and makes new keys for what may be used once', async () => {
    const copy = join(other.folder, 'signed-in.db')
    copyFileSync(file, copy)
    inStore(copy, (database) => {
      database.exec(`
        INSERT INTO "sessions" ("hash", "userId", "epoch", "permanent", "createdAt", "lastUsedAt", "idleMs", "endsAt", "familyId")
          SELECT 's' || "id", "id", 0, 0, 0, 0, 9e12, 9e12, 'f' || "id" FROM "users";
        INSERT INTO "accessTokens" ("hash", "userId", "epoch", "familyId", "expiresAt")
          SELECT 'a' || "id", "id", 0, 'f' || "id", 9e12 FROM "users";
        INSERT INTO "refreshTokens" ("hash", "familyId", "userId", "epoch", "kind", "permanent", "idleMs", "lastUsedAt", "endsAt")
          SELECT 'r' || "id", 'f' || "id", "id", 0, 'fixed', 0, 9e12, 0, 9e12 FROM "users";
        INSERT INTO "storeKeys" VALUES ('digest nonces', 'aa'), ('browser sign-ins', 'bb'), ('known prefixes', 'cc')
          ON CONFLICT DO NOTHING;`)
    })
    const { stdout, stderr } = await other.run(['restore', copy, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ signInsEnded: 4 })
    expect(stderr).toContain('4 sign-ins of the backup ended')
    inStore(storeIn(other), (database) => {
      for (const table of ['sessions', 'accessTokens', 'refreshTokens']) {
        expect(database.prepare(`SELECT count(*) AS n FROM "${table}"`).get(), table).toEqual({ n: 0 })
      }
      expect(database.prepare('SELECT "name" FROM "storeKeys"').all()).toEqual([{ name: 'known prefixes' }])
    })
  })

  test('W15 another store than that of the backup is replaced, listed and kept, and disables nobody', async () => {
    await other.run(['users', 'add', 'zoe', '--role', 'Admin', '--no-password'])
    const { stdout } = await other.run(['restore', file, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ isLater: false, auditEntriesLost: null })
    expect(stdout).not.toContain('"disabled"')
    expect(await names(other)).toEqual(await names(home))
  })

  test.each([
    ['text', () => Buffer.from('x'.repeat(10_000)), 'is not a backup of svc: it is not a SQLite database'],
    ['an empty file', () => Buffer.alloc(0), 'is not a backup of svc: it is empty'],
    ['half of a backup', () => readFileSync(file).subarray(0, 100_000), 'is damaged'],
    ['a backup with a damaged page', () => readFileSync(file).fill(0xff, 20_000, 90_000), 'is damaged'],
  ])('W15 refuses %s, and the store stays as it is', async (_, contents, why) => {
    await other.run(['users', 'add', 'zoe', '--role', 'Admin', '--no-password'])
    const before = other.files()
    const invalid = join(other.folder, 'wrong.db')
    writeFileSync(invalid, contents(), { mode: 0o600 })
    const refused = await other.run(['restore', invalid])
    expect(refused).toMatchObject({ code: 12, stdout: '' })
    expect(refused.stderr).toContain(why)
    rmSync(invalid)
    expect(other.files()).toEqual(before)
    expect(await names(other)).toEqual(['zoe Admin'])
  })

  test('W15 refuses another database, a newer schema, a file that others can change, a link and PostgreSQL', async () => {
    const invalid = join(other.folder, 'wrong.db')
    const refusal = async (change: (database: DatabaseSync) => void): Promise<string> => {
      rmSync(invalid, { force: true })
      copyFileSync(file, invalid)
      inStore(invalid, change)
      const refused = await other.run(['restore', invalid])
      expect(refused).toMatchObject({ code: 12, stdout: '' })
      return refused.stderr
    }
    expect(await refusal((database) => database.exec('PRAGMA application_id = 5'))).toContain('but not a store of svc')
    expect(await refusal((database) => database.exec('PRAGMA user_version = 99'))).toContain(
      'by a newer svc (schema 99',
    )
    expect(await refusal(() => chmodSync(invalid, 0o666))).toContain('can be changed by other accounts')
    expect(await other.run(['restore', join(other.folder, 'none.db')])).toMatchObject({
      code: 12,
      stderr: expect.stringContaining('does not exist'),
    })
    const advice = await other.run(['restore', file, '--store', 'postgres://svc@db.example.com/svc'])
    expect(advice).toMatchObject({ code: 12, stderr: expect.stringContaining('pg_restore --clean --if-exists') })
    expect(existsSync(join(other.folder, 'store'))).toBe(false)
  })

  test('W15 refuses while another process uses the store, and goes on when it has ended', async () => {
    await other.run(['users', 'add', 'zoe', '--role', 'Admin', '--no-password'])
    const user = new DatabaseSync(storeIn(other), { readOnly: true })
    user.prepare('SELECT 1 FROM meta').get()
    const restoring = other.run(['restore', file])
    // A command that ends while the restore waits is no reason to refuse.
    setTimeout(() => user.close(), 300)
    expect(await restoring).toMatchObject({ code: 0 })
    expect(await names(other)).toEqual(await names(home))
  })

  test('W15 an old backup gets the present schema, and a damaged store is replaced and kept with its log', async () => {
    const old = join(other.folder, 'old.db')
    inStore(old, (database) => {
      database.exec('PRAGMA application_id = 0x73766331')
      for (const [at, step] of migrations.slice(0, 4).entries()) {
        database.exec(step)
        database.exec(`UPDATE meta SET version = ${at + 1}; PRAGMA user_version = ${at + 1}`)
      }
    })
    chmodSync(old, 0o600)
    await other.run(['users', 'add', 'zoe', '--role', 'Admin', '--no-password'])
    writeFileSync(storeIn(other), 'x'.repeat(9_000))
    writeFileSync(`${storeIn(other)}-wal`, 'frames', { mode: 0o600 })
    const { code, stdout, stderr } = await other.run(['restore', old, '--json'])
    expect(code).toBe(0)
    const { keptAs, unreadable, hasAdmin } = JSON.parse(stdout) as Record<string, string>
    expect([unreadable, hasAdmin]).toEqual(['it is damaged or is not a SQLite database', false])
    expect(readFileSync(String(keptAs), 'utf8')).toHaveLength(9_000)
    expect(readFileSync(`${keptAs}-wal`, 'utf8')).toBe('frames')
    expect(stderr).toContain('What has changed since the backup is unknown')
    expect(stderr).toContain('No Admin can sign in')
    expect(await names(other)).toEqual([])
  })
})
