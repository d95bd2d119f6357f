import { atMost, networkKind } from '../../engine/index.ts'
import { databaseSlot, userIn } from '../../net/url.ts'
import { mongoChecks, writeConcern } from './checks.ts'
import { connectMongo, connectSettings, mongoPort, prepareMongo } from './connection.ts'
import { loadMongodb } from './driver.ts'

/** Connects to one node, and only reads unless writes are allowed. No socket of the driver outlives the run. */
export default networkKind({
  name: 'mongo',
  title: 'A MongoDB node works and has no condition that will fail soon',
  preload: loadMongodb,
  settings: connectSettings,
  target: (settings) => databaseSlot(settings, mongoPort),
  signsIn: ({ url, password }) =>
    userIn(url) === '' ? undefined : { account: userIn(url), secrets: [password], result: 'connect' },
  validate: ({ url }) => {
    if (/^mongodb\+srv:/i.test(url)) {
      return 'mongodb+srv stands for a whole cluster, but this kind checks one node: add a monitor for each node, with url: mongodb://host:port and tls: {mode: verify} (dig SRV _mongodb._tcp.HOST lists them)'
    }
    return undefined
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
