import { hostPort } from '../../../base/net/connect.ts'
import { databaseSlot, userIn } from '../../../base/net/url.ts'
import { atMost, type Check, networkKind } from '../../engine/index.ts'
import {
  answerEntry,
  firstLine,
  namedBy,
  type Proposed,
  proposedPassword,
  type RecognizedServer,
  trustOf,
} from '../../recognition/index.ts'
import { certificate, latency, ping, roundTrip, selectDatabase } from './checks.ts'
import { clusterChecks } from './cluster.ts'
import { connectSettings, openRedis, prepareRedis, type RedisConnection, validateUrl } from './connection.ts'
import { durabilityChecks, serverChecks } from './info.ts'
import { oldestItem, queue, validateQueues } from './queues.ts'
import { sentinelMaster, sentinelQuorum, sentinelReplicas } from './sentinel.ts'

/** Leaves a check out on a Sentinel, which has neither data nor replicas of its own. */
const notOnSentinels = <C extends Check<RedisConnection>>(check: C): C => ({
  ...check,
  applies: (redis: RedisConnection, settings: never) =>
    redis.isSentinel !== true && (check.applies?.(redis, settings) ?? true),
})

const greeting = Buffer.from('PING\r\n')
const identity = Buffer.from('INFO server\r\n')

async function proposeRedis(server: RecognizedServer, name: string): Promise<Proposed> {
  const url = `${server.tls ? 'rediss' : 'redis'}://${hostPort(server.host, server.port)}`
  const entry = { kind: 'redis', name, url, ...trustOf(server).settings }
  if (firstLine(server.reply).startsWith('-NOAUTH')) {
    const guarded = answerEntry(server, name, { greeting, expect: '-NOAUTH' })
    return { entry: guarded, deeper: { ...entry, password: proposedPassword } }
  }
  const information = await server.ask(identity)
  if (!/(?:redis|server)_mode:sentinel/.test(information?.toString('latin1') ?? '')) return { entry }
  const note =
    'a Redis Sentinel: svc checks the primaries that it monitors, and each Redis server needs a monitor of its own'
  return { entry, note }
}

/** Signs in if a password is configured. Only reads, except for the key of its own that `allowWrites` permits. */
export default networkKind({
  name: 'redis',
  title: 'A Redis or Valkey server or a Sentinel works, and nothing in it is about to fail',
  exposure:
    'Figures of the server. CONFIG GET also shows the passwords of replication in clear text: leave it out where these matter. Of the keys, only those that the rule names.',
  recognition: [
    {
      name: 'redis',
      greeting,
      underTls: true,
      is: (reply) => /^(?:\+PONG|-NOAUTH|-DENIED)/.test(firstLine(reply)),
      pool: namedBy(/run_id:([0-9a-f]{40})/, identity),
      propose: proposeRedis,
    },
  ],
  optionalParts: [],
  cost: {
    unit: 'commands',
    Basic: [1, 1],
    Standard: [1, 2],
    Advanced: [1, 12],
    adds: [
      { setting: 'password', from: 'Basic', requests: 1, signIns: 1 },
      { setting: 'queues', each: true, from: 'Standard', requests: 1 },
    ],
    besides: 'Clusters and Sentinels have commands of their own.',
  },
  settings: connectSettings,
  target: (settings) => databaseSlot(settings),
  signsIn: ({ url, password }) =>
    password === undefined ? undefined : { account: userIn(url), secrets: [password], result: 'connect' },
  validate: (settings) => validateUrl(settings) ?? validateQueues(settings.queues),
  prepare: prepareRedis,
  connect: {
    results: { connect: 'The server accepts the connection and the sign-in in time' },
    open: openRedis,
    evaluate: ({ connection, ms: value }, { password, latency: threshold }) => {
      const what = `${connection.describeSignIn(password !== undefined)} in`
      return atMost({ check: 'connect', what, value, unit: 'duration', threshold })
    },
  },
  checks: [
    ping,
    sentinelMaster,
    sentinelQuorum,
    sentinelReplicas,
    ...[
      ...serverChecks,
      ...clusterChecks,
      selectDatabase,
      queue,
      ...durabilityChecks,
      latency,
      roundTrip,
      oldestItem,
    ].map(notOnSentinels),
    certificate,
  ],
})
