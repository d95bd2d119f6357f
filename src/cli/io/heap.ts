import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Settings of V8 that hold memory down while there are many short-lived requests: of a server (S3), or to many servers.
 * V8 reads both at each collection. By default, the space of new objects grows to 32 MiB and its copy, and the rest of
 * the heap to four times what is in use, before V8 collects what a flood leaves behind (decision 0120).
 */
export function limitGarbage(): void {
  // The space of new objects keeps the size that it has.
  setFlagsFromString('--semi-space-growth-factor=1')
  // The rest of the heap grows by half between two collections.
  setFlagsFromString('--heap-growing-percent=50')
}

/** From this number of monitors on, a larger space of new objects takes less memory and no more time (decision 0088). */
const manyMonitors = 4_000

/** Bytes of the space of new objects with many monitors, and the arrays that at most fill it. */
const [manyBytes, mostArrays] = [2 ** 23, 1_000]

/**
 * For a process that lives long: the heap grows by a fifth between two collections. With many monitors, V8 also collects
 * what runs leave behind while it is new: the space of new objects is so large that most runs end between two collections.
 * Fewer monitors fill that space too rarely to pay for it.
 */
export function suitGarbageTo(monitors: number): void {
  if (monitors >= manyMonitors) enlargeNewSpace()
  setFlagsFromString('--heap-growing-percent=20')
}

function enlargeNewSpace(): void {
  setFlagsFromString('--semi-space-growth-factor=8')
  // Only what survives lets the space grow, and only these arrays are sure to.
  const survivors: number[][] = []
  while (newSpaceBytes() < manyBytes && survivors.length < mostArrays)
    survivors.push(Array.from({ length: 8_000 }, () => 0))
  setFlagsFromString('--semi-space-growth-factor=1')
}

/**
 * Collects what the start has left behind: with few monitors, V8 would not come to that for minutes. Nothing else happens
 * meanwhile, for about 30 ms with 25 MB.
 */
export function collectStart(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: { type: 'major'; flavor: 'last-resort' }) => void
  setFlagsFromString('--no-expose-gc')
  collect({ type: 'major', flavor: 'last-resort' })
}

const newSpaceBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? manyBytes
