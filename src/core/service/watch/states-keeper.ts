import { performance } from 'node:perf_hooks'
import { isStoreFailure } from '../../base/errors.ts'
import { type Patience, Steady, storePatience } from '../../base/steady.ts'
import type { KeeperLog } from '../../store/index.ts'
import { type NodeLease, nameWithNode, nodeOfKey, soleNode } from '../../watch/nodes/index.ts'
import {
  type Effect,
  type IncidentRecord,
  type IncidentsQuery,
  Ledger,
  type StatesRows,
  StatesTable,
  type StoredState,
  type StoredStates,
} from '../../watch/states/index.ts'
import { type ProcessTime, processTime } from '../process-time.ts'

/** How often the store gets what is new, in milliseconds: in one transaction. */
const writeEveryMs = 1_000
/** For how long what all nodes have stored is not read again, and at least this many times as long as reading took. */
const [rereadMs, rereadFactor] = [2_000, 20]
/** States that were read longer ago than this, and twice that time, are out of date. Milliseconds. */
const staleMs = 15_000

export type StatesKeeper = {
  /** The states that an earlier process has stored. None if the store cannot be read: then states begin anew. */
  readonly restore: () => Promise<Pick<StoredStates, 'ageMs' | 'states'>>
  /** Takes what the states report. It is stored within about a second. */
  readonly take: (effects: readonly Effect[]) => void
  /** Stores now what is not stored yet. Never rejects: what the store did not take is stored later. */
  readonly store: () => Promise<void>
  /** Incidents, also those that are not stored yet, the latest first. */
  readonly incidents: (query: IncidentsQuery) => Promise<readonly IncidentRecord[]>
  /** The same; while the store cannot be read, those that it does not have yet. */
  readonly readableIncidents: (query: IncidentsQuery) => Promise<readonly IncidentRecord[]>
  /**
   * The states that all nodes that share the store have stored, as of a few seconds ago. None without others. Undefined
   * while the store cannot be read. Never rejects.
   */
  readonly ofAll: () => Promise<readonly StoredState[] | undefined>
  /** Why states and incidents do not survive the end of this process. Undefined: they do. */
  readonly notKept: () => string | undefined
  readonly ledger: Pick<Ledger, 'takeOver' | 'again'>
  readonly begin: () => void
  readonly cancel: () => void
  readonly close: () => Promise<void>
}

/**
 * Stores confirmed states and incidents. `rows`: where; absent without a store, where they are kept in memory. A store that
 * fails costs their survival of a restart, and never a run.
 */
export function statesKeeper({
  rows: stored,
  lease = soleNode,
  time = processTime(),
  log = () => {},
  patience = storePatience,
}: {
  readonly rows?: (() => Promise<StatesRows>) | undefined
  readonly lease?: NodeLease | undefined
  readonly time?: ProcessTime | undefined
  readonly log?: KeeperLog | undefined
  /** Of the log. */
  readonly patience?: Patience
}): StatesKeeper {
  const { now } = time
  const ledger = new Ledger(lease)
  time.onShift((shift) => ledger.shift(shift))
  const memory = new StatesTable()
  const rows = stored ?? (async () => inMemory(memory, now))
  let timer: NodeJS.Timeout | undefined
  let working: Promise<void> = Promise.resolve()
  let closed = false
  let fault: string | undefined

  const steady = new Steady(patience)
  const judge = (reason: string | undefined): void => {
    fault = reason
    const news = steady.observe(reason, performance.now())
    if (news?.what === 'failed') log({ level: 'warn', msg: `states and incidents are not stored: ${news.why}` })
    else if (news) log({ level: 'info', msg: 'states and incidents are stored again' })
  }

  const writeOnce = async (): Promise<boolean> => {
    const batch = ledger.batch(now())
    if (!batch) {
      const why = lease.problem()
      if (why !== undefined) judge(why)
      return why === undefined
    }
    const outcome = await lease.writeStates(batch, rows)
    if (outcome === 'stored') ledger.stored(batch, now())
    else ledger.refused()
    if (typeof outcome === 'object') judge(outcome.why)
    return outcome === 'stored' || outcome === 'again'
  }

  /** One write after the other: the ledger knows the last batch only. */
  let writing: Promise<unknown> = Promise.resolve()
  const flush = (): Promise<boolean> => {
    const written = writing.then(writeOnce)
    writing = written.catch(() => {})
    return written
  }

  const arm = (ms: number): void => {
    if (closed) return
    timer = setTimeout(() => {
      working = flush().then(
        (isStored) => {
          if (isStored) judge(undefined)
          arm(isStored ? writeEveryMs : lease.retryMs)
        },
        (error: unknown) => {
          judge(isStoreFailure(error) ? messageOf(error) : `svc failed unexpectedly: ${stackOf(error)}`)
          arm(lease.retryMs)
        },
      )
    }, ms)
    timer.unref()
  }

  /** As people see it who see the monitors of all machines. */
  const withNode = (record: IncidentRecord): IncidentRecord => ({
    ...record,
    monitor: nameWithNode(nodeOfKey(record.key), record.monitor),
  })
  const merged = ({ from, to, most }: IncidentsQuery, others: readonly IncidentRecord[]): readonly IncidentRecord[] => {
    const own = ledger.incidents.filter(
      ({ beganAt, endedAt }) => beganAt <= to && (endedAt === undefined || endedAt >= from),
    )
    const all = new Map([...others, ...own].map((one) => [one.id, one]))
    const latest = [...all.values()].sort((one, other) => other.beganAt - one.beganAt).slice(0, most)
    return latest.map(withNode)
  }
  const incidents: StatesKeeper['incidents'] = async (query) => merged(query, await (await rows()).incidents(query))

  /** The states that the last read found, when it began, and for how long it is not repeated. */
  let latest: { readonly states: readonly StoredState[]; readonly at: number; readonly pauseMs: number } | undefined
  let reading: Promise<void> | undefined
  const readAll = async (): Promise<void> => {
    if (!stored) return
    const at = performance.now()
    try {
      const { states } = await (await stored()).read()
      latest = { states, at, pauseMs: Math.max(rereadMs, rereadFactor * (performance.now() - at)) }
    } catch (error) {
      if (!isStoreFailure(error)) throw error
    }
  }
  const ofAll = async (): Promise<readonly StoredState[] | undefined> => {
    if (!lease.isShared) return []
    const age = (): number => performance.now() - (latest?.at ?? Number.NEGATIVE_INFINITY)
    if (age() >= (latest?.pauseMs ?? 0)) {
      reading ??= readAll().finally(() => {
        reading = undefined
      })
      await reading
    }
    return age() > staleMs + 2 * (latest?.pauseMs ?? 0) ? undefined : latest?.states
  }

  return {
    ofAll,
    restore: async () => {
      if (!stored || lease.isShared) return { ageMs: undefined, states: [] }
      try {
        const before = await (await stored()).read()
        ledger.adopt(before)
        return before
      } catch (error) {
        if (!isStoreFailure(error)) throw error
        judge(messageOf(error))
        return { ageMs: undefined, states: [] }
      }
    },
    take: (effects) => ledger.take(effects),
    store: async () => {
      if (stored) await flush().catch(() => {})
    },
    incidents,
    readableIncidents: async (query) => {
      try {
        return await incidents(query)
      } catch (error) {
        if (!isStoreFailure(error)) throw error
        return merged(query, [])
      }
    },
    notKept: () => {
      if (!stored) return 'Without a store, svc forgets states and incidents when it ends'
      return fault === undefined ? undefined : `States and incidents are not stored now: ${fault}`
    },
    ledger,
    begin: () => arm(writeEveryMs),
    cancel: () => {
      closed = true
      clearTimeout(timer)
    },
    close: async () => {
      closed = true
      clearTimeout(timer)
      await working.catch(() => {})
      // What the last second brought.
      if (stored && fault === undefined) await flush().catch(() => {})
    },
  }
}

const inMemory = (table: StatesTable, now: () => number): StatesRows => ({
  read: async () => table.read(now()),
  write: async (batch) => {
    table.write(batch, now())
    return true
  },
  incidents: async (query) => table.incidents(query),
})

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
const stackOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error))
