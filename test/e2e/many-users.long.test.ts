import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeAll, expect, test } from 'vitest'
import { temporaryHome } from '../support/program/temporary-home.ts'

const count = 80_000
const home = temporaryHome()
beforeAll(async () => {
  expect((await home.run(['users', 'add', 'ann', '--role', 'Admin', '--no-password'])).code).toBe(0)
  const database = new DatabaseSync(join(home.folder, 'store', 'svc.db'))
  database.exec(`
    BEGIN;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})
    INSERT INTO "users" ("id", "userName", "nameKey", "email", "disabled", "createdAt", "epoch")
      SELECT 'u' || i, printf('user%07d', i), printf('user%07d', i), printf('user%07d@example.com', i), 0, 0, 0 FROM n;
    INSERT INTO "grants" ("userId", "kind", "name") SELECT "id", 'role', 'Ops' FROM "users";
    INSERT INTO "apiKeys" ("id", "name", "hash", "userId", "createdAt") SELECT "id", "userName", "id", "id", 0 FROM "users";
    INSERT INTO "audit" ("at", "event", "who", "target", "correlationId", "after", "seal")
      SELECT (SELECT max("at") FROM "audit"), 'user.added', 'x', "userName", 'c', '{"roles":["Ops"],"permissions":[]}', 0 FROM "users";
    COMMIT`)
  database.close()
}, 120_000)

/** Runs svc with a heap that cannot hold all users. `sh` reads what it prints. Gives what `sh` prints. */
async function inSmallHeap(command: string, more = ''): Promise<string> {
  const svc = `${process.execPath} --max-old-space-size=40 ${home.program} ${command}`
  const child = spawn('bash', ['-o', 'pipefail', '-c', `${svc} ${more}`], { env: home.env })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk) => {
    stdout += String(chunk)
  })
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk)
  })
  const [code] = await once(child, 'close')
  expect([code, stderr]).toEqual([0, ''])
  return stdout.trim()
}

const countUsers = `| ${process.execPath} -e "let s='';process.stdin.on('data',(d)=>s+=d).on('end',()=>{const {users,keys=users}=JSON.parse(s);const n=keys.map((one)=>one.name??one.userName);console.log(n.length, new Set(n).size, n.at(-1))})"`

test.each(['users list', 'roles holders Ops', 'keys list', 'roles holders Ops -q --at'])(
  `W11 svc %s prints ${count} lines from a heap of 40 MB, as JSON, as records and as a table`,
  async (line) => {
    const command = line.replace(/--at$/, (flag) => `${flag} ${new Date().toISOString()}`)
    const last = `user${String(count - 1).padStart(7, '0')}`
    expect(await inSmallHeap(`${command} --json`, countUsers)).toBe(`${count} ${count} ${last}`)
    expect(await inSmallHeap(command, '| wc -l')).toBe(String(count + 1))
    const svc = `${process.execPath} --max-old-space-size=40 ${home.program} ${command}`
    const screen = join(home.folder, 'shown.txt')
    const child = spawn('bash', ['-c', `script -qec '${svc}' /dev/null < /dev/null > ${screen}`], {
      env: { ...home.env, TERM: 'xterm' },
    })
    expect(await once(child, 'close')).toEqual([0, null])
    const lines = readFileSync(screen, 'utf8').split('\n')
    expect(lines[0]).toMatch(new RegExp(`${count} (?:users|keys)`))
    expect(lines.filter((text) => /^ +user\d{7}/.test(text))).toHaveLength(count - 1)
  },
  240_000,
)

test('W11 svc users list waits for a slow reader instead of keeping the rest in memory, and ends when the reader does', async () => {
  // The first line, a pause, then the rest.
  const slow = '| { head -c 100 > /dev/null; sleep 3; wc -c; }'
  expect(Number(await inSmallHeap('users list', slow))).toBeGreaterThan(count * 50)
  const child = spawn('bash', ['-c', `${process.execPath} ${home.program} users list | head -1`], { env: home.env })
  const [code] = await once(child, 'close')
  expect(code).toBe(0)
}, 120_000)
