import { ExecutionMode } from '../../protocol/index.ts'

/** The cost of one run for the watched server. A sign-in is one proof of identity that the server verifies. */
export type Cost = {
  /** Connections that the server accepts, those for data included. Over UDP or ICMP: sessions, each from one port. */
  readonly connections: number
  /** The number of requests, as `MeasuredCost.unit` names them. */
  readonly requests: number
  readonly signIns: number
}

/** The cost that a setting adds to the runs from a depth on. */
export type AddedCost = Partial<Cost> & {
  readonly setting: string
  readonly from: ExecutionMode
  /** For each item of the list, or as often as the number says, instead of once. */
  readonly each?: true
  /** Only items in which this field is set. */
  readonly where?: string
}

/** The figures of a `Cost` in its order. Without the last one, the run does not sign in. */
type Figures = readonly [connections: number, requests: number, signIns?: number]

/** The cost of a run without optional settings, in which nothing fails, at one address. */
export type MeasuredCost = Readonly<Record<ExecutionMode, Figures>> & {
  /** The name of a request, in the plural. */
  readonly unit: string
  readonly adds?: readonly AddedCost[]
  /**
   * From this mode on, a name with several addresses costs as much for each address. With Advanced, each further address
   * costs one connection before.
   */
  readonly eachAddressFrom?: ExecutionMode
  /** The kind has `samples`: from Standard on, each but the first costs as much as a run in Standard. */
  readonly samples?: boolean
  /** Other influences on the cost, in sentences. */
  readonly besides?: string
}

/**
 * `machine`: the kind reads this machine, and sends nothing to a server. `unknown`: why svc cannot state the cost.
 * Everything else is counted at the peer, by `test/checks/kinds/costs*.test.ts`.
 */
export type KindCost = MeasuredCost | { readonly machine: string } | { readonly unknown: string }

/** How often a setting adds its cost: 0 if it is not given. */
function timesOf({ setting, each, where }: AddedCost, settings: Readonly<Record<string, unknown>>): number {
  const value = settings[setting]
  if (value === undefined || value === false) return 0
  if (!Array.isArray(value)) return each && typeof value === 'number' ? value : 1
  const items = where === undefined ? value : value.filter((item) => item[where] === true)
  return each ? items.length : Math.min(items.length, 1)
}

/** The cost of a mode without what settings add. */
export function plainCost(cost: MeasuredCost, mode: ExecutionMode): Cost {
  const [connections, requests, signIns = 0] = cost[mode]
  return { connections, requests, signIns }
}

/**
 * The cost of a run of a kind for the watched server when nothing fails, at one address. `settings` are the parsed
 * settings of the monitor. Undefined if svc cannot state it: never take that for nothing.
 */
export function costOf(
  { cost }: { readonly cost?: KindCost | undefined },
  mode: ExecutionMode,
  settings: Readonly<Record<string, unknown>> = {},
): Cost | undefined {
  if (cost === undefined || 'unknown' in cost) return undefined
  if ('machine' in cost) return { connections: 0, requests: 0, signIns: 0 }
  const depthOf = (one: ExecutionMode): number => ExecutionMode.values.indexOf(one)
  const due = (cost.adds ?? []).filter(({ from }) => depthOf(mode) >= depthOf(from))
  const plain = plainCost(cost, mode)
  const sum = (of: keyof Cost): number =>
    due.reduce((total, one) => total + (one[of] ?? 0) * timesOf(one, settings), plain[of])
  const run = { connections: sum('connections'), requests: sum('requests'), signIns: sum('signIns') }
  const { samples, ...others } = settings
  if (!cost.samples || mode === 'Basic' || typeof samples !== 'number') return run
  const sample = costOf({ cost }, 'Standard', others)
  const withSamples = (of: keyof Cost): number => run[of] + (samples - 1) * (sample?.[of] ?? 0)
  return {
    connections: withSamples('connections'),
    requests: withSamples('requests'),
    signIns: withSamples('signIns'),
  }
}
