import { createHash } from 'node:crypto'
import { type IdentifiedMonitor, isOfMachine, monitorKey, observedBy } from './monitor-key.ts'

/** A series that gets another name, or several where several monitors continue it. */
type Move = { readonly from: string; readonly to: readonly string[] }

/** A monitor whose series the store may have. */
export type StoredMonitor = IdentifiedMonitor & { readonly formerly?: readonly string[] | undefined }

/** Neither keys nor names of machines contain it. */
const separator = '\t'

/**
 * The name of a series in the store: the key of the monitor, the machine if each one has its own, what is observed, and
 * the name that the kind has for the series.
 */
export const seriesOf = (monitor: IdentifiedMonitor, machine: string, name: string): string =>
  [monitorKey(monitor), isOfMachine(monitor) ? machine : '', observedBy(monitor), name].join(separator)

/** How a release before the keys began the name of a series: kind, settings, machine. */
const formerBeginning = ({ kind, settings }: IdentifiedMonitor, machine: string): string => {
  const digest = createHash('sha256')
    .update(`${kind.name} ${JSON.stringify(settings)}`)
    .digest('hex')
    .slice(0, 32)
  return `${kind.name} ${digest} ${machine} `
}

/** The beginning of a name in that form, up to the machine: kind and digest. */
const beforeKeys = /^\S+ [0-9a-f]{32} /

/**
 * Which of the stored series get another name: those that an earlier release named by the settings, and those of a key
 * that a monitor names in `formerly`. The series of other machines and of unknown monitors stay.
 */
export function seriesMoves(
  names: readonly string[],
  monitors: readonly StoredMonitor[],
  machine: string,
): readonly Move[] {
  const beginnings = Map.groupBy(monitors, (monitor) => formerBeginning(monitor, machine))
  const successors = new Map(monitors.flatMap((one) => (one.formerly ?? []).map((key) => [key, monitorKey(one)])))
  return names.flatMap((from) => {
    const to = beforeKeys.test(from) ? continuedBy(from, beginnings, machine) : underNewKey(from, successors, machine)
    return to.length === 0 ? [] : [{ from, to }]
  })
}

function continuedBy(
  from: string,
  beginnings: ReadonlyMap<string, readonly StoredMonitor[]>,
  machine: string,
): readonly string[] {
  const [start = ''] = beforeKeys.exec(from) ?? []
  const beginning = `${start}${machine} `
  if (!from.startsWith(beginning)) return []
  const name = from.slice(beginning.length)
  return [...new Set((beginnings.get(beginning) ?? []).map((monitor) => seriesOf(monitor, machine, name)))]
}

function underNewKey(from: string, successors: ReadonlyMap<string, string>, machine: string): readonly string[] {
  const [key = '', owner, ...rest] = from.split(separator)
  const successor = successors.get(key)
  const isMine = owner === '' || owner === machine
  return successor === undefined || !isMine || rest.length < 2 ? [] : [[successor, owner, ...rest].join(separator)]
}
