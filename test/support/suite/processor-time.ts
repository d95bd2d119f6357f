/**
 * Milliseconds that this thread has had of a processor: what a computation costs, on a busy machine
 * as well, where the clock on the wall counts the others' work too.
 */
export function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
