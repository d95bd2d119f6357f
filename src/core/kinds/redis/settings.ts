import { parseJsonPath } from '../../assert/json-path.ts'
import { hostOf } from '../../net/http/route.ts'
import { quoted } from '../../net/text.ts'
import type { SettingsSpec, Target, Values } from '../../settings/index.ts'

const minute = 60_000

/** What svc.yaml may say of a redis monitor. */
export const redisSettings = {
  url: {
    type: 'url',
    protocols: ['redis', 'rediss'],
    required: true,
    doc: 'redis://user@host:port/database, rediss:// with TLS; without a password. User and database may be left out',
  },
  password: { type: 'secret', doc: "The user's password, or the server's own (requirepass)" },
  insecure: { type: 'flag', default: false, doc: 'Send the password over redis:// to another machine too' },
  caFile: { type: 'text', doc: 'PEM file of CAs trusted beside those of the system (rediss)' },
  servername: { type: 'text', doc: "Name to find in the certificate, where it is not the URL's (rediss)" },
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 3_000 },
    doc: 'How long connection and sign-in, and then PING, may take; also the round trip',
  },
  role: {
    type: 'choice',
    values: ['any', 'primary', 'replica'],
    default: 'any',
    doc: 'What the server must be',
  },
  memory: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 80, limit: 95 },
    doc: 'Memory used, of maxmemory; not judged where the policy (allkeys-…) makes room for any key',
  },
  clients: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 80, limit: 95 },
    doc: 'Connected clients, of maxclients',
  },
  rejected: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 1 },
    doc: 'Connections rejected for want of a place, of all since the start of the server',
  },
  blocked: { type: 'threshold', unit: 'count', doc: 'Clients that wait in a blocking command; workers do' },
  evicted: { type: 'threshold', unit: 'count', doc: 'Keys evicted since the start of the server' },
  restarted: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: minute },
    doc: 'How long the server should have been up at least',
  },
  queues: {
    type: 'groups',
    doc: 'Lists, streams or sorted sets that serve as queues',
    fields: {
      key: { type: 'text', required: true, doc: 'The key; in the database that the URL names' },
      group: {
        type: 'text',
        doc: 'Of a stream, the consumer group: what it has not read or not acknowledged is counted (Redis 7)',
      },
      length: {
        type: 'threshold',
        unit: 'count',
        default: { warn: 1_000 },
        doc: 'How many items may wait',
      },
      age: {
        type: 'threshold',
        unit: 'duration',
        doc: 'How long the oldest item may have waited. A stream tells it by its ids; for lists and sorted sets set time',
      },
      time: {
        type: 'text',
        doc: 'Where the date of an item stands: in a list, whose items are JSON, a path ($.enqueued_at of Sidekiq); ISO 8601, seconds or milliseconds. In a sorted set: score. The lists of BullMQ and RQ hold ids without a date, so they have no age',
      },
      oldest: {
        type: 'choice',
        values: ['left', 'right'],
        doc: 'Of a list, the end that is taken from: right where workers say RPOP or BRPOP (Sidekiq, and when left out), left where they say LPOP or BLPOP',
      },
      scoreUnit: {
        type: 'choice',
        values: ['seconds', 'milliseconds'],
        doc: 'Of a sorted set, what its scores are since 1970; seconds when left out. One in the future is not due yet (schedule and retry of Sidekiq)',
      },
    },
  },
  replicas: { type: 'integer', min: 0, doc: 'How many replicas a primary must have online' },
  replicationLag: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 15_000, limit: minute },
    doc: 'How long ago a replica may have been heard; they are heard every 1 to 10 s',
  },
  replicationBytes: {
    type: 'threshold',
    unit: 'bytes',
    default: { warn: 16 * 1024 ** 2 },
    doc: "How far a replica's offset may be behind that of its primary (asked of the primary)",
  },
  lastSave: {
    type: 'threshold',
    unit: 'duration',
    doc: 'How old the last save may be while changes wait for the next',
  },
  pings: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 100, limit: 1_000 },
    doc: 'How long the slowest of ten further PINGs may take',
  },
  allowWrites: {
    type: 'flag',
    default: false,
    doc: 'Write a key svc:probe:…, read it and delete it; it expires after a minute whatever happens',
  },
  certificate: {
    type: 'threshold',
    unit: 'days',
    default: { warn: 20, limit: 3 },
    doc: 'Days that every certificate of the chain has left at least (rediss)',
  },
} as const satisfies SettingsSpec
export type RedisSettings = Values<typeof redisSettings>
export type QueueSettings = NonNullable<RedisSettings['queues']>[number]

/** Where a redis monitor connects to, and as whom. */
export type RedisTarget = {
  readonly host: string
  readonly port: number
  readonly user: string | undefined
  readonly database: number
  readonly tls: boolean
}

const mostQueues = 100

const decoded = (part: string): string | undefined => {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

/** Of a URL that `contradiction` lets pass. */
export function redisTarget({ url: written }: Pick<RedisSettings, 'url'>): RedisTarget {
  const url = new URL(written)
  return {
    host: hostOf(url),
    port: Number(url.port) || 6_379,
    user: url.username === '' ? undefined : decoded(url.username),
    database: Number(url.pathname.slice(1)),
    tls: url.protocol === 'rediss:',
  }
}

/** For the engine. Never throws. */
export function slotOf(given: Pick<RedisSettings, 'url'>): Target {
  if (!URL.canParse(given.url)) return {}
  const { host, port } = redisTarget(given)
  return { host, port, database: `${host}:${port}` }
}

/** Why the settings cannot be used together, or undefined. */
export function validate(given: RedisSettings): string | undefined {
  const url = new URL(given.url)
  if (!/^\/?\d{0,5}$/.test(url.pathname))
    return 'url names no database by its number: write it like redis://host:6379/0'
  if (url.search !== '') return 'url has parameters, which are not read: TLS is rediss://, the rest are settings'
  if (url.username !== '' && decoded(url.username) === undefined) {
    return 'url has a "%" that is not followed by two hexadecimal digits'
  }
  if (url.username !== '' && given.password === undefined) return 'url names a user, and there is no password'
  if (url.protocol === 'redis:' && (given.caFile !== undefined || given.servername !== undefined)) {
    return 'caFile and servername are for rediss://'
  }
  if ((given.queues?.length ?? 0) > mostQueues) return `queues are more than ${mostQueues}: give less`
  return given.queues?.map(queueProblem).find((problem) => problem !== undefined)
}

/** Whether a queue is to be asked for the age of its oldest item. */
export const isAged = ({ age }: QueueSettings): boolean => age?.warn !== undefined || age?.limit !== undefined

function queueProblem(queue: QueueSettings): string | undefined {
  const { key, group, age, time, oldest, scoreUnit } = queue
  const of = `the queue ${quoted(key, 80)}`
  const [alone] = Object.entries({ time, oldest, scoreUnit }).find(([, value]) => value !== undefined) ?? []
  if (alone === undefined) return undefined
  if (age === undefined) return `${of} has ${alone} and no age: say how long an item may wait, such as age: 5m`
  if (group !== undefined) return `${of} has group and ${alone}: a group belongs to a stream, whose ids are its times`
  if (time === undefined) return `${of} has ${alone} and no time: say where the date of an item stands`
  if (time === 'score') return oldest && `${of} has time: score and oldest: a sorted set has its lowest score first`
  if (scoreUnit !== undefined) return `${of} has scoreUnit, which goes with time: score only`
  if (parseJsonPath(time) !== undefined) return undefined
  return `${of}: time ${quoted(time, 80)} is neither score nor a JSON path such as $.enqueued_at`
}
