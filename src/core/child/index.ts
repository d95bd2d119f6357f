import { spawnProbe } from './spawn.ts'

/**
 * Runs one registered probe in a child process of this same Node and returns its reply. For work that JavaScript cannot
 * cancel: when the signal aborts, the child and its children are killed by SIGKILL, and the promise rejects with the
 * signal's reason. Throws the probe's error: a ProbeError stays one, and other errors keep their code.
 */
export const runInChild = (probe: string, input: unknown, signal: AbortSignal): Promise<unknown> =>
  spawnProbe(entry(), { probe, input }, signal)

/** The file that the child runs: beside this file in the sources, beside the bundle in a build. */
const entry = (): URL =>
  new URL(import.meta.url.endsWith('.ts') ? './child-main.ts' : './probe-child.cjs', import.meta.url)
