import { monitorKind, ok } from '../engine/index.ts'
import { hostPort } from '../net/connect.ts'
import { type Listening, listeningPorts } from '../system/listening.ts'

/** Ports of this machine that a type's servers usually have: connects and hears a banner, never signs in or sends. */
export default monitorKind({
  name: 'listening',
  title: 'What listens on this machine and is not configured',
  settings: {
    ports: {
      type: 'groups',
      doc: 'The usual ports, to be looked at now',
      fields: {
        port: { type: 'integer', required: true, min: 1, max: 65_535, doc: 'TCP port' },
        what: { type: 'text', required: true, doc: 'What usually listens there' },
      },
    },
    found: {
      type: 'groups',
      doc: 'What the plan has already seen to listen, in place of a second look',
      fields: {
        port: { type: 'integer', required: true, min: 1, max: 65_535, doc: 'TCP port' },
        what: { type: 'text', required: true, doc: 'What usually listens there' },
        banner: { type: 'text', doc: 'What it said unasked' },
      },
    },
  },
  checks: [{ name: 'port <port>', depth: 'Basic', doc: 'Something listens there; never a failure' }],
  internal: true,
  async *observe(settings, context): AsyncGenerator<Listening | 'nothing'> {
    context.step('ports', '127.0.0.1')
    const found = settings.found ?? (await listeningPorts(settings.ports ?? [], context.signal))
    yield* found
    // What listened when the plan was made may have gone: that is no fault either.
    if (found.length === 0) yield 'nothing'
  },
  evaluate: (seen) => {
    if (seen === 'nothing') return ok('ports', 'none of the usual ports listens on 127.0.0.1')
    const address = hostPort('127.0.0.1', seen.port)
    const says = seen.banner === undefined ? '' : ` (says ${seen.banner})`
    return ok(`port ${seen.port}`, `${seen.what} on ${address}${says}, not configured: svc monitors discover`, {
      address,
    })
  },
})
