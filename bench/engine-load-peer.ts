/** The server that the monitors of the engine-load bench check: `node engine-load-peer.ts ADDRESSES`. Sends its port. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

let port = 0
for (let address = 1; address <= Number(process.argv[2]); address += 1) {
  const server = createServer((_, response) => response.end('fine')).listen(port, `127.0.0.${address}`)
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
}
process.send?.({ port })
process.once('disconnect', () => process.exit())
