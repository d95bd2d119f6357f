import { setTimeout as pause } from 'node:timers/promises'
import { type Answered, ask } from './serve-node.ts'

/** The answers that callers may get from now on, beside 200. */
export type CallPhase = { readonly name: string; readonly roleCalls: readonly number[] }

type Kind = 'role call' | 'health'
type Call = {
  readonly kind: Kind
  /** 0: no answer. */
  readonly status: number
  readonly ms: number
  readonly why: string
  /** Those in which it began and ended. */
  readonly phases: readonly CallPhase[]
  /** Whether it was made again, as the answer said: the store may not answer in time on a busy machine. */
  readonly isRepeated: boolean
}

/** How often a call is made until its answer counts. */
const mostTries = 30

const isExpected = ({ kind, status, phases }: Omit<Call, 'isRepeated'>): boolean =>
  status === 200 || (kind === 'role call' && phases.some(({ roleCalls }) => roleCalls.includes(status)))

/** Callers who do not stop for anything, and who remember what each of them was answered. */
export type BalancedCalls = {
  readonly enter: (phase: CallPhase) => void
  /** Another token, from now on. */
  readonly use: (token: string) => void
  readonly count: () => number
  /** Of the answers that the phase did not expect, each with what it says. */
  readonly unexpected: () => readonly string[]
  /** Role changes that were acknowledged: users and their roles, each of which was assigned once. */
  readonly acknowledged: ReadonlyMap<string, ReadonlySet<string>>
  /** A line for each phase and kind of call. */
  readonly figures: () => readonly string[]
  readonly stop: () => Promise<void>
}

/**
 * Calls a load balancer at a fixed rate until it is stopped. Each role call assigns a role that no other one assigns, and is
 * made again after a 503 that the phase does not expect and that says when to try again; each question for health is about
 * `type`, and has to be answered with 200.
 */
export function startCalls({
  url,
  users,
  type,
  everyMs,
  token: firstToken,
}: {
  readonly url: string
  readonly users: readonly string[]
  readonly type: string
  /** Between two calls of one kind, in milliseconds. */
  readonly everyMs: number
  /** Of an Admin. */
  readonly token: string
}): BalancedCalls {
  const calls: Call[] = []
  const phases: CallPhase[] = []
  const acknowledged = new Map(users.map((name) => [name, new Set<string>()]))
  const running = new Set<Promise<void>>()
  let phase: CallPhase = { name: 'start', roleCalls: [] }
  let token = firstToken
  let goesOn = true

  const call = async (kind: Kind, work: () => Promise<Answered>, isRight: (body: string) => boolean): Promise<void> => {
    for (let tries = 1; ; tries += 1) {
      const [began, before] = [performance.now(), phase]
      const failed = (error: unknown): Answered => ({ status: 0, body: String(error) })
      const { status, body, retryAfterMs } = await work().catch(failed)
      const misses = status === 200 && !isRight(body)
      const why = misses ? `wrong: ${body.slice(0, 300)}` : body.slice(0, 300)
      const ms = performance.now() - began
      const one = { kind, status: misses ? -1 : status, ms, why, phases: [before, phase] }
      const isRepeated =
        status === 503 && retryAfterMs !== undefined && kind === 'role call' && !isExpected(one) && tries < mostTries
      calls.push({ ...one, isRepeated })
      if (!isRepeated) return
      await pause(retryAfterMs)
    }
  }
  const assign = (n: number): Promise<void> => {
    const UserName = users[n % users.length] ?? ''
    const role = `Role-${String(n).padStart(5, '0')}.`
    const body = JSON.stringify({ UserName, Roles: [role] })
    const headers = { accept: 'application/json', 'content-type': 'application/json', authorization: `Bearer ${token}` }
    return call(
      'role call',
      () => ask(`${url}/assignroles`, { method: 'POST', headers, body }),
      (answer) => {
        const isThere = (JSON.parse(answer) as { AllRoles?: readonly string[] }).AllRoles?.includes(role) === true
        if (isThere) acknowledged.get(UserName)?.add(role)
        return isThere
      },
    )
  }
  const question = (): Promise<void> =>
    call(
      'health',
      () => ask(`${url}/healthcheck?ServerType=${type}&ExecutionMode=Basic`),
      () => true,
    )
  const loop = async (make: (n: number) => Promise<void>): Promise<void> => {
    let due = performance.now()
    for (let n = 0; goesOn; n += 1) {
      // One that waits for its answer does not keep others from calling.
      const one = make(n)
      running.add(one)
      void one.then(() => running.delete(one))
      due += everyMs
      await pause(Math.max(0, due - performance.now()))
    }
  }
  const loops = [loop(assign), loop(question)]

  return {
    enter: (next) => {
      phase = next
      phases.push(next)
    },
    use: (next) => {
      token = next
    },
    count: () => calls.length,
    unexpected: () =>
      calls
        .filter((one) => !one.isRepeated && !isExpected(one))
        .map(
          ({ kind, status, ms, why, phases: own }) =>
            `${kind} ${own.map(({ name }) => name).join(' to ')}: ${status} after ${Math.round(ms)} ms: ${why}`,
        ),
    acknowledged,
    figures: () =>
      phases.flatMap((one) =>
        (['role call', 'health'] as const).map((kind) => {
          const own = calls.filter((each) => each.kind === kind && each.phases[0] === one)
          const byStatus = Object.entries(Object.groupBy(own, ({ status }) => status))
          const counts = byStatus.map(([status, some]) => `${some?.length}× ${status}`).join(', ')
          const times = own.map(({ ms }) => ms).toSorted((a, b) => a - b)
          const at = (share: number): number => Math.round(times[Math.floor((times.length - 1) * share)] ?? Number.NaN)
          return `${one.name} | ${kind} | ${counts} | p99 ${at(0.99)} ms, longest ${at(1)} ms`
        }),
      ),
    stop: async () => {
      goesOn = false
      await Promise.all(loops)
      await Promise.all(running)
    },
  }
}
