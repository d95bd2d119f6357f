import { performance } from 'node:perf_hooks'
import {
  type EngineContext,
  fingerprint,
  type IsOwed,
  type LatestReports,
  loadCosts,
  type MonitorReport,
  type PlannedMonitor,
} from '../../checks/engine/index.ts'
import type { Config } from '../../config/index.ts'
import type { ExecutionMode, ServerType } from '../../protocol/index.ts'
import type { Family } from '../../protocol/service/family.ts'
import { type NodeLease, soleNode } from '../../watch/nodes/index.ts'
import { beatMs, depths, type Order, runsPerMinute, Schedule } from '../../watch/schedule/index.ts'
import type { Part } from '../part.ts'
import { type ProcessTime, processTime } from '../process-time.ts'
import { type CostOf, keysOf, loadLine, type ScheduledMonitor, scheduledMonitors } from './scheduled-monitors.ts'
import { type StatesClock, type StatesPart, watchedMonitors } from './states.ts'

/** The other parts of svc that the schedule uses. */
export type ScheduleWork = {
  readonly config: Config
  /** Takes what sees each observation of any run begin. */
  readonly watchObservations: (onObservation: NonNullable<EngineContext['onObservation']>) => void
  /** Takes the number of runs a minute, so that there are slots for them. */
  readonly expect: (runsPerMinute: number) => void
  /**
   * Rejects when the signal aborts, and with a defect. `repeatsRefused`: whether it signs in although the server has
   * refused that.
   */
  readonly run: (
    one: ScheduledMonitor,
    mode: ExecutionMode,
    options: { readonly signal: AbortSignal; readonly repeatsRefused: boolean },
  ) => Promise<MonitorReport | undefined>
  /** The same, for an answer to another node: what it finds is nowhere kept. */
  readonly look: (one: ScheduledMonitor, mode: ExecutionMode, signal: AbortSignal) => Promise<MonitorReport | undefined>
  /** Takes what knows which runs are about to begin: a caller waits for them. */
  readonly watchOwed: (isOwed: IsOwed) => void
  /** Takes what sees the report of each monitor that a caller's run has ended. */
  readonly watchReports: (onReport: (type: ServerType, mode: ExecutionMode, report: MonitorReport) => void) => void
  /** Where each report goes that counts, for each type of its monitor. */
  readonly latest: () => LatestReports | undefined
  /** Called for a defect. */
  readonly onError: (one: ScheduledMonitor, error: unknown) => void
}

type Running = {
  readonly order: Order
  readonly controller: AbortController
  /** Monotonic milliseconds. */
  beganAt: number | undefined
}

/** How many runs begin in one turn of the event loop, of about 0.2 ms each. Between turns, svc answers requests. */
const mostAtOnce = 20
/** A timer may not be longer. */
const maxWaitMs = 3_600_000

export type SchedulePart = Part & {
  readonly load: () => string | undefined
  /** Whether runs begin in time. */
  readonly keepsUp: () => boolean
  /** Whether it runs any monitor. */
  readonly watches: () => boolean
  /** All monitors, whoever runs them. */
  readonly monitors: () => readonly ScheduledMonitor[]
  /** Follows a change of the lease: runs what it has now, at once, and nothing else. */
  readonly follow: () => void
  /** Runs a monitor of the network once for another node. Undefined: this one does not have it, or has no report. */
  readonly look: (key: string, depth: ExecutionMode) => Promise<MonitorReport | undefined>
}

/**
 * Runs the monitors when the schedule says so, with real timers, and tells it what callers run.
 */
export function schedulePart(
  work: ScheduleWork,
  states: StatesPart,
  lease: NodeLease = soleNode,
  time: ProcessTime = processTime(),
): SchedulePart {
  const monotonic = (): number => performance.now()
  // A wall clock that is set makes nothing due.
  const now = time.steady
  const running = new Map<string, Running>()
  let monitors = new Map<string, ScheduledMonitor>()
  let byName = new Map<string, ScheduledMonitor>()
  let keyOf: (monitor: PlannedMonitor) => string | undefined = () => undefined
  let schedule: Schedule | undefined
  let load: string | undefined
  let closed = false
  const stopping = new AbortController()
  let isAnswering = false
  let timer: NodeJS.Timeout | undefined
  let turn: NodeJS.Immediate | undefined
  let beat: NodeJS.Timeout | undefined
  let ticksAt = Number.POSITIVE_INFINITY
  let current: Config = work.config

  const arm = (): void => {
    const nextAt = schedule?.nextAt ?? Number.POSITIVE_INFINITY
    if (closed || turn !== undefined || nextAt >= ticksAt) return
    clearTimeout(timer)
    ticksAt = nextAt
    const wait = nextAt - now()
    if (wait > 0) timer = setTimeout(tick, Math.min(maxWaitMs, Math.max(1, Math.ceil(wait))))
    else turn = setImmediate(tick)
  }

  const tick = (): void => {
    clearTimeout(timer)
    turn = undefined
    ticksAt = Number.POSITIVE_INFINITY
    if (closed) return
    for (const order of schedule?.tick(now(), mostAtOnce).orders ?? []) begin(order)
    arm()
  }

  const begin = (order: Order): void => {
    const one = monitors.get(order.key)
    if (!one) return
    // It has not begun: a deeper run takes its place.
    running.get(order.key)?.controller.abort(new Error('a deeper run took its place'))
    const run: Running = { order, controller: new AbortController(), beganAt: undefined }
    running.set(order.key, run)
    const { signal } = run.controller
    work.run(one, order.depth, { signal, repeatsRefused: order.repeatsRefused === true }).then(
      (report) => end(run, report),
      (error: unknown) => {
        if (closed || running.get(order.key) !== run) return
        work.onError(one, error)
        end(run, undefined)
      },
    )
  }

  const end = (run: Running, report: MonitorReport | undefined): void => {
    const { order } = run
    if (closed || running.get(order.key) !== run) return
    running.delete(order.key)
    const endedAt = monotonic()
    const beganAt = run.beganAt ?? endedAt
    const counts = schedule?.ended({
      key: order.key,
      depth: order.depth,
      by: 'schedule',
      now: now(),
      beganAt: now() - (endedAt - beganAt),
      failed: report?.results.some(({ status }) => status === 'failed') === true,
    })
    if (report && counts) {
      // Of the configuration in force: a reload may have removed a type with this host block.
      for (const type of monitors.get(order.key)?.types ?? [])
        work.latest()?.add(type, order.depth, report, { beganAt, endedAt, cause: 'schedule' })
      states.ran(order.key, order.depth, report, timesOf(report, { beganAt, endedAt }))
    }
    arm()
  }

  /** When the results of a report were observed, by the line that people read. */
  const timesOf = ({ observed }: MonitorReport, otherwise: NonNullable<MonitorReport['observed']>) => {
    const { beganAt, endedAt } = observed ?? otherwise
    const ahead = time.now() - monotonic()
    return { beganAt: beganAt + ahead, endedAt: endedAt + ahead }
  }

  /** Counts the report of a caller's run as well, unless the process stood still. */
  const onReport = (type: ServerType, mode: ExecutionMode, report: MonitorReport): void => {
    const one = byName.get(`${type} ${report.name}`)
    if (!schedule || closed || !one || report.observed === undefined) return
    const times = timesOf(report, report.observed)
    const hasFailed = report.results.some(({ status }) => status === 'failed')
    if (hasFailed && schedule.stoodStillSince(time.steadyAt(times.beganAt), now())) return
    states.ran(one.key, mode, report, times)
    arm()
  }

  const onObservation: EngineContext['onObservation'] = ({ monitor, mode, cause, at }) => {
    if (!schedule || closed || cause === 'peer') return undefined
    const key = keyOf(monitor)
    if (key === undefined) return undefined
    if (cause === 'schedule') {
      const run = running.get(key)
      if (!run || run.beganAt !== undefined || run.order.depth !== mode) return undefined
      run.beganAt = at
      schedule.began({ key, depth: mode, by: 'schedule', now: now() })
      return undefined
    }
    schedule.began({ key, depth: mode, by: 'caller', now: now() })
    return (results) => {
      const cut = results.some(({ notChecked }) => notChecked === 'starved' || notChecked === 'budget')
      schedule?.ended({
        key,
        depth: mode,
        by: 'caller',
        now: now(),
        beganAt: now() - (monotonic() - at),
        failed: results.some(({ status }) => status === 'failed'),
        hadTime: results.length > 0 && !cut,
      })
      arm()
    }
  }

  /** From now on reports leave when the schedule should have replaced them. */
  const followSchedule = (): void => {
    const intervals = new Map(
      [...monitors.values()].flatMap(({ types, monitor, intervals: own }) =>
        types.map((type) => [`${type} ${monitor.name}`, own] as const),
      ),
    )
    const isElsewhere = (type: ServerType, monitor: string): boolean => {
      const key = byName.get(`${type} ${monitor}`)?.key
      return key !== undefined && !lease.runs(key)
    }
    work.latest()?.followSchedule((type, monitor, mode) => intervals.get(`${type} ${monitor}`)?.[mode], isElsewhere)
  }

  const take = (scheduled: readonly ScheduledMonitor[], costOf: CostOf): void => {
    monitors = new Map(scheduled.map((one) => [one.key, one]))
    byName = new Map(scheduled.flatMap((one) => one.types.map((type) => [`${type} ${one.monitor.name}`, one] as const)))
    keyOf = keysOf(scheduled)
    work.expect(scheduled.reduce((sum, { intervals: own }) => sum + runsPerMinute(own), 0))
    load = loadLine(scheduled, costOf)
  }

  /** Takes the monitors on. Those that it has keep their phases and what they did. */
  const watch = (config: Config): void => {
    if (closed || !isAnswering || (!schedule && monitors.size === 0)) return
    followSchedule()
    current = config
    const table = schedule ?? new Schedule(now())
    schedule = table
    for (const { key, intervals } of monitors.values()) {
      if (lease.runs(key)) table.watch({ key, every: intervals }, now(), lease.spreadMs())
      else stop(key, 'another node runs its monitor')
    }
    const ask = ({ key, depth, at, repeatsRefused }: Parameters<StatesClock['ask']>[0]): void => {
      table.ask(key, { depth, at: time.steadyAt(at), repeatsRefused }, now())
      arm()
    }
    const own = [...monitors.values()].filter(({ key }) => lease.has(key))
    states.watch(own, config, { now: time.now, ask })
    beat ??= setInterval(() => table.beat(now()), beatMs)
    arm()
  }

  /** Stops a monitor: the results of a run in progress do not count. */
  const stop = (key: string, why: string): void => {
    running.get(key)?.controller.abort(new Error(why))
    running.delete(key)
    schedule?.forget(key)
  }

  return {
    open: async () => {
      const [scheduled, { costOf }] = await Promise.all([scheduledMonitors(work.config, lease.keyOf), loadCosts()])
      take(scheduled, costOf)
      work.watchObservations(onObservation)
      work.watchReports(onReport)
      work.watchOwed((monitor, mode) => {
        const key = closed ? undefined : keyOf(monitor)
        return key !== undefined && schedule?.owes(key, mode, now()) === true
      })
    },
    // Not before the server answers: monitors may ask this server.
    answers: () => {
      isAnswering = true
      watch(work.config)
    },
    reload: async (config) => {
      const [scheduled, { costOf }] = await Promise.all([scheduledMonitors(config, lease.keyOf), loadCosts()])
      return () => {
        const before = monitors
        take(scheduled, costOf)
        for (const [key, { monitor }] of before) {
          const next = monitors.get(key)
          if (next && fingerprint(next.monitor) === fingerprint(monitor)) continue
          // The monitor is another one, or gone.
          stop(key, 'its monitor is no longer in the configuration')
        }
        current = config
        const receivers = config.notify?.map(({ name }) => name) ?? []
        lease.configured(watchedMonitors([...monitors.values()], config), receivers)
        watch(config)
      }
    },
    load: () => load,
    keepsUp: () => schedule?.lateness(now()).keepsUp ?? true,
    watches: () => schedule !== undefined && monitors.size > 0,
    monitors: () => [...monitors.values()],
    follow: () => watch(current),
    look: async (key, depth) => {
      const one = monitors.get(key)
      if (closed || !one || one.monitor.kind.runsOn !== 'network') return undefined
      return await work.look(one, depth, stopping.signal)
    },
    metrics: async () => scheduleMetrics(schedule, now(), [...monitors.values()]),
    cancel: () => {
      closed = true
      stopping.abort(new Error('svc is shutting down'))
      clearTimeout(timer)
      clearImmediate(turn)
      clearInterval(beat)
      for (const { controller } of running.values()) controller.abort(new Error('svc is shutting down'))
      running.clear()
    },
  }
}

/** The families of /metrics about the schedule. Without one there are none. */
function scheduleMetrics(
  schedule: Schedule | undefined,
  now: number,
  monitors: readonly ScheduledMonitor[],
): readonly Family[] {
  if (!schedule || monitors.length === 0) return []
  const { byDepth, keepsUp } = schedule.lateness(now)
  const used = depths.filter((depth) => monitors.some(({ intervals }) => intervals[depth] !== undefined))
  return [
    {
      name: 'svc_schedule_lateness_seconds',
      type: 'gauge',
      help: 'How long after its due time a run of the schedule began: the highest value of the last minute or two, and of runs that are waiting now.',
      samples: used.map((depth) => ({
        labels: { depth },
        value: Number(((byDepth.get(depth) ?? 0) / 1_000).toFixed(3)),
      })),
    },
    {
      name: 'svc_schedule_up',
      type: 'gauge',
      help: '1 while the schedule keeps up: no run of the last minute or two began more than 5 s late, or a quarter of its interval if that is less.',
      samples: [{ value: keepsUp ? 1 : 0 }],
    },
  ]
}
