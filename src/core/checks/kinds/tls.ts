import { bareHost } from '../../base/loopback.ts'
import { type Chain, whyDistrusted } from '../../base/net/certificates.ts'
import { connectTls } from '../../base/net/tls-connect.ts'
import { readTrust, type TlsTrust, trustSettings } from '../../base/net/trust.ts'
import { ProbeError } from '../../base/probe-error.ts'
import { hostMistake, type SettingsSpec, type Values } from '../../base/settings/index.ts'
import { answerChecks, answerCost, answerProblem, seesOnly, sendSettings, sendsAnything } from '../assert/answer.ts'
import type { TalkingConnection } from '../assert/conversation.ts'
import { loadTalk } from '../assert/dialogue.ts'
import { dialogueProblem, startTlsProtocols } from '../assert/dialogue-settings.ts'
import { newNonce } from '../assert/nonce.ts'
import { loadXmlParser } from '../assert/xml.ts'
import {
  type AddressTurn,
  atMost,
  type CheckContext,
  certificateSetting,
  checksOn,
  evaluateExpiry,
  evaluateHost,
  evaluateProtocol,
  evaluateStaple,
  evaluateTrust,
  includes,
  latencySetting,
  networkKind,
  proxySettings,
} from '../engine/index.ts'

/** A connection after its handshake. */
type Handshake = TalkingConnection & { readonly chain: Chain }

const verify = {
  type: 'flag',
  default: true,
  doc: 'Check trust and host name too; with `false`, only the dates and the TLS version',
} as const satisfies SettingsSpec[string]

const check = checksOn<Handshake>()

const expiry = check({
  depth: 'Standard',
  results: { expiry: 'Every certificate in the chain is valid and remains so long enough' },
  settings: { expiry: certificateSetting },
  observe: async ({ chain }) => chain,
  evaluate: (chain, { expiry }) => evaluateExpiry('expiry', chain, expiry),
})

const trust = check({
  depth: 'Standard',
  results: {
    trust: 'The certificate is the pinned one, or its chain leads to a root that the system or caFile trusts',
    'host name': 'The certificate is valid for the name that clients use',
  },
  settings: { verify, fingerprint: trustSettings.fingerprint },
  applies: (_, { verify, fingerprint }) => verify || fingerprint !== undefined,
  observe: async ({ chain }) => chain,
  evaluate: (chain) => [evaluateTrust('trust', chain), evaluateHost('host name', chain)],
})

const staple = check({
  depth: 'Standard',
  results: {
    staple: 'A certificate that requires OCSP stapling (must-staple) comes with a staple; left out for others',
  },
  observe: async ({ chain }) => chain,
  evaluate: (chain) => evaluateStaple('staple', chain),
})

export const protocol = check({
  depth: 'Standard',
  results: { protocol: 'The negotiated TLS version is recent enough' },
  settings: {
    minVersion: {
      type: 'choice',
      values: ['TLSv1.2', 'TLSv1.3'],
      default: 'TLSv1.2',
      doc: 'Minimum TLS version',
    },
  },
  observe: async ({ chain }) => chain,
  evaluate: (chain, { minVersion }) => evaluateProtocol('protocol', chain, minVersion),
})

const latency = latencySetting(
  { warn: 1_000, limit: 5_000 },
  'Maximum time for connection and handshake, and for the answer',
)

const tlsSettings = {
  host: {
    type: 'text',
    observed: true,
    required: true,
    mistake: hostMistake,
    doc: 'Host name or address to connect to',
  },
  port: { type: 'integer', observed: true, default: 443, min: 1, max: 65_535, doc: 'TCP port with implicit TLS' },
  starttls: {
    type: 'choice',
    observed: true,
    values: startTlsProtocols,
    doc: 'Protocol of a server that gets to TLS by a command of its own, on the `port` of that protocol',
  },
  latency,
  ...proxySettings,
  ...sendSettings,
  verify,
  ...trustSettings,
  servername: { ...trustSettings.servername, observed: true },
} as const satisfies SettingsSpec
type TlsSettings = Values<typeof tlsSettings>

async function shakeHands(
  at: AddressTurn,
  { host, servername, verify, fingerprint, starttls, ...sending }: TlsSettings,
  context: CheckContext,
  trust: TlsTrust,
): Promise<Handshake> {
  const { mode, date } = context
  const name = servername ?? bareHost(host)
  const begin = starttls && (await loadTalk()).openForTls
  const { socket, chain } = await connectTls(at, {
    host: name,
    ...(starttls && begin ? { open: () => begin(starttls, at, { host: name, context }) } : {}),
    ...trust,
    verify: verify && (sendsAnything(sending) || 'dialogue' in sending || includes(mode, 'Standard')),
    weak: true,
    date,
  })
  return {
    address: at.address,
    ip: at.ip,
    chain,
    socket,
    nonce: newNonce(),
    demandTrust: () => {
      const why = verify || fingerprint !== undefined ? whyDistrusted(chain) : undefined
      if (why !== undefined) throw new ProbeError('tls', why)
    },
    // What the handshake has shown is judged although the server has ended the connection since.
    usable: true,
    close: () => void socket.destroy(),
  }
}

/** Completes the handshake, reads the whole chain, sends and receives as configured, and closes the connection. */
export default networkKind({
  name: 'tls',
  title: 'The certificates and the TLS version of a port',
  // TLS says nothing about the protocol inside it.
  recognition: 'none',
  exposure: 'What the secrets in `values` give access to. Use an account of its own for a dialogue that signs in.',
  seesOnly: seesOnly.TLS,
  preload: () => Promise.all([loadXmlParser(), loadTalk()]),
  optionalParts: [
    {
      part: 'server name (SNI) and request for an OCSP staple',
      unasked: 'A server ignores extensions that it does not know (RFC 8446, 4.1.2)',
    },
  ],
  cost: answerCost,
  settings: tlsSettings,
  target: ({ host, port }) => ({ host, port }),
  validate: (settings) => {
    if (settings.starttls !== undefined && settings.port === 443) return 'starttls needs the port of its protocol'
    if (settings.values !== undefined && !settings.verify) return 'values needs verify: true'
    return answerProblem(settings) ?? dialogueProblem(settings, true)
  },
  prepare: (settings: TlsSettings, { files }: CheckContext) => readTrust(settings, files),
  connect: {
    results: { handshake: 'The port accepts a connection and completes a TLS handshake in time' },
    open: shakeHands,
    evaluate: ({ connection: { address, chain }, ms: value }, { latency: threshold }) => {
      const what = `${address} negotiated ${chain.protocol} in`
      return atMost({ check: 'handshake', what, value, unit: 'duration', threshold })
    },
  },
  checks: [expiry, trust, staple, protocol, ...answerChecks(latency, 'TLS')],
})
