import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, test } from 'vitest'
import { openStore } from '../../src/core/store/index.ts'
import { manySteps } from '../support/store/steps.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { isQuick } from '../support/suite/tier.ts'

/** How often a process is killed, and how many processes open one store. */
const [rounds, together] = isQuick() ? [3, 3] : [8, 6]

let folder = ''
let path = ''
beforeEach(() => {
  folder = temporaryFolder()
  path = join(folder, 'home', 'svc.db')
})

type Opener = { readonly child: ChildProcess; readonly go: () => void; readonly lines: string[] }

/** A process that has loaded all modules and opens the store on command. */
async function opener(steps: number, file = path): Promise<Opener> {
  const program = fileURLToPath(new URL('../support/store/store-child.ts', import.meta.url))
  const child = spawn(process.execPath, [program, file, String(steps)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines: string[] = []
  const reader = createInterface({ input: child.stdout })
  reader.on('line', (line) => lines.push(line))
  await once(reader, 'line')
  return { child, go: () => child.stdin.write('go\n'), lines }
}

const ended = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
}

/** The content of the store, read without a migration. */
function state(): { version: number; tables: number; sound: unknown } {
  const store = openStore({ path, create: false }, manySteps(1_000).slice(0, versionThere()))
  const { n } = store.database.prepare('SELECT count(*) AS n FROM sqlite_schema').get() as { n: number }
  const sound = store.database.prepare('PRAGMA integrity_check').get()?.integrity_check
  store.close()
  return { version: store.schemaVersion, tables: n, sound }
}
function versionThere(): number {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
  const { user_version: version } = database.prepare('PRAGMA user_version').get() as { user_version: number }
  database.close()
  return version
}

describe('D2 migrations', () => {
  test('D2 a store whose creation is killed at any moment is complete or absent', async () => {
    const paths = Array.from({ length: rounds }, (_, round) => join(folder, `home${round}`, 'svc.db'))
    // So many that the first kill comes before the last one, however fast the machine is.
    const steps = 240
    const openers = await Promise.all(paths.map((one) => opener(steps, one)))
    let whole = 0
    for (const [round, { child, go }] of openers.entries()) {
      path = paths[round] ?? ''
      go()
      await wait(round * 6)
      child.kill('SIGKILL')
      await ended(child)
      if (existsSync(path)) {
        whole += 1
        expect(state()).toEqual({ version: steps, tables: steps, sound: 'ok' })
      }
      const store = openStore({ path, create: true }, manySteps(steps))
      expect(store.schemaVersion).toBe(steps)
      store.close()
    }
    expect(whole).toBeLessThan(paths.length)
  })
  test('D2 a store that is killed at any step has complete steps, and the next opening does the rest', async () => {
    openStore({ path, create: true }, manySteps(1)).close()
    const targets = Array.from({ length: rounds }, (_, round) => (round + 1) * (480 / rounds))
    const openers = await Promise.all(targets.map((target) => opener(target)))
    let before = 1
    let cutShort = 0
    for (const [round, { child, go }] of openers.entries()) {
      go()
      // Killed once it is under way, however fast the machine is.
      for (let polls = 0; polls < 5_000 && versionThere() === before; polls += 1) await wait(1)
      child.kill('SIGKILL')
      await ended(child)
      const { version, tables, sound } = state()
      expect([tables, sound]).toEqual([version, 'ok'])
      expect(version).toBeLessThanOrEqual(targets[round] ?? 0)
      expect(version).toBeGreaterThan(before)
      if (version < (targets[round] ?? 0)) cutShort += 1
      before = version
    }
    expect(cutShort).toBeGreaterThan(0)
  })
  test('D2 processes that start concurrently create one store together, each step once', async () => {
    const openers = await Promise.all(Array.from({ length: together }, () => opener(25)))
    for (const { go } of openers) go()
    await Promise.all(openers.map(({ child }) => ended(child)))
    const secondLines = openers.map(({ lines }) => lines[1])
    expect(secondLines[0]).toMatch(/^25 \d{4}-/)
    expect(new Set(secondLines).size).toBe(1)
    expect(state()).toEqual({ version: 25, tables: 25, sound: 'ok' })
  })
  test('D2 processes that upgrade one old store concurrently do each step once', async () => {
    openStore({ path, create: true }, manySteps(1)).close()
    const openers = await Promise.all(Array.from({ length: together }, () => opener(25)))
    for (const { go } of openers) go()
    await Promise.all(openers.map(({ child }) => ended(child)))
    expect(openers.map(({ lines }) => lines[1]?.split(' ')[0])).toEqual(openers.map(() => '25'))
    expect(state()).toEqual({ version: 25, tables: 25, sound: 'ok' })
  })
})
