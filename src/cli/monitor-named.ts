import type { Config } from '../core/config/index.ts'
import { Fault } from '../core/errors.ts'
import type { ServerType } from '../core/protocol/index.ts'
import { didYouMean } from '../core/suggest.ts'

export type NamedMonitor = { readonly type: ServerType; readonly monitor: string }

/**
 * The configured monitor of a name: its MonitorName (`postgres orders`) or its own name (`orders`).
 * Throws `Fault` Usage with the nearest and the list, and for a name that several have.
 */
export function monitorNamed(config: Config, given: string, type: ServerType | undefined): NamedMonitor {
  const all = Object.entries(config.types).flatMap(([name, entry]) =>
    entry.monitors.map((monitor) => ({ type: name as ServerType, monitor: monitor.name, kind: monitor.kind.name })),
  )
  const here = all.filter((one) => type === undefined || one.type === type)
  const own = ({ monitor, kind }: (typeof all)[number]): string => monitor.slice(kind.length + 1)
  const exact = here.filter(({ monitor }) => monitor === given)
  const found = exact.length > 0 ? exact : here.filter((one) => own(one) === given)
  const [only, another] = found
  if (only && !another) return only
  if (only && another) {
    const which = found.map((one) => `${one.type}: ${one.monitor}`).join(', ')
    throw new Fault('Usage', `"${given}" names several monitors: ${which}`, {
      hints: ['Give the type and the whole name: svc monitors test "KIND NAME" --type TYPE'],
    })
  }
  const where = type === undefined ? '' : ` of ${type}`
  if (here.length === 0) {
    throw new Fault('Usage', `no monitor${where} is configured, so none is called "${given}"`, {
      hints: [
        'svc monitors discover   proposes a svc.yaml for this machine',
        'svc monitors kinds      what one may name',
      ],
    })
  }
  const nearest = didYouMean(given, [...here.map(({ monitor }) => monitor), ...here.map(own)])
  throw new Fault('Usage', `no monitor${where} is called "${given}"`, {
    hints: [
      ...(nearest === undefined ? [] : [`Did you mean "${nearest}"?`]),
      `Monitors: ${here.map(({ monitor }) => monitor).join(', ')}`,
    ],
  })
}
