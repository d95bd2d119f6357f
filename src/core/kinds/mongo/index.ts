import { slotOf } from '../../database/index.ts'
import { type CheckContext, includes, monitorKind } from '../../engine/index.ts'
import { loadMongodb } from './driver.ts'
import { evaluateMongo, type MongoSeen } from './judge.ts'
import { allowed, lookAtClock, lookAtConnections, lookAtLag, lookAtLoad, lookAtMembers, lookAtOplog } from './look.ts'
import { inSet, type Node } from './node.ts'
import { roundTrip, writable } from './round-trip.ts'
import { type MongoSettings, mongoPort, mongoSettings, mongoTarget } from './settings.ts'
import { type MongoLook, type MongoVisit, mongoVisit } from './visit.ts'

/** An arbiter knows no users, and holds nothing. */
const holds = ({ role }: Node): boolean => role !== 'arbiter' && role !== 'other'
const monitors = 'clusterMonitor'

const standard: readonly MongoLook<MongoSeen>[] = [
  { check: 'role', when: () => true, look: async (_, node) => node },
  { check: 'members', when: inSet, look: allowed('members', monitors, lookAtMembers) },
  { check: 'connections', when: holds, look: allowed('connections', monitors, lookAtConnections) },
]
const advanced: readonly MongoLook<MongoSeen>[] = [
  { check: 'replication lag', when: inSet, look: allowed('replication lag', monitors, lookAtLag) },
  { check: 'oplog window', when: inSet, look: allowed('oplog window', 'read', lookAtOplog) },
  { check: 'queues', when: holds, look: allowed('queues', monitors, lookAtLoad) },
]

const clock = (context: CheckContext): MongoLook<MongoSeen> => ({
  check: 'clock',
  when: () => true,
  look: allowed('clock', monitors, lookAtClock(context)),
})

function writing(settings: MongoSettings, context: CheckContext): readonly MongoLook<MongoSeen>[] {
  if (!settings.allowWrites) return []
  const { limit = Number.POSITIVE_INFINITY } = settings.writeConcern
  const look = allowed('write concern', 'readWrite', (command) =>
    roundTrip(command, {
      database: settings.probeDatabase,
      // Half of the time is left, to take the document away again.
      patienceMs: Math.min(limit, context.msLeft() / 2),
      now: context.now,
      date: context.date,
    }),
  )
  return [{ check: 'write concern', when: writable, look }]
}

/** Asks one node, and only reads unless it is allowed to write. No socket of the driver outlives the run. */
export default monitorKind({
  name: 'mongo',
  title: 'A MongoDB node works, and would survive the night',
  preload: loadMongodb,
  settings: mongoSettings,
  checks: [
    { name: 'connect', depth: 'Basic', doc: 'The node lets the user in, in time' },
    { name: 'hello', depth: 'Basic', doc: 'hello is answered in time' },
    { name: 'ping', depth: 'Basic', doc: 'ping is answered in time' },
    { name: 'role', depth: 'Standard', doc: 'It is what it should be, and of the set that it should be of' },
    { name: 'primary', depth: 'Standard', doc: 'Its replica set has a primary; left out outside a set' },
    { name: 'members', depth: 'Standard', doc: 'Every member of its set is reachable and in order' },
    { name: 'connections', depth: 'Standard', doc: 'Connections are left' },
    { name: 'replication lag', depth: 'Advanced', doc: 'Its secondaries, or it as a secondary, are not behind' },
    { name: 'oplog window', depth: 'Advanced', doc: 'A member that was away for long can still catch up' },
    { name: 'queues', depth: 'Advanced', doc: 'Operations do not pile up before locks' },
    { name: 'cache', depth: 'Advanced', doc: 'The cache of WiredTiger has room; left out without one' },
    { name: 'cache dirty', depth: 'Advanced', doc: 'What is in the cache is written soon enough' },
    { name: 'clock', depth: 'Advanced', doc: "The node's clock agrees with ours" },
    {
      name: 'write concern',
      depth: 'Advanced',
      doc: 'With `allowWrites`, where clients write: a majority acknowledges a write of our own',
    },
  ],
  target: (settings) => slotOf(settings, mongoPort),
  signsIn: ({ url }) => URL.canParse(url) && new URL(url).username !== '',
  validate: ({ url }) => {
    if (/^mongodb\+srv:/i.test(url)) {
      return 'mongodb+srv names a whole cluster, and this kind looks at one node: give each node a monitor, with url: mongodb://host:port and tls: {mode: verify} (dig SRV _mongodb._tcp.HOST lists them)'
    }
    return undefined
  },
  async *observe(settings, context): AsyncGenerator<MongoVisit<MongoSeen>> {
    const looks = [
      ...(includes(context.mode, 'Standard') ? standard : []),
      ...(includes(context.mode, 'Advanced') ? [...advanced, clock(context), ...writing(settings, context)] : []),
    ]
    yield* mongoVisit(context, mongoTarget(settings), looks)
  },
  evaluate: evaluateMongo,
})
