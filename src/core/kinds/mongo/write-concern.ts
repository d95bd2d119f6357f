import { randomUUID } from 'node:crypto'
import { figure, text } from '../../database/index.ts'
import { ProbeError } from '../../probe-error.ts'
import type { Command, Doc } from './driver.ts'
import { part, parts } from './look.ts'
import type { Node } from './node.ts'

export type RoundTrip = { readonly see: 'round trip'; readonly ms: number; readonly swept: number }

const collection = 'probe'
const mark = 'svc-probe-'
/** Milliseconds after which what another run left behind is nobody's any more. */
const leftoverMs = 3_600_000

export type RoundTripSettings = {
  readonly database: string
  /** Milliseconds that a majority may take. */
  readonly patienceMs: number
  readonly now: () => number
  readonly date: () => Date
}

/** Only where a client would write: a secondary is written to by its primary. */
export const writable = ({ role }: Node): boolean => role === 'primary' || role === 'standalone' || role === 'mongos'

/** Writes a document with write concern majority, reads it, deletes it, and sweeps what earlier runs left. */
export async function roundTrip(command: Command, settings: RoundTripSettings): Promise<RoundTrip> {
  const { database, patienceMs, now, date } = settings
  const id = `${mark}${randomUUID()}`
  const at = date()
  const run = async (asked: Doc): Promise<Doc> => accepted(await command(asked, database))
  const started = now()
  let ms: number
  try {
    await run({
      insert: collection,
      documents: [{ _id: id, at }],
      writeConcern: { w: 'majority', wtimeout: Math.max(1, Math.floor(patienceMs)) },
    })
    ms = now() - started
    const found = await run({ find: collection, filter: { _id: id }, limit: 1, singleBatch: true })
    const [first] = parts(part(found, 'cursor'), 'firstBatch')
    if (text(first, '_id', 64) !== id) throw new ProbeError('data', 'the document that was written is not there')
  } finally {
    // A connection that broke leaves it to the sweep of a later run.
    await run({ delete: collection, deletes: [{ q: { _id: id }, limit: 1 }] }).catch(() => {})
  }
  const old = { _id: { $regex: `^${mark}` }, at: { $lt: new Date(at.getTime() - leftoverMs) } }
  const swept = await run({ delete: collection, deletes: [{ q: old, limit: 0 }] })
  return { see: 'round trip', ms, swept: figure(swept, 'n') ?? 0 }
}

/** A write that fails is answered with ok. */
function accepted(answer: Doc): Doc {
  const [first] = parts(answer, 'writeErrors')
  if (first) throw new ProbeError('data', `the write was refused: ${text(first, 'errmsg', 200)}`)
  const concern = part(answer, 'writeConcernError')
  if ('errmsg' in concern) {
    throw new ProbeError('timeout', `no majority acknowledged the write in time: ${text(concern, 'errmsg', 200)}`)
  }
  return answer
}
