import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openStore } from '../../src/core/store/index.ts'

const writer = fileURLToPath(new URL('../support/store-writer.ts', import.meta.url))
let folder = ''
let path = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-store-'))
  path = join(folder, 'home', 'svc.db')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** SVC_TEST_KILLS=500 does as many as the specification asks for. */
const kills = Math.min(1_000, Number(process.env.SVC_TEST_KILLS ?? 12))

describe('D1 what was acknowledged is there', () => {
  test(`D1 ${kills} times kill -9 with a write in flight: no acknowledged row lost, and the file is sound`, async () => {
    let acknowledged = 0
    for (let round = 0; round < kills; round += 1) {
      const child = spawn(process.execPath, [writer, path, '1000000'], { stdio: ['ignore', 'pipe', 'inherit'] })
      let told = ''
      child.stdout.on('data', (chunk: Buffer) => {
        told += String(chunk)
      })
      await once(child.stdout, 'data')
      await wait((round * 7) % 40)
      child.kill('SIGKILL')
      await once(child, 'close')
      // The last line may be cut; what stands before it was acknowledged.
      const lines = told.split('\n').slice(0, -1).map(Number)
      acknowledged = Math.max(acknowledged, lines.at(-1) ?? 0)
      const store = openStore({ path, create: false })
      const { n } = store.database.prepare('SELECT count(*) AS n FROM acknowledged').get() as { n: number }
      const sound = store.database.prepare('PRAGMA integrity_check').get()?.integrity_check
      store.close()
      expect([sound, n >= acknowledged]).toEqual(['ok', true])
      // At most the one in flight is there without having been acknowledged.
      expect(n - acknowledged).toBeLessThanOrEqual(round + 1)
    }
    expect(acknowledged).toBeGreaterThan(kills)
  }, 300_000)
})

const strace = ['/usr/bin/strace', '/usr/local/bin/strace'].find((program) => existsSync(program))
if (strace === undefined)
  process.stderr.write('skipped: D1 200 commits do at least 200 fsyncs: strace is not installed\n')
test.runIf(strace !== undefined)('D1 200 commits do at least 200 fsyncs', async () => {
  const log = join(folder, 'calls')
  const args = ['-f', '-e', 'trace=fsync,fdatasync', '-o', log, process.execPath, writer, path, '200']
  await promisify(execFile)(strace ?? '', args)
  const calls = readFileSync(log, 'utf8').match(/\b(?:fsync|fdatasync)\(/g) ?? []
  expect(calls.length).toBeGreaterThanOrEqual(200)
})
