import { refuseFields } from '../../accounts/auth/index.ts'
import { Fault, invalidField } from '../../base/errors.ts'
import { type AuditLogEntry, limits, notCoveredCode } from '../../protocol/index.ts'
import { toEntry } from '../../protocol/service/facts.ts'
import type { AdminCaller, Administration } from '../../protocol/service/service.ts'
import { type ChainHead, exportLines, RolesAt, type RolesPast, readHead, verifyStore } from '../../store/audit/index.ts'
import { type AuditBeginning, type AuditRow, type Data, loadAuditEvents, nameKey } from '../../store/index.ts'

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

async function* roleEntries({ audit }: Data, from = 0): AsyncIterable<AuditRow> {
  for (let after: number | undefined = from; after !== undefined; ) {
    const { entries, next } = await audit.ofRoles(after)
    yield* entries
    after = next
  }
}

/** Who held a role at a time, from the audit alone. */
export type PastHolders = {
  /** Sorted by name. `endsAt`: when the role was to end by itself. */
  readonly users: readonly {
    readonly userName: string
    readonly disabled: boolean
    readonly endsAt: Date | undefined
  }[]
  /** All roles that anybody held then. */
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
export async function holdersAt(store: Data, role: string, time: number): Promise<PastHolders> {
  const { storeAt, first, identities } = await store.audit.beginning()
  if (time > store.clock.now()) throw new Fault('Usage', `${iso(time)} is in the future`)
  const fold = new RolesAt(time)
  for await (const entry of roleEntries(store)) fold.add(entry)
  const past = fold.end()
  const unrecorded = await currentHolders(store, role, past.names, time)
  const from = answersFrom(past, { storeAt, first, isLate: unrecorded.length > 0 })
  if (time < from)
    throw cannotAnswer(time, from === storeAt ? 'the store was made later' : 'it begins later, or lacks entries', from)
  if (past.restored) await refuseRestored(store, past.restored, time)
  const holders = past.users
    .filter(({ roles }) => roles.includes(role))
    .map(({ userName, disabled, roleEnds }) => {
      const end = roleEnds.get(role)
      return { userName, disabled, endsAt: end === undefined ? undefined : new Date(end) }
    })
  const users = [...holders, ...unrecorded]
    .map((user) => [nameKey(user.userName), user] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, user]) => user)
  const roles = [...new Set(past.users.flatMap((user) => user.roles))]
  return { users, roles, answersFrom: new Date(from), linkedUsers: identities }
}

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

/** Holders whom no audit entry names: their roles have not changed since the log begins. */
async function currentHolders(store: Data, role: string, names: ReadonlySet<string>, time: number) {
  const rows: { userName: string; disabled: boolean; endsAt: undefined }[] = []
  for (let after: string | undefined; ; ) {
    const page = await store.users.holders(role, after)
    if (page.length === 0) return rows
    for (const { userName, disabled, createdAt } of page) {
      if (!names.has(userName) && createdAt <= time) rows.push({ userName, disabled, endsAt: undefined })
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
  for await (const entry of roleEntries(store, after)) {
    if (entry.target !== undefined && nameKey(entry.target) === key) rows.push(entry)
    if (rows.length === take) return rows
  }
  // A name has entries before those of a later page.
  if (rows.length === 0 && after === 0 && !user) throw new Fault('NotFound', name)
  return rows
}

const auditEntry = (row: AuditRow): AuditLogEntry => toEntry({ ...row, at: new Date(row.at) })
