import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { adminOver } from '../test/support/store/admin.ts'

/**
 * Role calls on an embedded store, with a thousand users and with a million: calls that change nothing, per second of
 * processor time, and the 99th percentile of the time of changes.
 *
 *     node bench/role-changes.ts [COMMIT]
 *
 * With a commit, its sources run beside the present ones. All take turns call by call in one process, so that all meet
 * the same load of the machine.
 */
const root = new URL('..', import.meta.url).pathname
const counts = [1_000, 1_000_000] as const
const rounds = 20
const noOps = 400
const changes = 100
const password = 'violet-harbour-42'

type Subject = {
  readonly name: string
  readonly call: (
    operation: 'assignRoles' | 'unAssignRoles',
    user: number,
    roles: readonly string[],
    as: As,
  ) => Promise<unknown>
  readonly count: number
  readonly cpuMs: Record<As, number>
  readonly times: number[]
  readonly close: () => Promise<void>
}
type As = 'in process' | 'with a token'

/** The Service of the sources in `code`, over a store of its own whose users each hold a role. */
async function open(name: string, code: string, count: number, folder: string): Promise<Subject> {
  const { openCore } = (await import(
    join(code, 'src/core/service/open.ts')
  )) as typeof import('../src/core/service/open.ts')
  const { serveDefaults } = (await import(
    join(code, 'src/core/protocol/service/service.ts')
  )) as typeof import('../src/core/protocol/service/service.ts')
  const store = join(folder, 'store', 'svc.db')
  const { service, runtime } = await openCore({
    version: '0.0.0',
    config: { origin: undefined, types: {}, serve: { ...serveDefaults }, warnings: [] },
    store,
    shared: true,
    details: 'signed-in',
  })
  await adminOver(service).users.add(
    { userName: 'Ann', password, roles: ['Admin'] },
    { who: 'local:bench', correlationId: 'bench' },
  )
  const database = new DatabaseSync(store)
  database.exec(`
    BEGIN;
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})
    INSERT INTO "users" ("id", "userName", "nameKey", "disabled", "createdAt", "epoch")
      SELECT 'u' || i, 'user' || i, 'user' || i, 0, 0, 0 FROM n;
    INSERT INTO "names" ("key", "userId") SELECT "nameKey", "id" FROM "users" WHERE "nameKey" LIKE 'user%';
    INSERT INTO "grants" ("userId", "kind", "name") SELECT "id", 'role', 'Ops' FROM "users" WHERE "nameKey" LIKE 'user%';
    COMMIT; PRAGMA wal_checkpoint(TRUNCATE)`)
  database.close()
  const call = { correlationId: 'bench', signal: new AbortController().signal }
  const http = { kind: 'http', address: '192.0.2.1', loopback: false } as const
  const { BearerToken: token = '' } = await service.authenticate(
    { provider: 'credentials', UserName: 'Ann', Password: password },
    { ...call, caller: http },
  )
  const calls = {
    'in process': { ...call, caller: { kind: 'local', account: 'bench' } },
    'with a token': { ...call, caller: http, credential: { kind: 'bearer', token } },
  } as const
  return {
    name,
    count,
    call: (operation, user, Roles, as) => service[operation]({ UserName: `user${user % count}`, Roles }, calls[as]),
    cpuMs: { 'in process': 0, 'with a token': 0 },
    times: [],
    close: runtime.close,
  }
}

async function measure(subjects: readonly Subject[]): Promise<void> {
  // The first round warms the compiler and the caches.
  for (let round = -1; round < rounds; round += 1) {
    for (const as of ['in process', 'with a token'] as const) {
      for (const subject of subjects) {
        const before = process.cpuUsage()
        for (let n = 0; n < noOps; n += 1) await subject.call('assignRoles', (round + 2) * 7_919 * n, [], as)
        const { user, system } = process.cpuUsage(before)
        if (round >= 0) subject.cpuMs[as] += (user + system) / 1_000
      }
    }
    for (let n = 0; n < changes; n += 1) {
      for (const subject of subjects) {
        const began = performance.now()
        const operation = n % 2 === 0 ? 'assignRoles' : 'unAssignRoles'
        await subject.call(operation, (round + 2) * 104_729 + (n >> 1) * 7_919, ['Night'], 'with a token')
        if (round >= 0) subject.times.push(performance.now() - began)
      }
    }
  }
}

const folder = mkdtempSync(join(tmpdir(), 'svc-role-changes-'))
const subjects: Subject[] = []
try {
  const [, , commit] = process.argv
  const sources: [name: string, code: string][] = [['these sources', root]]
  if (commit !== undefined) {
    const code = join(folder, 'code')
    mkdirSync(code)
    const tar = execFileSync('git', ['archive', commit, 'src', 'package.json'], { cwd: root, maxBuffer: 2 ** 28 })
    execFileSync('tar', ['-x', '-C', code], { input: tar })
    symlinkSync(join(root, 'node_modules'), join(code, 'node_modules'))
    sources.unshift([commit, code])
  }
  for (const count of counts) {
    for (const [name, code] of sources) subjects.push(await open(name, code, count, join(folder, `${name} ${count}`)))
  }
  await measure(subjects)
  for (const { name, count, cpuMs, times } of subjects) {
    const sorted = times.toSorted((one, other) => one - other)
    const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(2)
    const rates = Object.entries(cpuMs).map(
      ([as, ms]) => `${Math.round((noOps * rounds * 1_000) / ms)} no-op calls/s ${as}`,
    )
    process.stdout.write(
      `${name}, ${count} users: ${rates.join(', ')}; changes p50 ${at(0.5)} ms, p99 ${at(0.99)} ms\n`,
    )
  }
} finally {
  for (const { close } of subjects) await close()
  rmSync(folder, { recursive: true, force: true })
}
