import { urlTarget } from '../../../base/net/url.ts'
import { shownLocation } from '../../assert/content.ts'
import {
  atMost,
  certificateCheck,
  fail,
  httpsCertificateSetting,
  ignoredHeaders,
  includes,
  networkKind,
} from '../../engine/index.ts'
import { account, answerEntry, httpServer, noteOf, pageOf, trustOf } from '../../recognition/index.ts'
import { allQueues } from './all-queues.ts'
import { connectSettings, type Management, openManagement, validateUrl } from './management.ts'
import {
  alarms,
  cluster,
  fileDescriptors,
  maintenance,
  memory,
  messages,
  node,
  partitions,
  signIn,
  sockets,
  virtualHosts,
} from './nodes.ts'
import { consumers, deadLetters, oldestMessage, queue, stalled, unacknowledged, validateQueues } from './queues.ts'

const certificate = certificateCheck({
  depth: 'Advanced',
  setting: httpsCertificateSetting,
  scheme: 'https',
  chain: ({ chain }: Management) => chain(),
})

const logsWarnings =
  'its log gets a warning with each run, which a monitor of the management API (kind rabbitmq) spares it'

/** The beginning of a client of AMQP 0-9-1, which the server answers with the method Connection.Start. */
const protocolHeader = Buffer.from('AMQP\0\0\x09\x01', 'latin1')

/**
 * Queries the HTTP management of RabbitMQ with GET requests only. Speaks no AMQP: neither consumes nor publishes
 * messages.
 */
export default networkKind({
  name: 'rabbitmq',
  title: 'A RabbitMQ server and its queues work, according to its HTTP management API',
  exposure:
    'The tag monitoring reads names and figures of all queues, connections and users, and no passwords. With the permissions below it reads, writes and configures no queue.',
  recognition: [
    {
      name: 'amqp',
      greeting: protocolHeader,
      underTls: true,
      is: (reply) => reply[0] === 1 && reply[1] === 0 && reply[2] === 0,
      pool: 'alike',
      propose: (server, name) => ({
        entry: answerEntry(server, name, { greeting: protocolHeader, expect: '/^\\x01\\x00\\x00/' }),
        note: noteOf(trustOf(server).note, logsWarnings),
      }),
    },
    // The management API.
    {
      ...httpServer,
      onlyAtStandardPorts: true,
      propose: (server, name) => {
        const { root, page } = pageOf(server)
        const { settings, note } = trustOf(server)
        const url = root.slice(0, -1)
        return {
          entry: { kind: 'http', name, url: page, ...settings },
          note,
          deeper: { kind: 'rabbitmq', name: `rabbitmq-${server.port}`, url, ...settings, ...account },
        }
      },
    },
  ],
  optionalParts: [{ part: 'User-Agent, Accept, Accept-Encoding', unasked: ignoredHeaders }],
  cost: {
    unit: 'HTTP requests',
    Basic: [1, 1],
    Standard: [5, 5, 4],
    Advanced: [5, 5, 4],
    adds: [{ setting: 'queues', each: true, from: 'Standard', connections: 1, requests: 1, signIns: 1 }],
    besides:
      'Each request has its own connection, and each but the first signs in. A server that collects no statistics gets two more in Standard.',
  },
  settings: connectSettings,
  target: urlTarget,
  signsIn: ({ username, password }, mode) =>
    includes(mode, 'Standard') ? { account: username, secrets: [password], result: 'sign-in' } : undefined,
  validate: (settings) => validateUrl(settings) ?? validateQueues(settings.queues, settings.deadLetters),
  connect: {
    results: { management: 'The management API answers in time; without a sign-in' },
    open: openManagement,
    evaluate: ({ connection: { address, greeting, usable }, ms: value }, { url, latency: threshold }) => {
      if (usable) {
        const what = `${address}: management API answered in`
        return atMost({ check: 'management', what, value, unit: 'duration', threshold })
      }
      const { status, location } = greeting
      const to = location === undefined ? '' : ` to ${shownLocation(location, new URL(url))}: set url to that`
      const answer = status === 200 ? '200, but not with JSON' : `${status}${to}`
      const why = status === 404 ? ': no RabbitMQ management API there (is the plugin enabled?)' : ''
      const measurement = { value: status, unit: 'count' } as const
      return fail('management', 'data', `${address} answered ${answer}${why}`, { measurement })
    },
  },
  checks: [
    signIn,
    messages,
    node,
    maintenance,
    alarms,
    memory,
    fileDescriptors,
    sockets,
    virtualHosts,
    allQueues,
    queue,
    consumers,
    unacknowledged,
    oldestMessage,
    stalled,
    deadLetters,
    partitions,
    cluster,
    certificate,
  ],
})
