import { monitorKey } from '../../checks/engine/index.ts'
import { ofType } from '../../checks/plan/index.ts'
import type { Config } from '../../config/index.ts'
import type { ServerType } from '../../protocol/index.ts'

/** A monitor by its key, its type and its name. */
export type MonitorName = { readonly key: string; readonly type: ServerType; readonly name: string }
export type Rename = { readonly from: string; readonly to: MonitorName }

/** Renames of svc.yaml (`formerly`): what is known under a former key goes on under the new one. */
export function renamesIn({ types }: Pick<Config, 'types'>): readonly Rename[] {
  return Object.entries(types).flatMap(([name, { monitors }]) => {
    const type = name as ServerType
    return monitors.flatMap((monitor) => {
      const own = ofType(type, monitor)
      return (own.formerly ?? []).map((from) => ({ from, to: { key: monitorKey(own), type, name: own.name } }))
    })
  })
}
