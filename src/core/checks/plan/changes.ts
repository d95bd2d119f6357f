import { ServerType } from '../../protocol/index.ts'
import { fingerprint, type PlannedMonitor, writeMonitorOfType } from '../engine/index.ts'

/** The configuration of a type in svc.yaml. */
type TypeOfPlan = {
  readonly monitors: readonly PlannedMonitor[]
  readonly host: Readonly<Record<string, unknown>> | false
}
export type TypesOfPlan = { readonly [T in ServerType]?: TypeOfPlan }

/** How one configuration differs from the one before. */
export type PlanChanges = {
  /** `Type/MonitorName`, in the order of the types. A host block that changed is `Type/host`. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  /** The types whose results from before count no longer: those that differ, and those that depend on them. */
  readonly types: readonly ServerType[]
}

/** Compares two configurations: a monitor whose settings are the same in both has not changed, wherever it is written. */
export function planChanges(before: TypesOfPlan, after: TypesOfPlan): PlanChanges {
  const [old, next] = [identities(before), identities(after)]
  const added = [...next.keys()].filter((name) => !old.has(name))
  const removed = [...old.keys()].filter((name) => !next.has(name))
  const changed = [...next].flatMap(([name, identity]) => (old.has(name) && old.get(name) !== identity ? [name] : []))
  const all = new Set([...added, ...removed, ...changed])
  const differing = ServerType.values.filter((type) => [...all].some((name) => name.startsWith(`${type}/`)))
  const types = ServerType.values.filter(
    (type) =>
      differing.includes(type) ||
      (after[type]?.monitors ?? []).some(({ dependsOnElsewhere = [], dependsOnGroups = [] }) =>
        [...dependsOnElsewhere, ...dependsOnGroups.flatMap(({ of }) => of)].some((one) =>
          all.has(writeMonitorOfType(one)),
        ),
      ),
  )
  return { added, removed, changed, types }
}

/** The identity of each monitor and host block, as text, by its name. */
function identities(types: TypesOfPlan): ReadonlyMap<string, string> {
  return new Map(
    ServerType.values.flatMap((type): readonly (readonly [string, string])[] => {
      const config = types[type]
      if (!config) return []
      const host = JSON.stringify(config.host)
      return [
        ...(host === '{}' ? [] : [[`${type}/host`, host] as const]),
        ...config.monitors.map(
          (monitor) => [writeMonitorOfType({ type, name: monitor.name }), identity(monitor)] as const,
        ),
      ]
    }),
  )
}

/** Without former keys: what is stored under them moves once. */
function identity(monitor: PlannedMonitor): string {
  const { kind: _, settings: __, configured = [], formerly: ___, ...rest } = monitor
  const names = [...configured].filter((name) => name !== 'formerly')
  return `${fingerprint({ ...monitor, configured: new Set(names) })} ${JSON.stringify(rest)}`
}
