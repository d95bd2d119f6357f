import { randomUUID } from 'node:crypto'
import { ProbeError } from '../../../base/probe-error.ts'
import { figure } from '../../database/index.ts'
import { atMost, certificateCheck, certificateSetting, fail, ok, warn } from '../../engine/index.ts'
import { connectLatency, limitOnRedis, onRedis, type RedisConnection } from './connection.ts'
import { acceptsWrites, info, parseInfo } from './info.ts'
import { queuesSetting } from './queues.ts'
import { isError, textOf } from './resp.ts'

/** A server that answers PING with one of these errors still answers other commands. */
const answersMore = /^(MISCONF|MASTERDOWN) /

export const ping = onRedis({
  depth: 'Basic',
  provesNoReading: true,
  results: {
    ping: 'The server answers PING in time; reports a server that is loading data and a replica that has lost its primary',
  },
  settings: { latency: connectLatency },
  privilege: 'ACL SETUSER <account> +ping',
  observe: async (redis, _, { now }) => {
    const since = now()
    const reply = await redis.send('PING')
    const ms = now() - since
    if (reply === 'PONG') return { ms, error: undefined }
    const { address } = redis
    if (!isError(reply)) throw new ProbeError('protocol', `${address} answered PING with something other than PONG`)
    const error = redis.meaningOf(reply.error)
    if (answersMore.test(reply.error)) return { ms, error }
    const progress = reply.error.startsWith('LOADING') ? await loadingProgress(redis) : ''
    // Ends the connection: every other check would fail for the same reason.
    throw redis.end(
      progress === '' ? error : new ProbeError(error.fault, `${error.message}; ${progress}`, error.details),
    )
  },
  evaluate: ({ ms: value, error }, { latency: threshold }) => {
    if (error) return fail('ping', error.fault, error.message, { details: error.details })
    return atMost({ check: 'ping', what: 'PING answered in', value, unit: 'duration', threshold })
  },
})

/** The progress of a server that is loading its data, in words. The server answers INFO meanwhile. */
async function loadingProgress(redis: RedisConnection): Promise<string> {
  const row = parseInfo(textOf(await redis.send('INFO', 'persistence')), redis.redact)
  const [done, left] = [figure(row, 'loading_loaded_perc'), figure(row, 'loading_eta_seconds')]
  return done === undefined ? '' : `${done} % loaded${left === undefined ? '' : `, about ${left} s left`}`
}

const allowWrites = {
  type: 'flag',
  default: false,
  doc: 'Write, read and delete a key svc:probe:…, which expires after a minute in any case',
} as const

/** Selects the database of the URL before checks read or write keys. Otherwise, they would use another database. */
export const selectDatabase = onRedis({
  depth: 'Standard',
  results: { database: 'Reported only when the server refuses the database of the url' },
  settings: { queues: queuesSetting, allowWrites },
  privilege: 'ACL SETUSER <account> +select',
  gate: true,
  applies: ({ database }) => database !== 0,
  observe: async (redis, { queues, allowWrites: writes }, { step }) => {
    step('database')
    const reply = await redis.send('SELECT', String(redis.database))
    if (!isError(reply)) return
    // An account that reads and writes no key need not be able to select a database.
    if (reply.error.startsWith('NOPERM') && queues === undefined && !writes) return
    throw redis.meaningOf(reply.error)
  },
  evaluate: () => [],
})

const pingCount = 10

export const latency = limitOnRedis({
  depth: 'Advanced',
  provesNoReading: true,
  check: 'latency',
  proves: 'The server answers ten PINGs quickly',
  setting: 'pings',
  unit: 'duration',
  default: { warn: 100, limit: 1_000 },
  doc: 'Maximum response time of the slowest of ten further PINGs',
  privilege: 'ACL SETUSER <account> +ping',
  observe: async (redis, _, { now }) => {
    const ms: number[] = []
    while (ms.length < pingCount) {
      const since = now()
      const reply = await redis.send('PING')
      ms.push(now() - since)
      if (reply === 'PONG') continue
      if (!isError(reply))
        throw new ProbeError('protocol', `${redis.address} answered PING with something other than PONG`)
      // `ping` reports the other errors, with which the server still answers.
      if (!answersMore.test(reply.error)) throw redis.meaningOf(reply.error)
    }
    return { ms }
  },
  evaluate: ({ ms }, compare) => {
    const what = `slowest of ${ms.length} PINGs took`
    return compare({ what, value: Math.max(...ms) })
  },
})

/** Milliseconds until the probe's key expires, even if this process dies. */
const expiresMs = 60_000
/** In a cluster, the name of a key decides its node. The check tries up to this many names to find one of this node. */
const maxNames = 32

/** Skips replicas. */
export const roundTrip = onRedis({
  depth: 'Advanced',
  results: { 'round trip': 'A test key can be written, read and deleted (`allowWrites`)' },
  settings: { allowWrites, latency: connectLatency },
  applies: (_, settings) => settings.allowWrites,
  privilege: 'ACL SETUSER <account> ~svc:probe:* +info +select +set +get +del',
  observe: async (redis, settings, context) => {
    const { row } = await info(redis, settings, context)
    if (!acceptsWrites(row)) return { skipped: 'replica' as const }
    for (let tries = 0; tries < maxNames; tries += 1) {
      const key = `svc:probe:${randomUUID()}`
      const value = randomUUID()
      const since = context.now()
      const reply = await redis.send('SET', key, value, 'NX', 'PX', String(expiresMs))
      if (isError(reply) && /^(MOVED|ASK) /.test(reply.error)) continue
      if (isError(reply)) throw redis.meaningOf(reply.error)
      if (reply !== 'OK') throw new ProbeError('data', 'the server did not write the test key')
      try {
        if ((await redis.ask('GET', key)) !== value)
          throw new ProbeError('data', 'the value read differs from the value written')
      } finally {
        if (redis.usable) await redis.ask('DEL', key)
      }
      return { ms: context.now() - since }
    }
    return { skipped: 'no key' as const }
  },
  evaluate: ({ skipped, ms: value }, { latency: threshold }) => {
    if (skipped === 'replica') return ok('round trip', 'skipped: a replica accepts no writes')
    if (skipped === 'no key') {
      return warn('round trip', `not checked: none of ${maxNames} key names belongs to this node of the cluster`)
    }
    const what = 'test key written, read and deleted in'
    return atMost({ check: 'round trip', what, value, unit: 'duration', threshold })
  },
})

export const certificate = certificateCheck({
  depth: 'Advanced',
  setting: {
    ...certificateSetting,
    doc: 'Minimum remaining validity of every certificate in the chain, in days (rediss)',
  },
  scheme: 'rediss',
  chain: ({ chain }: RedisConnection) => chain,
})
