import type { Socket } from 'node:net'
import { showDuration } from '../../base/format.ts'
import { bareHost } from '../../base/loopback.ts'
import { whyDistrusted } from '../../base/net/certificates.ts'
import { connectTcp } from '../../base/net/connect.ts'
import { readTrust, type TlsTrust, trustSettings, unusedTrust } from '../../base/net/trust.ts'
import { ProbeError } from '../../base/probe-error.ts'
import { hostMistake, type SettingsSpec, type Threshold, type Values } from '../../base/settings/index.ts'
import { answerChecks, answerCost, answerProblem, seesOnly } from '../assert/answer.ts'
import type { TalkingConnection } from '../assert/conversation.ts'
import { loadTalk } from '../assert/dialogue.ts'
import { type DialogueSettings, dialogueProblem } from '../assert/dialogue-settings.ts'
import { newNonce } from '../assert/nonce.ts'
import { loadXmlParser } from '../assert/xml.ts'
import {
  type AddressTurn,
  atMost,
  type CheckContext,
  certificateCheck,
  certificateSetting,
  evaluateProtocol,
  fail,
  latencySetting,
  networkKind,
  ok,
  proxySettings,
  type Result,
} from '../engine/index.ts'
import { answerEntry, begins, bytes, type Exchange, namedBy, type Recognition, trustOf } from '../recognition/index.ts'

const latency = latencySetting(
  { warn: 1_000, limit: 3_000 },
  'Maximum time for the connection and for the answer, each',
)

const minVersion = {
  type: 'choice',
  values: ['TLSv1.2', 'TLSv1.3'],
  default: 'TLSv1.2',
  doc: 'Minimum TLS version, with TLS',
} as const satisfies SettingsSpec[string]

const stateSetting = {
  type: 'choice',
  values: ['closed', 'closedOrFiltered'],
  doc: 'The port must not accept connections: `closed`, each address refuses them; `closedOrFiltered`, or does not answer within 3 s, as behind a firewall or where the machine is off',
} as const satisfies SettingsSpec[string]
type State = (typeof stateSetting.values)[number]

const tcpSettings = {
  host: { type: 'text', observed: true, required: true, mistake: hostMistake, doc: 'Host name or address' },
  port: { type: 'integer', observed: true, required: true, min: 1, max: 65_535, doc: 'TCP port' },
  state: stateSetting,
  latency,
  tls: {
    type: 'flag',
    observed: true,
    default: false,
    doc: 'Begin with TLS. svc sends nothing to a server that is not trusted',
  },
  ...trustSettings,
  minVersion,
  ...proxySettings,
} as const satisfies SettingsSpec
type TcpSettings = Values<typeof tcpSettings>

async function connect(
  at: AddressTurn,
  settings: TcpSettings,
  { date }: CheckContext,
  trust: TlsTrust,
): Promise<TalkingConnection> {
  const { ip, port, address, signal } = at
  const { host, servername, tls } = settings
  const secured = async (open?: () => Promise<Socket>) => {
    const { connectTls } = await import('../../base/net/tls-connect.ts')
    const name = servername ?? bareHost(host)
    const link = await connectTls(at, { host: name, ...trust, verify: true, date, ...(open ? { open } : {}) })
    const tooOld = evaluateProtocol('protocol', link.chain, settings.minVersion)
    const why = whyDistrusted(link.chain) ?? (tooOld.status === 'failed' ? tooOld.message : undefined)
    if (why === undefined) return link
    link.socket.destroy()
    throw new ProbeError('tls', why)
  }
  const connection: TalkingConnection = {
    address,
    ip,
    ...(tls ? await secured() : { socket: await connectTcp(ip, port, signal) }),
    nonce: newNonce(),
    beginTls: async (again) => {
      let first: Socket | undefined = connection.socket
      const open = async (): Promise<Socket> => {
        const socket = first ?? (await connectTcp(ip, port, signal))
        if (first === undefined) await again(socket)
        first = undefined
        return socket
      }
      Object.assign(connection, await secured(open))
    },
    get usable() {
      return !connection.socket.destroyed
    },
    close: () => void connection.socket.destroy(),
  }
  return connection
}

/** Milliseconds: a lost packet is sent again after 1 s. */
const filteredMs = 3_000

/**
 * Whether the port of an address is closed. Throws the error of a connection that shows nothing of the port, such as a
 * lack of a route.
 */
async function evaluateClosed(
  { ip, port, address, signal }: AddressTurn,
  state: State,
  { now, msLeft }: CheckContext,
): Promise<Result<'connect'>> {
  const since = now()
  const limit = AbortSignal.timeout(Math.min(filteredMs, Math.floor(msLeft() / 2)))
  const isPatient = state === 'closed'
  try {
    const socket = await connectTcp(ip, port, isPatient ? signal : AbortSignal.any([signal, limit]))
    // Linux may choose the port itself as that of the client, which then talks to itself.
    const isOwnEcho = socket.localPort === port && socket.localAddress === socket.remoteAddress
    socket.destroy()
    return isOwnEcho
      ? ok('connect', `${address} has no listener`, { address })
      : fail('connect', 'data', `${address} accepts connections, and \`state: ${state}\` expects none`, { address })
  } catch (error) {
    const took = showDuration(now() - since)
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ECONNREFUSED') return ok('connect', `${address} refuses connections (after ${took})`, { address })
    // A firewall may also reject packets with the answer that the host cannot be reached.
    const isFiltered =
      !isPatient && !signal.aborted && (limit.aborted || code === 'EHOSTUNREACH' || code === 'ETIMEDOUT')
    if (isFiltered) return ok('connect', `${address} does not answer within ${took}`, { address })
    throw error
  }
}

/** Why the settings cannot be combined with `state`, or undefined. */
function stateProblem({ state, addresses, ...others }: Readonly<Record<string, unknown>>): string | undefined {
  if (state === undefined) return undefined
  const other = [...seesOnly.TCP.without, 'samples'].find((name) => others[name] !== undefined)
  if (other !== undefined) return `state and ${other} exclude each other: a closed port answers nothing`
  return addresses === 'any'
    ? 'state needs addresses: all, as one closed address says nothing of the others'
    : undefined
}

/** Compares the connection time with its threshold. */
export const evaluateConnect = (
  { connection: { address }, ms: value }: { readonly connection: { readonly address: string }; readonly ms: number },
  { latency: threshold }: { readonly latency: Threshold },
): Result<'connect'> => atMost({ check: 'connect', what: `${address} accepted in`, value, unit: 'duration', threshold })

const certificate = {
  ...certificateCheck({
    depth: 'Standard',
    setting: certificateSetting,
    chain: ({ chain }: TalkingConnection) => chain,
  }),
  impossibleWith: ({ tls, dialogue = [] }: Pick<TcpSettings, 'tls'> & DialogueSettings) =>
    !tls && dialogue.every(({ starttls }) => !starttls),
} as const

/** A protocol that is recognized by what an answer begins with. */
const byAnswer = (name: string, exchange: Exchange, pool: Recognition['pool']): Recognition => ({
  ...exchange,
  name,
  is: begins(exchange.expect),
  pool,
  propose: (server, name) => ({ entry: answerEntry(server, name, exchange) }),
})

/**
 * CONNECT of MQTT 3.1.1, with a clean session and without a name or an account (3.1), and its reply, CONNACK (3.2). Code 4 or 5
 * demands an account.
 */
const mqtt: Recognition = {
  name: 'mqtt',
  greeting: bytes('10 0c 0004 4d515454 04 02 003c 0000'),
  underTls: true,
  is: (reply) => reply.length === 4 && reply.readUInt16BE(0) === 0x2002 && [0, 4, 5].includes(reply[3] ?? 255),
  pool: 'alike',
  propose: (server, name) => {
    const code = server.reply[3] ?? 0
    const { note = code === 0 ? undefined : 'it refuses clients without an account, and a refusal is an answer' } =
      trustOf(server)
    return { entry: answerEntry(server, name, { ...mqtt, expect: `/^\\x20\\x02\\x00\\x0${code}/` }), note }
  },
}

/** Connects, sends and receives as configured, and closes the connection. Retries nothing. */
export default networkKind({
  name: 'tcp',
  title: 'A TCP port accepts connections and answers',
  // Servers without a kind of their own, whose first answer is proposed, because a frozen one keeps its port open.
  recognition: [
    byAnswer('nats', { expect: 'INFO {' }, namedBy(/"server_id":"([^"]+)/)),
    byAnswer(
      'memcached',
      { greeting: Buffer.from('version\r\n'), expect: 'VERSION ' },
      namedBy(/^STAT pid (\d+)/, Buffer.from('stats\r\n')),
    ),
    byAnswer('beanstalkd', { greeting: Buffer.from('stats\r\n'), expect: 'OK ' }, namedBy(/^id: "?([0-9a-f]+)/m)),
    mqtt,
  ],
  exposure: 'What the secrets in `values` give access to. Use an account of its own for a dialogue that signs in.',
  // A port that is to be closed has nothing more to show.
  seesOnly: { ...seesOnly.TCP, without: [...seesOnly.TCP.without, 'state'] },
  preload: () => Promise.all([loadXmlParser(), loadTalk()]),
  optionalParts: [],
  cost: answerCost,
  settings: tcpSettings,
  target: ({ host, port }) => ({ host, port }),
  needsEachAddress: ({ state }) => state !== undefined,
  declineAddress: (at, { state }, context) => (state === undefined ? undefined : evaluateClosed(at, state, context)),
  validate: (settings) => {
    const { tls, dialogue = [] } = settings
    const unused = tls || dialogue.some(({ starttls }) => starttls) ? undefined : unusedTrust(settings, 'tls: true')
    if (settings.proxy !== undefined && settings.values !== undefined && !tls)
      return 'values behind a proxy need tls: true: the way to the proxy is not loopback'
    return stateProblem(settings) ?? unused ?? answerProblem(settings) ?? dialogueProblem(settings, tls)
  },
  prepare: (settings: TcpSettings, { files }: CheckContext) => readTrust(settings, files),
  connect: {
    results: { connect: 'The port accepts a connection in time, or with `state` none' },
    open: connect,
    evaluate: evaluateConnect,
  },
  checks: [...answerChecks(latency, 'TCP'), certificate],
})
