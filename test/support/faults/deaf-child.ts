/**
 * Listens on all addresses and never accepts: once its queue is full, the kernel drops what else arrives, as it does for an
 * address without a machine. Prints its port.
 */
import { writeSync } from 'node:fs'
import { createServer } from 'node:net'

const server = createServer()
server.listen({ port: 0, host: '0.0.0.0', backlog: 1 }, () => {
  writeSync(1, `${(server.address() as { readonly port: number }).port}\n`)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})
