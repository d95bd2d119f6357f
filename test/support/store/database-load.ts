import { setTimeout as pause } from 'node:timers/promises'
import { ask, type Got } from '../../server/site.ts'
import { chooser } from './role-changes.ts'

/** Who administers, and one account for each writer; all have the same password. */
export const loadAdmin = 'Ann'
export const loadPassword = 'violet-harbour-42'
export const writerNames = ['writer-0', 'writer-1', 'writer-2', 'writer-3'] as const

type Roles = readonly string[]
type Tokens = { readonly bearer: string; readonly refresh: string; readonly rotates: boolean; readonly at: number }

/**
 * How long something took, in milliseconds, and how much of it is not the machine's doing: a busy one keeps waiting
 * also who asks for nothing but a sign of life.
 */
export type Late = { readonly ms: number; readonly ownMs: number }

/** A role change that was answered 200. */
export type Acknowledged = {
  readonly id: string
  readonly userName: string
  readonly after: Roles
  /** The requested state may have existed before, through a change whose answer was 503. */
  readonly mayHaveChangedNothing: boolean
}

export type Load = {
  readonly figures: {
    ok: number
    unavailable: number
    /** Whatever was answered otherwise, or contradicts what was answered before. */
    readonly problems: string[]
  }
  /** Rejects once no valid answer arrives any more: code that waits for an effect of answers stops then. */
  readonly failed: Promise<never>
  /** The longest that a 503 took; `signIn`: of requests that hash a password besides. */
  readonly maxUnavailable: (signIn: boolean) => Late
  readonly acknowledged: readonly Acknowledged[]
  /** The ids of all role changes that were sent. */
  readonly sent: ReadonlySet<string>
  /** The roles that each writer's account may hold: several lists while the outcome of a change is unknown. */
  readonly possible: () => ReadonlyMap<string, readonly Roles[]>
  /** From now to the first 200: for a question sent from now on, and for a role change. */
  readonly recovery: () => Promise<{ readonly answer: Late; readonly changeMs: number }>
  /** Lets what is under way end. */
  readonly stop: () => Promise<void>
  /** Tries what was acknowledged and should be good still; gives what is not. */
  readonly lostTokens: () => Promise<readonly string[]>
}

type Span = { readonly start: number; readonly ended: number }

/** By what is not the machine's doing. */
export const slowest = <T extends Late>(all: readonly T[]): T | Late =>
  all.reduce<T | Late>((one, other) => (other.ownMs > one.ownMs ? other : one), { ms: 0, ownMs: 0 })

const roleNames = ['Ops', 'Support', 'Billing', 'Editor', 'Auditor']
const same = (a: Roles, b: Roles): boolean => a.length === b.length && a.every((role, i) => role === b[i])
/** T4: a rotating token that is presented again within 10 s gives the same successor. */
const repeatMs = 9_000
const tokenMs = 600_000
/** After so many wrong answers the load ends. */
const maxProblems = 50
/** No answer at all for so long is a failure of its own. */
const givenUpMs = 30_000

/** Four writers that change roles, sign in and refresh, each with an account of its own, one request after the other. */
export async function startLoad(port: number, seed: string): Promise<Load> {
  const figures: Load['figures'] = { ok: 0, unavailable: 0, problems: [] }
  const unavailable: (Span & { readonly signIn: boolean })[] = []
  const signsOfLife: Span[] = []
  const acknowledged: Acknowledged[] = []
  const sent = new Set<string>()
  const signIns: Tokens[] = []
  const possible = new Map<string, readonly Roles[]>(writerNames.map((name) => [name, [[]]]))
  const changeListeners = new Set<(begun: number, ended: number) => void>()
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => {})
  let going = true
  const report = (what: string): undefined => {
    figures.problems.push(what)
    if (figures.problems.length < maxProblems) return
    going = false
    failed.reject(new Error(`wrong answers: ${figures.problems.join('; ').slice(0, 1_000)}`))
  }

  /** A request that may only be answered 200 or 503; undefined for 503. */
  const send = async (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Got | undefined> => {
    const start = performance.now()
    const answer = ask(port, path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const stop = new AbortController()
    const late = pause(givenUpMs, undefined, { signal: stop.signal }).catch(() => undefined)
    const got = await Promise.race([answer, late]).catch((error: unknown) => String(error))
    stop.abort()
    answer.catch(() => {})
    if (got === undefined || typeof got === 'string') {
      return report(`${path}: ${got ?? `no answer in ${givenUpMs} ms`}`)
    }
    if (got.status === 200) {
      figures.ok += 1
      return got
    }
    if (got.status === 503) {
      figures.unavailable += 1
      unavailable.push({ start: start, ended: performance.now(), signIn: path.startsWith('/auth/') })
      return undefined
    }
    return report(`${path}: ${got.status} ${got.text.slice(0, 300)}`)
  }

  const signIn = async (userName: string, rotates: boolean): Promise<Tokens | undefined> => {
    const meta = rotates ? { Meta: { refresh: 'rotate' } } : {}
    const got = await send('/auth/credentials', { UserName: userName, Password: loadPassword, ...meta })
    if (!got) return undefined
    const { BearerToken, RefreshToken } = got.json
    return { bearer: String(BearerToken), refresh: String(RefreshToken), rotates, at: performance.now() }
  }
  const insist = async <T>(work: () => Promise<T | undefined>): Promise<T | undefined> => {
    for (;;) {
      const done = await work()
      if (done !== undefined || !going) return done
      await pause(20)
    }
  }

  let admin = await signIn(loadAdmin, false)
  if (!admin) throw new Error(`the Admin cannot sign in: ${figures.problems.join('; ')}`)
  const adminToken = async (): Promise<string> => {
    if (admin && performance.now() - admin.at > tokenMs) admin = (await insist(() => signIn(loadAdmin, false))) ?? admin
    return `Bearer ${admin?.bearer}`
  }

  const changeRole = async (userName: string, id: string, role: string): Promise<void> => {
    const before = possible.get(userName) ?? []
    const away = before[0]?.includes(role) === true
    const apply = (roles: Roles): Roles =>
      away ? roles.filter((one) => one !== role) : roles.includes(role) ? roles : [...roles, role]
    sent.add(id)
    const start = performance.now()
    const got = await send(
      away ? '/unassignroles' : '/assignroles',
      { UserName: userName, Roles: [role] },
      { authorization: await adminToken(), 'x-correlation-id': id },
    )
    if (!got) {
      const either = [...before, ...before.map(apply)]
      possible.set(
        userName,
        either.filter((roles, i) => either.findIndex((other) => same(other, roles)) === i),
      )
      return
    }
    const after = (got.json['AllRoles'] ?? []) as Roles
    if (!before.some((roles) => same(apply(roles), after))) {
      report(`${id}: ${userName} holds ${after.join()} and not what ${JSON.stringify(before)} became`)
    }
    possible.set(userName, [after])
    const mayHaveChangedNothing = before.some((roles) => same(roles, after))
    acknowledged.push({ id, userName, after, mayHaveChangedNothing })
    for (const listener of changeListeners) listener(start, performance.now())
  }

  /** The same token again until it is answered, as an honest client does. */
  const refresh = async (tokens: Tokens): Promise<Tokens | undefined> => {
    const start = performance.now()
    for (;;) {
      const got = await send('/access-token', { RefreshToken: tokens.refresh })
      if (got) {
        const { accessToken, refreshToken } = got.json
        return {
          ...tokens,
          bearer: String(accessToken),
          refresh: tokens.rotates ? String(refreshToken) : tokens.refresh,
          at: performance.now(),
        }
      }
      if (!going || performance.now() - start > repeatMs) return undefined
      await pause(20)
    }
  }

  const write = async (userName: string): Promise<void> => {
    const choose = chooser(`${seed} ${userName}`)
    let tokens: Tokens | undefined
    for (let n = 0; going; n += 1) {
      const what = choose(20)
      const unavailableBefore = figures.unavailable
      if (!tokens || what === 0) {
        tokens = await signIn(userName, choose(2) === 0)
        if (tokens && !tokens.rotates) signIns.push(tokens)
      } else if (what < 5) tokens = await refresh(tokens)
      else await changeRole(userName, `${seed}-${userName}-${n}`, roleNames[choose(roleNames.length)] ?? '')
      if (figures.unavailable > unavailableBefore) await pause(10)
    }
  }
  const writers = writerNames.map(write)
  const live = (async (): Promise<void> => {
    for (; going; await pause(40)) {
      const start = performance.now()
      await ask(port, '/livez').catch(() => undefined)
      signsOfLife.push({ start: start, ended: performance.now() })
    }
  })()
  const late = ({ start, ended }: Span): Late => {
    const atThatTime = signsOfLife.filter((one) => one.start < ended && one.ended > start)
    const ms = ended - start
    return { ms, ownMs: ms - Math.max(0, ...atThatTime.map((one) => one.ended - one.start)) }
  }

  return {
    figures,
    failed: failed.promise,
    maxUnavailable: (signIn) => slowest(unavailable.filter((one) => one.signIn === signIn).map(late)),
    acknowledged,
    sent,
    possible: () => possible,
    recovery: async () => {
      const start = performance.now()
      const change = Promise.withResolvers<number>()
      const listener = (sentAt: number, ended: number): void => {
        if (sentAt >= start) change.resolve(ended - start)
      }
      changeListeners.add(listener)
      const answer = Promise.withResolvers<number>()
      // Each by itself: one that waits for what is broken holds no other up.
      const token = await adminToken()
      const question = async (): Promise<void> => {
        if (await send('/auth', undefined, { authorization: token })) answer.resolve(performance.now() - start)
      }
      const questions: Promise<void>[] = []
      const timer = setInterval(() => questions.push(question()), 25)
      questions.push(question())
      try {
        const timeout = pause(givenUpMs, Number.POSITIVE_INFINITY, { ref: false })
        const answerMs = await Promise.race([answer.promise, timeout, failed.promise])
        clearInterval(timer)
        return {
          answer: late({ start: start, ended: start + answerMs }),
          changeMs: await Promise.race([change.promise, timeout, failed.promise]),
        }
      } finally {
        clearInterval(timer)
        changeListeners.delete(listener)
        await Promise.all(questions)
      }
    },
    stop: async () => {
      going = false
      await Promise.all([...writers, live])
    },
    lostTokens: async () => {
      const lost: string[] = []
      const recent = signIns.filter(({ at }) => performance.now() - at < tokenMs).slice(-200)
      for (const [n, { bearer, refresh: token }] of recent.entries()) {
        if (!(await send('/auth', undefined, { authorization: `Bearer ${bearer}` }))) lost.push(`access token ${n}`)
        if (!(await send('/access-token', { RefreshToken: token }))) lost.push(`refresh token ${n}`)
      }
      return lost
    },
  }
}

type AuditEntry = {
  readonly correlationId: string
  readonly target: string
  readonly before: string
  readonly after: string
}

/**
 * Compares what the load was answered with what the database holds; `query` goes to the database by itself. Gives one
 * sentence for each contradiction.
 */
export async function contradictions(
  load: Load,
  query: (sql: string) => Promise<readonly Record<string, unknown>[]>,
): Promise<readonly string[]> {
  const problems: string[] = []
  const audit = (await query(
    `SELECT "correlationId", "target", "before", "after" FROM audit WHERE event = 'roles.changed' ORDER BY id`,
  )) as readonly AuditEntry[]
  const byId = Map.groupBy(audit, ({ correlationId }) => correlationId)
  for (const [id, entries] of byId) {
    if (entries.length > 1) problems.push(`${id} was done ${entries.length} times`)
    if (!load.sent.has(id)) problems.push(`${id} was never asked for`)
  }
  const rolesIn = (json: string | undefined): Roles =>
    json === undefined ? [] : (JSON.parse(json) as { roles: Roles }).roles
  for (const { id, userName, after, mayHaveChangedNothing } of load.acknowledged) {
    const entry = byId.get(id)?.[0]
    if (!entry && !mayHaveChangedNothing) problems.push(`${id} was acknowledged and is lost`)
    if (entry && (entry.target !== userName || !same(rolesIn(entry.after), after))) {
      problems.push(`${id} was acknowledged as ${after.join()} and is ${entry.target} ${entry.after}`)
    }
  }
  const rows = await query(
    `SELECT u."userName", g."name" FROM users u JOIN grants g ON g."userId" = u.id WHERE g.kind = 'role' ORDER BY g.seq`,
  )
  for (const userName of writerNames) {
    const entries = audit.filter(({ target }) => target === userName)
    for (const [i, entry] of entries.entries()) {
      const last = rolesIn(entries[i - 1]?.after)
      if (!same(rolesIn(entry.before), last))
        problems.push(`${entry.correlationId} does not follow the change before it`)
    }
    const roles = rows.filter((row) => row['userName'] === userName).map((row) => String(row['name']))
    const last = rolesIn(entries.at(-1)?.after)
    if (!same(roles, last)) problems.push(`${userName} holds ${roles.join()}, and the audit says ${last.join()}`)
    const possible = load.possible().get(userName) ?? []
    if (!possible.some((each) => same(each, roles))) {
      problems.push(`${userName} holds ${roles.join()}, and may hold ${JSON.stringify(possible)}`)
    }
  }
  return problems
}
