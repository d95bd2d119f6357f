import { atMost, networkKind } from '../../engine/index.ts'
import { databaseSlot } from '../../net/url.ts'
import { certificate, cluster, latency, ping, roundTrip, selectDatabase } from './checks.ts'
import { connectSettings, openRedis, prepareRedis, validateUrl } from './connection.ts'
import { durabilityChecks, serverChecks } from './info.ts'
import { oldestItem, queue, validateQueues } from './queues.ts'

/** Signs in if a password is configured. Only reads, except for the key of its own that `allowWrites` permits. */
export default networkKind({
  name: 'redis',
  title: 'A Redis or Valkey server works, and nothing in it is about to fail',
  settings: connectSettings,
  target: (settings) => databaseSlot(settings),
  signsIn: ({ password }) => password !== undefined,
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
    ...serverChecks,
    selectDatabase,
    queue,
    ...durabilityChecks,
    cluster,
    latency,
    roundTrip,
    oldestItem,
    certificate,
  ],
})
