import type { PlannedMonitor } from '../engine/index.ts'
import { type DependencyGroup, dependenciesOfMonitor, type MonitorOfType, writeMonitorOfType } from '../engine/index.ts'

/** A monitor that depends on monitors that cannot be reached. */
export type Affected = {
  readonly monitor: PlannedMonitor
  /** False: its groups have enough other members, so that it runs. */
  readonly isSkipped: boolean
  /** It depends on one of them itself, and not only through others. */
  readonly isDirect: boolean
  /** Its members that cannot be reached, or that do not run because of that. */
  readonly through: readonly MonitorOfType[]
  /** The group that decides: how many members it has, how many of them remain, and how many it needs. */
  readonly group: { readonly members: number; readonly left: number; readonly needed: number }
}

/** A monitor of svc.yaml, which has a type. */
type Typed = PlannedMonitor & MonitorOfType

const isTyped = (monitor: PlannedMonitor): monitor is Typed => monitor.type !== undefined

/**
 * The consequences if these monitors cannot be reached: the monitors that depend on them, directly and through others,
 * in the order of `all`. `isDown`: whether another monitor cannot be reached in any case.
 */
export function impactOf(
  all: readonly PlannedMonitor[],
  causes: readonly MonitorOfType[],
  isDown: (monitor: MonitorOfType) => boolean = () => false,
): readonly Affected[] {
  const monitors = all.filter(isTyped)
  const lost = new Set(causes.map(writeMonitorOfType))
  const isLost = (one: MonitorOfType): boolean => lost.has(writeMonitorOfType(one))
  const left = ({ of }: DependencyGroup): number => of.filter((one) => !isLost(one) && !isDown(one)).length
  const concerned = (monitor: Typed): readonly DependencyGroup[] =>
    dependenciesOfMonitor(monitor).filter(({ of }) => of.some(isLost))
  const fails = (group: DependencyGroup): boolean => left(group) < group.atLeast
  const others = monitors.filter((monitor) => !isLost(monitor))
  const dependents = dependentsIn(others)
  const pending = [...lost]
  for (let key = pending.pop(); key !== undefined; key = pending.pop()) {
    for (const monitor of dependents.get(key) ?? []) {
      if (isLost(monitor) || !concerned(monitor).some(fails)) continue
      lost.add(writeMonitorOfType(monitor))
      pending.push(writeMonitorOfType(monitor))
    }
  }
  const first = new Set(causes.map(writeMonitorOfType))
  return others.flatMap((monitor) => {
    const groups = concerned(monitor)
    const spare = (group: DependencyGroup): number => left(group) - group.atLeast
    const group = groups.toSorted((a, b) => spare(a) - spare(b))[0]
    if (!group) return []
    return {
      monitor,
      isSkipped: isLost(monitor),
      isDirect: groups.some(({ of }) => of.some((one) => first.has(writeMonitorOfType(one)))),
      through: group.of.filter(isLost),
      group: { members: group.of.length, left: left(group), needed: group.atLeast },
    }
  })
}

/** The monitors that name each one in their dependencies. */
function dependentsIn(monitors: readonly Typed[]): ReadonlyMap<string, readonly Typed[]> {
  const dependents = new Map<string, Typed[]>()
  for (const monitor of monitors) {
    const parents = dependenciesOfMonitor(monitor).flatMap(({ of }) => of.map(writeMonitorOfType))
    for (const key of new Set(parents)) {
      const present = dependents.get(key)
      if (present) present.push(monitor)
      else dependents.set(key, [monitor])
    }
  }
  return dependents
}
