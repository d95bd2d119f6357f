import { Fault } from '../../base/errors.ts'
import type { StoredSilence } from '../../watch/silences/index.ts'
import type { AuditEvent } from '../audit-events.ts'
import type { SilenceRows } from '../data.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'
import { note } from './audit.ts'

/**
 * Milliseconds for which an entry is kept after its end: a receiver that was unavailable learns why it gets a message.
 */
export const silencesKeptMs = 7 * 86_400_000
/** The maximum number of entries in force: more come from a script out of control. As many are kept of those that ended. */
const maxEntries = 10_000

/** The word for a silence in stored entries: that of earlier versions, whose nodes read them too. */
const storedWord = 'quiet'
const bodyOf = (entry: StoredSilence): string =>
  JSON.stringify({ ...entry, what: entry.what === 'silence' ? storedWord : entry.what })
function entryIn(body: string): StoredSilence {
  const { what, ...entry } = JSON.parse(body) as Omit<StoredSilence, 'what'> & { readonly what: string }
  return { ...entry, what: what === storedWord ? 'silence' : what } as StoredSilence
}

/** A lock for every transaction that changes entries. */
const lock = 'quiets'

export function silencesOver(link: StoreLink, now: () => number): SilenceRows {
  return {
    list: () =>
      link.read(async (db) => {
        const rows = await db
          .selectFrom('quiets')
          .select('body')
          .orderBy('endsAt', 'desc')
          .limit(2 * maxEntries)
          .execute()
        return rows.map(({ body }) => entryIn(body)).toSorted((one, other) => one.from - other.from)
      }),
    add: (entries, actor) =>
      link.write(async (tx) => {
        await link.lock(tx, lock)
        const at = now()
        if ((await inForce(tx, at)) + entries.length > maxEntries) throw full()
        await withoutOldest(tx, at)
        for (const entry of entries) {
          const { id, until: endsAt } = entry
          await tx
            .insertInto('quiets')
            .values({ id, endsAt, body: bodyOf(entry) })
            .execute()
          await note(tx, at, actor, {
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
        const before = row && entryIn(row.body)
        if (!before || before.ended || before.until <= ended.at) return undefined
        const entry: StoredSilence = { ...before, ended }
        await tx
          .updateTable('quiets')
          .set({ endsAt: ended.at, body: bodyOf(entry) })
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

/** How many entries have not ended. */
async function inForce(tx: Db, at: number): Promise<number> {
  const { n } = await tx
    .selectFrom('quiets')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where('endsAt', '>', at)
    .executeTakeFirstOrThrow()
  return n
}

/** Deletes the entries that ended first, if too many have ended. */
async function withoutOldest(tx: Db, at: number): Promise<void> {
  const [oldest] = await tx
    .selectFrom('quiets')
    .select('endsAt')
    .where('endsAt', '<=', at)
    .orderBy('endsAt', 'desc')
    .limit(1)
    .offset(maxEntries)
    .execute()
  if (oldest) await tx.deleteFrom('quiets').where('endsAt', '<=', oldest.endsAt).execute()
}

const eventOf = ({ what }: StoredSilence, step: 'added' | 'ended'): AuditEvent => `${what}.${step}`

/** How many characters of the monitors an audit entry has. */
const maxTarget = 1_000
const targetOf = (entry: StoredSilence): string =>
  (entry.what === 'silence'
    ? entry.monitors.join(', ')
    : [entry.subject.key, entry.subject.check, entry.subject.item].filter((part) => part !== undefined).join(' ')
  ).slice(0, maxTarget)

const factsOf = (entry: StoredSilence) => ({
  id: entry.id,
  until: new Date(entry.until).toISOString(),
  ...(entry.what === 'ack' ? { level: entry.level, fault: entry.fault, incident: entry.incident } : {}),
})

const full = (): Fault =>
  new Fault('Conflict', `The limit of ${maxEntries} silences is reached`, {
    hints: ['svc silence list   shows those in force, and svc silence end ID ends one'],
  })
