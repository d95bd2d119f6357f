import { count } from '../../../base/format.ts'
import { quote, type Redact, sanitize } from '../../../base/net/text.ts'
import { figure, type Row, text } from '../../database/index.ts'
import { fail, notChecked, ok, type Result, sharedRead, warn } from '../../engine/index.ts'
import { onRedis, type RedisConnection } from './connection.ts'
import { info, isClusterNode, parseInfo, replicasSetting } from './info.ts'
import { textOf } from './resp.ts'

/** The number of slots in every cluster. */
const slots = 16_384

export const cluster = onRedis({
  depth: 'Standard',
  results: { cluster: 'The cluster serves every slot; omitted without a cluster' },
  privilege: 'ACL SETUSER <account> +info +cluster|info',
  observe: async (redis, settings, context) => {
    const { row } = await info(redis, settings, context)
    const enabled = figure(row, 'cluster_enabled')
    if (enabled === undefined && text(row, 'redis_mode') !== 'standalone') return 'unknown'
    if (!isClusterNode(row)) return undefined
    return parseInfo(textOf(await redis.ask('CLUSTER', 'INFO')), redis.redact)
  },
  evaluate: (row): Result<'cluster'> | [] => {
    if (!row) return []
    const missing = (what: string) => notChecked('cluster', 'missing', `the server does not report ${what}`)
    if (row === 'unknown') return missing('whether it belongs to a cluster')
    return evaluateSlots(row, missing)
  },
})

function evaluateSlots(row: Row, missing: (what: string) => Result<'cluster'>): Result<'cluster'> {
  const state = text(row, 'cluster_state')
  const assigned = figure(row, 'cluster_slots_assigned')
  const failed = figure(row, 'cluster_slots_fail')
  const doubtful = figure(row, 'cluster_slots_pfail')
  const nodes = figure(row, 'cluster_known_nodes')
  const nodeCount = nodes === undefined ? '' : `${count(nodes, 'node')}, `
  const size = `${nodeCount}${assigned ?? '?'} of ${slots} slots assigned`
  if (state !== 'ok')
    return fail('cluster', 'data', `cluster state is ${quote(state, 32)}: ${size}, ${failed ?? '?'} failed`)
  if (assigned === undefined || failed === undefined || doubtful === undefined) return missing('its slots')
  // With cluster-require-full-coverage no, the state is ok although keys of the other slots have no server.
  if (assigned < slots) return fail('cluster', 'data', `${size}: the others are served by no node`)
  if (failed > 0) return fail('cluster', 'data', `${size}, ${failed} on nodes that have failed`)
  if (doubtful > 0) return warn('cluster', `${size}, ${doubtful} on nodes that do not answer`)
  return ok('cluster', size)
}

/** A node as the server sees it. */
export type ClusterNode = ReturnType<typeof parseNodes>[number]

/** The fields before the slots: id, address, flags, primary, ping, pong, epoch, link. */
const fieldsBeforeSlots = 8

/**
 * Parses the reply to CLUSTER NODES. An address is `ip:port@bus`, since Redis 7 with `,hostname`. Lines with fewer fields
 * than the format has are left out.
 */
export const parseNodes = (reply: string, redact: Redact) =>
  reply.split('\n').flatMap((line) => {
    const fields = line.trim().split(' ')
    const [id, address, flags, primary] = fields
    if (id === undefined || address === undefined || flags === undefined || primary === undefined) return []
    const ranges = fields.slice(fieldsBeforeSlots)
    return {
      id,
      /** `ip:port`. */
      address: sanitize(redact(address.split(/[@,]/, 1)[0] ?? ''), 80),
      /** `myself`, `master`, `slave`, `fail?` (this node does not reach it), `fail` (most primaries do not), `noaddr`. */
      flags: flags.split(','),
      /** The id of its primary; `-` for a primary. */
      primary,
      /** Whether it serves slots. */
      serves: ranges.some((range) => !range.startsWith('[')),
      /** Slots between two nodes, such as `[12->-<id>]`. A node lists only its own. */
      open: ranges.filter((range) => range.startsWith('[')),
    }
  })

/** The nodes that the server knows. Undefined without a cluster. */
const nodesOf = sharedRead(
  'cluster nodes',
  'Every node of the cluster is up, as this one sees it; omitted without a cluster',
  async (redis: RedisConnection, context): Promise<readonly ClusterNode[] | undefined> => {
    const { row } = await info(redis, {}, context)
    if (!isClusterNode(row)) return undefined
    context.step('cluster nodes')
    return parseNodes(textOf(await redis.ask('CLUSTER', 'NODES')), redis.redact)
  },
)

/** The parts that the checks of nodes have in common. */
const ofNodes = {
  depth: 'Standard',
  privilege: 'ACL SETUSER <account> +info +cluster|nodes',
  observe: nodesOf,
} as const

/** Why a node does not work, or undefined. */
function whyDown({ flags }: ClusterNode): string | undefined {
  if (flags.includes('fail')) return 'has failed'
  if (flags.includes('noaddr')) return 'has no known address'
  return flags.includes('fail?') ? 'does not answer' : undefined
}

/** Maximum number of nodes that a message names; the details have more. */
const namesInMessage = 3
const namesInDetails = 20
const firstOf = (all: readonly string[]): string => {
  const more = all.length - namesInMessage
  return `${all.slice(0, namesInMessage).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

export const clusterNodes = onRedis({
  ...ofNodes,
  results: { 'cluster nodes': 'Every node of the cluster is up, as this one sees it; omitted without a cluster' },
  evaluate: (nodes): Result<'cluster nodes'> | [] => {
    if (!nodes) return []
    const check = 'cluster nodes'
    if (nodes.length === 0) return notChecked(check, 'missing', 'the server lists no nodes, not even itself')
    const down = nodes.flatMap((node) => {
      const why = whyDown(node)
      return why === undefined ? [] : [`${node.address} ${why}`]
    })
    const measurement = { value: nodes.length - down.length, unit: 'count' } as const
    if (down.length === 0) return ok(check, count(nodes.length, 'node is up', 'nodes are up'), { measurement })
    const message = `${down.length} of ${count(nodes.length, 'node')} down: ${firstOf(down)}`
    const forget = 'next: start it again, or remove it from the cluster (redis-cli --cluster del-node)'
    return warn(check, message, { details: [...down.slice(0, namesInDetails), forget], measurement })
  },
})

/** `slot 12 is migrating`, from `[12->-<id>]`; `[12-<-<id>]` is the other side. */
const openSlot = (range: string): string => {
  const slot = /^\[(\d{1,5})-/.exec(range)?.[1] ?? '?'
  return `slot ${slot} is ${range.includes('->-') ? 'migrating' : 'being imported'}`
}

export const openSlots = onRedis({
  ...ofNodes,
  results: { 'open slots': 'This node is neither giving nor taking a slot; omitted without a cluster' },
  evaluate: (nodes): Result<'open slots'> | [] => {
    if (!nodes) return []
    const check = 'open slots'
    const open = nodes.flatMap((node) => node.open).map(openSlot)
    const measurement = { value: open.length, unit: 'count' } as const
    if (open.length === 0) return ok(check, 'no open slots', { measurement })
    const are = count(open.length, 'slot is open', 'slots are open')
    const consequence = 'clients are redirected for each of their keys until the move ends'
    const details = [...open.slice(0, namesInDetails), 'next: redis-cli --cluster fix, if nobody is moving slots now']
    return warn(check, `${are} (${firstOf(open)}): ${consequence}`, { details, measurement })
  },
})

export const clusterReplicas = onRedis({
  ...ofNodes,
  results: {
    'cluster replicas':
      'Each primary of the cluster that serves slots has a replica that is up, or `replicas` of them; omitted without a cluster and in a cluster of one node',
  },
  settings: { replicas: replicasSetting },
  evaluate: (nodes, { replicas: min = 1 }): Result<'cluster replicas'> | [] => {
    if (!nodes || nodes.length < 2) return []
    const check = 'cluster replicas'
    // The check `cluster` reports the slots of a primary that has failed.
    const primaries = nodes.filter((node) => node.serves && whyDown(node) === undefined)
    const up = Map.groupBy(
      nodes.filter((node) => whyDown(node) === undefined),
      ({ primary }) => primary,
    )
    const replicasOf = ({ id }: ClusterNode): number => up.get(id)?.length ?? 0
    const lacking = primaries.filter((node) => replicasOf(node) < min)
    const fewest = Math.min(...primaries.map(replicasOf))
    const measurement = { value: fewest, unit: 'count', warn: min, bound: 'atLeast' } as const
    if (primaries.length === 0) return []
    const of = count(primaries.length, 'primary', 'primaries')
    const replicas = min === 1 ? 'replica' : `${min} replicas`
    if (min === 0) return ok(check, `${of}, which need no replica`, { measurement })
    if (lacking.length === 0) return ok(check, `${of} with ${count(fewest, 'replica')} or more each`, { measurement })
    const has = `${lacking.length} of ${of} without ${replicas} that ${min === 1 ? 'is' : 'are'} up`
    const addresses = lacking.map(({ address }) => address)
    const consequence = 'if it fails, nobody serves its slots'
    return warn(check, `${has} (${firstOf(addresses)}): ${consequence}`, {
      details: addresses.slice(0, namesInDetails),
      measurement,
    })
  },
})

/** In the order of their results. */
export const clusterChecks = [cluster, clusterNodes, openSlots, clusterReplicas]
