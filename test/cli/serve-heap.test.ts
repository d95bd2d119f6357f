import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const heap = new URL('../../src/cli/io/heap.ts', import.meta.url).href

/**
 * Bytes of the space of new objects before and after a schedule of so many runs a minute had much that survived, and how much
 * garbage `collectStart` then collects, in a process of its own: V8 has its flags once.
 */
async function newSpaceWith(runs: number): Promise<readonly [number, number, number, boolean]> {
  const script = `
    import { setTimeout as wait } from 'node:timers/promises'
    import { getHeapSpaceStatistics } from 'node:v8'
    import { collectStart, limitGarbage, suitGarbageTo } from '${heap}'
    const size = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size
    limitGarbage()
    suitGarbageTo(${runs})
    const before = size()
    const survivors = []
    for (let turn = 0; turn < 15; turn += 1) {
      for (let at = 0; at < 20; at += 1) survivors.push(Array.from({ length: 8_000 }, () => 0))
      await wait(20)
    }
    const after = size()
    let garbage = Array.from({ length: 200_000 }, (_, at) => ({ at }))
    const used = process.memoryUsage().heapUsed
    garbage = undefined
    collectStart()
    console.log(JSON.stringify([before, after, used - process.memoryUsage().heapUsed, typeof gc === 'undefined']))`
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout) as readonly [number, number, number, boolean]
}

test.each([
  [4_999, 'stays small', 0, 2 ** 21],
  [5_000, 'grows', 2 ** 22, Number.POSITIVE_INFINITY],
])(
  'S3 with %i runs a minute, the space of new objects %s, and what the start leaves behind is collected',
  async (runs, _, least, most) => {
    const [before, after, collected, isHidden] = await newSpaceWith(runs)
    expect(before).toBeLessThan(2 ** 22)
    expect(after).toBeGreaterThanOrEqual(least)
    expect(after).toBeLessThanOrEqual(most)
    expect(collected).toBeGreaterThan(2 ** 22)
    expect(isHidden).toBe(true)
  },
)
