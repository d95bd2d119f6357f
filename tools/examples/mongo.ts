import { type Document, Timestamp } from 'bson'
import { mongoPeer } from '../../test/support/simulated/mongo.ts'
import { during, type Example } from './example.ts'

const GiB = 1_024 ** 3
const password = 'correct-horse-2'

/** The state of a simulated replica set. */
type State = { lagMs: number; primary: boolean; current: number; oplogHours: number }

export const mongo: Example = {
  type: 'Mongo',
  title: 'MongoDB',
  meaning: 'A MongoDB node: of a replica set, a mongos, or by itself.',
  peers:
    '**A simulated primary of a replica set**, which speaks MongoDB’s wire protocol and checks the password by SCRAM-SHA-256. MongoDB itself was not run. The tests of the kind run against FerretDB too, where that is built.',
  show: (stage) =>
    during(async (onEnd) => {
      const state: State = { lagMs: 1_000, primary: true, current: 40, oplogHours: 30 }
      const server = await mongoPeer({
        users: { monitor: password },
        hello: { setName: 'rs0', isWritablePrimary: true, secondary: false, primary: 'db1:27017', me: 'db1:27017' },
        answer: answers(state),
      })
      onEnd(server.close)
      stage.port(server.port, 27_017)
      stage.file('orders-mongo', password)
      await stage.yaml(`types:
  Mongo:
    host: false
    monitors:
      - kind: mongo
        name: orders
        url: mongodb://monitor@127.0.0.1:${server.port}/
        password: {file: orders-mongo}
        replicaSet: rs0
        role: primary
        allowWrites: true              # one document of its own, by a majority, and deleted
`)
      await stage.list()
      await stage.green()

      Object.assign(state, { lagMs: 95_000, oplogHours: 3 })
      await stage.red('A secondary that lags, and an oplog that is too short', {
        happened:
          'The simulated primary told that db2 is 95 seconds behind, and that its full oplog reaches back three hours: a secondary that is down for longer must be set up anew.',
        says: [/db2/, /3 h \(warn below 24 h, fail below 4 h\)/],
      })
      Object.assign(state, { lagMs: 1_000, oplogHours: 30, current: 785 })
      await stage.red('Connections run out', {
        happened: 'The simulated primary told of 785 connections in use, of 800.',
        says: [/98\.1 %/],
        mode: 'Standard',
      })
      stage.file('orders-mongo', 'mistyped')
      await stage.red('A wrong password', {
        happened: 'The file `orders-mongo` held another password than the node knows: SCRAM failed, once.',
        says: [/refused the sign-in|Authentication failed/],
        mode: 'Basic',
      })
    }),
}

function answers(state: State): (command: Document) => Document | undefined {
  const remaining = new Map<string, Document>()
  const cursor = (firstBatch: readonly Document[]): Document => ({ cursor: { id: 0, ns: 'x.y', firstBatch }, ok: 1 })
  return (command) => {
    const [name = ''] = Object.keys(command)
    const now = Date.now()
    const member = (at: string, code: number, stateStr: string, behind: number, more: Document = {}): Document => ({
      name: at,
      state: code,
      stateStr,
      health: 1,
      optimeDate: new Date(now - behind),
      ...more,
    })
    if (command['find'] === 'oplog.rs') {
      const first = (command['sort'] as Document)['$natural'] === 1
      const t = Math.floor(now / 1_000) - (first ? state.oplogHours * 3_600 : 0)
      return cursor([{ ts: new Timestamp({ t, i: 1 }) }])
    }
    if (name === 'insert') for (const one of command['documents'] as Document[]) remaining.set(String(one['_id']), one)
    if (name === 'find') {
      const result = remaining.get(String((command['filter'] as Document)['_id']))
      return cursor(result ? [result] : [])
    }
    if (name === 'delete') {
      const ids = (command['deletes'] as { readonly q: Document }[]).map(({ q }) => String(q['_id']))
      return { n: ids.filter((id) => remaining.delete(id)).length, ok: 1 }
    }
    const answers: Readonly<Record<string, Document>> = {
      replSetGetStatus: {
        set: 'rs0',
        members: [
          member('db1:27017', 1, 'PRIMARY', 0, { self: true }),
          member('db2:27017', 2, 'SECONDARY', state.lagMs),
          member('db3:27017', 2, 'SECONDARY', 1_000),
        ],
        ok: 1,
      },
      replSetGetConfig: { config: { members: [{ host: 'db2:27017', secondaryDelaySecs: 0 }] }, ok: 1 },
      collStats: { size: 9.5 * GiB, maxSize: 10 * GiB, ok: 1 },
      serverStatus: {
        connections: { current: state.current, available: 800 - state.current },
        globalLock: { currentQueue: { total: 1, readers: 1, writers: 0 } },
        wiredTiger: {
          cache: {
            'maximum bytes configured': 10 * GiB,
            'bytes currently in the cache': 8 * GiB,
            'tracked dirty bytes in the cache': GiB / 2,
          },
        },
        ok: 1,
      },
    }
    return answers[name]
  }
}
