import { randomUUID } from 'node:crypto'
import { figure, text } from '../../database/index.ts'
import { atMost } from '../../engine/index.ts'
import { count } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { grantOf, isWritable, onMongo, permitted, warnOf } from './connection.ts'
import { type Command, type Doc, part, parts } from './driver.ts'

const collection = 'probe'
const mark = 'svc-probe-'
/** Milliseconds after which leftovers of other runs may be deleted. */
const leftoverMs = 3_600_000

/** Runs only on nodes that accept writes. */
export const writeConcern = onMongo({
  depth: 'Advanced',
  results: {
    'write concern': 'With `allowWrites`, on a node that accepts writes: a majority acknowledges a test write',
  },
  settings: {
    allowWrites: {
      type: 'flag',
      default: false,
      doc: 'Lets `write concern` insert, read and delete a test document, and delete those that earlier runs left behind',
    },
    probeDatabase: {
      type: 'text',
      default: 'svc_health',
      pattern: /^[A-Za-z0-9_-]{1,38}$/,
      doc: 'Database in which `write concern` writes, to the collection `probe`',
    },
    writeConcern: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 1_000, limit: 5_000 },
      doc: 'How long a majority may take to acknowledge a write',
    },
  },
  applies: ({ node }, { allowWrites }) => allowWrites && isWritable(node),
  privilege: grantOf({ role: 'readWrite', database: '<probeDatabase>' }),
  observe: (mongo, { probeDatabase: database, writeConcern: threshold }, { msLeft, now, date }) => {
    const { limit = Number.POSITIVE_INFINITY } = threshold
    // Leaves half of the time for deleting the document.
    const timeoutMs = Math.min(limit, msLeft() / 2)
    return permitted(mongo, { role: 'readWrite', database }, () =>
      roundTrip(mongo.command, { database, timeoutMs, now, date }),
    )
  },
  evaluate: (observation, { writeConcern: threshold }) => {
    if ('obstacle' in observation) return warnOf('write concern', observation)
    const { ms: value, swept } = observation
    return atMost({
      check: 'write concern',
      what: 'a majority acknowledged a write in',
      value,
      unit: 'duration',
      threshold,
      details: swept > 0 ? [`deleted ${count(swept, 'document')} that earlier runs left behind`] : undefined,
    })
  },
})

type RoundTripSettings = {
  readonly database: string
  /** The timeout of the majority in milliseconds. */
  readonly timeoutMs: number
  readonly now: () => number
  readonly date: () => Date
}

/** Writes a document with write concern majority, reads it, deletes it, and deletes the leftovers of earlier runs. */
async function roundTrip(command: Command, { database, timeoutMs, now, date }: RoundTripSettings) {
  const id = `${mark}${randomUUID()}`
  const at = date()
  const run = async (request: Doc): Promise<Doc> => accepted(await command(request, database))
  const since = now()
  let ms: number
  try {
    await run({
      insert: collection,
      documents: [{ _id: id, at }],
      writeConcern: { w: 'majority', wtimeout: Math.max(1, Math.floor(timeoutMs)) },
    })
    ms = now() - since
    const answer = await run({ find: collection, filter: { _id: id }, limit: 1, singleBatch: true })
    const [first] = parts(part(answer, 'cursor'), 'firstBatch')
    if (text(first, '_id', 64) !== id) throw new ProbeError('data', 'the test document was not found after writing')
  } finally {
    // After a broken connection, a later run deletes the document.
    await run({ delete: collection, deletes: [{ q: { _id: id }, limit: 1 }] }).catch(() => {})
  }
  const old = { _id: { $regex: `^${mark}` }, at: { $lt: new Date(at.getTime() - leftoverMs) } }
  const removal = await run({ delete: collection, deletes: [{ q: old, limit: 0 }] })
  return { ms, swept: figure(removal, 'n') ?? 0 }
}

/** A server answers even a failed write with ok. */
function accepted(answer: Doc): Doc {
  const [first] = parts(answer, 'writeErrors')
  if (first) throw new ProbeError('data', `the write failed: ${text(first, 'errmsg', 200)}`)
  const concern = part(answer, 'writeConcernError')
  if ('errmsg' in concern) {
    throw new ProbeError('timeout', `no majority acknowledged the write in time: ${text(concern, 'errmsg', 200)}`)
  }
  return answer
}
