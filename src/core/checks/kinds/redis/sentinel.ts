import { count } from '../../../base/format.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import { figure, type Row, text } from '../../database/index.ts'
import { about, fail, notChecked, ok, type Result, sharedRead, warn, withThreshold } from '../../engine/index.ts'
import { onRedis, type RedisConnection } from './connection.ts'
import { info, isSentinel, replicasSetting } from './info.ts'
import { isError, listOf, type RedisReply, textOf } from './resp.ts'

/** A Sentinel answers lists of names and values. The server chooses the names. */
function rowOf(reply: RedisReply, { redact }: RedisConnection): Row {
  const list = listOf(reply)
  const row = Object.create(null) as Record<string, unknown>
  for (const [index, name] of list.entries()) {
    if (index % 2 === 0) row[textOf(name)] = redact(textOf(list[index + 1]))
  }
  return row
}

const rowsOf = (reply: RedisReply, redis: RedisConnection): readonly Row[] =>
  listOf(reply).map((one) => rowOf(one, redis))

/** A primary that a Sentinel monitors. */
type Master = NonNullable<Awaited<ReturnType<typeof masters>>>[number]

const flagsOf = (row: Row): readonly string[] => text(row, 'flags', 200).split(',').filter(Boolean)
const addressOf = (row: Row): string => `${text(row, 'ip')}:${text(row, 'port')}`

/** The primaries that a Sentinel monitors. Undefined for any other server. */
const masters = sharedRead(
  'sentinel masters',
  'Reported only when a Sentinel does not answer SENTINEL MASTERS, such as for lack of permission',
  async (redis: RedisConnection, context) => {
    const { row } = await info(redis, {}, context)
    redis.isSentinel = isSentinel(row)
    if (!redis.isSentinel) return undefined
    context.step('sentinel masters')
    return rowsOf(await redis.ask('SENTINEL', 'MASTERS'), redis).map((one) => ({
      name: text(one, 'name', 128),
      address: addressOf(one),
      /**
       * The state that the Sentinel reports for it: `master`, `s_down`, `o_down`, `disconnected`,
       * `failover_in_progress`.
       */
      flags: flagsOf(one),
      otherSentinels: figure(one, 'num-other-sentinels'),
      /**
       * True after a jump of the clock or a long pause of the Sentinel. For 30 s, it then neither updates the flags nor
       * starts a failover.
       */
      tilted: figure(row, 'sentinel_tilt') === 1,
    }))
  },
)

export const sentinelMaster = onRedis({
  depth: 'Standard',
  results: { 'sentinel master': 'A Sentinel reaches each primary that it monitors; omitted for any other server' },
  privilege: 'ACL SETUSER <account> +info +sentinel|masters',
  observe: masters,
  evaluate: (all): readonly Result<'sentinel master'>[] => {
    if (!all) return []
    if (all.length === 0) return [fail('sentinel master', 'data', 'this Sentinel monitors no primary')]
    return all.flatMap((master) => about(master.name, evaluateMaster(master)))
  },
})

function evaluateMaster({ name, address, flags, otherSentinels, tilted }: Master): Result<'sentinel master'> {
  const check = 'sentinel master'
  const is = `${name} (${address})`
  if (!flags.includes('master')) return notChecked(check, 'missing', `the state of ${is} is not reported`)
  if (flags.includes('o_down')) return fail(check, 'data', `${is} is down, as enough Sentinels agree`)
  if (flags.includes('s_down')) return fail(check, 'data', `this Sentinel does not reach ${is}`)
  if (tilted) return warn(check, `this Sentinel is in TILT mode: it would not notice that ${is} is down`)
  if (flags.includes('failover_in_progress')) return warn(check, `a failover of ${is} is in progress`)
  if (flags.includes('disconnected')) return warn(check, `this Sentinel has no connection to ${is}`)
  const others = otherSentinels === undefined ? '' : `, monitored with ${count(otherSentinels, 'other Sentinel')}`
  return ok(check, `${is} is up${others}`, { facts: { primary: address } })
}

export const sentinelQuorum = onRedis({
  depth: 'Standard',
  results: {
    'sentinel quorum': 'Enough Sentinels can be reached to agree on a failover; omitted for any other server',
  },
  privilege: 'ACL SETUSER <account> +info +sentinel|masters +sentinel|ckquorum',
  async *observe(redis, settings, context) {
    for (const { name } of (await masters(redis, settings, context)) ?? []) {
      context.step('sentinel quorum')
      const reply = await redis.send('SENTINEL', 'CKQUORUM', name)
      const lost = isError(reply) && reply.error.startsWith('NOQUORUM ')
      if (isError(reply) && !lost) throw redis.meaningOf(reply.error)
      yield { name, lost, words: sanitize(redis.redact(isError(reply) ? reply.error : textOf(reply)), 200) }
    }
  },
  evaluate: ({ name, lost, words }): readonly Result<'sentinel quorum'>[] => {
    const check = 'sentinel quorum'
    if (lost) {
      const consequence = 'no failover is possible'
      const details = [words]
      return about(name, fail(check, 'data', `${name}: too few Sentinels can be reached: ${consequence}`, { details }))
    }
    const usable = /^OK (\d{1,9}) usable/.exec(words)?.[1]
    if (usable === undefined) return about(name, notChecked(check, 'missing', `the quorum of ${name} is not reported`))
    return about(name, ok(check, `${name}: ${count(Number(usable), 'Sentinel')} can agree on a failover`))
  },
})

/** A replica as a Sentinel reports it. `link` is `ok` or `err`. */
type SentinelReplica = {
  readonly address: string
  readonly flags: readonly string[]
  readonly link: string
  /** Whether it may become the primary: not with replica-priority 0. */
  readonly isCandidate: boolean
}

/** Why a replica could not take over, or undefined. */
function whyUnfit({ flags, link }: SentinelReplica): string | undefined {
  if (flags.some((flag) => /^[so]_down$/.test(flag))) return 'is down'
  if (flags.includes('disconnected')) return 'is not reached by this Sentinel'
  return link === 'ok' ? undefined : `has a link to its primary in the state ${quote(link, 32)}`
}

export const sentinelReplicas = onRedis({
  depth: 'Standard',
  results: { 'sentinel replicas': 'A replica can take over from each primary; omitted for any other server' },
  settings: { replicas: replicasSetting },
  privilege: 'ACL SETUSER <account> +info +sentinel|masters +sentinel|replicas',
  async *observe(redis, settings, context) {
    for (const { name } of (await masters(redis, settings, context)) ?? []) {
      context.step('sentinel replicas')
      const replicas = rowsOf(await redis.ask('SENTINEL', 'REPLICAS', name), redis).map(
        (row): SentinelReplica => ({
          address: addressOf(row),
          flags: flagsOf(row),
          link: text(row, 'master-link-status'),
          isCandidate: !/^0$/.test(text(row, 'slave-priority')),
        }),
      )
      yield { name, replicas }
    }
  },
  evaluate: ({ name, replicas }, { replicas: min }): readonly Result<'sentinel replicas'>[] =>
    about(name, evaluateReplicas(name, replicas, min)),
})

function evaluateReplicas(
  name: string,
  replicas: readonly SentinelReplica[],
  min: number | undefined,
): Result<'sentinel replicas'> {
  const check = 'sentinel replicas'
  const unfit = replicas.flatMap((one) => {
    const why = whyUnfit(one)
    return why === undefined ? [] : [`${one.address} ${why}`]
  })
  // Beside one that can take over, a replica may have another purpose.
  const spares = replicas.filter((one) => !one.isCandidate && whyUnfit(one) === undefined)
  const fit = replicas.length - unfit.length - (min === undefined ? spares.length : 0)
  const message = `${name}: ${fit} of ${count(replicas.length, 'replica')} can take over`
  if (min !== undefined) {
    const measurement = { value: fit, unit: 'count', limit: min, bound: 'atLeast' } as const
    const more = { details: unfit, measurement }
    const against = withThreshold(message, { limit: min }, 'count', 'atLeast')
    return fit < min ? fail(check, 'data', against, more) : ok(check, against, more)
  }
  if (fit === 0 && replicas.length > 0) {
    const excluded = spares.map(({ address }) => `${address} may not become the primary (replica-priority 0)`)
    return fail(check, 'data', message, { details: [...unfit, ...excluded] })
  }
  if (replicas.length === 0) return warn(check, `${name} has no replica: no failover is possible`)
  return unfit.length > 0 ? warn(check, message, { details: unfit }) : ok(check, message)
}
