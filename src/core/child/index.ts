import { spawnProbe } from './spawn.ts'

/**
 * Runs one probe of the registry in a child of this same Node, and gives its answer. For what
 * JavaScript cannot cancel: when the signal aborts, the child and whatever it started are SIGKILLed,
 * and the promise rejects with the signal's reason. Throws what the probe threw: a ProbeError
 * stays one, and an error keeps its code.
 */
export const runInChild = (probe: string, input: unknown, signal: AbortSignal): Promise<unknown> =>
  spawnProbe(entry(), { probe, input }, signal)

/** What the child runs: from source the file beside this one, in a bundle a file beside the bundle. */
const entry = (): URL =>
  new URL(import.meta.url.endsWith('.ts') ? './child-main.ts' : './probe-child.cjs', import.meta.url)
