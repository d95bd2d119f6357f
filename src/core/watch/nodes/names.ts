/** The key of a monitor of a machine, which runs on every node: each has its own. */
export const machineKey = (node: string, key: string): string => `@${node}/${key}`

/** The node to which the key of a monitor of a machine belongs. Undefined for one of the network. */
export const nodeOfKey = (key: string): string | undefined => /^@([^/]{1,253})\//.exec(key)?.[1]

/** The key that a monitor has on its own machine. */
export const plainKey = (key: string): string => {
  const node = nodeOfKey(key)
  return node === undefined ? key : key.slice(node.length + 2)
}

/** The keys of monitors, and those that they had before unless another one has them, with their present ones. */
export const presentKeys = (
  monitors: readonly { readonly key: string; readonly formerly: readonly string[] }[],
): ReadonlyMap<string, string> =>
  new Map([
    ...monitors.flatMap(({ key, formerly }) => formerly.map((former): [string, string] => [former, key])),
    ...monitors.map(({ key }): [string, string] => [key, key]),
  ])

/** The name of a monitor for people who see those of all machines: `host (node-a)`. */
export const nameWithNode = (node: string | undefined, name: string): string =>
  node === undefined ? name : `${name} (${node})`
