import { atMost, networkKind } from '../../engine/index.ts'
import { databaseSlot } from '../../net/url.ts'
import { mongoChecks } from './checks.ts'
import { connectMongo, connectSettings, mongoPort, prepareMongo } from './connection.ts'
import { loadMongodb } from './driver.ts'
import { writeConcern } from './write-concern.ts'

/** Connects to one node, and only reads unless writes are allowed. No socket of the driver outlives the run. */
export default networkKind({
  name: 'mongo',
  title: 'A MongoDB node works and has no condition that will fail soon',
  preload: loadMongodb,
  settings: connectSettings,
  target: (settings) => databaseSlot(settings, mongoPort),
  signsIn: ({ url }) => URL.canParse(url) && new URL(url).username !== '',
  validate: ({ url }) => {
    if (/^mongodb\+srv:/i.test(url)) {
      return 'mongodb+srv names a whole cluster, and this kind looks at one node: give each node a monitor, with url: mongodb://host:port and tls: {mode: verify} (dig SRV _mongodb._tcp.HOST lists them)'
    }
    return undefined
  },
  prepare: prepareMongo,
  connect: {
    results: { connect: 'The node lets the user in, in time' },
    open: connectMongo,
    evaluate: ({ connection: { address, identity, user }, ms: value }, { latency: threshold }) => {
      const verb = user === '' ? 'connected to' : 'signed in at'
      return atMost({ check: 'connect', what: `${verb} ${address} ${identity} in`, value, unit: 'duration', threshold })
    },
  },
  checks: [...mongoChecks, writeConcern],
})
