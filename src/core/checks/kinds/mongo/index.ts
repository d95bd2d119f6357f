import { databaseSlot, userIn } from '../../../base/net/url.ts'
import { tlsProblem } from '../../database/index.ts'
import { atMost, networkKind } from '../../engine/index.ts'
import { behindSignIn, bytes } from '../../recognition/index.ts'
import { mongoChecks, writeConcern } from './checks.ts'
import { connectMongo, connectSettings, mongoPort, mongoTarget, prepareMongo } from './connection.ts'
import { loadMongodb } from './driver.ts'

/** `hello` to `admin`, as OP_MSG. */
const hello = bytes(
  '34000000 01000000 00000000 dd070000 00000000 00 1f000000 10 68656c6c6f00 01000000 02 24646200 06000000 61646d696e00 00',
)

/** Connects to one node, and only reads unless writes are allowed. No socket of the driver outlives the run. */
export default networkKind({
  name: 'mongo',
  title: 'A MongoDB node works and has no condition that will fail soon',
  exposure:
    'clusterMonitor reads statistics and the operations in progress of all databases, and no documents. The role read on local reads the oplog, which contains every change: leave it out where documents are confidential.',
  recognition: [
    {
      name: 'mongo',
      greeting: hello,
      underTls: true,
      is: (reply) => reply.length >= 16 && reply.readUInt32LE(8) === 1 && reply.readUInt32LE(12) === 2013,
      pool: 'alike',
      propose: behindSignIn('mongo', { greeting: hello, expect: 'maxWireVersion' }, (address) => ({
        url: `mongodb://monitor@${address}/admin`,
      })),
    },
  ],
  driver: 'mongo',
  preload: loadMongodb,
  optionalParts: [],
  cost: {
    unit: 'messages',
    Basic: [2, 6, 1],
    Standard: [2, 8, 1],
    Advanced: [2, 14, 1],
    besides:
      'One of the two connections belongs to the driver, which observes the node. Without a user in `url`, there is no sign-in. The figures are those of a simulated primary.',
  },
  settings: connectSettings,
  target: (settings) => databaseSlot(settings, mongoPort),
  signsIn: ({ url, password }) =>
    userIn(url) === '' ? undefined : { account: userIn(url), secrets: [password], result: 'connect' },
  validate: (settings) => {
    if (/^mongodb\+srv:/i.test(settings.url)) {
      return 'mongodb+srv stands for a whole cluster, but this kind checks one node: add a monitor for each node, with url: mongodb://host:port and tls: {mode: verify} (dig SRV _mongodb._tcp.HOST lists them)'
    }
    return tlsProblem(mongoTarget(settings))
  },
  prepare: prepareMongo,
  connect: {
    results: { connect: 'The node accepts the connection and the sign-in in time' },
    open: connectMongo,
    evaluate: ({ connection: { address, identity, user }, ms: value }, { latency: threshold }) => {
      const verb = user === '' ? 'connected to' : 'signed in to'
      return atMost({ check: 'connect', what: `${verb} ${address} ${identity} in`, value, unit: 'duration', threshold })
    },
  },
  checks: [...mongoChecks, writeConcern],
})
