import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { Fault, isStoreFailure } from '../../base/errors.ts'
import type { Config } from '../../config/index.ts'
import type { DrillLinks, LinkOfDrill } from '../../protocol/service/service.ts'
import type { KeeperLog } from '../../store/index.ts'
import {
  type DrillLink,
  type DrillRecord,
  type DrillRows,
  drillsInMemory,
  drillTimes,
  type Hop,
  type HopResult,
  linkMs,
  resultOf,
  withOpened,
} from '../../watch/drill/index.ts'
import { drillMistake, type ReceiverConfig } from '../../watch/notify/index.ts'
import type { OutboxRows } from '../../watch/outbox/index.ts'
import { openFor } from '../notify/open-receiver.ts'
import type { Part } from '../part.ts'
import { type ProcessTime, processTime } from '../process-time.ts'
import { leftovers } from './drill-leftovers.ts'
import { drillMetrics } from './drill-metrics.ts'
import { type DrillReceiver, DrillRun, type DrillSpans } from './drill-run.ts'

/** The least time between the begins of two drills. Milliseconds, like all times here. */
const pauseMs = 60_000
/** How often svc checks the schedule of drills and the leftovers of earlier ones. */
const lookEveryMs = 60_000
/** How often svc checks the links of a running drill and stores its state. */
const storeEveryMs = 5_000
/** A drill that has not ended after this time was killed. */
const killedMs = 600_000
/** No drill waits longer for its confirmation, whatever serve.confirm says. */
const maxConfirmMs = 60_000
const usualSpans = { faultMs: 60_000, endMs: 60_000 }

export type DrillStore = DrillRows & { readonly outbox: OutboxRows }

/** A drill with its result so far. */
export type ShownDrill = DrillRecord & { readonly result: HopResult }

export type DrillPart = Part & {
  /**
   * Begins a drill and does not wait for its end. `through`: names of receivers; empty: those of `drill:`. Throws a
   * Fault for a name that no drill may go through, and TooManyRequests sooner than a minute after another drill.
   */
  readonly begin: (through: readonly string[], by: string) => Promise<ShownDrill>
  /** The drill with this id, or the latest one. */
  readonly show: (id: string | undefined) => Promise<ShownDrill | undefined>
  /** The links in messages: what each is, and its confirmation. Undefined if the link is unknown or too old. */
  readonly links: DrillLinks
}

export type DrillPartOptions = {
  readonly config: Config
  readonly version: string
  /** Absent without a store. `create`: whether to make one that does not exist. */
  readonly store: ((create: boolean) => Promise<DrillStore>) | undefined
  /** Why the running svc does not monitor as it should. Absent in a command. */
  readonly watching?: (() => string | undefined) | undefined
  /** Whether the drills of svc.yaml are up to this process: of several nodes, one runs them. */
  readonly leads?: (() => boolean) | undefined
  readonly time?: ProcessTime | undefined
  readonly log?: KeeperLog | undefined
  /** Shorter in tests. */
  readonly spans?: Partial<DrillSpans> | undefined
}

/** Drills: by schedule, and on request. */
export function drillPart({
  config,
  version,
  store,
  watching,
  leads = () => true,
  time = processTime(),
  log = () => {},
  spans,
}: DrillPartOptions): DrillPart {
  // The columns of a store hold integers.
  const now = (): number => Math.round(time.now())
  const startedAt = now()
  const stop = new AbortController()
  const memory = drillsInMemory()
  /** The drills whose latest state is not in the store, by their ids. */
  const unsaved = new Map<string, DrillRecord>()
  let current = config
  let running: { readonly id: string; readonly over: Promise<void>; readonly show: () => ShownDrill } | undefined
  let last: DrillRecord | undefined
  let triedAt: number | undefined
  let overdueSince: number | undefined
  let notStored: string | undefined
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined

  const server = (): string => current.serve.name ?? hostname()
  const outbox = store && outboxOf(store)

  /** Tries the store, and this process alone if that fails. */
  const inStore = async <T>(
    work: (rows: DrillRows) => Promise<T>,
    otherwise: () => Promise<T>,
    create = false,
  ): Promise<T> => {
    try {
      const rows = await store?.(create)
      return rows ? await work(rows) : await otherwise()
    } catch (error) {
      if (!isStoreFailure(error)) throw error
      const reason = error instanceof Error ? error.message : String(error)
      if (reason !== notStored) log({ level: 'warn', msg: `drills are not stored: ${reason}` })
      notStored = reason
      return await otherwise()
    }
  }

  const chosen = (through: readonly string[]): readonly ReceiverConfig[] => {
    const { notify = [], drill } = current
    const names = [...new Set(through.length > 0 ? through : (drill?.through ?? []))]
    const hint = 'In the svc.yaml of svc serve, drill: {through: [NAME]} names those of every drill'
    if (names.length === 0) {
      throw new Fault('Conflict', 'No receiver is named for the drill', { hints: ['Name one: --through NAME', hint] })
    }
    return names.map((name) => {
      const receiver = notify.find((one) => one.name === name)
      if (receiver === undefined) {
        const all = notify.map((one) => one.name).join(', ')
        throw new Fault('NotFound', `There is no receiver "${name}"`, {
          hints: [all === '' ? 'The svc.yaml of svc serve has no notify: section' : `Receivers: ${all}`],
        })
      }
      const why = drillMistake(receiver)
      if (why !== undefined) throw new Fault('Conflict', `The receiver ${name} ${why}`)
      return receiver
    })
  }

  const opened = async (
    receiver: ReceiverConfig,
    token: string | undefined,
    openedAt: (name: string) => number | undefined,
  ): Promise<DrillReceiver> => {
    const { name } = receiver
    const { url } = current.serve
    const warns: KeeperLog = (entry) => log({ ...entry, msg: `drill: ${entry.msg}` })
    const host = { server: server(), url, version, programs: current.exec, now, log: warns }
    const callback =
      token === undefined || url === undefined ? undefined : `${url.replace(/(?<!\/)\/+$/, '')}/drills/opened/${token}`
    return { name, receiver: await openFor(host, receiver), callback, openedAt: () => openedAt(name) }
  }

  const begin: DrillPart['begin'] = async (through, by) => {
    const receivers = chosen(through)
    if (running) throw tooSoon()
    const beganAt = now()
    const tokens = new Map(
      current.serve.url === undefined || !store
        ? []
        : receivers.map(({ name }) => [name, randomBytes(24).toString('base64url')] as const),
    )
    const record: DrillRecord = {
      id: randomUUID(),
      by,
      through: receivers.map(({ name }) => name),
      beganAt,
      hops: [],
      tokens: Object.fromEntries([...tokens].map(([name, token]) => [name, hashOf(token)])),
      opened: {},
    }
    const [before] = await memory.latest(1)
    if (before && beganAt - before.beganAt < pauseMs && beganAt >= before.beganAt) throw tooSoon()
    const hasBegun = await inStore(
      (rows) => rows.begin(record, pauseMs),
      async () => true,
      true,
    )
    if (!hasBegun || running) throw tooSoon()
    await memory.begin(record, 0)
    const links = new Map<string, number>()
    const whole: DrillSpans = {
      confirmMs: Math.min(current.serve.confirm, maxConfirmMs),
      ...usualSpans,
      ...spans,
    }
    await closeLeftovers()
    const ways = await Promise.all(
      receivers.map(async (one) => await opened(one, tokens.get(one.name), (name) => links.get(name))),
    )
    // Its minutes are as long as others, whatever happens to the wall clock meanwhile.
    const ahead = time.now() - time.steady()
    const run = new DrillRun({
      server: server(),
      by,
      receivers: ways,
      spans: whole,
      rows: outbox,
      now: () => Math.round(time.steady() + ahead),
      watching,
      log,
      signal: stop.signal,
    })
    const progress = (): ShownDrill =>
      withResult({ ...record, hops: run.hops(), opened: Object.fromEntries(links) }, now())
    running = { id: record.id, over: follow(record, run, links), show: progress }
    return progress()
  }

  /** Stores the state of a drill, now or once the store answers: the link in a message that left meanwhile needs it. */
  const save = async (drill: DrillRecord): Promise<void> => {
    if (store) unsaved.set(drill.id, drill)
    await inStore(
      async (rows) => {
        if ((await rows.find(drill.id)) === undefined) await rows.begin(drill, pauseMs)
        else await rows.update(drill)
        unsaved.delete(drill.id)
      },
      async () => {},
    )
  }

  /** Stores the state of a running drill, and in the end its result. */
  const follow = async (record: DrillRecord, run: DrillRun, links: Map<string, number>): Promise<void> => {
    const update = async (endedAt?: number): Promise<void> => {
      const drill: DrillRecord = { ...record, hops: run.hops(), ...(endedAt === undefined ? {} : { endedAt }) }
      await memory.update(drill)
      await save(drill)
      const ofStore =
        (
          await inStore(
            (rows) => rows.find(record.id),
            async () => undefined,
          )
        )?.opened ?? {}
      for (const [name, at] of Object.entries(ofStore)) links.set(name, at)
    }
    let updating: Promise<void> | undefined
    const updates = setInterval(() => {
      updating ??= update()
        .catch(() => {})
        .finally(() => {
          updating = undefined
        })
    }, storeEveryMs)
    await run.run()
    clearInterval(updates)
    await updating
    running = undefined
    // Interrupted: the next process sends the end.
    if (stop.signal.aborted) return
    await update(now()).catch(() => {})
    last = { ...record, hops: run.hops(), endedAt: now() }
    logResult(last)
  }

  const logResult = ({ hops, through, by }: DrillRecord): void => {
    const failed = hops.filter(({ result }) => result === 'failed')
    const which = `drill of ${by} through ${through.join(', ')}`
    if (failed.length === 0) log({ level: 'info', msg: `${which}: no hop failed` })
    for (const { receiver, hop, message } of failed) {
      log({ level: 'warn', msg: `${which}: ${receiver === undefined ? '' : `${receiver}: `}${hop} failed: ${message}` })
    }
  }

  // The leftovers of earlier drills, and the schedule.

  const rest = leftovers({
    rows: outbox,
    open: async (name) => {
      const receiver = current.notify?.find((one) => one.name === name && drillMistake(one) === undefined)
      return receiver && (await opened(receiver, undefined, () => undefined))
    },
    server,
    now,
    log,
  })
  const closeLeftovers = async (): Promise<void> => await rest.close()

  const look = async (): Promise<void> => {
    if (running || stop.signal.aborted) return
    for (const drill of unsaved.values()) await save(drill)
    const [latest] = await inStore(
      (rows) => rows.latest(1),
      () => memory.latest(1),
    )
    if (latest?.endedAt !== undefined) last = latest
    const isElsewhere = latest !== undefined && latest.endedAt === undefined && now() - latest.beganAt < killedMs
    if (!isElsewhere)
      await inStore(
        () => rest.look(),
        async () => {},
      )
    await drillIfDue()
  }

  const drillIfDue = async (): Promise<void> => {
    const { drill } = current
    if (drill === undefined || (drill.every === undefined && drill.when === undefined) || !leads()) {
      overdueSince = undefined
      return
    }
    const all = await inStore(
      (rows) => rows.latest(100),
      () => memory.latest(100),
    )
    const whole = all.filter(({ through }) => drill.through.every((name) => through.includes(name)))
    const lastAt = whole.find(({ endedAt }) => endedAt !== undefined)?.beganAt
    const times = drillTimes(drill, { startedAt, lastAt, triedAt }, now())
    if (times.overdueSince !== undefined && overdueSince === undefined) {
      const since = lastAt === undefined ? 'there was none' : `the last one began on ${new Date(lastAt).toISOString()}`
      log({ level: 'warn', msg: `the drill of svc.yaml is overdue by more than 2 days: ${since}` })
    }
    overdueSince = times.overdueSince
    if (times.nextAt === undefined || now() < times.nextAt) return
    triedAt = now()
    await begin(drill.through, 'schedule').catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error
      log({ level: 'warn', msg: `the drill of svc.yaml did not begin: ${error.message}` })
    })
  }

  const lookSoon = (): void => {
    looking ??= look()
      .catch((error: unknown) => {
        log({
          level: 'warn',
          msg: `drill: svc failed unexpectedly: ${error instanceof Error ? error.stack : String(error)}`,
        })
      })
      .finally(() => {
        looking = undefined
      })
  }

  const linkOf = async (
    token: string,
    find: (rows: DrillRows, hash: string, at: number) => Promise<DrillLink | undefined>,
  ): Promise<LinkOfDrill | undefined> => {
    const rows = /^[A-Za-z0-9_-]{32}$/.test(token) ? await store?.(false) : undefined
    const link = rows && (await find(rows, hashOf(token), now()))
    return link && { receiver: link.receiver, beganAt: link.drill.beganAt, confirmedAt: link.confirmedAt }
  }
  return {
    begin: async (through, by) => {
      // It may be about to begin a drill, or to send the end of an earlier one.
      await looking
      return await begin(through, by)
    },
    show: async (id) => {
      if (running && (id === undefined || id === running.id)) return running.show()
      const find = async (rows: DrillRows): Promise<DrillRecord | undefined> =>
        id === undefined ? (await rows.latest(1))[0] : await rows.find(id)
      // Only this process knows a drill that could not be stored.
      const drill = (await inStore(find, async () => undefined)) ?? (await find(memory))
      return drill && withResult(drill, now())
    },
    links: {
      read: (token) => linkOf(token, (rows, hash, at) => rows.link(hash, at - linkMs)),
      confirm: (token) =>
        linkOf(token, async (rows, hash, at) => {
          const link = await rows.confirm(hash, at, at - linkMs)
          if (link && last?.id === link.drill.id) last = { ...last, opened: link.drill.opened }
          return link
        }),
    },
    answers: () => {
      lookSoon()
      timer ??= setInterval(lookSoon, lookEveryMs)
    },
    reload: async (next) => () => {
      current = next
      void closeLeftovers()
    },
    metrics: async () => drillMetrics({ last, overdueSince, hasSchedule: current.drill !== undefined }),
    cancel: () => {
      clearInterval(timer)
      stop.abort(new Error('svc is shutting down'))
    },
    close: async () => {
      clearInterval(timer)
      stop.abort(new Error('svc is shutting down'))
      await looking
      await running?.over
      await closeLeftovers()
    },
  }
}

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex')

const tooSoon = (): Fault =>
  new Fault('TooManyRequests', 'Another drill runs, or began less than a minute ago', {
    retryAfter: pauseMs / 1_000,
    hints: ['Show it: svc drill --last'],
  })

/** A drill with its current result. A drill that was killed has a failed hop. */
function withResult(drill: DrillRecord, now: number): ShownDrill {
  const hops = withOpened(drill.hops, drill.opened)
  if (drill.endedAt !== undefined) return { ...drill, hops, result: resultOf(hops) }
  if (now - drill.beganAt < killedMs) return { ...drill, hops, result: 'waiting' }
  const killed: Hop = { hop: 'end', result: 'failed', message: 'svc ended before the drill did' }
  return { ...drill, endedAt: drill.beganAt + killedMs, hops: [...hops, killed], result: 'failed' }
}

/** The rows of a store that may fail at each use. */
const outboxOf = (store: NonNullable<DrillPartOptions['store']>): OutboxRows => ({
  read: async () => await (await store(false)).outbox.read(),
  write: async (rows) => await (await store(false)).outbox.write(rows),
})
