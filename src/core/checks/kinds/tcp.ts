import { connectTcp } from '../../base/net/connect.ts'
import { hostMistake, type Threshold } from '../../base/settings/index.ts'
import { answerChecks, answerProblem, seesOnly, type TalkingConnection } from '../assert/answer.ts'
import { newNonce } from '../assert/nonce.ts'
import { loadXmlParser } from '../assert/xml.ts'
import { type AddressTurn, atMost, latencySetting, networkKind, type Result } from '../engine/index.ts'
import { begins, portEntry, type Recognition } from '../recognition/index.ts'

const latency = latencySetting(
  { warn: 1_000, limit: 3_000 },
  'Maximum time for the connection and for the answer, each',
)

async function connect({ ip, port, address, signal }: AddressTurn): Promise<TalkingConnection> {
  const socket = await connectTcp(ip, port, signal)
  return {
    address,
    socket,
    nonce: newNonce(),
    get usable() {
      return !socket.destroyed
    },
    close: () => void socket.destroy(),
  }
}

/** Compares the connection time with its threshold. */
export const evaluateConnect = (
  { connection: { address }, ms: value }: { readonly connection: { readonly address: string }; readonly ms: number },
  { latency: threshold }: { readonly latency: Threshold },
): Result<'connect'> => atMost({ check: 'connect', what: `${address} accepted in`, value, unit: 'duration', threshold })

/** Proposes a monitor with what has recognized the server. */
const answering =
  (settings: { readonly send?: string; readonly expect: string }): Recognition['propose'] =>
  (server, name) => ({ entry: { ...portEntry(server, name), ...settings } })

/** A protocol that is recognized by its answer to a question. */
const byAnswer = (name: string, settings: { readonly send: string; readonly expect: string }): Recognition => ({
  name,
  greeting: Buffer.from(settings.send),
  is: begins(settings.expect),
  propose: answering(settings),
})

/** Connects, sends and receives as configured, and closes the connection. Retries nothing. */
export default networkKind({
  name: 'tcp',
  title: 'A TCP port accepts connections and answers',
  // Servers without a kind of their own, whose first answer is proposed, because a frozen one keeps its port open.
  recognition: [
    { name: 'nats', is: begins('INFO {'), propose: answering({ expect: 'INFO {' }) },
    byAnswer('memcached', { send: 'version\r\n', expect: 'VERSION ' }),
    byAnswer('beanstalkd', { send: 'stats\r\n', expect: 'OK ' }),
  ],
  seesOnly: seesOnly.TCP,
  preload: loadXmlParser,
  optionalParts: [],
  cost: {
    unit: 'messages',
    Basic: [1, 0],
    Standard: [1, 0],
    Advanced: [1, 0],
    adds: [{ setting: 'send', from: 'Basic', requests: 1 }],
  },
  settings: {
    host: { type: 'text', observed: true, required: true, mistake: hostMistake, doc: 'Host name or address' },
    port: { type: 'integer', observed: true, required: true, min: 1, max: 65_535, doc: 'TCP port' },
    latency,
  },
  target: ({ host, port }) => ({ host, port }),
  validate: answerProblem,
  connect: {
    results: { connect: 'The port accepts a connection in time' },
    open: connect,
    evaluate: evaluateConnect,
  },
  checks: answerChecks(latency, 'TCP'),
})
