import { Fault } from '../../errors.ts'
import type { StoredQuiet } from '../../quiet/index.ts'
import type { AuditEvent } from '../audit-events.ts'
import type { QuietRows } from '../data.ts'
import type { StoreLink } from '../link.ts'
import { counted } from '../tables.ts'
import { note } from './audit.ts'

/**
 * Milliseconds for which an entry is kept after its end: a receiver that was unavailable learns why it gets a message.
 */
export const quietsKeptMs = 7 * 86_400_000
/** The maximum number of entries: more come from a script out of control. */
const maxEntries = 10_000

/** A lock for every transaction that changes entries. */
const lock = 'quiets'

export function quietsOver(link: StoreLink, now: () => number): QuietRows {
  return {
    list: () =>
      link.read(async (db) => {
        const rows = await db.selectFrom('quiets').select('body').orderBy('endsAt', 'desc').limit(maxEntries).execute()
        return rows.map(({ body }) => JSON.parse(body) as StoredQuiet).toSorted((one, other) => one.from - other.from)
      }),
    add: (entries, actor) =>
      link.write(async (tx) => {
        await link.lock(tx, lock)
        if ((await counted(tx, 'quiets')) + entries.length > maxEntries) throw full()
        for (const entry of entries) {
          const { id, until: endsAt } = entry
          await tx
            .insertInto('quiets')
            .values({ id, endsAt, body: JSON.stringify(entry) })
            .execute()
          await note(tx, now(), actor, {
            event: eventOf(entry, 'added'),
            target: targetOf(entry),
            after: JSON.stringify(factsOf(entry)),
          })
        }
      }),
    end: (id, ended, actor) =>
      link.write(async (tx) => {
        await link.lock(tx, lock)
        const [row] = await tx.selectFrom('quiets').select('body').where('id', '=', id).execute()
        const before = row && (JSON.parse(row.body) as StoredQuiet)
        if (!before || before.ended || before.until <= ended.at) return undefined
        const entry: StoredQuiet = { ...before, ended }
        await tx
          .updateTable('quiets')
          .set({ endsAt: ended.at, body: JSON.stringify(entry) })
          .where('id', '=', id)
          .execute()
        await note(tx, now(), actor, {
          event: eventOf(entry, 'ended'),
          target: targetOf(entry),
          before: JSON.stringify(factsOf(before)),
          after: JSON.stringify({ id, why: ended.why }),
        })
        return entry
      }),
  }
}

const eventOf = ({ what }: StoredQuiet, step: 'added' | 'ended'): AuditEvent => `${what}.${step}`

/** How many characters of the monitors an audit entry has. */
const maxTarget = 1_000
const targetOf = (entry: StoredQuiet): string =>
  (entry.what === 'quiet'
    ? entry.monitors.join(', ')
    : [entry.subject.key, entry.subject.check, entry.subject.item].filter((part) => part !== undefined).join(' ')
  ).slice(0, maxTarget)

const factsOf = (entry: StoredQuiet) => ({
  id: entry.id,
  until: new Date(entry.until).toISOString(),
  ...(entry.what === 'ack' ? { level: entry.level, fault: entry.fault, incident: entry.incident } : {}),
})

const full = (): Fault =>
  new Fault('Conflict', `The limit of ${maxEntries} silences is reached`, {
    hints: ['svc quiet list   shows those in force, and svc quiet end ID ends one'],
  })
