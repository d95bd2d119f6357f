import { figure, type Row, text } from '../../database/index.ts'
import { about, fail, notChecked, ok, type Result, sharedRead, warn } from '../../engine/index.ts'
import { count } from '../../net/text.ts'
import { onRedis, type RedisConnection } from './connection.ts'
import { info, isSentinel } from './info.ts'
import { listOf, type RedisReply, textOf } from './resp.ts'

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
type Master = {
  readonly name: string
  readonly address: string
  /** What the Sentinel thinks of it: `master`, `s_down`, `o_down`, `disconnected`, `failover_in_progress`. */
  readonly flags: readonly string[]
  readonly otherSentinels: number | undefined
}

const flagsOf = (row: Row): readonly string[] => text(row, 'flags', 200).split(',').filter(Boolean)
const addressOf = (row: Row): string => `${text(row, 'ip')}:${text(row, 'port')}`

/** The primaries that a Sentinel monitors. Undefined for any other server. */
const masters = sharedRead(
  'sentinel masters',
  'Reported only when a Sentinel does not answer SENTINEL MASTERS, such as for lack of permission',
  async (redis: RedisConnection, context): Promise<readonly Master[] | undefined> => {
    const { row } = await info(redis, {}, context)
    redis.isSentinel = isSentinel(row)
    if (!redis.isSentinel) return undefined
    context.step('sentinel masters')
    return rowsOf(await redis.ask('SENTINEL', 'MASTERS'), redis).map((one) => ({
      name: text(one, 'name', 128),
      address: addressOf(one),
      flags: flagsOf(one),
      otherSentinels: figure(one, 'num-other-sentinels'),
    }))
  },
)

export const sentinelMaster = onRedis({
  depth: 'Standard',
  results: { 'sentinel master': 'A Sentinel reaches each primary that it monitors; omitted for any other server' },
  settings: {},
  privilege: 'ACL SETUSER <account> +info +sentinel|masters',
  observe: masters,
  evaluate: (all): readonly Result<'sentinel master'>[] => {
    if (!all) return []
    if (all.length === 0) return [fail('sentinel master', 'data', 'this Sentinel monitors no primary')]
    return all.flatMap((master) => about(master.name, evaluateMaster(master)))
  },
})

function evaluateMaster({ name, address, flags, otherSentinels }: Master): Result<'sentinel master'> {
  const check = 'sentinel master'
  const is = `${name} (${address})`
  if (!flags.includes('master')) return notChecked(check, 'missing', `the state of ${is} is not reported`)
  if (flags.includes('o_down')) return fail(check, 'data', `${is} is down, as enough Sentinels agree`)
  if (flags.includes('s_down')) return fail(check, 'data', `this Sentinel does not reach ${is}`)
  if (flags.includes('failover_in_progress')) return warn(check, `a failover of ${is} is in progress`)
  if (flags.includes('disconnected')) return warn(check, `this Sentinel has no connection to ${is}`)
  const others = otherSentinels === undefined ? '' : `, monitored with ${count(otherSentinels, 'other Sentinel')}`
  return ok(check, `${is} is up${others}`, { facts: { primary: address } })
}
