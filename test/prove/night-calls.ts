import { setTimeout as pause } from 'node:timers/promises'
import { admin, type ServeNode, tokenOf } from '../support/program/serve-node.ts'

/** `failed`: refused, or nothing listened. `unknown`: no answer arrived, so that the call may have taken effect or not. */
export type Outcome = 'ok' | 'failed' | 'unknown'
export type NightCall = {
  readonly kind: 'sign-in' | 'token' | 'role change' | 'roles read' | 'health'
  readonly node: number
  /** The fault during the call. */
  readonly fault: string
  readonly outcome: Outcome
  /** Of `performance.now()`. */
  readonly began: number
  readonly ended: number
}

export type Night = {
  readonly calls: readonly NightCall[]
  /** Answers that contradict an acknowledged change, and answers that no fault explains. */
  readonly problems: readonly string[]
  /** Calls that begin from now on are counted under this name. */
  readonly during: (fault: string) => void
  /** Lets the calls in progress end. */
  readonly stop: () => Promise<void>
}

/** Longer than any answer may take, so that a call without one is a call whose connection is gone. */
const patienceMs = 15_000
const role = 'Ops'
export const noFault = 'none'

type Answer = { readonly outcome: Outcome; readonly body: string }

/**
 * Callers of several nodes on one store: at each node one that signs in, one that presents a token, one that reads health,
 * and one that grants and revokes a role and reads it at every node. `nodes` gives the nodes of the moment, which may be
 * replaced while this goes on.
 */
export async function startNight(nodes: readonly { current: ServeNode }[], writers: readonly string[]): Promise<Night> {
  const calls: NightCall[] = []
  const problems: string[] = []
  let fault: string = noFault
  let goesOn = true

  const send = async (
    kind: NightCall['kind'],
    node: number,
    path: string,
    { body, token, fine = [200] }: { body?: object; token?: string; fine?: readonly number[] } = {},
  ): Promise<Answer> => {
    const during = fault
    const began = performance.now()
    const answer = await fetchAnswer(`${nodes[node]?.current.url}${path}`, { body, token })
    const outcome = outcomeOf(answer, fine)
    calls.push({ kind, node, fault: during === noFault ? fault : during, outcome, began, ended: performance.now() })
    if (outcome === 'failed' && answer && answer !== 'refused' && answer.status !== 503)
      problems.push(`${during}: ${kind} at node ${node} is answered ${answer.status}: ${answer.body.slice(0, 200)}`)
    return { body: answer && answer !== 'refused' ? answer.body : '', outcome }
  }

  const signIn = async (node: number, UserName: string): Promise<Answer> =>
    await send('sign-in', node, '/auth/credentials', { body: { UserName, Password: admin.password } })
  const insistOn = async (node: number, name: string): Promise<string> => {
    for (;;) {
      const answer = await signIn(node, name)
      if (answer.outcome === 'ok') return tokenOf(answer)
      await pause(100)
    }
  }

  const token = await insistOn(0, admin.userName)
  const tokens = await Promise.all(writers.map(async (name) => await insistOn(0, name)))

  const every = async (ms: number, work: () => Promise<unknown>): Promise<void> => {
    while (goesOn) {
      await work()
      await pause(ms)
    }
  }

  /** Reads the role at every other node; `expected` is undefined while the outcome of the change is not known. */
  const readElsewhere = async (changedAt: number, writer: number, expected: boolean): Promise<void> => {
    for (const [node] of nodes.entries()) {
      if (node === changedAt) continue
      const answer = await send('roles read', node, '/auth', { token: tokens[writer] ?? '' })
      if (answer.outcome !== 'ok') continue
      const { Roles = [] } = JSON.parse(answer.body) as { Roles?: readonly string[] }
      if (Roles.includes(role) !== expected)
        problems.push(`${fault}: node ${node} reads ${Roles.join()} after node ${changedAt} acknowledged ${expected}`)
    }
  }

  const changes = async (writer: number): Promise<void> => {
    let holds = false
    await every(20, async () => {
      const path = holds ? '/unassignroles' : '/assignroles'
      const body = { UserName: writers[writer], Roles: [role] }
      // Where the outcome is unknown or failed, the same change is sent again until it is acknowledged.
      const { outcome } = await send('role change', writer, path, { body, token })
      if (outcome !== 'ok') return
      holds = !holds
      await readElsewhere(writer, writer, holds)
    })
  }

  const loops = nodes.flatMap((_, node) => [
    every(150, async () => await signIn(node, admin.userName)),
    every(40, async () => await send('token', node, '/auth', { token })),
    // An unhealthy report is an answer.
    every(
      150,
      async () => await send('health', node, '/healthcheck?ServerType=App&ExecutionMode=Basic', { fine: [200, 503] }),
    ),
    changes(node),
  ])
  return {
    calls,
    problems,
    during: (name) => {
      fault = name
    },
    stop: async () => {
      goesOn = false
      await Promise.all(loops)
    },
  }
}

type Response = { readonly status: number; readonly body: string } | 'refused'

function outcomeOf(response: Response | undefined, fine: readonly number[]): Outcome {
  if (response === undefined) return 'unknown'
  return response !== 'refused' && fine.includes(response.status) ? 'ok' : 'failed'
}

type Question = { readonly body?: object | undefined; readonly token?: string | undefined }

/** `refused`: nothing listens. Undefined when no whole answer arrives. */
async function fetchAnswer(url: string, { body, token }: Question): Promise<Response | undefined> {
  try {
    const response = await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(patienceMs),
    })
    return { status: response.status, body: await response.text() }
  } catch (error) {
    const { cause } = error as { cause?: { code?: unknown } }
    return cause?.code === 'ECONNREFUSED' ? 'refused' : undefined
  }
}

/** A line for each fault: calls by outcome, the longest time in which no sign-in was acknowledged, and the slowest 1 %. */
export function nightTable(calls: readonly NightCall[]): string {
  const rows = [...Map.groupBy(calls, ({ fault }) => fault)].map(([fault, group]) => {
    const count = (outcome: Outcome, kind?: NightCall['kind']): number =>
      group.filter((call) => call.outcome === outcome && (kind === undefined || call.kind === kind)).length
    const times = group.filter(({ outcome }) => outcome === 'ok').map(({ began, ended }) => ended - began)
    const p99 = times.toSorted((a, b) => a - b)[Math.floor((times.length - 1) * 0.99)] ?? Number.NaN
    const health = count('ok', 'health') + count('failed', 'health') + count('unknown', 'health')
    const cells = [
      ...[fault, count('ok'), count('failed'), count('unknown')],
      `${count('ok', 'health')} of ${health}`,
      // The calls of quiet moments do not follow each other.
      fault === noFault ? '' : (maxPause(group) / 1_000).toFixed(1),
      Math.round(p99),
    ]
    return `| ${cells.join(' | ')} |`
  })
  const head = '| fault | ok | failed | unknown | health answered | s without a sign-in at any node | p99 ms |'
  return [head, '|---|---|---|---|---|---|---|', ...rows].join('\n')
}

/** Milliseconds. */
function maxPause(calls: readonly NightCall[]): number {
  const ends = calls.filter(({ kind, outcome }) => kind === 'sign-in' && outcome === 'ok').map(({ ended }) => ended)
  const from = Math.min(...calls.map(({ began }) => began))
  const all = [from, ...ends.toSorted((a, b) => a - b), Math.max(...calls.map(({ ended }) => ended))]
  return Math.max(...all.slice(1).map((end, index) => end - (all[index] ?? end)))
}
