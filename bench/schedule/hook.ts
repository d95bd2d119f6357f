/**
 * Measures the event loop and the heap of `svc serve` from within: `node --import hook.ts bin/run.js serve …`, with an IPC
 * channel. Sends a `LoopFigures` for each message, about the time since the one before. The message `collect` collects garbage
 * first, where Node has --expose-gc.
 */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'

export type LoopFigures = {
  /** The share of the time in which the loop was not waiting for events. */
  readonly utilization: number
  /** How late its timers were, in milliseconds. */
  readonly delayP99: number
  readonly delayMax: number
  /** Bytes of the heap in use, with the garbage since the last collection. */
  readonly heapUsed: number
}

// A process that svc itself starts has these arguments, too.
if (process.env['SVC_BENCH_PARENT'] === String(process.ppid)) {
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  let since = performance.eventLoopUtilization()
  process.on('message', (message) => {
    if (message === 'collect') globalThis.gc?.()
    const figures: LoopFigures = {
      utilization: performance.eventLoopUtilization(since).utilization,
      delayP99: delay.percentile(99) / 1e6,
      delayMax: delay.max / 1e6,
      heapUsed: process.memoryUsage().heapUsed,
    }
    since = performance.eventLoopUtilization()
    delay.reset()
    process.send?.(figures)
  })
  // The bench is gone: nobody else ends this process.
  process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel?.unref()
}
