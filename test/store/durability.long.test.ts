import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { openData, openStore } from '../../src/core/store/index.ts'
import { actor, newUser, type Program, program, withData } from '../support/store/data-fixture.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

let folder = ''
let store = ''
beforeEach(() => {
  folder = temporaryFolder()
  store = join(folder, 'home', 'svc.db')
})

/** SVC_PROVE=1 does as many as the specification asks for. */
const kills = process.env.SVC_PROVE === '1' ? 500 : 25
const perKill = 4 / 100

/** Ends the program in the middle of a write, this long after the write was begun. Gives what it said. */
async function killed(
  { child, lines, waitForLine, ended }: Program,
  writes: number,
  delayMs: number,
): Promise<string[]> {
  await waitForLine(`begin r${child.pid}-${writes}`)
  const until = performance.now() + delayMs
  // A timer is a hundred times too slow to hit a commit.
  while (performance.now() < until);
  child.kill('SIGKILL')
  await ended()
  return lines
}

const ids = (lines: readonly string[], word: string): string[] =>
  lines.flatMap((line) => (line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : []))

test(`D1 ${kills} times kill -9 during a role change: no acknowledged change is lost, none is half done`, async () => {
  const user = await withData(store, (data) => data.users.add(newUser('alice'), actor()))
  const result = { acknowledged: 0, inFlight: 0, committedUnreported: 0 }
  // Half of a start is compiling; who is killed leaves nothing compiled, so one ends in peace first.
  const env = { NODE_COMPILE_CACHE: join(folder, 'compiled') }
  const first = await program([store], { env })
  first.go()
  await first.ended()
  const next = (): Promise<Program> => program([store, 'alice', '1000000'], { env })
  let waiting = next()
  for (let round = 0; round < kills; round += 1) {
    const one = await waiting
    // Starts meanwhile, which takes longer than all else.
    if (round + 1 < kills) waiting = next()
    one.go()
    const lines = await killed(one, round % 5, (round % 23) / 3)
    const [start, done] = [ids(lines, 'begin'), ids(lines, 'done')]
    const { sound, audit, holder } = await look(user.id)
    const there = audit.map(({ correlationId }) => correlationId)
    const unreported = start.filter((id) => !done.includes(id))
    expect(sound).toBe('ok')
    expect(done.filter((id) => !there.includes(id))).toEqual([])
    expect(unreported.length).toBeLessThanOrEqual(1)
    // The change and its audit are one: the roles are what the last entry says.
    if (audit[0]?.after !== undefined) expect(JSON.parse(audit[0].after)).toEqual(holder)
    result.acknowledged += done.length
    result.inFlight += unreported.length
    result.committedUnreported += unreported.filter((id) => there.includes(id)).length
  }
  process.stderr.write(`D1 kill -9: ${kills} times, ${JSON.stringify(result)}\n`)
  expect(result.acknowledged).toBeGreaterThan(kills)
  expect(result.inFlight).toBeGreaterThan(kills / 2)
  // Else the kills would not have hit what they are for: the moment of the commit.
  expect(result.committedUnreported).toBeGreaterThanOrEqual(kills * perKill)
}, 1_200_000)

/** The content of the store for a process that opens it after the kill. */
async function look(userId: string) {
  const opened = openStore({ path: store, create: false })
  const sound = opened.database.prepare('PRAGMA integrity_check').get()?.integrity_check
  opened.close()
  const data = await openData({ store, create: false })
  try {
    const audit = await data.audit.list({ limit: 1_000 })
    const { roles, permissions } = (await data.users.byId(userId)) ?? { roles: [], permissions: [] }
    return { sound, audit, holder: { roles, permissions } }
  } finally {
    await data.close()
  }
}

const strace = ['/usr/bin/strace', '/usr/local/bin/strace'].find((file) => existsSync(file))
if (strace === undefined)
  process.stderr.write('skipped: D1 200 commits do at least 200 fsyncs: strace is not installed\n')
test.runIf(strace !== undefined)(
  'D1 200 commits call fsync at least 200 times',
  async () => {
    await withData(store, (data) => data.users.add(newUser('alice'), actor()))
    const log = join(folder, 'calls')
    const before = [strace ?? '', '-f', '-e', 'trace=fsync,fdatasync', '-o', log]
    const { go, waitForLine, ended, lines } = await program([store, 'alice', '200', 'sync'], { before })
    go()
    await waitForLine('closed')
    await ended()
    expect(ids(lines, 'done')).toHaveLength(200)
    const calls = readFileSync(log, 'utf8').match(/\b(?:fsync|fdatasync)\(/g) ?? []
    expect(calls.length).toBeGreaterThanOrEqual(200)
  },
  60_000,
)
