import { type Clock, evaluateClock } from '../../database/index.ts'
import {
  atAddress,
  atLeast,
  atMost,
  evaluateProblem,
  evaluateUnreached,
  fail,
  ok,
  type Result,
  warn,
} from '../../engine/index.ts'
import { show } from '../../format.ts'
import { count, said } from '../../net/text.ts'
import type { Connections, Hidden, Lag, Load, Member, Members, Oplog } from './look.ts'
import type { Node } from './node.ts'
import type { RoundTrip } from './round-trip.ts'
import type { MongoSettings } from './settings.ts'
import type { MongoVisit } from './visit.ts'

export type MongoSeen = Node | Members | Connections | Lag | Oplog | Load | RoundTrip | Hidden | Clock

export function evaluateMongo(seen: MongoVisit<MongoSeen>, settings: MongoSettings): Result | readonly Result[] {
  const timed = (check: string, what: string, value: number, address: string): Result =>
    atMost({ check, what, value, unit: 'duration', threshold: settings.latency, address })
  switch (seen.see) {
    case 'connected': {
      const done = seen.as.startsWith('as ') ? 'signed in at' : 'connected to'
      return timed('connect', `${done} ${seen.address} ${seen.as} in`, seen.ms, seen.address)
    }
    case 'hello':
      return timed('hello', `hello answered by ${a(called(seen.node))} in`, seen.ms, seen.address)
    case 'ping':
      return timed('ping', 'ping answered in', seen.ms, seen.address)
    case 'look':
      return atAddress(seen.address, evaluateSeen(seen.look, settings))
    case 'problem':
      return evaluateProblem(seen)
    case 'unreached':
      return evaluateUnreached(seen)
  }
}

function evaluateSeen(seen: MongoSeen, settings: MongoSettings): Result | readonly Result[] {
  switch (seen.see) {
    case 'node':
      return evaluateNode(seen, settings)
    case 'members':
      return evaluateMembers(seen)
    case 'connections':
      return evaluateConnections(seen, settings)
    case 'lag':
      return evaluateLag(seen, settings)
    case 'oplog':
      return evaluateOplog(seen, settings)
    case 'load':
      return evaluateLoad(seen, settings)
    case 'round trip':
      return evaluateRoundTrip(seen, settings)
    case 'clock':
      return evaluateClock(seen, settings.clock)
    case 'hidden':
      return evaluateHidden(seen, settings)
  }
}

const a = (what: string): string => `${/^[aeiou]/.test(what) ? 'an' : 'a'} ${what}`
const called = ({ role, set }: Node): string => {
  if (set === '') return role === 'other' ? 'node that waits for its replica set to be initiated' : role
  return role === 'other' ? `node of ${set} that serves nobody` : `${role} of ${set}`
}

function evaluateNode(node: Node, settings: MongoSettings): readonly Result[] {
  const { role, set, primary } = node
  const wanted = settings.role
  const results: Result[] = []
  if (settings.replicaSet !== undefined && settings.replicaSet !== set) {
    const is = set === '' ? 'it belongs to none' : `it belongs to ${set}`
    results.push(fail('role', 'data', `should belong to the replica set ${settings.replicaSet}: ${is}`))
  } else if (wanted !== 'any' && wanted !== role) {
    results.push(fail('role', 'data', `should be ${a(wanted)}, and is ${a(called(node))}`))
  } else if (role === 'other') {
    const details = ['it may be starting, catching up, rolling back or removed from its set: rs.status() tells']
    results.push(fail('role', 'data', `is ${a(called(node))}`, { details }))
  } else results.push(ok('role', `is ${a(called(node))}`))
  if (set === '') return results
  const known = role === 'primary' ? 'this node is' : primary === '' ? undefined : `${primary} is`
  return known === undefined
    ? [...results, fail('primary', 'data', `${set} has no primary that this node knows: nothing can be written`)]
    : [...results, ok('primary', `${known} the primary of ${set}`)]
}

/** Primary, secondary, arbiter. */
const sound = new Set([1, 2, 7])
/** Starting, recovering, the first copy: on their way to be sound. */
const passing = new Set([0, 3, 5])

function evaluateMembers({ set, members }: Members): Result {
  const bad = members.filter(({ healthy, state }) => !healthy || !sound.has(state))
  if (bad.length === 0) return ok('members', `${count(members.length, 'member')} of ${set} healthy`)
  const told = ({ name, stateName, healthy, told: why }: Member): string =>
    `${name} is ${healthy ? stateName : `not reachable (${stateName})`}${why === '' ? '' : `: ${why}`}`
  const message = `${bad.length} of ${count(members.length, 'member')} of ${set} not healthy: ${bad[0] ? told(bad[0]) : ''}`
  const details = bad.slice(1).map(told)
  return bad.every(({ healthy, state }) => healthy && passing.has(state))
    ? warn('members', message, { details })
    : fail('members', 'data', message, { details })
}

function evaluateConnections({ current, available }: Connections, settings: MongoSettings): Result {
  const most = current + available
  return atMost({
    check: 'connections',
    what: `${current} of ${most} connections:`,
    value: most > 0 ? (current / most) * 100 : 100,
    unit: 'percent',
    threshold: settings.connections,
  })
}

function evaluateLag({ led, behind }: Lag, settings: MongoSettings): Result {
  if (!led) return warn('replication lag', 'there is no primary to be behind of')
  const sorted = behind
    .map((one) => ({ ...one, late: Math.max(0, one.ms - one.delayMs) }))
    .sort((a, b) => b.late - a.late)
  const [worst] = sorted
  if (!worst) return ok('replication lag', 'no secondary follows')
  const delayed = worst.delayMs > 0 ? ` beyond its delay of ${show(worst.delayMs, 'duration')}` : ''
  return atMost({
    check: 'replication lag',
    what: `${worst.name} is behind${delayed} by`,
    value: worst.late,
    unit: 'duration',
    threshold: settings.replicationLag,
  })
}

/** Percent: until then the window of an oplog still grows, and says nothing. */
const filled = 90

function evaluateOplog({ windowMs, full }: Oplog, settings: MongoSettings): Result {
  if (full !== undefined && full < filled) {
    return ok(
      'oplog window',
      `reaches back ${show(windowMs, 'duration')}, and is full to ${show(full, 'percent')} only`,
    )
  }
  return atLeast({
    check: 'oplog window',
    what: 'reaches back',
    value: windowMs,
    unit: 'duration',
    threshold: settings.oplogWindow,
  })
}

function evaluateLoad({ queued, cache }: Load, settings: MongoSettings): readonly Result[] {
  const results: Result[] = []
  if (queued !== undefined) {
    const threshold = settings.queues
    const what = 'operations that wait for a lock:'
    results.push(atMost({ check: 'queues', what, value: queued, unit: 'count', threshold }))
  }
  if (cache) {
    const share = (bytes: number): number => (bytes / cache.most) * 100
    const of = `of ${show(cache.most, 'bytes')}`
    const unit = 'percent'
    results.push(
      atMost({
        check: 'cache',
        what: `cache ${of} full to`,
        value: share(cache.used),
        unit,
        threshold: settings.cache,
      }),
      atMost({
        check: 'cache dirty',
        what: `cache ${of} not written yet:`,
        value: share(cache.dirty),
        unit,
        threshold: settings.cacheDirty,
      }),
    )
  }
  return results
}

const evaluateRoundTrip = ({ ms, swept }: RoundTrip, settings: MongoSettings): Result =>
  atMost({
    check: 'write concern',
    what: 'a majority acknowledged a write in',
    value: ms,
    unit: 'duration',
    threshold: settings.writeConcern,
    details: swept > 0 ? [`swept ${count(swept, 'document')} that earlier runs left behind`] : undefined,
  })

/** Neither a failure of the database nor a silent green. */
function evaluateHidden({ check, told, role }: Hidden, { url, probeDatabase }: MongoSettings): Result {
  const user = said(decodeURIComponent(new URL(url).username), 64)
  const message = `not looked at: ${told}`
  if (role === undefined) return warn(check, message)
  if (user === '') return warn(check, message, { details: ['next: give the url a user, and set password:'] })
  const database = role === 'read' ? 'local' : role === 'readWrite' ? probeDatabase : 'admin'
  const grant = `db.grantRolesToUser(${JSON.stringify(user)}, [{role: "${role}", db: "${database}"}])`
  return warn(check, message, { details: [grant] })
}
