import { Fault } from '../../base/errors.ts'
import { notCoveredCode } from '../../protocol/index.ts'
import type { Admin, AuditFacts, PastHolders } from '../../protocol/service/service.ts'
import { exportLines, RolesAt, type RolesPast, verifyStore } from '../../store/audit/index.ts'
import { type AuditBeginning, type AuditRow, type Data, loadAuditEvents, nameKey } from '../../store/index.ts'

/** The problem of an audit log without entries in a store with users, since adding a user writes an entry. */
const emptied = {
  seal: 0,
  kind: 'cut',
  sentence: 'the audit has no entry, although the store has users: its entries were deleted',
} as const

type PastAdmin = {
  readonly audit: Admin['audit']
  readonly roles: Pick<Admin['roles'], 'holdersAt' | 'history'>
}

/** The audit log of the store that `label` names: its entries, its chain, and the roles of the past. */
export function auditAdmin(label: string, data: () => Promise<Data>): PastAdmin {
  const seals = async () => {
    const { audit, clock } = await data()
    // The result has to cover everything that was written before. A store that cannot be written is verified all the
    // same.
    const sealed = await audit.seal().catch(() => undefined)
    return { audit, now: clock.now(), head: sealed?.head ?? (await audit.head()) }
  }
  return {
    audit: {
      list: async ({ events, since, until, ...rest }) => {
        const { storedEvents } = await loadAuditEvents()
        const { audit } = await data()
        const names = events?.flatMap(storedEvents)
        if (names?.length === 0) return []
        const filter = {
          ...rest,
          events: names,
          since: since?.getTime(),
          until: until?.getTime(),
        }
        return (await audit.list(filter)).map(auditFacts)
      },
      noteReading: async (by) => await (await data()).audit.write('audit.read', undefined, by),
      head: async () => {
        const { head } = await seals()
        return head && { ...head, at: new Date(head.at) }
      },
      verify: async (head, signal) => {
        const [{ audit, now }, { refusalsKeptMs }] = await Promise.all([seals(), loadAuditEvents()])
        const verdict = await verifyStore(audit, { now, refusalsKeptMs, head, signal })
        if (verdict.head !== undefined || !(await (await data()).users.any())) return verdict
        // Nothing was verified: that must not count as intact.
        return { ...verdict, problems: [...verdict.problems, emptied] }
      },
      export: async (write, signal) => {
        const { audit, now, head } = await seals()
        for await (const line of exportLines(audit, { store: label, now })) {
          signal.throwIfAborted()
          await write(`${line}\n`)
        }
        return head
      },
    },
    roles: {
      holdersAt: async (role, at) => await holdersAt(await data(), role, at.getTime()),
      history: async (userName) => await roleHistory(await data(), userName),
    },
  }
}

async function* roleEntries({ audit }: Data): AsyncIterable<AuditRow> {
  for (let after: number | undefined = 0; after !== undefined; ) {
    const { entries, next } = await audit.ofRoles(after)
    yield* entries
    after = next
  }
}

/** Throws Fault Conflict for a time that the audit log does not cover, with the times that it covers. */
async function holdersAt(store: Data, role: string, time: number): Promise<PastHolders> {
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
  const users = [...holders, ...unrecorded].toSorted((a, b) => (nameKey(a.userName) < nameKey(b.userName) ? -1 : 1))
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

/** The entries about a user's roles, oldest first. The user need not exist any more. */
async function roleHistory(store: Data, name: string): Promise<readonly AuditFacts[]> {
  const user = await store.users.find(name)
  const key = nameKey(user?.userName ?? name)
  const rows: AuditFacts[] = []
  for await (const entry of roleEntries(store)) {
    if (entry.target !== undefined && nameKey(entry.target) === key) rows.push(auditFacts(entry))
  }
  if (rows.length === 0 && !user) throw new Fault('NotFound', name)
  return rows
}

const auditFacts = (row: AuditRow): AuditFacts => ({ ...row, at: new Date(row.at) })
