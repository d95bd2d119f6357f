import { emptyField, Fault } from '../../base/errors.ts'
import { nearestHint } from '../../base/suggest.ts'
import type { NodeEntry } from '../../protocol/index.ts'
import type { Data } from '../../store/index.ts'
import { overviewOf, type ViewedNode } from '../../watch/nodes/index.ts'
import type { NodesOperations } from '../local.ts'

export type NodesWork = {
  /** The store that nodes share. Undefined: there is none, or no others can use it. */
  readonly data: (() => Promise<Data>) | undefined
  /** The name of the node that answers. */
  readonly own: () => string | undefined
}

/** How many names an error lists. */
const maxNames = 20
/** Characters of a digest that people compare. */
const shortDigest = 8

export function nodesOperations({ data, own }: NodesWork): NodesOperations {
  const read = async () => {
    const opened = await data?.()
    const rows = opened?.nodes
    if (!opened || !rows) throw noNodes()
    const [all, holder] = await Promise.all([rows.list(), rows.holder()])
    return { rows, now: opened.clock.now(), nodes: overviewOf(all), holder }
  }
  return {
    getNodes: async () => {
      const { now, nodes, holder } = await read()
      return { Nodes: nodes.map((node) => entryOf(node, now, { own: own(), holder })) }
    },
    forgetNode: async ({ Name: name = '' }, actor) => {
      if (name === '') throw emptyName()
      const { rows, now, nodes } = await read()
      const node = nodeToForget(name, nodes)
      // It may have come back or been forgotten meanwhile.
      if (!(await rows.forget(name, actor))) {
        const { nodes: present } = await read()
        nodeToForget(name, present)
        throw noSuch(name, present)
      }
      return { Node: entryOf(node, now, {}) }
    },
  }
}

function entryOf(
  { row, differs }: ViewedNode,
  now: number,
  { own, holder }: { readonly own?: string | undefined; readonly holder?: string | undefined },
): NodeEntry {
  const { node, isLive, hasLeft, isIsolated, silentMs, facts } = row
  return {
    Name: node,
    State: isLive ? 'Live' : hasLeft ? 'Left' : 'Out',
    SeenAt: new Date(now - silentMs),
    Isolated: isLive ? isIsolated : undefined,
    Holds: isLive && node === holder,
    Configuration: facts?.digest?.slice(0, shortDigest),
    Differs: differs,
    Version: facts?.version,
    Url: facts?.url,
    Peer: facts?.peer,
    StartedAt: facts && new Date(facts.startedAt),
    Current: node === own,
  }
}

/** Throws a Fault unless it is a node that may be forgotten. */
function nodeToForget(name: string, nodes: readonly ViewedNode[]): ViewedNode {
  const node = nodes.find(({ row }) => row.node === name)
  if (!node) throw noSuch(name, nodes)
  if (!node.row.isLive) return node
  throw new Fault('Conflict', `The node ${name} is live: stop its svc serve first`, {
    hints: ['A node that runs would come back at once. Only one that is out or has left can be forgotten.'],
  })
}

function noSuch(name: string, nodes: readonly ViewedNode[]): Fault {
  const names = nodes.map(({ row }) => row.node)
  if (names.length === 0)
    return new Fault('NotFound', `No node is called "${name}": no svc serve has joined this store`)
  const first = names.slice(0, maxNames)
  const more = names.length > first.length ? ` and ${names.length - first.length} more` : ''
  const all = `the nodes are ${first.join(', ')}${more}`
  return new Fault('NotFound', `No node is called "${name}": ${all}`, {
    hints: nearestHint(name, names),
  })
}

function emptyName(): Fault {
  const field = emptyField('Name')
  return new Fault('NotEmpty', field.Message, { fields: [field] })
}

const noNodes = (): Fault =>
  new Fault('Conflict', 'There are no nodes here: several nodes need a PostgreSQL store (docs/several-nodes.md)', {
    hints: ['One svc serve with an embedded store is not a node: svc health shows how it is.'],
  })
