import type pg from 'pg'
import { expect } from 'vitest'
import { type Data, openData, type StoredNodes } from '../../../src/core/store/index.ts'
import {
  type Fence,
  type Fenced,
  type KnownMonitors,
  machineKey,
  type NodesRows,
  NodesTable,
  outMs,
  ownedBy,
  type RenewalRequest,
  type Taken,
} from '../../../src/core/watch/nodes/index.ts'
import type { StoredRow } from '../../../src/core/watch/outbox/index.ts'
import type { IncidentRecord, StatesBatch, StoredState, StoredSubject } from '../../../src/core/watch/states/index.ts'
import { newSubject } from '../../../src/core/watch/states/judge.ts'
import { Chance } from '../../watch/simulate/chance.ts'
import type { PostgresServer } from '../servers/postgres.ts'
import { actor, answered, freshDatabase } from './data-fixture.ts'

export const subjectOf = (key: string, check = 'round trip', item?: string): StoredSubject => ({
  key,
  type: 'Sql',
  monitor: key,
  check,
  ...(item === undefined ? {} : { item }),
})

export const stateOf = (row: StoredSubject, message: string): StoredState => ({
  row,
  state: newSubject({ check: row.check, level: 'ok', message, depth: 'Basic' }, 1),
})

export const incidentOf = (row: StoredSubject, id: string, more: Partial<IncidentRecord> = {}): IncidentRecord => ({
  ...row,
  id,
  beganAt: 1_000,
  confirmedAt: 2_000,
  level: 'failed',
  message: 'refused',
  isFlapping: false,
  isUnobserved: false,
  ...more,
})

export const outboxRowOf = (
  subject: StoredSubject,
  receiver: string,
  at: number | undefined,
  incident = 'i',
): StoredRow => ({
  receiver,
  subject,
  row:
    at === undefined
      ? undefined
      : { ends: [], last: { incident, level: 'failed', isFlapping: false, beganAt: 1, observedAt: at, at } },
})

export const batchOf = (more: Partial<StatesBatch>): StatesBatch => ({
  states: [],
  gone: [],
  incidents: [],
  isWhole: false,
  ...more,
})

export const monitorsOf = (keys: readonly string[], formerly: readonly string[] = []): KnownMonitors => ({
  groups: new Map(keys.map((key) => [key, key])),
  formerly: new Map(formerly.map((key) => [key, key])),
})

export const requestOf = (node: string, more: Partial<RenewalRequest> = {}): RenewalRequest => ({
  node,
  process: `process of ${node}`,
  epoch: undefined,
  latestEpoch: more.epoch ?? 0,
  claims: true,
  config: 'none',
  isIsolated: false,
  facts: { version: '1.0.0', startedAt: 1 },
  ...more,
})

/** The nodes of a store, which a PostgreSQL store has. */
export function nodesOf({ nodes }: Data): StoredNodes {
  if (!nodes) throw new Error('a PostgreSQL store has nodes')
  return nodes
}

/** Renews the row of a node for the first time. */
export const joined = (nodes: NodesRows, node: string): Promise<Fence> => renewedBy(nodes, requestOf(node))

/** Renews the row of a node. */
export async function renewedBy(nodes: NodesRows, request: RenewalRequest): Promise<Fence> {
  const answer = await nodes.renew(request)
  if (answer.what !== 'renewed') throw new Error('another process has the row')
  return { node: request.node, epoch: answer.epoch }
}

/** A store whose database has a clock that stands still until it is set. */
export type ClockedStore = {
  readonly url: string
  readonly data: Data
  /** As the superuser. */
  readonly admin: pg.Client
  readonly setClock: (ms: number) => Promise<void>
  readonly close: () => Promise<void>
}

/** Functions of the schema public go before those of PostgreSQL, so that `clock_timestamp()` is the one made here. */
export async function clockedStore(server: PostgresServer): Promise<ClockedStore> {
  const url = await freshDatabase(server)
  await (await answered(() => openData({ store: url, create: true }))).close()
  const database = new URL(url).pathname.slice(1)
  const admin = await server.client(database)
  await admin.query(`CREATE TABLE public.testclock ("at" TIMESTAMPTZ NOT NULL);
    INSERT INTO public.testclock VALUES ('epoch');
    GRANT SELECT ON public.testclock TO svc;
    CREATE FUNCTION public.clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE sql VOLATILE
      AS 'SELECT "at" FROM public.testclock';
    ALTER DATABASE ${database} SET search_path = public, pg_catalog`)
  const data = await answered(() => openData({ store: url, create: false, now: Date.now }))
  return {
    url,
    data,
    admin,
    setClock: async (ms) => {
      await admin.query(`UPDATE public.testclock SET "at" = 'epoch'::timestamptz + $1 * interval '1 millisecond'`, [ms])
    },
    close: async () => {
      await data.close()
      await admin.end()
    },
  }
}

const sorted = <T>(rows: readonly T[]): readonly T[] =>
  rows.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))
const sortedTaken = (taken: Taken | undefined) =>
  taken && {
    keys: sorted(taken.keys),
    states: sorted(taken.states.map(({ silentMs, row, state }) => [silentMs, row, state])),
    incidents: sorted(taken.incidents.map(({ key, id, ...more }) => [key, id, more])),
    outbox: sorted(taken.outbox.map(({ receiver, subject, row }) => [receiver, subject, row])),
  }
const byNode = <T extends { readonly node: string }>(rows: readonly T[]): readonly T[] =>
  rows.toSorted((one, other) => (one.node < other.node ? -1 : 1))

/** The same, each of whose calls is repeated until the store answers it. */
export const answeringNodesOf = (data: Data): StoredNodes =>
  new Proxy(nodesOf(data), {
    get: (nodes, name) => {
      const method: unknown = Reflect.get(nodes, name)
      if (typeof method !== 'function') return method
      return (...args: unknown[]) => answered(async () => (await Reflect.apply(method, nodes, args)) as unknown)
    },
  })

/**
 * Carries out the same random operations on the store and on its model in memory, and expects the same answers. Returns how
 * often each answer came.
 */
export async function compareWithModel({ data, setClock }: ClockedStore, seed: number, steps: number) {
  const nodes = answeringNodesOf(data)
  const table = new NodesTable()
  const chance = new Chance(seed)
  const names = ['alpha', 'beta', 'gamma']
  const network = ['Sql/a', 'Sql/b', 'Web/ü "quoted" \\', 'Web/d', 'App/e']
  const keys = [...network, ...names.map((name) => machineKey(name, 'Host/machine'))]
  const configurations = [network, network.slice(0, 3), network.slice(2)].map((some) => monitorsOf(some))
  const lives = new Map<
    string,
    { process: string; epoch: number | undefined; writes: number; acknowledged: number; own: readonly string[] }
  >()
  const counts = new Map<string, number>()
  const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1)
  let now = Date.UTC(2026, 0, 1)
  const lifeOf = (node: string) => {
    const life = lives.get(node) ?? { process: `${node} 1`, epoch: undefined, writes: 0, acknowledged: 0, own: keys }
    lives.set(node, life)
    return life
  }
  const some = <T>(all: readonly T[]): readonly T[] => all.filter(() => chance.is(0.35))
  const anySubject = (from: readonly string[]): StoredSubject =>
    subjectOf(chance.of(from), chance.of(['one', 'two']), chance.is(0.3) ? chance.of(['x', 'y']) : undefined)
  /** Mostly of what a node holds. */
  const subjectsFor = (own: readonly string[]): readonly StoredSubject[] => {
    const from = own.length > 0 && chance.is(0.8) ? own : keys
    return [
      ...new Map(
        Array.from({ length: chance.between(0, 4) }, () => anySubject(from)).map((one) => [JSON.stringify(one), one]),
      ).values(),
    ]
  }
  const fenceOf = (node: string): Fence => {
    const { epoch = 1, acknowledged } = lifeOf(node)
    // Some are of an earlier epoch, and some of what the store lost when it went back in time.
    return {
      node,
      epoch: chance.is(0.1) ? chance.between(1, epoch + 1) : epoch,
      acknowledged: chance.is(0.05) ? acknowledged + 1 : acknowledged,
    }
  }
  /** Mostly the next. One that repeats is late. */
  const numberOf = (node: string): number => {
    const life = lifeOf(node)
    if (!chance.is(0.05)) life.writes += 1
    return life.writes
  }
  const wrote = (fence: Fence, number: number, verdict: Fenced): void => {
    const life = lifeOf(fence.node)
    if (verdict === 'stored' && fence.epoch === life.epoch) life.acknowledged = number
  }
  const operations: readonly (readonly [weight: number, run: (node: string) => Promise<void>])[] = [
    [
      5,
      async (node) => {
        const life = lifeOf(node)
        const isNew = chance.is(0.1)
        // Some are late: they were sent before an epoch began.
        const latestEpoch = chance.is(0.2) ? chance.between(0, life.epoch ?? 0) : (life.epoch ?? 0)
        const request = requestOf(node, {
          process: isNew ? `${node} ${chance.between(1, 4)}` : life.process,
          epoch: chance.is(0.05) || latestEpoch === 0 ? undefined : latestEpoch,
          latestEpoch,
          claims: isNew && chance.is(0.5),
          config: `digest ${chance.between(0, configurations.length)}`,
          isIsolated: chance.is(0.2),
          facts: { version: '1.0.0', startedAt: now, url: `https://${node}/` },
        })
        const expected = table.renew(request, now)
        const answer = await nodes.renew(request)
        expect({ ...answer, rows: byNode(answer.rows) }).toEqual({ ...expected, rows: byNode(expected.rows) })
        count(answer.what)
        if (answer.what === 'taken') return
        if (answer.epoch !== life.epoch)
          lives.set(node, { process: request.process, epoch: answer.epoch, writes: 0, acknowledged: 0, own: keys })
        else life.process = request.process
      },
    ],
    [
      3,
      async (node) => {
        const fence = fenceOf(node)
        const all = await nodes.configurations(['digest 0', 'digest 1', 'digest 2'])
        const picked = some(keys)
        const choose = chance.is(0.7) ? ownedBy(node, all) : () => picked
        // Of the same fault, each node may have sent an incident of its own.
        const notices = some([...subjectsFor(keys), ...subjectsFor(keys)]).map((subject) =>
          outboxRowOf(
            subject,
            chance.of(['mail', 'pager']),
            now,
            chance.of(['i', `of ${node}`, `of ${node} at ${now}`]),
          ),
        )
        const expected = table.takeOver(fence, choose, notices, now)
        const answer = await nodes.takeOver(fence, choose, notices)
        expect(sortedTaken(answer)).toEqual(sortedTaken(expected))
        count(answer ? 'taken over' : 'not taken over')
        if (answer?.outbox.some(({ row }) => row?.others)) count('taken over with other incidents')
        if (answer) lifeOf(node).own = answer.keys
      },
    ],
    [
      5,
      async (node) => {
        const [fence, all] = [fenceOf(node), subjectsFor(lifeOf(node).own)]
        const [gone, stored] = [all.filter(() => chance.is(0.3)), [] as StoredSubject[]]
        for (const one of all) if (!gone.includes(one)) stored.push(one)
        const batch = batchOf({
          states: stored.map((row) => stateOf(row, `at ${now} "\\u0000`)),
          gone,
          incidents: some(all)
            .map((row) =>
              incidentOf(
                row,
                `${row.key} ${chance.between(0, 3)}`,
                chance.is(0.4) ? { endedAt: now, ending: 'recovered' } : {},
              ),
            )
            .filter((one, index, every) => every.findIndex(({ id }) => id === one.id) === index),
        })
        const number = numberOf(node)
        const expected = table.writeStates(fence, number, batch, now)
        const answer = await nodes.writeStates(fence, number, batch)
        expect(answer).toEqual(expected)
        count(typeof answer === 'string' ? answer : 'lost')
        wrote(fence, number, answer)
      },
    ],
    [
      3,
      async (node) => {
        const [fence, life] = [fenceOf(node), lifeOf(node)]
        const rows = subjectsFor(life.own).map((one) =>
          outboxRowOf(one, chance.of(['mail', 'pager']), chance.is(0.7) ? now : undefined),
        )
        const number = numberOf(node)
        const expected = table.writeOutbox(fence, number, rows, now)
        const answer = await nodes.writeOutbox(fence, number, rows)
        expect(answer).toEqual(expected)
        count(typeof answer === 'string' ? `outbox ${answer}` : 'outbox lost')
        wrote(fence, number, answer)
      },
    ],
    [
      0.3,
      async (node) => {
        const fence = fenceOf(node)
        table.leave(fence, now)
        await nodes.leave(fence)
      },
    ],
    [
      0.5,
      async (node) => {
        const expected = table.forget(node, now)
        expect(await nodes.forget(node, actor())).toBe(expected)
        count(expected ? 'forgotten' : 'not forgotten')
      },
    ],
    [1, async () => expect(byNode(await nodes.list())).toEqual(byNode(table.rows(now)))],
    [
      4,
      async () => {
        now += chance.of([1, 900, 900, 3_000, 3_000, outMs - 1, outMs, outMs + 1])
        await setClock(now)
      },
    ],
  ]
  await setClock(now)
  for (const [index, one] of configurations.entries()) {
    table.putConfiguration(`digest ${index}`, one)
    await nodes.putConfiguration(`digest ${index}`, one)
  }
  expect(await nodes.configurations(['digest 1', 'none'])).toEqual(table.configurations(['digest 1', 'none']))
  const total = operations.reduce((sum, [weight]) => sum + weight, 0)
  for (let step = 0; step < steps; step += 1) {
    let left = chance.next() * total
    for (const [weight, run] of operations) {
      left -= weight
      if (left >= 0) continue
      await run(chance.of(names))
      break
    }
  }
  // All that is stored, as a node finds it that takes over everything.
  const last = requestOf('omega', { process: 'last' })
  const [expected, answer] = [table.renew(last, now), await nodes.renew(last)]
  expect(answer).toMatchObject({ what: 'renewed', epoch: expected.what === 'renewed' ? expected.epoch : undefined })
  if (answer.what !== 'renewed') return counts
  const fence = { node: 'omega', epoch: answer.epoch }
  const all = () => keys
  expect(sortedTaken(await nodes.takeOver(fence, all, []))).toEqual(sortedTaken(table.takeOver(fence, all, [], now)))
  return counts
}
