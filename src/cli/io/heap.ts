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

/**
 * For so many runs of the schedule a minute, from the highest on: the bytes up to which the space of new objects may grow, so that
 * most runs end between two collections, and by how many percent the rest of the heap grows between two. Fewer runs fill a
 * larger space too rarely to pay for it (decision 0088).
 */
const tiers = [
  { runs: 40_000, newSpace: 2 ** 25, growth: 100 },
  { runs: 20_000, newSpace: 2 ** 24, growth: 50 },
  { runs: 5_000, newSpace: 2 ** 23, growth: 30 },
  { runs: 0, newSpace: 0, growth: 20 },
] as const
/** How often the size of the space of new objects is looked at. Milliseconds. */
const lookMs = 100

/** For a process that lives long and runs a schedule. To be called again when the schedule changes. */
export function suitGarbageTo(runsPerMinute: number): void {
  const { newSpace, growth } = tiers.find(({ runs }) => runsPerMinute >= runs) ?? tiers[3]
  setFlagsFromString(`--heap-growing-percent=${growth}`)
  setFlagsFromString('--semi-space-growth-factor=1')
  clearInterval(looking)
  // V8 doubles the space when what survived has filled it, and halves it when little is made. It does so several times between
  // two looks where much survives, as at a start: so the first look comes later.
  const look = (): void => setFlagsFromString(`--semi-space-growth-factor=${2 * newSpaceBytes() <= newSpace ? 2 : 1}`)
  looking = newSpace === 0 ? undefined : setInterval(look, lookMs).unref()
}

let looking: NodeJS.Timeout | undefined

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
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? Number.POSITIVE_INFINITY
