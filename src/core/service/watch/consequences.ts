import { monitorKey, writeMonitorOfType } from '../../checks/engine/index.ts'
import { ofType } from '../../checks/plan/index.ts'
import type { Config } from '../../config/index.ts'
import type { ServerType } from '../../protocol/index.ts'
import type { Consequences } from '../../watch/configuration/index.ts'
import { scheduledMonitors } from './scheduled-monitors.ts'
import { type StatesPart, watchedMonitors } from './states.ts'

/** The consequences of another configuration, before it is in force. `keyOf`: as of `scheduledMonitors`. */
export async function consequencesOf(
  before: Config,
  next: Config,
  { views, monitors: watched }: Pick<StatesPart, 'views' | 'monitors'>,
  keyOf: (key: string) => string,
): Promise<Consequences> {
  const configured = monitorsOf(before)
  const goesOn = new Set(monitorsOf(next).flatMap((one) => [monitorKey(one), ...(one.formerly ?? [])]))
  const scheduled = watchedMonitors(await scheduledMonitors(next, keyOf), next)
  const isWatched = new Set(scheduled.flatMap(({ key, formerly }) => [key, ...formerly]))
  const ending = views().filter(({ key, state }) => state.incident && watched().has(key) && !isWatched.has(key))
  const receivers = new Set(next.notify?.map(({ name }) => name))
  return {
    replaces:
      before.origin !== undefined && next.origin !== undefined && before.origin !== next.origin
        ? { before: before.origin, after: next.origin }
        : undefined,
    removed: configured.filter((one) => !goesOn.has(monitorKey(one))).map(writeMonitorOfType),
    of: configured.length,
    ends: [
      ...new Set(
        ending.map(({ type, monitor: name }) => (type === undefined ? name : writeMonitorOfType({ type, name }))),
      ),
    ],
    receivers: (before.notify ?? []).flatMap(({ name }) => (receivers.has(name) ? [] : [name])),
  }
}

const monitorsOf = ({ types }: Config) =>
  Object.entries(types).flatMap(([type, { monitors }]) =>
    monitors.map((monitor) => ({ ...ofType(type as ServerType, monitor), type: type as ServerType })),
  )
