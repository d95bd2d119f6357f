import { type AddressInfo, createServer } from 'node:net'

/**
 * Listens on a port of loopback that no test knows: a connection to it means that a test scans the ports of this
 * machine, and so greets the servers of other tests. A run in which a connection arrives fails when it ends. vitest
 * calls `setup` before the first file.
 */
export async function setup(): Promise<() => Promise<void>> {
  const times: Date[] = []
  const trap = createServer((socket) => {
    times.push(new Date())
    socket.destroy()
  })
  await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve))
  const { port } = trap.address() as AddressInfo
  return async () => {
    await new Promise((resolve) => trap.close(resolve))
    const [first] = times
    if (!first) return
    throw new Error(
      `A test has scanned the ports of this machine: 127.0.0.1:${port} accepted ${times.length} connections, ` +
        `the first at ${first.toISOString()}. Let discovery see only the ports of the test, as test/cli/init.test.ts does.`,
    )
  }
}
