import { processorMs } from './processor-time.ts'

const tickMs = 5

/**
 * Awaits some work, and measures how long it keeps everything else in this process waiting: the most processor time,
 * in milliseconds, that this thread takes between two ticks of a timer.
 */
export async function measureBlocking<T>(
  work: () => Promise<T>,
): Promise<{ readonly value: T; readonly maxMs: number }> {
  let maxMs = 0
  let last = processorMs()
  const measure = (): void => {
    const now = processorMs()
    maxMs = Math.max(maxMs, now - last)
    last = now
  }
  const timer = setInterval(measure, tickMs)
  try {
    const value = await work()
    measure()
    return { value, maxMs }
  } finally {
    clearInterval(timer)
  }
}
