import { count } from '../../base/format.ts'
import type { Every } from '../../base/settings/index.ts'
import { fingerprint, type loadCosts, monitorKey, ownProblem, type PlannedMonitor } from '../../checks/engine/index.ts'
import { hostBlock, isConfigured, ofType } from '../../checks/plan/index.ts'
import type { Config } from '../../config/index.ts'
import type { ExecutionMode, ServerType } from '../../protocol/index.ts'
import { type Intervals, intervalsOfMonitor } from '../../watch/schedule/index.ts'

/** A monitor that the schedule runs. */
export type ScheduledMonitor = {
  readonly key: string
  /** One for a monitor of svc.yaml; those with this host block for the block. */
  readonly types: readonly ServerType[]
  readonly monitor: PlannedMonitor
  readonly intervals: Intervals
}

/**
 * The monitors that `svc serve` runs by itself: those of svc.yaml, and the host block of its types once, or once for
 * each different one. None without a svc.yaml, and none that `every: off` turns off. `keyOf`: the key of a monitor of this
 * machine (`NodeLease`).
 */
export async function scheduledMonitors(
  { origin, types, serve }: Config,
  keyOf = (key: string): string => key,
): Promise<readonly ScheduledMonitor[]> {
  if (origin === undefined || serve.every === 'off') return []
  const configured = Object.entries(types).flatMap(([name, one]) =>
    isConfigured(one.monitors) ? [{ type: name as ServerType, ...one }] : [],
  )
  const own = configured.flatMap(({ type, monitors, every }) =>
    monitors.flatMap((monitor) => {
      const quiet = withoutWrites(ofType(type, monitor))
      return quiet ? [withIntervals(monitorKey(quiet), [type], quiet, serve.every, every)] : []
    }),
  )
  const blocks = new Map<string, { readonly monitor: PlannedMonitor; readonly types: ServerType[] }>()
  for (const { type, host } of configured) {
    if (host === false) continue
    const monitor = await hostBlock(host)
    const name = fingerprint(monitor)
    const same = blocks.get(name)
    if (same) same.types.push(type)
    else blocks.set(name, { monitor, types: [type] })
  }
  const hosts = [...blocks.values()].map(({ monitor, types: of }, at) =>
    withIntervals(
      at === 0 ? monitorKey(monitor) : `${monitorKey(monitor)}${of[0]}`,
      of,
      monitor,
      serve.every,
      undefined,
    ),
  )
  const all = [...own, ...hosts].filter(({ intervals }) => Object.keys(intervals).length > 0)
  return all.map((one) => (one.monitor.kind.runsOn === 'machine' ? { ...one, key: keyOf(one.key) } : one))
}

function withIntervals(
  key: string,
  types: readonly ServerType[],
  monitor: PlannedMonitor,
  all: Every | undefined,
  ofType: Every | undefined,
): ScheduledMonitor {
  return { key, types, monitor, intervals: intervalsOfMonitor(monitor, { all, ofType }) }
}

/**
 * The monitor as the schedule runs it: without the checks that write, unless `scheduleWrites` allows them. Undefined for
 * one that cannot run without them.
 */
function withoutWrites(monitor: PlannedMonitor): PlannedMonitor | undefined {
  const settings = monitor.settings as Readonly<Record<string, unknown>>
  if (monitor.scheduleWrites || settings['allowWrites'] !== true) return monitor
  const quiet = { ...settings, allowWrites: false }
  if (ownProblem(monitor.kind, quiet) !== undefined) return undefined
  const configured = new Set([...(monitor.configured ?? [])].filter((name) => name !== 'allowWrites'))
  return { ...monitor, settings: quiet, configured }
}

/** The keys of monitors of any run, as the schedule calls them. */
export function keysOf(scheduled: readonly ScheduledMonitor[]): (monitor: PlannedMonitor) => string | undefined {
  const keys = new Map(
    scheduled.flatMap(({ key, monitor }) => (monitor.type === undefined ? [] : [[monitorKey(monitor), key] as const])),
  )
  const blocks = new Map(
    scheduled.flatMap(({ key, monitor }) => (monitor.type === undefined ? [[fingerprint(monitor), key] as const] : [])),
  )
  return (monitor) => {
    if (monitor.type === undefined) return blocks.get(fingerprint(monitor))
    return keys.get(monitorKey(monitor))
  }
}

export type CostOf = Awaited<ReturnType<typeof loadCosts>>['costOf']
/** The load of the schedule on the watched servers while nothing fails. */
type Load = { readonly probes: number; readonly signIns: number }

/** The load of some depths over `ms`, and the kinds whose cost svc cannot state. */
function loadOf(
  scheduled: readonly ScheduledMonitor[],
  among: readonly ExecutionMode[],
  ms: number,
  costOf: CostOf,
): Load & { readonly unknown: ReadonlySet<string> } {
  let [probes, signIns] = [0, 0]
  const unknown = new Set<string>()
  for (const { monitor, intervals } of scheduled) {
    for (const mode of among) {
      const runs = ms / (intervals[mode] ?? Number.POSITIVE_INFINITY)
      const cost = costOf(monitor.kind, mode, monitor.settings as Readonly<Record<string, unknown>>)
      if (cost === undefined) {
        if (runs > 0) unknown.add(monitor.kind.name)
        continue
      }
      probes += runs * cost.connections
      signIns += runs * cost.signIns
    }
  }
  return { probes, signIns, unknown }
}

/**
 * `12 monitors, 26 probes and 9 sign-ins a minute, Advanced 40 probes an hour; every: off stops it`. A probe is a
 * connection to a watched server. Names the kinds whose cost svc cannot state. Undefined if nothing runs by itself.
 */
export function loadLine(scheduled: readonly ScheduledMonitor[], costOf: CostOf): string | undefined {
  if (scheduled.length === 0) return undefined
  const minute = loadOf(scheduled, ['Basic', 'Standard'], 60_000, costOf)
  const hour = loadOf(scheduled, ['Advanced'], 3_600_000, costOf)
  const unknown = [...new Set([...minute.unknown, ...hour.unknown])].sort()
  const isDeep = scheduled.some(({ intervals }) => intervals.Advanced !== undefined)
  const parts = [
    counted(scheduled.length, 'monitor'),
    `${inWords(minute)} a minute`,
    ...(isDeep ? [`Advanced ${inWords(hour)} an hour`] : []),
    ...(unknown.length === 0 ? [] : [`without those of ${unknown.join(', ')}, whose cost is unknown`]),
  ]
  return `${parts.join(', ')}; every: off stops it`
}

const inWords = ({ probes, signIns }: Load): string =>
  signIns === 0 ? counted(probes, 'probe') : `${counted(probes, 'probe')} and ${counted(signIns, 'sign-in')}`

/** Rates below ten have one decimal, so that one run in several minutes is not nothing. */
function counted(value: number, what: string): string {
  const rounded = value < 10 ? Number(value.toFixed(1)) : Math.round(value)
  return count(rounded, what)
}
