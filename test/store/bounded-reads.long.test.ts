import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openData } from '../../src/core/store/index.ts'
import { type Backend, backends } from '../support/store/data-fixture.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

/**
 * Users, each with a role, a permission, a session, a refresh token, a key and an entry in the audit. The planner of
 * PostgreSQL chooses to read a whole table that is not much larger than what it wants of it.
 */
const usersOf = { SQLite: 20_000, PostgreSQL: 100_000 } as const
/** The maximum that one command may read of them: some names to suggest from, and a few rows by their index. */
const maxRead = 3_000

const scanOfLarge =
  /^SCAN (?!meta|CONSTANT|held|heartbeats|readings|failures|historyWatch|historyStates|notifyRows|drillRows|historyIncidents USING COVERING INDEX)/

type Statement = { readonly database: string; readonly sql: string; readonly rows: number }

const program = fileURLToPath(new URL('../../bin/run.js', import.meta.url))
const watcher = new URL('../support/store/watch-rows.ts', import.meta.url).href

/** Fills a store by one statement a table, as no command could in this time. */
async function fill({ name, raw }: Backend, store: string): Promise<void> {
  const sqlite = name === 'SQLite'
  const users = usersOf[name]
  const numbers = sqlite
    ? `WITH RECURSIVE g(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM g WHERE n + 1 < ${users})`
    : `WITH g(n) AS (SELECT generate_series(0, ${users - 1}))`
  const user = `'user-' || n`
  const into = (table: string, columns: string, values: string): string =>
    sqlite
      ? `INSERT INTO "${table}" (${columns}) ${numbers} SELECT ${values} FROM g`
      : `${numbers} INSERT INTO "${table}" (${columns}) SELECT ${values} FROM g`
  const token = `'h' || n, ${user}, 0, 0, 1, 'f' || n`
  for (const sql of [
    into(
      'users',
      '"id", "userName", "nameKey", "disabled", "createdAt", "epoch"',
      `${user}, ${user}, ${user}, 0, 1, 0`,
    ),
    into('names', '"key", "userId"', `${user}, ${user}`),
    into('grants', '"userId", "kind", "name"', `${user}, 'role', 'Ops'`),
    into('grants', '"userId", "kind", "name"', `${user}, 'permission', 'orders:read'`),
    into(
      'sessions',
      '"hash", "userId", "epoch", "permanent", "createdAt", "familyId", "lastUsedAt", "idleMs", "endsAt"',
      `${token}, 9e15, 1, 9e15`,
    ),
    into(
      'refreshTokens',
      '"hash", "userId", "epoch", "permanent", "endsAt", "familyId", "kind", "lastUsedAt", "idleMs"',
      `'h' || n, ${user}, 0, 0, 9e15, 'f' || n, 'fixed', 9e15, 1`,
    ),
    into('apiKeys', '"id", "name", "hash", "userId", "createdAt"', `'k' || n, 'key-' || n, 'h' || n, ${user}, 1`),
    into('audit', '"at", "event", "who", "correlationId"', `9e15, 'signin.ok', ${user}, 'c'`),
  ]) {
    await raw(store, sql.replaceAll('9e15', '9000000000000'))
  }
  await raw(store, 'ANALYZE')
}

describe.each(backends)('no command and no start-up reads all of a store on $name', (backend) => {
  let store = ''
  const home = temporaryFolder()
  beforeAll(async () => {
    await backend.start()
    store = await backend.fresh()
    await (await openData({ store, create: true })).close()
    await fill(backend, store)
    writeFileSync(join(home, 'password'), 'violet-harbour-42\n')
  }, 120_000)
  afterAll(() => backend.stop())

  const rowsFile = () => join(home, 'rows')
  const env = () => ({
    PATH: process.env.PATH ?? '',
    HOME: home,
    SVC_HOME: home,
    SVC_STORE: store,
    NODE_OPTIONS: `--import ${watcher} --disable-warning=ExperimentalWarning`,
    SVC_TEST_ROWS: rowsFile(),
  })

  /** The number of reads while `work` ran: rows and index entries as PostgreSQL counts them, rows that SQLite gave. */
  async function read(work: () => Promise<unknown>): Promise<number> {
    if (backend.name === 'PostgreSQL') {
      const before = await counted()
      await work()
      return (await counted()) - before
    }
    rmSync(rowsFile(), { force: true })
    await work()
    const lines = existsSync(rowsFile()) ? readFileSync(rowsFile(), 'utf8').trim().split('\n') : []
    const statements = lines.map((line) => JSON.parse(line) as Statement)
    expect(statements.length).toBeGreaterThan(0)
    const byDatabase = Map.groupBy(statements, ({ database }) => database)
    expect([...byDatabase.keys()]).toContain(store)
    for (const [database, of] of byDatabase) {
      expect(
        unbounded(
          database,
          of.map(({ sql }) => sql),
        ),
      ).toEqual([])
    }
    return statements.reduce((sum, { rows }) => sum + rows, 0)
  }
  async function counted(): Promise<number> {
    // A backend reports what it has counted when its connection ends.
    await until(async () => {
      const rows = await backend.raw(store, `SELECT 1 FROM pg_stat_activity WHERE application_name = 'svc'`)
      return rows.length === 0
    })
    const [row] = await backend.raw(
      store,
      `SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables) + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes) AS n`,
    )
    return Number(row?.n)
  }
  /**
   * Statements that go through a whole table of SQLite; a LIMIT without a condition ends at once. Tables that svc itself
   * keeps small, and the steps of a recursion, do not count: a server that starts reads what is confirmed and what is to be
   * sent, and deletes incidents beyond their limit by the index of their begin. Of drills, it has one row for each receiver
   * (`test/watch/drill/rows.test.ts`).
   */
  function unbounded(file: string, statements: readonly string[]): readonly string[] {
    const database = new DatabaseSync(file, { readOnly: true })
    try {
      return [...new Set(statements)].filter((sql) => {
        if (/^\s*(pragma|begin|commit|rollback)/i.test(sql)) return false
        const plan = database
          .prepare(`EXPLAIN QUERY PLAN ${sql}`)
          .all()
          .map(({ detail }) => String(detail))
        const scans = plan.some((detail) => scanOfLarge.test(detail))
        const ends =
          /\blimit\b/i.test(sql) && !/\bwhere\b/i.test(sql) && !plan.some((detail) => /TEMP B-TREE/.test(detail))
        return scans && !ends
      })
    } finally {
      database.close()
    }
  }

  async function svc(args: readonly string[]): Promise<string> {
    const child = spawn(process.execPath, [program, ...args], { env: env(), stdio: ['ignore', 'pipe', 'pipe'] })
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += String(chunk)))
    await once(child, 'close')
    return text
  }

  test.each([
    ['users show uesr-77', /Did you mean user-77\?/],
    ['users show user-7700x', /Did you mean user-7700/],
    ['users show nobody-at-all', /svc users list shows/],
    ['roles show user-7700x', /Did you mean/],
    ['roles assign user-7700x --role Ops', /Did you mean/],
    ['roles holders ops', /some have "Ops"/],
    ['roles holders Nobody', /^Store\tRole\tUserName\tEmail\tState\n$/],
    ['keys create ci --user user-7700x', /Did you mean/],
    ['keys revoke key-77', /revoked/],
    ['keys revoke key-7700x', /Did you mean key-7700/],
    ['heartbeats remove agent-x', /no heartbeat of "agent-x"/],
    ['users show user-4711', /user-4711/],
    ['users add someone --no-password', /someone/],
    ['audit list --limit 5', /signin\.ok/],
  ] as const)('svc %s', async (line, text) => {
    let output = ''
    const rows = await read(async () => {
      output = await svc(line.split(' '))
    })
    expect(output).toMatch(text)
    expect(rows).toBeLessThan(maxRead)
  })
  test.runIf(backend.name === 'SQLite').each(['audit list --user user-4711', 'roles history user-4711'])(
    'svc %s takes few entries out of the database',
    async (line) => {
      expect(await read(async () => void (await svc(line.split(' '))))).toBeLessThan(maxRead)
    },
  )
  test.each([
    ['getUsers', { After: 'user-5' }],
    ['roleHolders', { Role: 'Ops', After: 'user-5' }],
    ['getKeys', { After: 'key-5' }],
    ['getAudit', { Before: 5_000 }],
  ])('P70 a page of %s %j', async (operation, request) => {
    const ask = `import { openCore } from '${new URL('../../src/core/service/open.ts', import.meta.url).href}'
      const config = { types: {}, serve: {}, warnings: [] }
      const core = await openCore({ version: '1', config, store: process.env.SVC_STORE, shared: false, details: 'anyone' })
      const call = { caller: { kind: 'local', account: 'test' }, correlationId: 'page', signal: new AbortController().signal }
      const answer = await core.service.${operation}({ ...${JSON.stringify(request)}, Take: 100 }, call)
      await core.runtime.close()
      process.exit(Object.values(answer)[0].length === 100 ? 0 : 1)`
    const rows = await read(async () => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', ask], { env: env(), stdio: 'inherit' })
      await once(child, 'exit')
      expect(child.exitCode).toBe(0)
    })
    expect(rows).toBeLessThan(maxRead)
  })
  test('the sweep that svc serve runs every 10 s, where nothing has expired', async () => {
    const sweep = `import { openData } from '${new URL('../../src/core/store/index.ts', import.meta.url).href}'
      const data = await openData({ store: process.env.SVC_STORE, create: false })
      await data.sweep(2)
      await data.close()`
    const rows = await read(async () => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', sweep], { env: env(), stdio: 'ignore' })
      await once(child, 'exit')
      expect(child.exitCode).toBe(0)
    })
    expect(rows).toBeLessThan(maxRead)
  })
  test('svc serve --bootstrap-admin', async () => {
    const portFile = join(home, 'port')
    const rows = await read(async () => {
      const child = spawn(
        process.execPath,
        [
          program,
          'serve',
          '--port',
          '0',
          '--port-file',
          portFile,
          '--bootstrap-admin',
          'root',
          '--bootstrap-password-file',
          join(home, 'password'),
        ],
        { env: env(), stdio: 'ignore' },
      )
      const ended = once(child, 'exit')
      await until(() => existsSync(portFile) || child.exitCode !== null)
      child.kill('SIGTERM')
      await ended
      expect(child.exitCode).toBe(0)
    })
    expect(rows).toBeLessThan(maxRead)
  })
})
