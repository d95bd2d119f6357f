import { figure, type Row, text } from '../../database/index.ts'
import { atMost, fail, ok, type Result, warn } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { count } from '../../net/text.ts'
import type { RedisSettings } from './settings.ts'

/** Asked of a replica: whether its primary is connected. */
export function evaluateReplicaLink(row: Row): Result {
  const source = `${text(row, 'master_host', 80)}:${text(row, 'master_port')}`
  if (text(row, 'master_link_status') === 'up') {
    const busy = figure(row, 'master_sync_in_progress') === 1
    return busy ? warn('replica link', `receives a whole copy from ${source}`) : ok('replica link', `up, to ${source}`)
  }
  const down = figure(row, 'master_link_down_since_seconds')
  // Never connected yet: -1.
  const since = down === undefined || down < 0 ? '' : ` for ${showDuration(down * 1_000)}`
  const copying = figure(row, 'master_sync_in_progress') === 1 ? ', a whole copy is under way' : ''
  return fail('replica link', 'data', `the link to its primary ${source} is down${since}${copying}: its data are old`)
}

/** `slave0:ip=10.0.0.2,port=6379,state=online,offset=1234,lag=0` */
type Replica = { readonly at: string; readonly state: string; readonly offset: number; readonly lagMs: number }
const mostReplicas = 100

function replicasOf(row: Row): readonly Replica[] {
  return Object.keys(row)
    .filter((name) => /^slave\d+$/.test(name))
    .slice(0, mostReplicas)
    .map((name) => {
      const fields: Row = Object.fromEntries(
        text(row, name, 300)
          .split(',')
          .map((pair) => [pair.split('=', 1)[0] ?? '', pair.slice(pair.indexOf('=') + 1)]),
      )
      return {
        at: `${text(fields, 'ip')}:${text(fields, 'port')}`,
        state: text(fields, 'state'),
        offset: figure(fields, 'offset') ?? 0,
        lagMs: (figure(fields, 'lag') ?? 0) * 1_000,
      }
    })
}

/** Asked of the primary: what its replicas have confirmed. */
export function evaluateReplicas(row: Row, settings: RedisSettings): readonly Result[] {
  const all = replicasOf(row)
  const online = all.filter(({ state }) => state === 'online')
  const details = all.map(({ at, state }) => `${at} is ${state || 'in an unknown state'}`)
  const wanted = settings.replicas
  const enough: Result[] = []
  if (wanted !== undefined && online.length < wanted) {
    const told = `${count(online.length, 'replica is', 'replicas are')} online, of ${wanted} that should be`
    enough.push(
      fail('replicas', 'data', told, { details, measurement: { value: online.length, unit: 'count', limit: wanted } }),
    )
  } else if (wanted !== undefined) {
    enough.push(ok('replicas', `${count(online.length, 'replica is', 'replicas are')} online`, { details }))
  } else if (online.length < all.length) {
    enough.push(
      warn('replicas', `${all.length - online.length} of ${count(all.length, 'replica')} not online`, { details }),
    )
  }
  const [first, ...rest] = online
  if (first === undefined) return enough
  const offset = figure(row, 'master_repl_offset') ?? 0
  const late = rest.reduce((worst, one) => (one.lagMs > worst.lagMs ? one : worst), first)
  const behind = rest.reduce((worst, one) => (one.offset < worst.offset ? one : worst), first)
  return [
    ...enough,
    atMost({
      check: 'replication lag',
      what: `replica ${late.at} was last heard`,
      value: late.lagMs,
      unit: 'duration',
      threshold: settings.replicationLag,
    }),
    atMost({
      check: 'replication offset',
      what: `replica ${behind.at} is behind by`,
      value: Math.max(0, offset - behind.offset),
      unit: 'bytes',
      threshold: settings.replicationBytes,
    }),
  ]
}

/** Asked of a replica: when it last heard its primary. A link that is down is told by its own check. */
export function evaluateLag(row: Row, settings: RedisSettings): readonly Result[] {
  const silent = figure(row, 'master_last_io_seconds_ago')
  if (silent === undefined || silent < 0) return []
  return [
    atMost({
      check: 'replication lag',
      what: 'last heard its primary',
      value: silent * 1_000,
      unit: 'duration',
      threshold: settings.replicationLag,
    }),
  ]
}
