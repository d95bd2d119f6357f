import type { ServerType } from '../../src/core/protocol/index.ts'
import type { Stage } from './stage.ts'

export type Example = {
  readonly type: ServerType
  readonly title: string
  /** The meaning that the example takes the type to have, and how sure it is. */
  readonly meaning: string
  /** Its peers: name and version of real ones, `simulated` for the others. */
  readonly peers: string
  /** A program of the operating system that is not there. */
  readonly missing?: string | undefined
  /** Starts the peers, shows them well and broken, and ends them. */
  readonly show: (stage: Stage) => Promise<void>
}

/** Ends in reverse what was started, whatever happens in between. */
export async function during(body: (onEnd: (end: () => unknown) => void) => Promise<void>): Promise<void> {
  const ends: (() => unknown)[] = []
  try {
    await body((end) => void ends.push(end))
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

/** Waits until something is so, at most `seconds`. */
export async function until(what: string, holds: () => Promise<boolean> | boolean, seconds = 30): Promise<void> {
  const started = performance.now()
  while (!(await holds())) {
    if (performance.now() - started > seconds * 1_000) throw new Error(`waited in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
