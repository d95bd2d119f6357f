import { atMost } from '../judge.ts'
import { monitorKind } from '../monitor.ts'
import { connectTcp, hostPort } from '../net.ts'

type Connected = { readonly address: string; readonly ms: number }

/** Connects and closes. Writes nothing, retries nothing. */
export default monitorKind({
  kind: 'tcp',
  title: 'A TCP port accepts connections',
  settings: {
    host: { type: 'text', required: true, doc: 'Host name or address' },
    port: { type: 'integer', required: true, min: 1, max: 65_535, doc: 'TCP port' },
    latency: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 1_000, limit: 3_000 },
      doc: 'How long a connection may take',
    },
  },
  checks: [{ name: 'connect', depth: 'Basic', doc: 'The port accepts a connection, in time' }],
  target: (settings) => ({ host: settings.host }),
  async *observe(settings, world): AsyncGenerator<Connected> {
    world.step('connect', hostPort(settings.host, settings.port))
    const [first] = await world.resolve(settings.host)
    const address = hostPort(first ?? settings.host, settings.port)
    world.step('connect', address)
    const start = world.now()
    const socket = await connectTcp(first ?? settings.host, settings.port, world.signal)
    const ms = world.now() - start
    socket.destroy()
    yield { address, ms }
  },
  judge: (seen, settings) =>
    atMost({
      check: 'connect',
      what: `${seen.address} accepted in`,
      value: seen.ms,
      unit: 'duration',
      threshold: settings.latency,
      address: seen.address,
    }),
})
