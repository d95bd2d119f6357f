import { setTimeout as pause } from 'node:timers/promises'
import { type DatabaseConnection, figure, onDatabase, text } from '../../database/index.ts'
import { type CheckContext, fail, ok, type Result } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { milliseconds } from './checks.ts'
import { type Channel, readChannels, replicaStatus } from './replication.ts'

/**
 * Periods without a heartbeat or a change after which a source counts as silent. Replication itself connects again after
 * two of them by default, and until then both threads run and the lag is 0.
 */
const tolerance = 1.5
/** Milliseconds that a busy machine may deliver a heartbeat late. */
const lateMs = 1_000
/** Milliseconds: the longest period whose heartbeat is waited for in a run. */
const maxWaitedMs = 3_000
const againMs = 100
/** Milliseconds between two stored readings of what a replica has received. */
const readingMs = 5_000

/** What a replica knows of one source. */
type SignOfLife = {
  readonly name: string
  /** Milliseconds between two heartbeats; 0 or undefined where the source sends none. */
  readonly periodMs: number | undefined
  /** Milliseconds since the source has sent anything. Undefined where it is not known. */
  readonly silentMs: number | undefined
}

const limitOf = (periodMs: number): number => periodMs * tolerance + lateMs

export const sourceHeartbeat = onDatabase({
  depth: 'Advanced',
  results: {
    'source heartbeat':
      'The source of a replica has sent a change or a heartbeat within 1.5 of its periods; omitted elsewhere. On MariaDB, a period above 3 s needs the readings of earlier runs, as in svc serve',
  },
  settings: {},
  privilege: 'on MySQL: GRANT SELECT ON performance_schema.* TO <account>',
  observe: async (connection, settings, context) => {
    const { channels } = await replicaStatus(connection, settings, context)
    context.step('source heartbeat')
    // The check `replication` reports a source that is not connected.
    const connected = channels.filter(({ receives }) => receives === 'Yes')
    if (connected.length === 0) return []
    const hasCounters = connected.some(({ received }) => received !== undefined)
    return hasCounters ? countedHere(connection, connected, context) : timedByServer(connection)
  },
  evaluate: (signs): Result<'source heartbeat'> | [] => {
    const check = 'source heartbeat'
    const [longest] = signs.toSorted((a, b) => lateness(b) - lateness(a))
    if (!longest) return []
    const { name, periodMs, silentMs } = longest
    const source = name === '' ? 'the source' : `the source of ${name}`
    if (!periodMs) return ok(check, `${source} sends no heartbeats: the period is 0`)
    const every = `a heartbeat every ${showDuration(periodMs)}`
    if (silentMs === undefined) return ok(check, `${source} sends ${every}`)
    const measurement = { value: silentMs, unit: 'milliseconds', limit: limitOf(periodMs), bound: 'atMost' } as const
    const message = `${source} has sent nothing for ${showDuration(silentMs)}, and sends ${every}`
    if (silentMs <= limitOf(periodMs)) return ok(check, message, { measurement })
    const details = [
      'the lag does not grow until replication notices it, after replica_net_timeout (slave_net_timeout)',
    ]
    return fail(check, 'timeout', message, { measurement, details })
  },
})

const lateness = ({ periodMs, silentMs = 0 }: SignOfLife): number => (periodMs ? silentMs / limitOf(periodMs) : 0)

/** MySQL keeps the time of the last heartbeat. A transaction that is being received counts as a sign of life. */
async function timedByServer({ ask }: DatabaseConnection): Promise<readonly SignOfLife[]> {
  const since = (column: string): string => `TIMESTAMPDIFF(MICROSECOND, s.${column}, NOW(6)) / 1000`
  const rows = await ask(`SELECT s.channel_name AS name, c.heartbeat_interval AS period,
      ${since('last_heartbeat_timestamp')} AS heartbeat,
      ${since('last_queued_transaction_end_queue_timestamp')} AS queued,
      t.processlist_time AS running, s.queueing_transaction AS receiving
    FROM performance_schema.replication_connection_status AS s
      JOIN performance_schema.replication_connection_configuration AS c ON c.channel_name = s.channel_name
      LEFT JOIN performance_schema.threads AS t ON t.thread_id = s.thread_id
    WHERE s.service_state = 'ON' AND s.channel_name NOT LIKE 'group\\_replication\\_%'`)
  return rows.map((row) => {
    // Nothing that an earlier connection has received says anything about this one.
    const signs = [figure(row, 'heartbeat'), figure(row, 'queued'), milliseconds(figure(row, 'running'))]
    const latest = Math.min(...signs.filter((ms) => ms !== undefined))
    const isKnown = text(row, 'receiving') === '' && Number.isFinite(latest)
    return {
      name: text(row, 'name'),
      periodMs: milliseconds(figure(row, 'period')),
      silentMs: isKnown ? Math.max(0, latest) : undefined,
    }
  })
}

/** MariaDB only counts heartbeats: svc waits for the next one, or compares with what earlier runs have read. */
async function countedHere(
  connection: DatabaseConnection,
  channels: readonly Channel[],
  context: CheckContext,
): Promise<readonly SignOfLife[]> {
  const soon = channels.filter(({ heartbeatMs = 0 }) => heartbeatMs > 0 && heartbeatMs <= maxWaitedMs)
  const waited = soon.length === 0 ? new Map<string, number>() : await waitForAll(connection, soon, context)
  return await Promise.all(
    channels.map(async ({ name, heartbeatMs: periodMs, received }) => {
      const here = waited.get(name)
      if (here !== undefined || received === undefined) return { name, periodMs, silentMs: here }
      const readings = await context.history(`received ${name}`, received, readingMs)
      const changed = readings?.findLastIndex(({ value }) => value !== received) ?? -1
      const oldest = readings?.[changed + 1]
      return { name, periodMs, silentMs: oldest && context.date().getTime() - oldest.at }
    }),
  )
}

/** Milliseconds that each source was silent, by name: waits until all have sent something, or are late. */
async function waitForAll(
  { ask }: DatabaseConnection,
  channels: readonly Channel[],
  { now, msLeft }: CheckContext,
): Promise<ReadonlyMap<string, number>> {
  const since = now()
  const longest = Math.max(...channels.map(({ heartbeatMs = 0 }) => limitOf(heartbeatMs))) + 2 * againMs
  const end = since + Math.min(longest, msLeft() / 2)
  const silent = new Map<string, number>()
  const awaited = new Map(channels.map((one) => [one.name, one]))
  while (awaited.size > 0) {
    const elapsed = now() - since
    const current = new Map((await readChannels(ask)).map((one) => [one.name, one]))
    for (const [name, { received }] of awaited) {
      silent.set(name, elapsed)
      const one = current.get(name)
      // The check `replication` reports a source that is not connected any more.
      if (one?.receives !== 'Yes' || one.received !== received) awaited.delete(name)
    }
    if (elapsed >= end - since) break
    if (awaited.size > 0) await pause(againMs)
  }
  return silent
}
