import { setImmediate as nextTurn } from 'node:timers/promises'

/** Milliseconds between two turns of the event loop: the least, and the most while the loop is busy with other work. */
const [leastMs, mostMs] = [5, 25]

/** How long to work until the next pause, after one of `pauseMs`: as long as the others did. */
export const turnAfter = (pauseMs: number): number => Math.min(mostMs, Math.max(leastMs, pauseMs))

/** Waits for a turn of the event loop if one is due. Undefined if none is. */
export type Pace = () => Promise<void> | undefined

/**
 * For long work beside requests: `await` what this returns between its steps, and others get a turn of the event loop when it
 * is due. A busy loop gives turns rarely, and each is then longer: otherwise the work would never end.
 */
export function pace(): Pace {
  let since = performance.now()
  let turnMs = leastMs
  return () => {
    const pausedAt = performance.now()
    if (pausedAt - since < turnMs) return undefined
    return nextTurn().then(() => {
      since = performance.now()
      turnMs = turnAfter(since - pausedAt)
    })
  }
}

/** The results of a function for all of these, in their order, with turns for others between them. */
export async function mapPaced<T, U>(all: Iterable<T>, breathe: Pace, work: (one: T) => U): Promise<U[]> {
  const made: U[] = []
  for (const one of all) {
    made.push(work(one))
    const turn = breathe()
    if (turn) await turn
  }
  return made
}

/** The value of a promise, or undefined if it takes longer than `ms` milliseconds. Rejects as the promise does. */
export async function orLate<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
