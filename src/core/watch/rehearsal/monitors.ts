import type { FaultClass } from '../../base/probe-error.ts'
import {
  type AnyKind,
  type DeclaredResult,
  fail,
  notChecked,
  type PlannedMonitor,
  runIncludes,
} from '../../checks/engine/index.ts'
import type { ServerType } from '../../protocol/index.ts'
import type { MonitorFault } from './script.ts'

/** The check of a monitor without an active fault. */
const idle: DeclaredResult = {
  name: 'rehearsal',
  depth: 'Basic',
  doc: 'The server rehearses: no monitor runs',
  provesNoReading: true,
}

/** The message of the result of a scripted fault if the script has none. */
export const sentences: Readonly<Record<FaultClass, string>> = {
  dns: 'the name cannot be resolved',
  refused: 'the connection was refused',
  timeout: 'no answer in time',
  tls: 'the TLS connection failed',
  auth: 'the sign-in was refused',
  protocol: 'the answer violates the protocol',
  threshold: 'the limit is exceeded',
  data: 'the data is not as expected',
  dependency: 'a monitor that it depends on failed',
  internal: 'the check failed unexpectedly',
}

/** The check that fails if the script names none: the first one of the kind that is a single result. */
export const firstCheck = ({ checks }: Pick<AnyKind, 'checks'>): string =>
  checks.find(({ name }) => !name.includes('<'))?.name ?? 'connect'

/** The declaration of a check, also of a member of a family: that of `disk <mount>` for `disk /data`. */
export const declarationOf = (check: string, { checks }: Pick<AnyKind, 'checks'>): DeclaredResult | undefined =>
  checks.find(({ name }) => {
    if (name === check) return true
    const from = name.indexOf('<')
    if (from < 0) return false
    const [before, after] = [name.slice(0, from), name.slice(name.indexOf('>', from) + 1)]
    return check.length > before.length + after.length && check.startsWith(before) && check.endsWith(after)
  })

/** The faults of a monitor that are active now. */
export type FaultsNow = (type: ServerType, monitor: string) => readonly MonitorFault[]

/**
 * The monitor as a rehearsal has it: with its name, kind, checks and dependencies, but without its settings, so that it
 * can contact nothing. Its results are those of the script.
 */
export function rehearsedMonitor(type: ServerType, monitor: PlannedMonitor, faultsNow: FaultsNow): PlannedMonitor {
  const { name, depth, host, dependsOn, dependsOnElsewhere, dependsOnGroups, confirmMs, flapping, tags } = monitor
  return {
    name,
    kind: rehearsedKind(monitor.kind, () => faultsNow(type, name)),
    // Two monitors with the same settings would share their results.
    settings: { rehearses: `${type}/${name}` },
    depth,
    host,
    dependsOn,
    dependsOnElsewhere,
    dependsOnGroups,
    confirmMs,
    flapping,
    tags,
    retries: 0,
    // A failure that SuppressDeploymentErrors turns into a success would be one of a rehearsal.
    deployment: false,
    drill: true,
  }
}

function rehearsedKind({ name, title, runsOn, checks }: AnyKind, faults: () => readonly MonitorFault[]): AnyKind {
  return {
    name,
    title,
    runsOn,
    settings: {},
    checks: [...checks, idle],
    cost: { machine: 'A rehearsal sends nothing.' },
    run: async function* (_, context) {
      const now = faults().filter(({ check }) =>
        runIncludes(context, declarationOf(check, { checks })?.depth ?? 'Basic'),
      )
      yield now.length === 0
        ? [notChecked(idle.name, 'rehearsal', 'this server rehearses, and no monitor runs')]
        : now.map(({ check, fault, message }) => fail(check, fault, message))
    },
  }
}
