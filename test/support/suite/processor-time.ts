/**
 * Milliseconds that this thread has had of a processor: what a computation costs, on a busy machine
 * as well, where the clock on the wall counts the others' work too.
 */
export function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** Milliseconds of the reference loop on a processor that runs nothing else. */
const usualMs = 30

/** The processor time of a loop that always does the same. Of three, the shortest: the first is compiled meanwhile. */
function referenceMs(): number {
  const times = [1, 2, 3].map(() => {
    const start = processorMs()
    let text = ''
    for (let n = 0; n < 300_000; n += 1) text += String(Math.imul(n, 2_654_435_761) >>> 7)
    if (!/\d$/.test(text)) throw new Error('the loop wrote no digits')
    return processorMs() - start
  })
  return Math.min(...times)
}

/** Milliseconds below which no test minds how slow the processor is. */
const harmlessMs = 400

/**
 * Begins to measure what a computation costs. The function that it returns says how much, in milliseconds of a processor
 * that runs nothing else: one that others share is slower in the time of this thread, too, and so is a loop that runs
 * right after the computation.
 */
export function measureWork(): () => number {
  const start = processorMs()
  return () => {
    const took = processorMs() - start
    return took < harmlessMs ? took : took / Math.max(1, referenceMs() / usualMs)
  }
}
