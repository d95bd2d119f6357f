import type { KnownMonitors } from './types.ts'

type Member = {
  readonly key: string
  readonly dependsOn: readonly { readonly of: readonly string[] }[]
  readonly formerly: readonly string[]
}

/**
 * Monitors that depend on each other form a group, which has one owner: it sees causes and victims together. A group has
 * the name of its first key, so that every node with these monitors calls it the same.
 */
export function groupsOf(monitors: readonly Member[]): KnownMonitors {
  const parents = new Map(monitors.map(({ key }) => [key, key]))
  const rootOf = (key: string): string => {
    let root = key
    for (let next = parents.get(root); next !== undefined && next !== root; next = parents.get(root)) root = next
    // Shortens the way for the next search.
    for (let at = key; at !== root; ) {
      const next = parents.get(at) ?? root
      parents.set(at, root)
      at = next
    }
    return root
  }
  for (const { key, dependsOn } of monitors) {
    for (const other of dependsOn.flatMap(({ of }) => of)) {
      if (!parents.has(other)) continue
      const [one, two] = [rootOf(key), rootOf(other)]
      // The smaller key is the root, whatever the order of the monitors.
      if (one < two) parents.set(two, one)
      else parents.set(one, two)
    }
  }
  return {
    groups: new Map(monitors.map(({ key }) => [key, rootOf(key)])),
    formerly: new Map(monitors.flatMap(({ key, formerly }) => formerly.map((one) => [one, rootOf(key)] as const))),
  }
}
