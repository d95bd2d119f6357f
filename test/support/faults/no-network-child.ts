import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { resolveHost } from '../../../src/core/base/net/connect.ts'
import dns from '../../../src/core/checks/kinds/dns.ts'
import { runKind } from '../engine/run-kind.ts'

/** Runs the kind dns where nothing but loopback has a route, and prints its results by name. */
const free = createSocket('udp4').bind(0, '127.0.0.1')
await once(free, 'listening')
const { port } = free.address()
free.close()
const look = async (settings: object) => (await runKind(dns, { query: 'app.test', ...settings }))[0]
const serial = { query: 'app.test', type: 'SOA', server: '192.0.2.53', nameServers: ['192.0.2.53', '192.0.2.54'] }
process.stdout.write(
  JSON.stringify({
    'no network': await look({ server: '192.0.2.53' }),
    'nothing listens': await look({ server: `127.0.0.1:${port}` }),
    resolved: await resolveHost('app.test', AbortSignal.timeout(30_000)).then(String, ({ message }: Error) => message),
    serial: (await runKind(dns, serial, 'Advanced')).map(({ message }) => message),
  }),
)
