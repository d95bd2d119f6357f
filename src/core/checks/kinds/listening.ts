import { hostPort, type Listening, listeningPorts } from '../../base/net/connect.ts'
import { type CheckContext, checksOn, machineKind, ok } from '../engine/index.ts'

const portFields = {
  port: { type: 'integer', required: true, min: 1, max: 65_535, doc: 'TCP port' },
  what: { type: 'text', required: true, doc: 'Service that usually listens there' },
} as const

const ports = checksOn<object>()({
  depth: 'Basic',
  results: {
    'port <port>': 'A service listens on the port; never a failure',
    ports: 'No service listens on the usual ports; never a failure',
  },
  settings: {
    ports: { type: 'groups', doc: 'The usual ports to check', fields: portFields },
    found: {
      type: 'groups',
      doc: 'Open ports that the plan has already found, instead of checking again',
      fields: { ...portFields, banner: { type: 'text', doc: 'Banner of the service' } },
    },
  },
  async *observe(_, settings, context: CheckContext): AsyncGenerator<Listening | undefined> {
    context.step('ports', '127.0.0.1')
    const listening = settings.found ?? (await listeningPorts(settings.ports ?? [], context.signal))
    yield* listening
    // A port that was open when the plan was made may be closed by now: that is not a fault either.
    if (listening.length === 0) yield undefined
  },
  evaluate: (listening) => {
    if (!listening) return ok('ports', 'no service listens on the usual ports of 127.0.0.1')
    const { port, what, banner } = listening
    const address = hostPort('127.0.0.1', port)
    const says = banner === undefined ? '' : ` (banner ${banner})`
    return ok(`port ${port}`, `${what} on ${address}${says}, not configured: svc monitors discover`, { address })
  },
})

/** The usual ports of a type's servers on this machine. Connects and reads a banner; never signs in or sends data. */
export default machineKind({
  name: 'listening',
  title: 'Services that listen on this machine but are not configured',
  cost: { machine: 'It reads the ports of this machine.' },
  internal: true,
  open: () => ({}),
  checks: [ports],
})
