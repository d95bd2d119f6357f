import type { TLSSocket } from 'node:tls'
import { showDuration } from '../../base/format.ts'
import { type Chain, chainOf, dateErrors, describeChain, whyDistrusted } from '../../base/net/certificates.ts'
import { sanitize } from '../../base/net/text.ts'
import { pinnedOf } from '../../base/net/trust.ts'
import { databaseSlot, userIn } from '../../base/net/url.ts'
import { ProbeError } from '../../base/probe-error.ts'
import type { SettingsSpec, Threshold, Values } from '../../base/settings/index.ts'
import { limitsOn } from '../assert/limit-check.ts'
import {
  type AddressTurn,
  atMost,
  type Check,
  type CheckContext,
  type Connection,
  certificateCheck,
  certificateSetting,
  checksOn,
  type JoinedSettings,
  type Kind,
  type KindFacts,
  latencySetting,
  networkKind,
  ok,
  type ReachSettings,
  type Result,
  withThreshold,
} from '../engine/index.ts'
import { PeerSocket } from './peer-socket.ts'
import {
  type AccountQuestion,
  askQuery,
  dueQueries,
  evaluateAsked,
  itemOf,
  type QueryAnswer,
  queriesProblem,
  queriesSetting,
  readPowers,
  warnOfPowers,
} from './queries.ts'
import { figure } from './rows.ts'
import type { Ask, Commit, OpenDatabase, Read } from './session.ts'
import type { Dialect } from './sql.ts'
import { type DatabaseTarget, databaseTarget, tlsProblem, tlsSetting, whyUnpinned } from './target.ts'

/** The difference between a server's clock and ours, as far as it is certain: the round trip takes time. */
export type Clock = {
  /** Milliseconds that the server is ahead of us (negative: behind); 0 when no difference is certain. */
  readonly aheadMs: number
  /** Milliseconds of the round trip. A smaller difference is not measurable. */
  readonly tripMs: number
}

export const clockSetting = {
  type: 'threshold',
  unit: 'duration',
  default: { warn: 2_000, limit: 30_000 },
  doc: "Maximum difference between the server's clock and that of this machine",
} as const satisfies SettingsSpec[string]

/** `sql` selects one `at`: milliseconds since 1970, in UTC. */
export async function readClock(ask: Ask, sql: string, { date }: Pick<CheckContext, 'date'>): Promise<Clock> {
  const sentAt = date().getTime()
  const [row] = await ask(sql)
  const receivedAt = date().getTime()
  const at = figure(row, 'at')
  if (at === undefined) throw new ProbeError('protocol', 'the server returned no time')
  return clockOf(at, sentAt, receivedAt)
}

/**
 * The difference between a server's clock and ours. `theirs` is its time in a reply that arrived at `receivedAt` to a
 * query sent at `sentAt`; all in milliseconds since 1970.
 */
export function clockOf(theirs: number, sentAt: number, receivedAt: number): Clock {
  // Our clock has a resolution of whole milliseconds.
  const at = Math.floor(theirs)
  const aheadMs = at > receivedAt ? at - receivedAt : Math.min(0, at - sentAt)
  return { aheadMs, tripMs: receivedAt - sentAt }
}

export function evaluateClock({ aheadMs, tripMs }: Clock, threshold: Threshold): Result<'clock'> {
  if (aheadMs === 0) {
    const within = `server clock in sync, ±${showDuration(tripMs)}`
    return ok('clock', withThreshold(within, threshold, 'duration', 'atMost'), {
      measurement: { value: 0, unit: 'milliseconds', ...threshold, bound: 'atMost' },
    })
  }
  const what = `the server's clock is ${aheadMs < 0 ? 'behind' : 'ahead of'} ours by`
  return atMost({ check: 'clock', what, value: Math.abs(aheadMs), unit: 'duration', threshold })
}

/** A database after the sign-in, on which checks run. */
export type DatabaseConnection = Connection & {
  readonly address: string
  /** The signed-in account. */
  readonly user: string
  /** The account and the encryption, for messages. */
  readonly as: string
  /** Whether the server has asked for a password. */
  readonly askedForPassword: boolean
  /** The certificates that the server presented. Undefined without TLS. */
  readonly chain: Chain | undefined
  /** Runs one read-only statement. Throws ProbeError, or a socket's error. */
  readonly ask: Ask
  /** Runs one statement from svc.yaml and reads its first column. */
  readonly read: Read
  /** Commits statements that write, for checks that `allowWrites` permits. */
  readonly commit: Commit
}

/** Types the checks of a database. */
export const onDatabase = checksOn<DatabaseConnection>()
export const limitOnDatabase = limitsOn<DatabaseConnection>()

/** The time to sign in and run a first statement. */
export const databaseLatency = latencySetting(
  { warn: 1_000, limit: 3_000 },
  'Maximum time for the sign-in and for SELECT 1, each',
)

const answers = onDatabase({
  depth: 'Basic',
  results: { query: 'The server answers SELECT 1 in time' },
  settings: { latency: databaseLatency },
  provesNoReading: true,
  gate: true,
  observe: async ({ ask, address }, _, { now }) => {
    const since = now()
    const [row] = await ask('SELECT 1 AS one')
    if (figure(row, 'one') !== 1) throw new ProbeError('protocol', 'SELECT 1 returned an unexpected value')
    return { ms: now() - since, address }
  },
  evaluate: ({ ms: value }, { latency: threshold }) =>
    atMost({ check: 'query', what: 'SELECT 1 answered in', value, unit: 'duration', threshold }),
})

/** Checks how long the certificate stays valid. An untrusted connection fails before. */
export const validity = () =>
  certificateCheck({
    depth: 'Standard',
    setting: certificateSetting,
    chain: ({ chain }: DatabaseConnection) => chain,
  })

function describeSecured(
  socket: TLSSocket,
  address: string,
  { host, tls }: DatabaseTarget,
  { date }: Pick<CheckContext, 'date'>,
): Chain {
  const pinned = pinnedOf(tls.fingerprint ?? [])
  const signer = tls.caFile === undefined ? 'system' : 'caFile'
  const options = { address, host: tls.servername ?? host, signer, pinned, verify: true, date } as const
  return describeChain(socket, chainOf(socket), options)
}

/** `sql` selects one `at`: milliseconds since 1970, in UTC. */
const clockCheck = (sql: string) =>
  onDatabase({
    depth: 'Advanced',
    results: { clock: "The server's clock is in sync with that of this machine" },
    settings: { clock: clockSetting },
    provesNoReading: true,
    observe: ({ ask }, _, context) => readClock(ask, sql, context),
    evaluate: (clock, { clock: threshold }) => evaluateClock(clock, threshold),
  })

const queriesCheck = (account: AccountQuestion) =>
  onDatabase({
    depth: 'Standard',
    results: { queries: 'Each of `queries` returns what it should; one result per query' },
    settings: { queries: queriesSetting },
    when: ['queries'],
    emptyWhere: 'all queries have `depth: Advanced`, in a Standard run',
    // A warning about the account has no query.
    items: ({ queries }, mode) => [undefined, ...dueQueries(queries, mode).map(itemOf)],
    async *observe({ ask, read }, { queries }, context): AsyncGenerator<{ readonly powers: string } | QueryAnswer> {
      const due = dueQueries(queries, context.mode)
      if (due.length === 0) return
      const powers = await readPowers(ask, account, context)
      if (powers !== undefined) yield { powers }
      for (const query of due) {
        context.step('queries')
        yield await askQuery(query, context, read)
      }
    },
    evaluate: (observation) =>
      'powers' in observation ? warnOfPowers(observation.powers) : evaluateAsked(observation),
  })

/** Connects to an address and signs in. Closes the socket when the sign-in fails. Throws what the driver throws. */
export async function connectDatabase(
  open: OpenDatabase,
  {
    at: { ip, port, address, signal, commit },
    context,
    target,
  }: { readonly at: AddressTurn; readonly context: CheckContext; readonly target: DatabaseTarget },
): Promise<DatabaseConnection> {
  const socket = await PeerSocket.reach(ip, port, signal)
  socket.verify = (secure) => whyUnpinned(secure, target, address)
  socket.explain = (secure, { code }: NodeJS.ErrnoException) => {
    const why =
      code !== undefined && dateErrors.has(code)
        ? whyDistrusted(describeSecured(secure, address, target, context))
        : undefined
    return why === undefined ? undefined : new ProbeError('tls', why)
  }
  try {
    commit()
    const session = await open(target, { socket, ip, address, signal, msLeft: context.msLeft, files: context.files })
    const as = session.encryption ? `${target.user} over ${session.encryption}` : target.user
    return {
      address,
      user: target.user,
      as: sanitize(as, 80),
      chain: session.secured && describeSecured(session.secured, address, target, context),
      askedForPassword: session.askedForPassword,
      ask: session.ask,
      read: session.read,
      commit: session.commit,
      get usable() {
        return !socket.destroyed
      },
      close: async () => {
        try {
          await session.close()
        } finally {
          socket.destroy()
        }
      },
    }
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Whether the sign-in was in time. `ms` is how long it took. */
export const evaluateSignIn = (
  { address, as }: DatabaseConnection,
  ms: number,
  threshold: Threshold,
): Result<'connect'> =>
  atMost({ check: 'connect', what: `signed in to ${address} as ${as} in`, value: ms, unit: 'duration', threshold })

/** The settings of every database. Each kind adds its own texts. */
type Own = {
  readonly url: SettingsSpec[string] & { readonly type: 'url'; readonly required: true }
  readonly password: { readonly type: 'secret'; readonly doc: string }
}
type Base = Own & { readonly tls: typeof tlsSetting; readonly latency: typeof databaseLatency }

/**
 * Makes a database kind: sign-in, SELECT 1, the kind's own checks, the clock, and the queries from svc.yaml. It only
 * reads, and leaves nothing running on the server after the deadline.
 */
export function databaseKind<
  const Name extends Dialect,
  const O extends Own,
  const Checks extends readonly Check<DatabaseConnection>[],
>(
  declaration: KindFacts & {
    readonly name: Name
    readonly knock?: 'signs in'
    readonly port: number
    /** `url`, `password` and the other settings that decide how to connect. */
    readonly settings: O
    /** The fact that the result `connect` proves. Default: the server accepts the account in time. */
    readonly connectDoc?: string
    /**
     * Loads the driver (`Kind.preload`). Awaited before any address is tried, so that loading does not count as the
     * server's time.
     */
    readonly preload: () => Promise<unknown>
    /** Signs in over a connected socket. */
    readonly open: OpenDatabase
    /** The statement that selects the time: one `at`, in milliseconds since 1970. */
    readonly clock: string
    /** How to find out whether the account may do more than read. */
    readonly account: AccountQuestion
    /** `Kind.validate` for what the kind has besides the settings of every database. */
    readonly validate?: (settings: Values<JoinedSettings<NoInfer<O>, NoInfer<Checks>>>) => string | undefined
    readonly checks: Checks
  },
): DatabaseKind<O, Checks> {
  const { port, settings: own, connectDoc = 'The account can sign in, in time', validate, ...others } = declaration
  const { open, clock, account, checks, ...facts } = others
  return networkKind<DatabaseConnection, Base, 'connect', readonly Check<DatabaseConnection>[], DatabaseTarget>({
    ...facts,
    settings: { ...own, tls: tlsSetting, latency: databaseLatency },
    target: (settings) => databaseSlot(settings, port),
    signsIn: (settings) => {
      const { url, password } = settings as Values<Base>
      return { account: userIn(url), secrets: [password], result: 'connect' }
    },
    validate: (settings) =>
      tlsProblem(databaseTarget(settings as Values<Base>, port)) ??
      validate?.(settings as never) ??
      queriesProblem((settings as Partial<Values<{ queries: typeof queriesSetting }>>).queries, facts.name),
    prepare: async (settings) => {
      await facts.preload()
      return databaseTarget(settings, port)
    },
    connect: {
      results: { connect: connectDoc },
      open: (at, _, context, target) => connectDatabase(open, { at, context, target }),
      evaluate: ({ connection, ms }, { latency }) => evaluateSignIn(connection, ms, latency),
    },
    checks: [answers, validity(), ...checks, clockCheck(clock), queriesCheck(account)],
  }) as unknown as DatabaseKind<O, Checks>
}

type DatabaseKind<O, Checks extends readonly Check<DatabaseConnection>[]> = Kind<
  JoinedSettings<
    O & {
      readonly tls: typeof tlsSetting
      readonly latency: typeof databaseLatency
      readonly clock: typeof clockSetting
      readonly queries: typeof queriesSetting
    } & ReachSettings,
    Checks
  > &
    SettingsSpec
>
