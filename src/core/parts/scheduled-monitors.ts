import type { Config } from '../config/index.ts'
import { deadlines, fingerprint, monitorKey, type PlannedMonitor } from '../engine/index.ts'
import { hostBlock, isConfigured, ofType } from '../plan/index.ts'
import { ExecutionMode, type ServerType } from '../protocol/index.ts'
import { type Intervals, intervalsOf } from '../schedule/index.ts'
import type { Every } from '../settings/index.ts'

/** A monitor that the schedule runs. */
export type ScheduledMonitor = {
  readonly key: string
  /** One for a monitor of svc.yaml; those with this host block for the block. */
  readonly types: readonly ServerType[]
  readonly monitor: PlannedMonitor
  readonly intervals: Intervals
}

/**
 * What `svc serve` runs by itself: the monitors of svc.yaml, and the host block of its types once, or once for each
 * different one. Nothing without a svc.yaml, and what `every: off` turns off.
 */
export async function scheduledMonitors({ origin, types, serve }: Config): Promise<readonly ScheduledMonitor[]> {
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
  return [...own, ...hosts].filter(({ intervals }) => Object.keys(intervals).length > 0)
}

function withIntervals(
  key: string,
  types: readonly ServerType[],
  monitor: PlannedMonitor,
  all: Every | undefined,
  ofType: Every | undefined,
): ScheduledMonitor {
  const { every: own, depth, timeoutMs } = monitor
  const takes = Object.fromEntries(
    ExecutionMode.values.map((mode) => [mode, timeoutMs ?? deadlines[mode].monitor]),
  ) as Record<ExecutionMode, number>
  return { key, types, monitor, intervals: intervalsOf({ all, ofType, own, depth, takes }) }
}

/**
 * The monitor as the schedule runs it: without the checks that write, unless `scheduleWrites` allows them. Undefined for
 * one that cannot run without them.
 */
function withoutWrites(monitor: PlannedMonitor): PlannedMonitor | undefined {
  const settings = monitor.settings as Readonly<Record<string, unknown>>
  if (monitor.scheduleWrites || settings['allowWrites'] !== true) return monitor
  const quiet = { ...settings, allowWrites: false }
  if (monitor.kind.validate?.(quiet as never) !== undefined) return undefined
  const configured = new Set([...(monitor.configured ?? [])].filter((name) => name !== 'allowWrites'))
  return { ...monitor, settings: quiet, configured }
}

/** The keys of monitors of any run, as the schedule calls them. */
export function keysOf(scheduled: readonly ScheduledMonitor[]): (monitor: PlannedMonitor) => string | undefined {
  const keys = new Set(scheduled.map(({ key }) => key))
  const blocks = new Map(
    scheduled.flatMap(({ key, monitor }) => (monitor.type === undefined ? [[fingerprint(monitor), key] as const] : [])),
  )
  return (monitor) => {
    if (monitor.type === undefined) return blocks.get(fingerprint(monitor))
    const key = monitorKey(monitor)
    return keys.has(key) ? key : undefined
  }
}
