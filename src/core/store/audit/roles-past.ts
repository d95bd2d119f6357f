import { isObject, member } from '../../base/json.ts'
import { presentPermission } from '../../protocol/index.ts'

/** Who held which role, from the audit entries (O9). Pure: the entries come in the order of their ids. */

/** An entry about roles. `at`: milliseconds since 1970. `before` and `after`: JSON. */
export type RoleEntry = {
  readonly id: number
  readonly at: number
  readonly event: string
  readonly target: string | undefined
  readonly before: string | undefined
  readonly after: string | undefined
}

/**
 * The roles and permissions of a user according to an entry. `ends`: when a name ends by itself, in milliseconds since
 * 1970.
 */
export type RecordedRoles = {
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
  readonly ends: Ends
}
type Ends = { readonly [Kind in 'role' | 'permission']: ReadonlyMap<string, number> }

/** The roles and permissions of a user at a time. */
export type PastUser = {
  readonly userName: string
  readonly disabled: boolean
  /** Without what had ended by then. */
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
  /** When roles end by themselves, for those that do. */
  readonly roleEnds: ReadonlyMap<string, number>
}

/** The users at a time according to the audit log, and the times for which the log is complete. */
export type RolesPast = {
  readonly users: Iterable<PastUser>
  /** An entry after which the audit log is complete: earlier ones contradict each other. */
  readonly completeFrom: number | undefined
  /**
   * For the users whose addition is not in the audit log: the time of the first entry about one of them, the latest of
   * these times. An earlier entry is missing. Undefined: there is no such user.
   */
  readonly lacksBeginning: number | undefined
  /** The entry of a restore: changes between these times were lost, and are not in the audit log. */
  readonly restored: { readonly id: number; readonly from: number; readonly until: number } | undefined
}

/** The state of a user after the entries so far. `holding`: the JSON of an entry. */
export type UserRecord = {
  readonly holding: string | undefined
  readonly disabled: boolean
  /** False for a user who was removed by then. */
  readonly exists: boolean
}
/** The users about whom the audit log has an entry, by name: a map, or what needs less memory. */
export type UserRecords = {
  readonly get: (name: string) => UserRecord | undefined
  readonly set: (name: string, user: UserRecord) => unknown
  readonly entries: () => Iterable<readonly [name: string, user: UserRecord]>
}

/** The time in question, with the last entry about roles whose time is not later. */
export type PastMoment = { readonly time: number; readonly lastId: number | undefined }

/**
 * Folds entries into what each user held at a time. The state is that after the last entry whose time is not later,
 * with all entries before it, so that a clock that was set back does not repeat a state.
 */
export class RolesAt {
  readonly #time: number
  readonly #lastId: number
  readonly #records: UserRecords
  #completeFrom: number | undefined
  #lacksBeginning: number | undefined
  #restored: RolesPast['restored']
  #last: RoleEntry | undefined

  constructor({ time, lastId = 0 }: PastMoment, records: UserRecords = new Map<string, UserRecord>()) {
    this.#time = time
    this.#lastId = lastId
    this.#records = records
  }

  add(entry: RoleEntry): void {
    if (entry.event === 'store.restored') this.#noteRestore(entry, entry.at <= this.#time)
    else if (entry.id <= this.#lastId) this.#apply(entry)
    else this.#learnFromLater(entry)
    this.#last = entry
  }

  /** The state, after all entries have been added. */
  end(): RolesPast {
    const [records, time] = [this.#records, this.#time]
    return {
      users: { [Symbol.iterator]: () => usersAt(records, time) },
      completeFrom: this.#completeFrom,
      lacksBeginning: this.#lacksBeginning,
      restored: this.#restored,
    }
  }

  #apply(entry: RoleEntry): void {
    const { target = '' } = entry
    this.#records.set(target, after(this.#learnBefore(entry), entry))
  }

  /** The user before an entry: compares its `before` with the result of the entries before it. */
  #learnBefore({ event, target = '', before, at }: RoleEntry): UserRecord {
    const user = this.#records.get(target)
    const isNew = user === undefined || !user.exists
    if (event === 'user.added') return isNew ? nobody : user
    const was = holdingIn(before)
    if (isNew) {
      if (user) this.#completeFrom = at
      else this.#noteLateBeginning(at)
      return { holding: was && before, disabled: event === 'user.enabled', exists: true }
    }
    if (was === undefined || isSame(holdingOf(user), was, at)) return user
    this.#completeFrom = at
    return { ...user, holding: before }
  }

  #noteLateBeginning(at: number): void {
    this.#lacksBeginning = Math.max(this.#lacksBeginning ?? at, at)
  }

  /** The first later entry about a user without an earlier one has what the user held before it. */
  #learnFromLater({ event, target = '', before, at }: RoleEntry): void {
    if (this.#records.get(target)) return
    const exists = event !== 'user.added'
    if (exists) this.#noteLateBeginning(at)
    this.#records.set(target, { holding: holdingIn(before) && before, disabled: event === 'user.enabled', exists })
  }

  /** `isPast`: whether the restore was before the time in question, which it then does not affect. */
  #noteRestore({ id, at, after: text }: RoleEntry, isPast: boolean): void {
    const lost = member(parsed(text), 'auditEntries')
    const from = this.#last?.at ?? Number.NEGATIVE_INFINITY
    if (isPast || lost === 0 || this.#time < from) return
    this.#restored ??= { id, from, until: at }
  }
}

const nothing: RecordedRoles = { roles: [], permissions: [], ends: { role: new Map(), permission: new Map() } }

const nobody: UserRecord = { holding: undefined, disabled: false, exists: false }

const holdingOf = ({ holding }: UserRecord): RecordedRoles => holdingIn(holding) ?? nothing

function* usersAt(records: UserRecords, time: number): Generator<PastUser> {
  for (const [userName, user] of records.entries()) {
    if (!user.exists) continue
    const holding = holdingOf(user)
    const [roles, permissions] = [lasting(holding, 'role', time), lasting(holding, 'permission', time)]
    yield { userName, disabled: user.disabled, roles, permissions, roleEnds: holding.ends.role }
  }
}

/** The state of a user after an entry. */
function after(user: UserRecord, { event, after: text, before }: RoleEntry): UserRecord {
  if (event === 'user.removed') return nobody
  if (event === 'user.disabled' || event === 'user.enabled') return { ...user, disabled: event === 'user.disabled' }
  const holding = [text, before].find((each) => holdingIn(each) !== undefined) ?? user.holding
  return { holding, disabled: event === 'user.added' ? false : user.disabled, exists: true }
}

/** Whether both have the same names, except for those that had ended by then. */
function isSame(holding: RecordedRoles, was: RecordedRoles, at: number): boolean {
  const namesOf = (of: RecordedRoles): string =>
    JSON.stringify([lasting(of, 'role', at).toSorted(), lasting(of, 'permission', at).toSorted()])
  return holding === was || namesOf(holding) === namesOf(was)
}

/** The roles or permissions that had not ended by then. */
function lasting({ ends, ...names }: RecordedRoles, kind: 'role' | 'permission', at: number): readonly string[] {
  const of = kind === 'role' ? names.roles : names.permissions
  if (ends[kind].size === 0) return of
  return of.filter((name) => (ends[kind].get(name) ?? Number.POSITIVE_INFINITY) > at)
}

/**
 * The roles and permissions of the user in the `before` or `after` of an entry. Undefined: the text contains no roles.
 *
 * @example
 * ```ts
 * holdingIn('{"roles":["Ops"],"permissions":[]}')?.roles // ['Ops']
 * holdingIn('{"digest":true}') // undefined
 * ```
 */
export function holdingIn(text: string | undefined): RecordedRoles | undefined {
  if (text === undefined) return undefined
  if (!shared.has(text)) {
    if (shared.size >= maxShared) shared.clear()
    shared.set(text, readHolding(text))
  }
  return shared.get(text)
}

/** Many entries have the same text: what it says is read and kept in memory once. */
const shared = new Map<string, RecordedRoles | undefined>()
const maxShared = 1_000

function readHolding(text: string): RecordedRoles | undefined {
  const facts = parsed(text)
  const roles = textsIn(member(facts, 'roles'))
  if (roles === undefined) return undefined
  const permissions = textsIn(member(facts, 'permissions'))?.map(presentPermission) ?? []
  return { roles, permissions, ends: endsIn(member(facts, 'ends')) }
}

/** `[{ kind: 'role', name: 'Deploy', endsAt: '2026-11-28T18:00:00Z' }]`: the grants that end by themselves. */
function endsIn(value: unknown): Ends {
  const ends = { role: new Map<string, number>(), permission: new Map<string, number>() }
  if (!Array.isArray(value)) return ends
  for (const each of value) {
    const [kind, name, endsAt] = [member(each, 'kind'), member(each, 'name'), member(each, 'endsAt')]
    const at = typeof endsAt === 'number' ? endsAt : typeof endsAt === 'string' ? Date.parse(endsAt) : Number.NaN
    if ((kind === 'role' || kind === 'permission') && typeof name === 'string' && !Number.isNaN(at)) {
      ends[kind].set(kind === 'permission' ? presentPermission(name) : name, at)
    }
  }
  return ends
}

const textsIn = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined

function parsed(text: string | undefined): unknown {
  try {
    const value: unknown = text === undefined ? undefined : JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
