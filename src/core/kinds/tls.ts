import {
  addressChoices,
  atMost,
  eachAddress,
  evaluateExpiry,
  evaluateHost,
  evaluateProtocol,
  evaluateTrust,
  evaluateUnreached,
  includes,
  monitorKind,
  type Unreached,
} from '../engine/index.ts'
import { readCaFile } from '../net/ca-file.ts'
import type { Chain } from '../net/chain.ts'
import { connectTls } from '../net/tls-connect.ts'

type Seen =
  | { readonly see: 'handshake'; readonly address: string; readonly protocol: string; readonly ms: number }
  | { readonly see: 'chain'; readonly chain: Chain }
  | Unreached

/** Shakes hands, reads the whole chain and hangs up. Sends nothing. */
export default monitorKind({
  name: 'tls',
  title: 'Certificates and TLS of a port',
  settings: {
    host: { type: 'text', required: true, doc: 'Host name or address to connect to' },
    port: { type: 'integer', default: 443, min: 1, max: 65_535, doc: 'TCP port that begins with TLS' },
    servername: {
      type: 'text',
      doc: 'Name to ask for (SNI) and to find in the certificate, where it is not `host`',
    },
    latency: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 1_000, limit: 5_000 },
      doc: 'How long connection and handshake may take',
    },
    expiry: {
      type: 'threshold',
      unit: 'days',
      default: { warn: 20, limit: 3 },
      doc: 'Days that every certificate of the chain has left at least',
    },
    minVersion: {
      type: 'choice',
      values: ['TLSv1.2', 'TLSv1.3'],
      default: 'TLSv1.2',
      doc: 'Oldest version that is good enough',
    },
    verify: {
      type: 'flag',
      default: true,
      doc: 'Judge trust and host name too; `false` leaves the dates and the version',
    },
    caFile: { type: 'text', doc: 'PEM file of CAs trusted beside those of the system' },
    addresses: {
      type: 'choice',
      values: addressChoices,
      doc: 'Which addresses of the name: `first`, `all` (each by itself) or `any` (in order, until one accepts). Without it: `first`, and `all` in Advanced',
    },
  },
  checks: [
    { name: 'handshake', depth: 'Basic', doc: 'The port accepts a connection and completes a TLS handshake, in time' },
    { name: 'expiry', depth: 'Standard', doc: 'Every certificate of the chain is valid and stays so long enough' },
    { name: 'trust', depth: 'Standard', doc: 'The chain leads to a root that the system or caFile trusts' },
    { name: 'host name', depth: 'Standard', doc: 'The certificate is for the name that clients use' },
    { name: 'protocol', depth: 'Standard', doc: 'The version agreed on is new enough' },
    { name: 'addresses', depth: 'Standard', doc: 'Told when a name has more addresses than are probed' },
  ],
  target: ({ host, port }) => ({ host, port }),
  async *observe(settings, context): AsyncGenerator<Seen> {
    const { host, port, verify } = settings
    const ca = await readCaFile(settings.caFile)
    const which = settings.addresses ?? (context.mode === 'Advanced' ? 'all' : 'first')
    const judged = includes(context.mode, 'Standard')
    yield* eachAddress<Seen>(context, { host, port, which, check: 'handshake' }, async function* (target) {
      const start = context.now()
      const { socket, chain } = await connectTls(target, {
        host: settings.servername ?? host.replace(/^\[(.*)\]$/, '$1'),
        ca,
        verify: verify && judged,
        weak: true,
        date: context.date,
      })
      socket.destroy()
      yield { see: 'handshake', address: target.address, protocol: chain.protocol, ms: context.now() - start }
      if (judged) yield { see: 'chain', chain }
    })
  },
  evaluate: (seen, settings) => {
    if (seen.see === 'unreached') return evaluateUnreached(seen)
    if (seen.see === 'handshake') {
      return atMost({
        check: 'handshake',
        what: `${seen.address} agreed on ${seen.protocol} in`,
        value: seen.ms,
        unit: 'duration',
        threshold: settings.latency,
        address: seen.address,
      })
    }
    const { chain } = seen
    return [
      evaluateExpiry('expiry', chain, settings.expiry),
      ...(settings.verify ? [evaluateTrust('trust', chain), evaluateHost('host name', chain)] : []),
      evaluateProtocol('protocol', chain, settings.minVersion),
    ]
  },
})
