import { Fault } from '../../base/errors.ts'
import { didYouMean } from '../../base/suggest.ts'
import { type MonitorOfType, type PlannedMonitor, writeMonitorOfType } from '../../checks/engine/index.ts'
import { loadImpact } from '../../checks/plan/index.ts'
import type { Config } from '../../config/index.ts'
import {
  type GetImpactResponse,
  type HistoryStatus,
  type ImpactMonitor,
  monitorsNamed,
  ServerType,
} from '../../protocol/index.ts'
import type { ConfirmedCheck } from '../../protocol/service/service.ts'
import { isUnreachable } from '../../watch/states/index.ts'

export type ImpactQuestion = {
  readonly config: Config
  /** The confirmed states of all checks. Absent: no schedule runs here. */
  readonly checks: Iterable<ConfirmedCheck> | undefined
  /** A monitor, a type and a monitor, or a tag. */
  readonly monitor: string | undefined
  /** Whether the caller may read the details of a type. */
  readonly reads: (type: ServerType) => boolean
}

/** Loads what the answer needs. */
export const preloadImpact = loadImpact

/** A monitor of a type. */
type Typed = PlannedMonitor & MonitorOfType

/** The answer of GetImpact. Throws Fault BadRequest without a name and for an ambiguous one, NotFound for an unknown one. */
export async function impactAnswer({
  config,
  checks,
  monitor: written = '',
  reads,
}: ImpactQuestion): Promise<GetImpactResponse> {
  const { impactOf } = await loadImpact()
  const all = ServerType.values.flatMap((type) =>
    (config.types[type]?.monitors ?? []).map((monitor): Typed => ({ ...monitor, type })),
  )
  const causes = meant(
    written,
    all.filter(({ type }) => reads(type)),
  )
  const states = checks && statesOf(checks)
  const isDown = (one: MonitorOfType): boolean => states?.get(writeMonitorOfType(one))?.isDown === true
  const statusOf = (one: MonitorOfType): HistoryStatus | undefined =>
    states && (states.get(writeMonitorOfType(one))?.status ?? 'Unobserved')
  const affected = impactOf(all, causes, isDown)
  const isVisible = ({ monitor: { type } }: (typeof affected)[number]): boolean => type !== undefined && reads(type)
  const hidden = affected.filter((one) => one.isSkipped && !isVisible(one)).length
  return {
    Causes: causes.map(({ type, name }) => ({
      ServerType: type,
      MonitorName: name,
      Status: statusOf({ type, name }),
    })),
    Monitors: affected.filter(isVisible).map(({ monitor, isSkipped, isDirect, through, group }): ImpactMonitor => {
      const { type = 'App', name } = monitor
      return {
        ServerType: type,
        MonitorName: name,
        Runs: !isSkipped,
        Direct: isDirect,
        Through: namesOf(through, type, reads),
        Members: group.members,
        Left: group.left,
        Needed: group.needed,
        Status: statusOf({ type, name }),
      }
    }),
    HiddenMonitors: hidden === 0 ? undefined : hidden,
  }
}

/** Names as `dependsOn` of a monitor of the type writes them. Those of types that the caller may not read have none. */
function namesOf(
  monitors: readonly MonitorOfType[],
  here: ServerType,
  reads: (type: ServerType) => boolean,
): readonly string[] {
  const names = monitors.map((one) => {
    if (!reads(one.type)) return 'a monitor of another type'
    return one.type === here ? one.name : writeMonitorOfType(one)
  })
  return [...new Set(names)]
}

const tagPrefix = 'tag:'

/** The monitors that a text means, as `dependsOn` would. */
function meant(written: string, all: readonly Typed[]): readonly MonitorOfType[] {
  if (written.trim() === '') throw refused("'Monitor' names no monitor")
  const matches = monitorsNamed(written, all)
  const [only, another] = matches
  if (only && !another) return [only]
  if (another) {
    const names = matches.map(writeMonitorOfType).join(', ')
    throw refused(`"${written}" names several monitors: ${names}`, ['Put the type in front: Sql/postgres orders'])
  }
  const tagged = written.startsWith(tagPrefix)
    ? all.filter(({ tags = [] }) => tags.includes(written.slice(tagPrefix.length)))
    : []
  if (tagged.length > 0) return tagged
  throw new Fault('NotFound', unknown(written, all), {
    hints: ['svc health -v shows the names; svc.yaml has the tags.'],
  })
}

function unknown(written: string, all: readonly Typed[]): string {
  const names = all.flatMap((one) => [
    one.name,
    writeMonitorOfType(one),
    ...(one.tags ?? []).map((tag) => tagPrefix + tag),
  ])
  const nearest = didYouMean(written, [...new Set(names)])
  const advice = nearest === undefined ? '' : `: did you mean "${nearest}"?`
  return `No monitor ${written.startsWith(tagPrefix) ? 'has the tag' : 'is called'} "${
    written.startsWith(tagPrefix) ? written.slice(tagPrefix.length) : written
  }"${advice}`
}

const refused = (message: string, hints: readonly string[] = []): Fault =>
  new Fault('BadRequest', message, {
    errorCode: 'ValidationException',
    fields: [{ ErrorCode: 'InvalidValue', FieldName: 'Monitor', Message: message }],
    hints,
  })

type State = { readonly status: HistoryStatus; readonly isDown: boolean }

const order: readonly HistoryStatus[] = ['Unobserved', 'Ok', 'Warning', 'Failed']

/** The worst confirmed state of each monitor, and whether it cannot be reached. */
function statesOf(checks: Iterable<ConfirmedCheck>): ReadonlyMap<string, State> {
  const states = new Map<string, State>()
  for (const { type, monitor, level, fault, isObserved } of checks) {
    if (type === undefined) continue
    const key = writeMonitorOfType({ type, name: monitor })
    const { status: before = 'Unobserved', isDown = false } = states.get(key) ?? {}
    const own = !isObserved ? 'Unobserved' : level === 'failed' ? 'Failed' : level === 'warning' ? 'Warning' : 'Ok'
    const status = order.indexOf(own) > order.indexOf(before) ? own : before
    states.set(key, { status, isDown: isDown || (own === 'Failed' && isUnreachable(fault)) })
  }
  return states
}
