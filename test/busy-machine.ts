import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

/** Four times the processors of the smallest machine that runs the tests. */
const count = 8

/** A loop without a pause, which ends when its parent is gone. */
const loop = 'for (const parent = process.ppid; process.ppid === parent; ) for (let n = 0; n < 1e7; n += 1);'

/** A place that vitest, which loads this module for each project, has once. */
const place = globalThis as { busyLoops?: readonly ChildProcess[] }

/**
 * With SVC_TEST_LOAD=1, runs loops without a pause beside the tests, so that a test that expects something within a time
 * fails. vitest calls `setup` for each project before the first file.
 */
export function setup(): (() => Promise<void>) | undefined {
  if (process.env.SVC_TEST_LOAD !== '1' || place.busyLoops) return undefined
  const loops = Array.from({ length: count }, () => spawn(process.execPath, ['-e', loop], { stdio: 'ignore' }))
  place.busyLoops = loops
  return async () => {
    await Promise.all(
      loops.map(async (child) => {
        const ended = once(child, 'exit')
        child.kill('SIGKILL')
        await ended
      }),
    )
  }
}
