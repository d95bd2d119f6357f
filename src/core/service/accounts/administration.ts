import {
  type AdministrationContext,
  keyOperations,
  refuseFields,
  userEntry,
  userOperations,
} from '../../accounts/auth/index.ts'
import { emptyField, invalidField } from '../../base/errors.ts'
import {
  type AdminOperation,
  administration,
  type Dto,
  type Heartbeat,
  type HeartbeatEntry,
  limits,
  type RoleHolder,
} from '../../protocol/index.ts'
import { toEntry } from '../../protocol/service/facts.ts'
import type { AdminCaller, Administration } from '../../protocol/service/service.ts'
import { withinLimits } from '../../protocol/wire/index.ts'
import type { Data } from '../../store/index.ts'
import { auditOperations, holdersAt, type PastHolders } from './audit-operations.ts'

/** Sessions whose first reading of the audit is remembered. Another one is recorded again. */
const maxReaders = 10_000

/** Records the first reading of the audit by each session. What has no session is not recorded. */
function auditReaders(data: () => Promise<Data>): (by: AdminCaller) => Promise<void> {
  const readers = new Set<string>()
  return async ({ session, signal: _, ...by }) => {
    if (session === undefined || readers.has(session)) return
    await (await data()).audit.write('audit.read', undefined, by)
    if (readers.size >= maxReaders) readers.clear()
    readers.add(session)
  }
}

/** Milliseconds for which the past is kept after a page of it. */
const pastKeptMs = 60_000

type PastPage = Omit<PastHolders, 'page'> & { readonly users: readonly RoleHolder[] }

/**
 * Who held a role at a time, page after page: an answer reads the whole audit, so the last one is kept until a first page
 * asks again.
 */
function pagesOfThePast() {
  let recent: { readonly key: string; readonly past: Promise<PastHolders & Disposable> } | undefined
  let forgetting: NodeJS.Timeout | undefined
  const forget = (one: typeof recent): void => {
    if (recent === one) recent = undefined
    // After the pages that were asked for before.
    one?.past.then((past) => past[Symbol.dispose]()).catch(() => {})
  }
  return async (
    store: Data,
    role: string,
    time: number,
    after: string | undefined,
    take: number,
  ): Promise<PastPage> => {
    const key = `${time} ${role}`
    clearTimeout(forgetting)
    if (after === undefined || recent?.key !== key) {
      forget(recent)
      recent = { key, past: holdersAt(store, role, time) }
    }
    const current = recent
    const page = current.past.then((past) => ({ ...past, users: past.page(after, take) }))
    page.catch(() => forget(current))
    forgetting = setTimeout(forget, pastKeptMs, current).unref()
    return await page
  }
}

/** The handlers of the rows of protocol/administration.ts, for commands on the machine of the store and for a server. */
export function administrationOver(context: AdministrationContext): Administration {
  const data = (): Promise<Data> => context.data(false)
  const reading = auditReaders(data)
  const pastHolders = pagesOfThePast()
  return checked({
    ...userOperations(context),
    ...keyOperations(context),
    ...auditOperations(data, reading),
    async getHeartbeats({ Like, Take = limits.pageItems, After }) {
      const { heartbeats } = await data()
      if (Like !== undefined) return { Heartbeats: (await heartbeats.near(Like)).map((Name) => ({ Name })) }
      // There are few enough to read all of them (rows/capacity.ts).
      const all = await heartbeats.list()
      const next = After === undefined ? all : all.filter(({ name }) => name > After)
      return { Heartbeats: next.slice(0, Take).map(heartbeatEntry) }
    },
    async forgetHeartbeat({ Name = '' }, by) {
      await (await data()).heartbeats.remove(Name, by)
      return { Name }
    },
    async roleHolders({ Role = '', At, Take = limits.pageItems, After }, by) {
      const store = await data()
      if (At === undefined) {
        const { users } = store
        const Total = After === undefined ? await users.count(Role) : undefined
        if (Total === 0) return { Users: [], Total, Roles: await users.roleNames() }
        return { Users: (await users.holders(Role, After, Take)).map(userEntry), Total }
      }
      await reading(by)
      const past = await pastHolders(store, Role, At.getTime(), After, Take)
      return {
        Users: past.users,
        Total: After === undefined ? past.total : undefined,
        Roles: past.total > 0 ? [] : past.roles,
        AnswersFrom: past.answersFrom,
        LinkedUsers: past.linkedUsers,
      }
    },
  })
}

/** Refuses requests that the rows do not allow. */
function checked(answers: Administration): Administration {
  const guarded = (operation: AdminOperation) => async (sent: object, by: AdminCaller) => {
    // An empty value is unset (N5).
    const request = Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== ''))
    const { request: row } = administration[operation]
    refuseInvalid(row, request)
    // A command of this machine sends no bytes whose reader would have refused them.
    withinLimits(row, request)
    return await (answers[operation] as (request: object, by: AdminCaller) => Promise<unknown>)(request, by)
  }
  const names = Object.keys(administration) as AdminOperation[]
  return Object.fromEntries(names.map((name) => [name, guarded(name)])) as unknown as Administration
}

/** Throws one fault for all fields that are missing or out of their range. */
function refuseInvalid({ fields }: Dto, request: object): void {
  refuseFields(
    Object.entries(fields).flatMap(([name, field]) => {
      const value: unknown = Reflect.get(request, name)
      const isBlank = typeof value !== 'string' || value.trim() === ''
      if (field.kind === 'text' && field.needed && isBlank) return [emptyField(name)]
      if (field.kind === 'date' && value instanceof Date && Number.isNaN(value.getTime())) {
        return [invalidField(name, 'must be a date')]
      }
      if (field.kind !== 'number' || typeof value !== 'number') return []
      const { min = 0, max = Number.MAX_SAFE_INTEGER } = field
      const isIn = Number.isSafeInteger(value) && value >= min && value <= max
      return isIn ? [] : [invalidField(name, `must be a whole number from ${min} to ${max}`)]
    }),
  )
}

function heartbeatEntry({ at, intervalMs, skewMs, history: _, run, ...heartbeat }: Heartbeat): HeartbeatEntry {
  return {
    ...toEntry(heartbeat),
    At: new Date(at),
    Interval: intervalMs,
    ClockSkew: skewMs,
    ...(run && {
      StartedAt: new Date(run.startedAt),
      EndedAt: run.endedAt === undefined ? undefined : new Date(run.endedAt),
      Duration: run.durationMs,
      ExitCode: run.exitCode,
      Output: run.output,
    }),
  }
}
