import { type Document, Timestamp } from 'bson'
import type { MongoAnswer } from './mongo.ts'

export const GiB = 1024 ** 3
export const now = Date.now()

/** A member of a replica set, as replSetGetStatus lists it. */
export const member = (name: string, state: number, stateStr: string, more: Document = {}): Document => ({
  name,
  state,
  stateStr,
  health: 1,
  optimeDate: new Date(now),
  ...more,
})
/** The answers of a healthy primary of three. */
export const set: Readonly<Record<string, Document>> = {
  replSetGetStatus: {
    set: 'rs0',
    members: [
      member('db1:27017', 1, 'PRIMARY', { self: true }),
      member('db2:27017', 2, 'SECONDARY', { optimeDate: new Date(now - 2_000) }),
      member('db3:27017', 7, 'ARBITER', { optimeDate: undefined }),
    ],
    ok: 1,
  },
  replSetGetConfig: { config: { members: [{ host: 'db2:27017', secondaryDelaySecs: 0 }] }, ok: 1 },
  collStats: { size: 9.5 * GiB, maxSize: 10 * GiB, ok: 1 },
  serverStatus: {
    connections: { current: 40, available: 760 },
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
/** The answers of nodes in several roles to hello. */
export const hello = {
  primary: { setName: 'rs0', isWritablePrimary: true, secondary: false, primary: 'db1:27017', me: 'db1:27017' },
  secondary: { setName: 'rs0', isWritablePrimary: false, secondary: true, primary: 'db1:27017', me: 'db2:27017' },
  mongos: { msg: 'isdbgrid', isWritablePrimary: true },
  recovering: { setName: 'rs0', isWritablePrimary: false, secondary: false, primary: 'db1:27017', me: 'db2:27017' },
  uninitiated: { isreplicaset: true, isWritablePrimary: false },
  arbiter: { setName: 'rs0', isWritablePrimary: false, secondary: false, arbiterOnly: true, primary: 'db1:27017' },
} as const

/** Answers by the name of a command; it keeps what is inserted. `over` comes first. */
export function answers(
  over: Readonly<Record<string, MongoAnswer>> = {},
): (command: Document) => MongoAnswer | undefined {
  const documents = new Map<string, Document>()
  const cursor = (firstBatch: readonly Document[]): Document => ({ cursor: { id: 0, ns: 'x.y', firstBatch }, ok: 1 })
  return (command) => {
    const [name = ''] = Object.keys(command)
    if (over[name] !== undefined) return over[name]
    if (command.find === 'oplog.rs') {
      const t = Math.floor(now / 1_000) - (command.sort.$natural === 1 ? 30 * 3_600 : 0)
      return cursor([{ ts: new Timestamp({ t, i: 1 }) }])
    }
    if (name === 'insert') for (const one of command.documents as Document[]) documents.set(String(one._id), one)
    if (name === 'find') return cursor([documents.get(String(command.filter._id))].filter((one) => one !== undefined))
    if (name === 'delete') return { n: documents.delete(String(command.deletes[0].q._id)) ? 1 : 0, ok: 1 }
    return set[name]
  }
}
