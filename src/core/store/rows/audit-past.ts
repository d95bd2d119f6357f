import { sql } from 'kysely'
import { type AuditEvent, roleEvents } from '../audit-events.ts'
import type { AuditFilter, AuditPast, AuditRow } from '../data.ts'
import type { StoreLink } from '../link.ts'
import { type Db, nameKey } from '../tables.ts'

const columns = ['id', 'at', 'event', 'who', 'address', 'target', 'correlationId', 'before', 'after', 'reason'] as const

/** How many entries one query reads: without an index for each filter, it must end within its time limit. */
const window = 20_000

/** Those of a later version, too. */
const ofRoles = roleEvents as AuditEvent[]

export function auditPastOver(link: StoreLink): AuditPast {
  return {
    list: async ({ limit, before, ...filter }) => {
      const entries: AuditRow[] = []
      let upper = before
      for (;;) {
        const { rows, lower } = await link.read((db) => inWindow(db, upper, filter))
        entries.push(...rows.slice(0, limit - entries.length))
        if (entries.length === limit || lower === undefined) return entries
        upper = lower
      }
    },
    ofRoles: (after, user) =>
      link.read(async (db) => {
        const ahead = db.selectFrom('audit').where('id', '>', after).orderBy('id')
        const last = await ahead
          .select('id')
          .offset(window - 1)
          .limit(1)
          .executeTakeFirst()
        let rows = ahead.select(columns).where('event', 'in', ofRoles)
        if (user !== undefined) rows = rows.where(perhaps('target', nameKey(user)))
        const entries = await (last === undefined ? rows : rows.where('id', '<=', last.id)).execute()
        return { entries, next: last?.id }
      }),
    lastOfRoles: async (time) => {
      for (let upper: number | undefined; ; ) {
        const { entry, lower } = await link.read(async (db) => {
          const { query, last } = await windowBelow(db, upper)
          const matches = query.where('event', 'in', ofRoles).where('at', '<=', time)
          return { entry: await matches.select('id').limit(1).executeTakeFirst(), lower: last }
        })
        if (entry !== undefined || lower === undefined) return entry?.id
        upper = lower
      }
    },
    beginning: () =>
      link.read(async (db) => {
        const first = await db.selectFrom('audit').select(['id', 'at']).orderBy('id').limit(1).executeTakeFirst()
        const { rows } = await sql<{ createdAt: string }>`SELECT "createdAt" FROM "meta"`.execute(db)
        const { n } = await db
          .selectFrom('identities')
          .select((eb) => eb.fn.count<number>('userId').distinct().as('n'))
          .executeTakeFirstOrThrow()
        return { storeAt: Date.parse(rows[0]?.createdAt ?? ''), first, identities: Number(n) }
      }),
  }
}

/** The matching entries below an id, newest first, and the id at which the next window begins. */
async function inWindow(db: Db, upper: number | undefined, filter: AuditFilter) {
  const { query, last } = await windowBelow(db, upper)
  let rows = query.select(columns)
  const { events, since, until, user, role } = filter
  if (events !== undefined) rows = rows.where('event', 'in', events as readonly AuditEvent[])
  if (role !== undefined) rows = rows.where('event', 'in', ofRoles)
  if (since !== undefined) rows = rows.where('at', '>=', since)
  if (until !== undefined) rows = rows.where('at', '<=', until)
  if (user !== undefined) {
    const key = nameKey(user)
    rows = rows.where((eb) => eb.or([perhaps('who', key), perhaps('target', key)]))
  }
  const matches = matcher(user, role)
  return { rows: (await rows.execute()).filter(matches), lower: last }
}

/** The window of entries below an id, newest first. `last`: the id at which the next window begins. */
async function windowBelow(db: Db, upper: number | undefined) {
  const below = (query: ReturnType<typeof inOrder>) => (upper === undefined ? query : query.where('id', '<', upper))
  const last = await below(inOrder(db))
    .select('id')
    .offset(window - 1)
    .limit(1)
    .executeTakeFirst()
  const query = below(inOrder(db))
  return { query: last === undefined ? query : query.where('id', '>=', last.id), last: last?.id }
}

const inOrder = (db: Db) => db.selectFrom('audit').orderBy('id', 'desc')

/**
 * Whether the name in a column may have this key, so that few entries leave the database. Both databases fold the letters of
 * ASCII alike; a name with others is compared here.
 */
const perhaps = (column: 'who' | 'target', key: string) =>
  sql<boolean>`(lower(${sql.ref(column)}) = ${key} OR octet_length(${sql.ref(column)}) <> length(${sql.ref(column)}))`

/** The conditions that the databases compare differently, or not at all. */
function matcher(user: string | undefined, role: string | undefined) {
  const userKey = user === undefined ? undefined : nameKey(user)
  const isUser = (name: string | undefined): boolean => name !== undefined && nameKey(name) === userKey
  return ({ who, target, before, after }: AuditRow): boolean =>
    (userKey === undefined || isUser(who) || isUser(target)) &&
    (role === undefined || rolesIn(before).includes(role) !== rolesIn(after).includes(role))
}

function rolesIn(text: string | undefined): readonly unknown[] {
  try {
    const facts: unknown = JSON.parse(text ?? 'null')
    const roles = typeof facts === 'object' && facts !== null && 'roles' in facts ? facts.roles : undefined
    return Array.isArray(roles) ? roles : []
  } catch {
    return []
  }
}
