import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const heap = new URL('../../src/cli/io/heap.ts', import.meta.url).href

/**
 * Bytes of the space of new objects before and after `suitGarbageTo`, and how much garbage `collectStart` then collects, in a
 * process of its own: V8 has its flags once.
 */
async function newSpaceWith(monitors: number): Promise<readonly [number, number, number, boolean]> {
  const script = `
    import { getHeapSpaceStatistics } from 'node:v8'
    import { collectStart, limitGarbage, suitGarbageTo } from '${heap}'
    const size = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size
    limitGarbage()
    const before = size()
    suitGarbageTo(${monitors})
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
  [3_999, 'as it is', (before: number) => before],
  [4_000, 'at least 8 MiB', (before: number) => Math.max(before, 2 ** 23)],
])(
  'S3 with %i monitors, V8 has a space of new objects of %s, and what the start leaves behind is collected',
  async (monitors, _, least) => {
    const [before, after, collected, isHidden] = await newSpaceWith(monitors)
    expect(before).toBeLessThan(2 ** 23)
    expect(after).toBeGreaterThanOrEqual(least(before))
    if (monitors < 4_000) expect(after).toBe(before)
    expect(collected).toBeGreaterThan(2 ** 22)
    expect(isHidden).toBe(true)
  },
)
