import { setImmediate as nextTurn } from 'node:timers/promises'
import { refuseFields } from '../../accounts/auth/index.ts'
import { Fault, invalidField } from '../../base/errors.ts'
import { type AuditLogEntry, limits, notCoveredCode, type RoleHolder } from '../../protocol/index.ts'
import { toEntry } from '../../protocol/service/facts.ts'
import type { AdminCaller, Administration } from '../../protocol/service/service.ts'
import { type ChainHead, exportLines, RolesAt, type RolesPast, readHead, verifyStore } from '../../store/audit/index.ts'
import {
  type AuditBeginning,
  type AuditRow,
  type Data,
  loadAuditEvents,
  loadPastTable,
  nameKey,
} from '../../store/index.ts'

/** The problem of an audit log without entries in a store with users, since adding a user writes an entry. */
const emptied = {
  seal: 0,
  kind: 'cut',
  sentence: 'the audit has no entry, although the store has users: its entries were deleted',
} as const

type AuditOperation = 'getAudit' | 'verifyAudit' | 'auditHead' | 'roleHistory'

/** Seals what has no seal. The newest seal then covers everything that was written before. */
async function sealed({ audit, clock }: Data) {
  // A store that cannot be written is verified all the same.
  const seals = await audit.seal().catch(() => undefined)
  return { audit, now: clock.now(), head: seals?.head ?? (await audit.head()) }
}

/** The operations on the audit of a store. `reading` records that somebody reads it. */
export function auditOperations(
  data: () => Promise<Data>,
  reading: (by: AdminCaller) => Promise<void>,
): Pick<Administration, AuditOperation> {
  return {
    async getAudit({ Take = limits.pageItems, Before, UserName, Events, Since, Until, Role }, by) {
      await reading(by)
      const { storedEvents } = await loadAuditEvents()
      const { audit } = await data()
      const events = Events?.flatMap(storedEvents)
      if (events?.length === 0) return { Entries: [] }
      const times = { since: Since?.getTime(), until: Until?.getTime() }
      const filter = { ...times, user: UserName, role: Role, before: Before, limit: Take }
      return { Entries: (await audit.list({ ...filter, events })).map(auditEntry) }
    },
    async verifyAudit({ Head }, by) {
      await reading(by)
      const compared = Head === undefined ? undefined : readHead(Head)
      if (Head !== undefined && !compared) refuseFields([invalidField('Head', 'must be a head, as N:HASH')])
      const store = await data()
      const [{ audit, now }, { refusalsKeptMs }] = await Promise.all([sealed(store), loadAuditEvents()])
      const verdict = await verifyStore(audit, { now, refusalsKeptMs, head: compared, signal: by.signal })
      const { problems, head, began, more, seals, entries, pruned, unsealed, entriesBefore } = verdict
      // Without a seal nothing was verified: that must not count as intact.
      const isEmptied = head === undefined && (await store.users.any())
      return {
        Problems: [...problems, ...(isEmptied ? [emptied] : [])].map(toEntry),
        Head: head && toEntry(head),
        Began: began && { Number: began.number, At: new Date(began.at) },
        ...toEntry({ more, seals, entries, pruned, unsealed, entriesBefore }),
      }
    },
    async auditHead() {
      const { head } = await sealed(await data())
      return head ? { Head: { ...toEntry(head), At: new Date(head.at) } } : {}
    },
    async roleHistory({ UserName = '', Take = limits.pageItems, AfterId = 0 }, by) {
      await reading(by)
      const entries = await roleHistory(await data(), UserName, { after: AfterId, take: Take })
      return { Entries: entries.map(auditEntry) }
    },
  }
}

/** Seals what has no seal, and writes the chain with its entries as lines. Returns the newest seal. */
export async function exportAudit(
  data: Data,
  store: string,
  write: (line: string) => Promise<void>,
  signal: AbortSignal,
): Promise<ChainHead | undefined> {
  const { audit, now, head } = await sealed(data)
  for await (const line of exportLines(audit, { store, now })) {
    signal.throwIfAborted()
    await write(`${line}\n`)
  }
  return head
}

async function* roleEntries({ audit }: Data, from = 0, user?: string): AsyncIterable<AuditRow> {
  for (let after: number | undefined = from; after !== undefined; ) {
    const { entries, next } = await audit.ofRoles(after, user)
    yield* entries
    after = next
  }
}

/** Who held a role at a time, from the audit alone. */
export type PastHolders = {
  readonly total: number
  /** The next holders after a name, sorted by name. `EndsAt`: when the role was to end by itself. */
  readonly page: (after: string | undefined, take: number) => readonly RoleHolder[]
  /** Roles that anybody held then, at most 1,000. */
  readonly roles: readonly string[]
  /** The earliest time of which the audit says who held which role. */
  readonly answersFrom: Date
  /** Users who are linked to an account of an OpenID provider: roles that they had from claims are not in the audit. */
  readonly linkedUsers: number
}

/**
 * Throws Fault Conflict for a time that the audit log does not cover, with the times that it covers, and Usage for one in
 * the future (O9).
 */
export async function holdersAt(store: Data, role: string, time: number): Promise<PastHolders & Disposable> {
  if (time > store.clock.now()) throw new Fault('Usage', `${iso(time)} is in the future`)
  const PastTable = await loadPastTable()
  using stack = new DisposableStack()
  const table = stack.use(new PastTable())
  const holders = await readHolders(store, table, role, time)
  const open = stack.move()
  return { ...holders, [Symbol.dispose]: () => open.dispose() }
}

async function readHolders(
  store: Data,
  table: InstanceType<Awaited<ReturnType<typeof loadPastTable>>>,
  role: string,
  time: number,
): Promise<PastHolders> {
  const { storeAt, first, identities } = await store.audit.beginning()
  const fold = new RolesAt({ time, lastId: await store.audit.lastOfRoles(time) }, table)
  for await (const entry of roleEntries(store)) fold.add(entry)
  const past = fold.end()
  const unrecorded = await addUnrecorded(store, table, role, time)
  const from = answersFrom(past, { storeAt, first, isLate: unrecorded > 0 })
  if (time < from)
    throw cannotAnswer(time, from === storeAt ? 'the store was made later' : 'it begins later, or lacks entries', from)
  if (past.restored) await refuseRestored(store, past.restored, time)
  let [total, users] = [unrecorded, 0]
  const roles = new Set<string>()
  for (const { userName, disabled, roles: own, roleEnds } of past.users) {
    users += 1
    // Other requests get their turn.
    if (users % usersAtOnce === 0) await nextTurn()
    for (const name of own) if (roles.size < limits.pageItems) roles.add(name)
    if (!own.includes(role)) continue
    table.addHolder({ userName, disabled, endsAt: roleEnds.get(role) })
    total += 1
  }
  return {
    total,
    page: (after, take) => table.holders(after, take).map(holderEntry),
    roles: [...roles],
    answersFrom: new Date(from),
    linkedUsers: identities,
  }
}

const usersAtOnce = 10_000

const holderEntry = ({ endsAt, ...holder }: { readonly endsAt: number | undefined }): RoleHolder =>
  toEntry({ ...holder, endsAt: endsAt === undefined ? undefined : new Date(endsAt) })

/**
 * From when on the audit log is complete. If it lacks its first entry, it begins later and has every change since. If
 * it has its first entry, others are missing in between.
 */
function answersFrom(
  { completeFrom, lacksBeginning }: RolesPast,
  { storeAt, first, isLate }: Pick<AuditBeginning, 'storeAt' | 'first'> & { readonly isLate: boolean },
): number {
  const never = Number.POSITIVE_INFINITY
  const beganLater = first !== undefined && first.id > 1
  const gap =
    lacksBeginning === undefined && !isLate ? storeAt : beganLater ? first.at : isLate ? never : lacksBeginning
  return Math.max(gap ?? storeAt, completeFrom ?? Number.NEGATIVE_INFINITY)
}

/** Adds holders whom no audit entry names: their roles have not changed since the log begins. Returns how many. */
async function addUnrecorded(
  store: Data,
  table: Pick<InstanceType<Awaited<ReturnType<typeof loadPastTable>>>, 'get' | 'addHolder'>,
  role: string,
  time: number,
): Promise<number> {
  let added = 0
  for (let after: string | undefined; ; ) {
    const page = await store.users.holders(role, after)
    if (page.length === 0) return added
    for (const { userName, disabled, createdAt } of page) {
      if (createdAt > time || table.get(userName)) continue
      table.addHolder({ userName, disabled, endsAt: undefined })
      added += 1
    }
    after = page.at(-1)?.userName
  }
}

/** Throws Fault Conflict for a time between a backup and its restore. The backup ends with its last entry. */
async function refuseRestored(
  { audit }: Data,
  { id, until }: NonNullable<RolesPast['restored']>,
  time: number,
): Promise<void> {
  const [last] = await audit.list({ limit: 1, before: id })
  const from = last?.at ?? Number.NEGATIVE_INFINITY
  if (time <= from) return
  const lost = 'what was changed after the backup is not in this audit, but in that of the store that it replaced'
  throw new Fault('Conflict', `The store was restored from a backup at ${iso(until)}: ${lost}`, {
    errorCode: notCoveredCode,
    hints: [`The audit answers for times until ${iso(from)} and from ${iso(until)} on.`],
  })
}

const cannotAnswer = (time: number, why: string, from: number): Fault =>
  new Fault('Conflict', `The audit of this store does not cover ${iso(time)}: ${why}`, {
    errorCode: notCoveredCode,
    hints: [
      Number.isFinite(from)
        ? `It answers for times from ${iso(from)} on.`
        : 'Entries of users are missing: svc audit verify says more.',
    ],
  })

const iso = (time: number): string => new Date(time).toISOString()

/** The next entries about a user's roles, oldest first. The user need not exist any more. */
async function roleHistory(
  store: Data,
  name: string,
  { after, take }: { readonly after: number; readonly take: number },
): Promise<readonly AuditRow[]> {
  const user = await store.users.find(name)
  const key = nameKey(user?.userName ?? name)
  const rows: AuditRow[] = []
  for await (const entry of roleEntries(store, after, key)) {
    if (entry.target !== undefined && nameKey(entry.target) === key) rows.push(entry)
    if (rows.length === take) return rows
  }
  // A name has entries before those of a later page.
  if (rows.length === 0 && after === 0 && !user) throw new Fault('NotFound', name)
  return rows
}

const auditEntry = (row: AuditRow): AuditLogEntry => toEntry({ ...row, at: new Date(row.at) })
