import { figure, type Row, text } from '../../database/index.ts'
import { about, atLeast, atMost, fail, ok, type Result, warn } from '../../engine/index.ts'
import { showBytes } from '../../format.ts'
import { count, quoted } from '../../net/text.ts'
import { evaluateOldest, typeNames } from './judge-oldest.ts'
import { evaluateLag, evaluateReplicaLink, evaluateReplicas } from './judge-replication.ts'
import type { Cluster, Info, Pings, Queue, RedisLook } from './look.ts'
import type { RedisSettings } from './settings.ts'

/** Judges what one question saw. */
export function evaluateLook(seen: RedisLook, settings: RedisSettings): Result | readonly Result[] {
  switch (seen.see) {
    case 'info':
      return evaluateInfo(seen, settings)
    case 'queue':
      return about(seen.key, evaluateQueue(seen))
    case 'oldest':
      return about(seen.key, evaluateOldest(seen))
    case 'cluster':
      return evaluateCluster(seen)
    case 'pings':
      return evaluatePings(seen, settings)
    case 'round trip': {
      const what = 'a key was written, read and deleted in'
      return atMost({ check: 'round trip', what, value: seen.ms, unit: 'duration', threshold: settings.latency })
    }
    case 'left out':
      return ok(seen.check, `left out: ${seen.why}`)
  }
}

function evaluateInfo({ row, advanced, date }: Info, settings: RedisSettings): readonly Result[] {
  const primary = text(row, 'role') === 'master'
  return [
    evaluateRole(row, primary, settings.role),
    ...(primary ? [] : [evaluateReplicaLink(row)]),
    evaluateMemory(row, settings),
    ...evaluateClients(row, settings),
    evaluatePersistence(row),
    atLeast({
      check: 'restarted',
      what: 'up for',
      value: (figure(row, 'uptime_in_seconds') ?? 0) * 1_000,
      unit: 'duration',
      threshold: settings.restarted,
    }),
    ...(advanced ? [...(primary ? evaluateReplicas(row, settings) : evaluateLag(row, settings))] : []),
    ...(advanced ? evaluateLastSave(row, date, settings) : []),
  ]
}

function evaluateRole(row: Row, primary: boolean, wanted: RedisSettings['role']): Result {
  const source = `${text(row, 'master_host', 80)}:${text(row, 'master_port')}`
  const is = primary
    ? `a primary of ${count(figure(row, 'connected_slaves') ?? 0, 'replica')}`
    : `a replica of ${source}`
  if (wanted === 'any' || (wanted === 'primary') === primary) return ok('role', is)
  const swapped = primary ? 'was it promoted?' : 'was another promoted?'
  return fail('role', 'data', `is ${is}, and should be a ${wanted}: ${swapped}`)
}

function evaluateMemory(row: Row, settings: RedisSettings): Result {
  const used = (figure(row, 'used_memory') ?? 0) - (figure(row, 'mem_not_counted_for_evict') ?? 0)
  const most = figure(row, 'maxmemory') ?? 0
  if (most === 0)
    return ok('memory', `${showBytes(used)} used, without a limit (maxmemory 0)`, {
      measurement: { value: used, unit: 'bytes' },
    })
  const policy = text(row, 'maxmemory_policy')
  const what = `${showBytes(used)} of ${showBytes(most)} used (${policy || 'unknown policy'}):`
  // A cache is meant to be full.
  const threshold = policy.startsWith('allkeys-') ? {} : settings.memory
  return atMost({ check: 'memory', what, value: (used / most) * 100, unit: 'percent', threshold })
}

function evaluateClients(row: Row, settings: RedisSettings): readonly Result[] {
  const connected = figure(row, 'connected_clients') ?? 0
  const most = figure(row, 'maxclients')
  const blocked = figure(row, 'blocked_clients') ?? 0
  const rejected = figure(row, 'rejected_connections') ?? 0
  const tried = rejected + (figure(row, 'total_connections_received') ?? 0)
  const evicted = figure(row, 'evicted_keys') ?? 0
  const told = blocked > 0 ? `, ${blocked} of them blocked` : ''
  return [
    most === undefined || most === 0
      ? ok('clients', `${count(connected, 'client')}${told}; the server tells no maxclients`)
      : atMost({
          check: 'clients',
          what: `${connected} of ${most} clients${told}:`,
          value: (connected / most) * 100,
          unit: 'percent',
          threshold: settings.clients,
        }),
    atMost({
      check: 'rejected',
      what: `${count(rejected, 'connection')} of ${tried} rejected since the start:`,
      value: tried === 0 ? 0 : (rejected / tried) * 100,
      unit: 'percent',
      threshold: settings.rejected,
    }),
    ...(settings.blocked
      ? [
          atMost({
            check: 'blocked',
            what: 'blocked clients:',
            value: blocked,
            unit: 'count',
            threshold: settings.blocked,
          }),
        ]
      : []),
    ...(settings.evicted
      ? [
          atMost({
            check: 'evicted',
            what: 'keys evicted since the start:',
            value: evicted,
            unit: 'count',
            threshold: settings.evicted,
          }),
        ]
      : []),
  ]
}

function evaluatePersistence(row: Row): Result {
  const aof = figure(row, 'aof_enabled') === 1
  const unsaved = figure(row, 'rdb_changes_since_last_save') ?? 0
  if (text(row, 'rdb_last_bgsave_status') === 'err') {
    const stops = 'the server may refuse writes for it (stop-writes-on-bgsave-error)'
    return fail(
      'persistence',
      'data',
      `the last save to disk failed, ${count(unsaved, 'change is', 'changes are')} unsaved: ${stops}`,
    )
  }
  if (aof && text(row, 'aof_last_write_status') === 'err') {
    return fail('persistence', 'data', 'the last write to the append-only file failed: look at its disk')
  }
  if (aof && text(row, 'aof_last_bgrewrite_status') === 'err') {
    return warn('persistence', 'the last rewrite of the append-only file failed: it grows until one succeeds')
  }
  return ok('persistence', `${count(unsaved, 'change')} since the last save${aof ? ', and an append-only file' : ''}`)
}

function evaluateLastSave(row: Row, date: Date, { lastSave }: RedisSettings): readonly Result[] {
  const saved = figure(row, 'rdb_last_save_time')
  if (!lastSave || saved === undefined) return []
  const changes = figure(row, 'rdb_changes_since_last_save') ?? 0
  if (changes === 0) return [ok('last save', 'nothing has changed since the last save')]
  const what = `${count(changes, 'change waits', 'changes wait')}, the last save was`
  const value = Math.max(0, date.getTime() - saved * 1_000)
  return [atMost({ check: 'last save', what, value, unit: 'duration', threshold: lastSave })]
}

function evaluateQueue({ key, type, length, group, threshold }: Queue): Result {
  const of = group === undefined ? quoted(key, 80) : `${quoted(key, 80)} for the group ${quoted(group, 64)}`
  if (length === undefined) {
    return warn('queue', `the server does not tell how many items of ${of} wait (a group's lag is known since Redis 7)`)
  }
  const what = `${type === 'none' ? 'no such key, so an empty queue' : (typeNames[type] ?? type)} ${of}, items waiting:`
  return atMost({ check: 'queue', what, value: length, unit: 'count', threshold })
}

function evaluateCluster({ row }: Cluster): Result {
  const state = text(row, 'cluster_state')
  const assigned = figure(row, 'cluster_slots_assigned') ?? 0
  const failed = figure(row, 'cluster_slots_fail') ?? 0
  const doubtful = figure(row, 'cluster_slots_pfail') ?? 0
  const told = `${count(figure(row, 'cluster_known_nodes') ?? 0, 'node')}, ${assigned} of 16384 slots assigned`
  if (state !== 'ok') return fail('cluster', 'data', `the cluster is ${quoted(state, 32)}: ${told}, ${failed} failed`)
  if (doubtful + failed > 0) return warn('cluster', `${told}, ${doubtful + failed} on nodes that do not answer`)
  return ok('cluster', told)
}

function evaluatePings({ ms }: Pings, settings: RedisSettings): Result {
  const what = `slowest of ${ms.length} PINGs took`
  return atMost({ check: 'latency', what, value: Math.max(...ms), unit: 'duration', threshold: settings.pings })
}
