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
  readonly users: readonly PastUser[]
  /** Every user about whom the audit log has an entry, then or later. */
  readonly names: ReadonlySet<string>
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

type State = { readonly holding: RecordedRoles; readonly disabled: boolean }

/**
 * Folds entries into what each user held at `time`. The state is that after the last entry whose time is not later,
 * with all entries before it, so that a clock that was set back does not repeat a state.
 */
export class RolesAt {
  readonly #time: number
  #users = new Map<string, State>()
  /** Entries after the last one whose time is not later. */
  #later: RoleEntry[] = []
  readonly #names = new Set<string>()
  /** Users about whom there are only later entries. */
  readonly #earlier = new Map<string, State>()
  #completeFrom: number | undefined
  #lacksBeginning: number | undefined
  #restored: RolesPast['restored']
  #last: RoleEntry | undefined

  constructor(time: number) {
    this.#time = time
  }

  add(entry: RoleEntry): void {
    this.#later.push(entry)
    if (entry.at > this.#time) return
    for (const each of this.#later) this.#apply(each)
    this.#later = []
  }

  /** The state, after all entries have been added. */
  end(): RolesPast {
    // If there is no earlier entry about a user, the first later one has what the user held before it.
    for (const entry of this.#later) this.#learnFromLater(entry)
    const users = [...this.#users, ...this.#earlier].map(([userName, { holding, disabled }]): PastUser => {
      const [roles, permissions] = [lasting(holding, 'role', this.#time), lasting(holding, 'permission', this.#time)]
      return { userName, disabled, roles, permissions, roleEnds: holding.ends.role }
    })
    return {
      users,
      names: this.#names,
      completeFrom: this.#completeFrom,
      lacksBeginning: this.#lacksBeginning,
      restored: this.#restored,
    }
  }

  #apply(entry: RoleEntry): void {
    const { event, target = '' } = entry
    if (event === 'store.restored') this.#noteRestore(entry, entry.at <= this.#time)
    else {
      this.#learnBefore(entry)
      this.#names.add(target)
      const next = after(this.#users.get(target), entry)
      if (next) this.#users.set(target, next)
      else this.#users.delete(target)
    }
    this.#last = entry
  }

  /** Compares the `before` of an entry with the result of the entries before it. */
  #learnBefore({ event, target = '', before, at }: RoleEntry): void {
    if (event === 'user.added') return
    const state = this.#users.get(target)
    const was = holdingIn(before)
    if (state === undefined) {
      if (this.#names.has(target)) this.#completeFrom = at
      else this.#noteLateBeginning(at)
      this.#users.set(target, { holding: was ?? nothing, disabled: event === 'user.enabled' })
    } else if (was && !isSame(state.holding, was, at)) {
      this.#completeFrom = at
      this.#users.set(target, { ...state, holding: was })
    }
  }

  #noteLateBeginning(at: number): void {
    this.#lacksBeginning = Math.max(this.#lacksBeginning ?? at, at)
  }

  #learnFromLater(entry: RoleEntry): void {
    const { event, target = '', before } = entry
    if (event === 'store.restored') this.#noteRestore(entry, false)
    else if (!this.#names.has(target)) {
      this.#names.add(target)
      if (event !== 'user.added') {
        this.#noteLateBeginning(entry.at)
        this.#earlier.set(target, { holding: holdingIn(before) ?? nothing, disabled: event === 'user.enabled' })
      }
    }
    this.#last = entry
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

/** The state of a user after an entry. Undefined: the user no longer exists. */
function after(state: State | undefined, { event, after: text, before }: RoleEntry): State | undefined {
  const { holding = nothing, disabled = false } = state ?? {}
  if (event === 'user.removed') return undefined
  if (event === 'user.disabled' || event === 'user.enabled') return { holding, disabled: event === 'user.disabled' }
  const is = holdingIn(text)
  return { holding: is ?? holdingIn(before) ?? holding, disabled: event === 'user.added' ? false : disabled }
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
