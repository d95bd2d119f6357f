import { hash } from '../schedule/index.ts'
import { awayMs } from './policy.ts'
import type { Configurations, NodeRow } from './types.ts'

/** The key of a monitor of a machine, which runs on every node: each has its own. */
export const machineKey = (node: string, key: string): string => `@${node}/${key}`

/** The node to which the key of a monitor of a machine belongs. Undefined for one of the network. */
export const nodeOfKey = (key: string): string | undefined => /^@([^/]{1,253})\//.exec(key)?.[1]

/** The key that a monitor has on its own machine. */
export const plainKey = (key: string): string => {
  const node = nodeOfKey(key)
  return node === undefined ? key : key.slice(node.length + 2)
}

/** The name of a monitor for people who see those of all machines: `host (node-a)`. */
export const nameWithNode = (node: string | undefined, name: string): string =>
  node === undefined ? name : `${name} (${node})`

/**
 * The node that runs a monitor, stores what is known of it and sends messages about it. Every node that reads the same rows
 * names the same owner. Undefined while no node can run it.
 *
 * The owner is the live node that has the monitor in its configuration, is not isolated if any other is not, and has the
 * highest hash. A key that no live node knows waits for a node that knows it and is away, but not for long. Then it belongs to
 * one of those that live, which removes what is stored under it. The rows are looked through once for all keys.
 */
export function ownersOf(
  rows: readonly NodeRow[],
  configurations: Configurations,
): (key: string) => string | undefined {
  const live = rows.filter(({ isLive }) => isLive)
  const names = new Set(rows.map(({ node }) => node))
  // Where configurations differ, one of them says for all nodes which group a monitor belongs to.
  const ordered = live
    .flatMap((row) => {
      const monitors = configurations.get(row.config)
      return monitors ? [{ row, monitors }] : []
    })
    .sort((one, other) => compare(one.row.config, other.row.config))
  const away = rows.flatMap(({ isLive, silentMs, config }) => {
    return isLive || silentMs >= awayMs ? [] : (configurations.get(config) ?? [])
  })
  const winners = new Map<string, string | undefined>()
  const winnerAmong = (candidates: readonly NodeRow[], group: string): string | undefined => {
    const id = JSON.stringify([group, candidates.map(({ node }) => node)])
    if (!winners.has(id)) winners.set(id, highest(candidates, group))
    return winners.get(id)
  }
  return (key) => {
    const machine = nodeOfKey(key)
    // While a machine is away, nobody else can say how it is.
    if (machine !== undefined && names.has(machine))
      return live.some(({ node }) => node === machine) ? machine : undefined
    const knowing = ordered.filter(({ monitors }) => monitors.groups.has(key))
    const candidates = knowing.length > 0 ? knowing : ordered.filter(({ monitors }) => monitors.formerly.has(key))
    const first = candidates[0]?.monitors
    if (!first) return away.some((monitors) => monitors.groups.has(key)) ? undefined : winnerAmong(live, key)
    const group = first.groups.get(key) ?? first.formerly.get(key) ?? key
    return winnerAmong(
      candidates.map(({ row }) => row),
      group,
    )
  }
}

/**
 * The node that is asked whether it reaches a monitor: the next one in the order of owners that is live, has the monitor, is not
 * isolated and can answer. Undefined: there is none.
 */
export function secondFor(
  key: string,
  node: string,
  rows: readonly NodeRow[],
  configurations: Configurations,
): string | undefined {
  const group = rows.map(({ config }) => configurations.get(config)?.groups.get(key)).find((one) => one !== undefined)
  if (group === undefined || nodeOfKey(key) !== undefined) return undefined
  const others = rows.filter((row) => {
    const { isLive, isIsolated, facts, config } = row
    const isAble = isLive && !isIsolated && facts?.crossChecks !== undefined
    return isAble && row.node !== node && configurations.get(config)?.groups.has(key) === true
  })
  return highest(others, group)
}

/** Rendezvous hashing: when a node comes or goes, only its own share moves. */
function highest(rows: readonly NodeRow[], group: string): string | undefined {
  const connected = rows.filter(({ isIsolated }) => !isIsolated)
  let best: { readonly node: string; readonly weight: number } | undefined
  for (const { node } of connected.length > 0 ? connected : rows) {
    const weight = hash(node, group)
    if (!best || weight > best.weight || (weight === best.weight && node > best.node)) best = { node, weight }
  }
  return best?.node
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
