import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startTicks } from '../../src/core/base/running-process.ts'
import { markerPath } from '../../src/core/base/system/serve-marker.ts'
import { type Claim, claimStore, lockPath } from '../../src/core/store/serve-lock.ts'
import { type ClaimWait, nextClaim } from '../../src/core/store/upkeep/claims.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const storeIn = (folder: string): string => join(folder, 'store', 'svc.db')
const what = (claim: Claim): Claim['is'] => {
  if (claim.is === 'held') claim.release()
  return claim.is
}

/** Another process that has claimed the store. */
async function holderOf(store: string) {
  const code = `import { claimStore } from ${JSON.stringify(new URL('../../src/core/store/serve-lock.ts', import.meta.url).href)}
    console.log(claimStore(${JSON.stringify(store)}).is); setInterval(() => {}, 60_000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const end = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  onTestFinished(end)
  const [line] = await once(child.stdout, 'data')
  expect(String(line)).toBe('held\n')
  return { child, end }
}

const mark = (store: string, marker: object): void => {
  mkdirSync(join(store, '..'), { mode: 0o700, recursive: true })
  writeFileSync(markerPath(store), JSON.stringify({ url: 'http://127.0.0.1:8790', ...marker }), { mode: 0o600 })
}

describe('W30 the lock of svc serve beside an embedded store', () => {
  test('W30 one process has it, also while it is frozen, and the kernel frees it with its holder', async () => {
    const store = storeIn(temporaryFolder())
    const { child, end } = await holderOf(store)
    const holder = process.platform === 'linux' ? { pid: child.pid } : {}
    expect(claimStore(store)).toMatchObject({ is: 'taken', by: { account: expect.any(String), ...holder } })
    child.kill('SIGSTOP')
    expect(what(claimStore(store))).toBe('taken')
    await end()
    expect(what(claimStore(store))).toBe('held')
    expect(existsSync(lockPath(store))).toBe(true)
  })

  test('W30 a second claim in the same process neither gets the lock nor frees it', () => {
    const store = storeIn(temporaryFolder())
    const first = claimStore(store)
    expect(what(claimStore(store))).toBe('taken')
    expect(what(claimStore(store))).toBe('taken')
    expect(what(first)).toBe('held')
    expect(what(claimStore(store))).toBe('held')
  })

  const own = { pid: process.ppid, started: startTicks(process.ppid) }
  test.skipIf(own.started === undefined).each([
    ['a server of an earlier version, which has no lock', own, 'taken'],
    ['a server whose lock was removed under it', { ...own, files: { lock: '1:1' } }, 'taken'],
    ['a process id that another process has now', { ...own, started: 1 }, 'held'],
    ['a process id without its start', { pid: own.pid }, 'held'],
    ['a process that has ended', { pid: 2 ** 22 + 1, started: 1 }, 'held'],
  ])('W30 the marker of %s: %#', (_, marker, is) => {
    const store = storeIn(temporaryFolder())
    mark(store, marker)
    expect(what(claimStore(store))).toBe(is)
  })

  test('W30 the marker of the server that had this very lock and has lost it is stale', () => {
    const store = storeIn(temporaryFolder())
    const first = claimStore(store)
    if (first.is !== 'held') throw new Error(first.is)
    first.release()
    const { dev, ino } = statSync(lockPath(store))
    mark(store, { ...own, files: { lock: `${dev}:${ino}` } })
    expect(what(claimStore(store))).toBe('held')
  })

  test('W30 where there can be no lock the reason is known, and a folder that others can read gets no file', () => {
    const folder = temporaryFolder()
    const store = storeIn(folder)
    mkdirSync(join(folder, 'store'), { mode: 0o700 })
    mkdirSync(lockPath(store))
    expect(claimStore(store)).toEqual({
      is: 'impossible',
      why: `cannot be locked: ${lockPath(store)} is not a regular file`,
    })
    rmSync(lockPath(store), { recursive: true })
    chmodSync(join(folder, 'store'), 0o755)
    expect(claimStore(store).is).toBe(process.platform === 'win32' ? 'held' : 'impossible')
    expect(existsSync(lockPath(store))).toBe(process.platform === 'win32')
  })
})

describe('W30 the wait for a store in use (simulated)', () => {
  const taken: Claim = { is: 'taken', by: { pid: 7 } }
  /** The times at which the log is told, until the wait ends or this time. */
  function play(isOnTerminal: boolean, untilMs: number, freeAt = Number.POSITIVE_INFINITY) {
    const says: number[] = []
    let wait: ClaimWait | undefined
    let at = 0
    for (;;) {
      const step = nextClaim(wait, at >= freeAt ? { is: 'held', release: () => {} } : taken, at, isOnTerminal)
      if (step.do !== 'wait') return { at, end: step.do, says }
      if (at > untilMs) return { at, end: 'waits', says }
      if (step.says) says.push(at)
      wait = step.wait
      at += step.ms
    }
  }

  test('W30 (simulated) on a terminal a server ends after 15 s, and not before', () => {
    expect(play(true, 60_000)).toEqual({ at: 15_000, end: 'end', says: [0] })
    expect(play(true, 60_000, 14_800)).toEqual({ at: 15_000, end: 'use the store', says: [0] })
  })

  test('W30 (simulated) elsewhere it tries every 5 s without end, and says so each minute', () => {
    const { end, says } = play(false, 200_000)
    expect([end, says]).toEqual(['waits', [0, 15_000, 75_000, 135_000, 195_000]])
    expect(play(false, 200_000, 101_000)).toMatchObject({ at: 105_000, end: 'use the store' })
  })

  test('W30 (simulated) a store that cannot be locked is used, and the reason is known', () => {
    expect(nextClaim(undefined, { is: 'impossible', why: 'x' }, 0, true)).toEqual({
      do: 'use the store',
      unlocked: 'x',
    })
  })
})
