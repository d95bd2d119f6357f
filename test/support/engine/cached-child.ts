import { spawnProbe } from '../../../src/core/checks/child/index.ts'

const entry = new URL('./cached-probe-child.ts', import.meta.url)

/** The product's function of this name, whose child finds its code compiled: for tests that start many. */
export const runInChild = (probe: string, input: unknown, signal: AbortSignal): Promise<unknown> =>
  spawnProbe(entry, { probe, input }, signal)
