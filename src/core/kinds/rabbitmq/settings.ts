import type { SettingsSpec, Values } from '../../settings/index.ts'

const minute = 60_000
const share = { warn: 80, limit: 95 } as const

/** What svc.yaml may say of a rabbitmq monitor. */
export const rabbitmqSettings = {
  url: {
    type: 'url',
    protocols: ['http', 'https'],
    required: true,
    doc: 'The management: http://host:15672 or https://host:15671, without user or password',
  },
  username: { type: 'text', required: true, doc: 'An account with the tag monitoring and a right in each vhost' },
  password: { type: 'secret', required: true, doc: 'Its password; sent from Standard on' },
  insecureHttp: { type: 'flag', default: false, doc: 'Send the password over http:// to another machine too' },
  caFile: { type: 'text', doc: 'PEM file of CAs trusted beside those of the system' },
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 5_000 },
    doc: 'How long the management may take to answer',
  },
  memory: { type: 'threshold', unit: 'percent', default: share, doc: 'Memory of a node, of its high watermark' },
  fileDescriptors: { type: 'threshold', unit: 'percent', default: share, doc: 'File descriptors in use' },
  sockets: { type: 'threshold', unit: 'percent', default: share, doc: 'Sockets in use' },
  messages: { type: 'threshold', unit: 'count', doc: 'Messages ready in all queues together' },
  queues: {
    type: 'groups',
    doc: 'Queues that must work',
    fields: {
      name: { type: 'text', required: true, doc: 'Name of the queue' },
      vhost: { type: 'text', default: '/', doc: 'Its virtual host' },
      ready: { type: 'threshold', unit: 'count', default: { warn: 1_000 }, doc: 'Messages that may wait' },
      unacknowledged: {
        type: 'threshold',
        unit: 'count',
        doc: 'Messages that consumers may hold without acknowledging them',
      },
      consumers: { type: 'integer', min: 0, default: 1, doc: 'Consumers that it must have at least' },
      oldest: {
        type: 'threshold',
        unit: 'duration',
        default: { warn: minute, limit: 5 * minute },
        doc: 'Age of the message at its head; only where publishers set a timestamp',
      },
    },
  },
  stalled: {
    type: 'duration',
    default: 6_000,
    doc: 'How long a queue with messages and consumers may deliver none; at least the statistics interval of the server',
  },
  deadLetters: {
    type: 'groups',
    doc: 'Queues that collect what could not be processed',
    fields: {
      name: { type: 'text', required: true, doc: 'Name of the queue' },
      vhost: { type: 'text', default: '/', doc: 'Its virtual host' },
      messages: {
        type: 'threshold',
        unit: 'count',
        default: { warn: 0, limit: 10 },
        doc: 'Messages that may lie there',
      },
    },
  },
  nodes: { type: 'integer', min: 1, doc: 'How many nodes of the cluster must run' },
  certificate: {
    type: 'threshold',
    unit: 'days',
    default: { warn: 20, limit: 3 },
    doc: 'Days that every certificate of the chain has left at least (https)',
  },
} as const satisfies SettingsSpec
export type RabbitmqSettings = Values<typeof rabbitmqSettings>
export type QueueSettings = NonNullable<RabbitmqSettings['queues']>[number]
export type DeadLetterSettings = NonNullable<RabbitmqSettings['deadLetters']>[number]

const mostQueues = 100

/** Why the settings cannot be used together, or undefined. */
export function validate(given: RabbitmqSettings): string | undefined {
  const url = new URL(given.url)
  if (url.username !== '' || url.password !== '') return 'url holds a user or a password: use username and password'
  if (url.search !== '') return 'url has parameters, which are not read'
  if (given.username.includes(':')) return 'a username of HTTP basic sign-in holds no colon'
  if ((given.queues?.length ?? 0) + (given.deadLetters?.length ?? 0) > mostQueues) {
    return `queues and deadLetters are more than ${mostQueues}: give less`
  }
  return undefined
}
