import type pg from 'pg'
import { expect } from 'vitest'
import { type Data, openData, type StoredNodes } from '../../../src/core/store/index.ts'
import {
  type BeatRequest,
  type Fence,
  type Fenced,
  type LeaseAsk,
  machineKey,
  type NodesRows,
  outMs,
  type Shard,
  type Stored,
} from '../../../src/core/watch/nodes/index.ts'
import type { StoredRow } from '../../../src/core/watch/outbox/index.ts'
import type { IncidentRecord, StatesBatch, StoredState, StoredSubject } from '../../../src/core/watch/states/index.ts'
import { newSubject } from '../../../src/core/watch/states/judge.ts'
import { Chance } from '../../watch/simulate/chance.ts'
import type { PostgresServer } from '../servers/postgres.ts'
import { actor, answered, freshDatabase } from './data-fixture.ts'
import { LeasesTable } from './leases-table.ts'

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

/** A beat of a node, which asks for nothing unless `more` says so. */
export const requestOf = (
  node: string,
  { asks = {}, ...more }: Partial<Omit<BeatRequest, 'asks'>> & { readonly asks?: Partial<BeatRequest['asks']> } = {},
): BeatRequest => ({
  node,
  process: `process of ${node}`,
  isIsolated: false,
  facts: { version: '1.0.0', startedAt: 1, digest: '0123456789abcdef' },
  ...more,
  asks: { network: { type: 'read' }, machine: { type: 'read' }, ...asks },
})

/** The nodes of a store, which a PostgreSQL store has. */
export function nodesOf({ nodes }: Data): StoredNodes {
  if (!nodes) throw new Error('a PostgreSQL store has nodes')
  return nodes
}

export type Holder = {
  readonly node: string
  readonly process: string
  readonly epoch: number
  readonly writes: number
}

/** Takes a lease, whoever has it: that of the network after that of its machine, without which it gets none. */
export async function taken(nodes: NodesRows, node: string, shard: Shard = 'network'): Promise<Holder> {
  if (shard === 'network') await joined(nodes, node)
  const { leases } = await nodes.beat(requestOf(node))
  const expected = leases[shard].row
  const epoch = (expected?.epoch ?? 0) + 1
  const request = requestOf(node, { asks: { [shard]: { type: 'take', expected, epoch } } })
  const answer = (await nodes.beat(request)).leases[shard]
  if (!answer.isOk) throw new Error(`${node} does not get the lease`)
  return { node, process: request.process, epoch, writes: answer.row?.writes ?? 0 }
}
/** Takes the lease of its machine, so that it has a row. */
export const joined = (nodes: NodesRows, node: string): Promise<Holder> => taken(nodes, node, 'machine')
export const renewed = (nodes: NodesRows, { node, epoch }: Holder, shard: Shard = 'network') =>
  nodes.beat(requestOf(node, { asks: { [shard]: { type: 'renew', epoch } } }))

/** Hands something over as the process of a holder. */
export const handedOver = (
  nodes: Pick<NodesRows, 'handOver'>,
  { node, process }: Pick<Holder, 'node' | 'process'>,
  number: number,
  rows: readonly StoredRow[],
) => nodes.handOver({ node, process, number, rows })

/** The fence of the write of this number since the holder took the lease. */
export const fenceOf = (
  { node, process, epoch, writes }: Holder,
  number: number,
  { shard = 'network', acknowledged = number - 1 }: { readonly shard?: Shard; readonly acknowledged?: number } = {},
): readonly Fence[] => [{ shard, node, process, epoch, acknowledged: writes + acknowledged, number: writes + number }]

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
export const sortedStored = ({ states, incidents, outbox }: Stored) => ({
  states: sorted(states.map(({ row, state }) => [row, state])),
  incidents: sorted(incidents.map(({ key, id, ...more }) => [key, id, more])),
  outbox: sorted(outbox.map(({ receiver, subject, row }) => [receiver, subject, row])),
})
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
  const table = new LeasesTable()
  const chance = new Chance(seed)
  const names = ['alpha', 'beta', 'gamma']
  const network = ['Sql/a', 'Web/ü "quoted" \\']
  const counts = new Map<string, number>()
  const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1)
  let now = Date.UTC(2026, 0, 1)
  let handOvers = 3
  const subjectsOf = (node: string, shard: Shard): readonly StoredSubject[] => {
    const keys = shard === 'network' ? network : [machineKey(node, 'Host/machine')]
    const all = Array.from({ length: chance.between(0, 4) }, () =>
      subjectOf(chance.of(keys), chance.of(['one', 'two']), chance.is(0.3) ? 'x' : undefined),
    )
    return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()]
  }
  const shardOf = (): Shard => (chance.is(0.7) ? 'network' : 'machine')
  const leaseOf = (node: string, shard: Shard) => table.lease(shard === 'network' ? shard : `@${node}`, now)
  /** Mostly what the store has. */
  const fencesOf = (node: string, process: string, shard: Shard): readonly Fence[] => {
    const { epoch = 1, writes = 0 } = leaseOf(node, shard) ?? {}
    const number = writes + chance.of([0, 1, 1, 1, 1, 2])
    const acknowledged = writes + (chance.is(0.1) ? 1 : 0)
    return [{ shard, node, process, epoch: chance.is(0.1) ? epoch - 1 : epoch, acknowledged, number }]
  }
  const askOf = (node: string, shard: Shard): LeaseAsk => {
    const row = leaseOf(node, shard)
    const epoch = row?.epoch ?? 0
    const expected = row && chance.is(0.1) ? { ...row, beats: row.beats + 1 } : row
    return chance.of([
      { type: 'read' },
      { type: 'renew', epoch },
      { type: 'renew', epoch },
      { type: 'take', expected, epoch: epoch + 1 },
      ...(chance.is(0.2) ? [{ type: 'leave', epoch } as const] : []),
    ] as const)
  }
  const wrote = (what: string, verdict: Fenced): void => count(`${what} ${verdict === 'stored' ? verdict : 'refused'}`)
  const operations: readonly (readonly [weight: number, run: (node: string, process: string) => Promise<void>])[] = [
    [
      8,
      async (node, process) => {
        const asks = { network: askOf(node, 'network'), machine: askOf(node, 'machine') }
        const request = requestOf(node, { process, asks, isIsolated: chance.is(0.2) })
        const expected = table.beat(request, now)
        const answer = await nodes.beat(request)
        const { shard: _, ...machine } = { shard: '', ...answer.leases.machine.row }
        expect(machine).toEqual(expected.leases.machine.row ?? {})
        expect(answer.leases.network).toMatchObject(JSON.parse(JSON.stringify(expected.leases.network)) as object)
        expect([answer.leases.machine.isOk, answer.handedOver, byNode(answer.rows)]).toEqual([
          expected.leases.machine.isOk,
          expected.handedOver,
          byNode(expected.rows),
        ])
        count(`${asks.network.type} ${answer.leases.network.isOk}`)
      },
    ],
    [
      5,
      async (node, process) => {
        const shard = shardOf()
        const fences = fencesOf(node, process, shard)
        const all = subjectsOf(node, shard)
        const gone = all.filter(() => chance.is(0.3))
        const rest = all.filter((one) => !gone.includes(one))
        const ended = { endedAt: now, ending: 'recovered' } as const
        const batch = batchOf({
          states: rest.map((row) => stateOf(row, `at ${now} "\\u0000`)),
          gone,
          incidents: rest
            .map((row) => incidentOf(row, `${row.key} ${chance.between(0, 3)}`, chance.is(0.4) ? ended : {}))
            .filter((one, index, every) => every.findIndex(({ id }) => id === one.id) === index),
        })
        const expected = table.writeStates(fences, batch)
        const answer = await nodes.writeStates(fences, batch)
        expect(answer).toEqual(expected)
        wrote('states', answer)
      },
    ],
    [
      3,
      async (node, process) => {
        const shard = shardOf()
        const fences = fencesOf(node, process, shard)
        const rows = subjectsOf(node, shard).map((one) =>
          outboxRowOf(one, chance.of(['mail', 'pager']), chance.is(0.7) ? now : undefined),
        )
        const expected = table.writeOutbox(fences, rows)
        const answer = await nodes.writeOutbox(fences, rows)
        expect(answer).toEqual(expected)
        wrote('outbox', answer)
      },
    ],
    [
      1,
      async (node, process) => {
        // Of the same fault, each node may have sent an incident of its own.
        const rows = [...subjectsOf(node, 'network'), ...subjectsOf(node, 'network')].map((subject) =>
          outboxRowOf(
            subject,
            chance.of(['mail', 'pager']),
            now,
            chance.of(['i', `of ${node}`, `of ${node} at ${now}`]),
          ),
        )
        const what = { node, process, number: ++handOvers - (chance.is(0.2) ? 3 : 0), rows }
        const isStored = await nodes.handOver(what)
        expect(isStored).toBe(table.handOver(what))
        count(isStored ? 'handed over' : 'not handed over')
      },
    ],
    [
      0.3,
      async (node, process) => {
        table.leave(node, process, now)
        await nodes.leave(node, process)
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
    [1, async () => expect(sortedStored(await nodes.stored())).toEqual(sortedStored(table.stored))],
    [
      4,
      async () => {
        now += chance.of([1, 900, 900, 3_000, 3_000, outMs - 1, outMs, outMs + 1])
        await setClock(now)
      },
    ],
  ]
  await setClock(now)
  const total = operations.reduce((sum, [weight]) => sum + weight, 0)
  for (let step = 0; step < steps; step += 1) {
    let left = chance.next() * total
    for (const [weight, run] of operations) {
      left -= weight
      if (left >= 0) continue
      const node = chance.of(names)
      await run(node, `${node} ${chance.is(0.9) ? 1 : 2}`)
      break
    }
  }
  expect(sortedStored(await nodes.stored())).toEqual(sortedStored(table.stored))
  return counts
}
