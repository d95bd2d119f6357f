import { X509Certificate } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Values } from '../../../../src/core/base/settings/index.ts'
import {
  databaseTarget,
  type OpenDatabase,
  PeerSocket,
  type Query,
  type TlsSetting,
} from '../../../../src/core/checks/database/index.ts'
import { type Kind, limits, type Result } from '../../../../src/core/checks/engine/index.ts'
import type postgres from '../../../../src/core/checks/kinds/postgres/index.ts'
import type { ExecutionMode } from '../../../../src/core/protocol/index.ts'
import { files } from '../../../support/engine/files.ts'
import { expectResult } from '../../../support/engine/finds.ts'
import { checked, type RunKindOptions, rowsAsResult, runKind, secret } from '../../../support/engine/run-kind.ts'
import { type Behaviour, blackHole, peer, refusedPort, settled, speaks } from '../../../support/faults/faults.ts'
import { proxy } from '../../../support/faults/proxy.ts'
import { silenceOf } from '../../../support/faults/silence.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../../support/servers/certs.ts'
import { endsByDeadline } from '../../../support/suite/deadline.ts'
import { suiteWith } from '../../../support/suite/peer.ts'
import { until } from '../../../support/suite/until.ts'

/** The password of every account that the suite uses. */
export const word = 'correct horse'
/** The settings that all databases have, or that the suite gives. */
type SqlSettings = Partial<
  Pick<Values<typeof postgres.settings>, 'url' | 'password' | 'tls' | 'latency' | 'certificate' | 'queries'>
>
type Run = (settings?: SqlSettings, mode?: ExecutionMode, options?: RunKindOptions) => Promise<readonly Result[]>
type Rows = readonly unknown[]
type Text = string | RegExp
export type QueryText = Partial<Query> & { readonly sql: string }
/** A feature that a database does not have, and why. */
type Absent = { readonly absent: string }

export type SqlServer = {
  readonly port: number
  readonly address: string
  readonly url: (user: string, database?: string) => string
}

/** A state of the server in which svc cannot sign in. `plant` brings it about, `end` takes it back. */
type Condition = {
  readonly plant?: () => Promise<unknown>
  readonly end?: () => Promise<unknown>
  readonly settings?: () => SqlSettings
  /** In place of a run with `given`. */
  readonly run?: () => Promise<readonly Result[]>
  readonly message?: Text
}

/** The sentence that each condition proves, and the fault that it is. */
const conditions = {
  noPassword: ['no password where the server requires one is auth', 'auth'],
  noAccount: ['an account that does not exist is auth', 'auth'],
  locked: ['a locked account is auth', 'auth'],
  missingDatabase: ['a missing database is data, and named', 'data'],
  closedDatabase: ['a database that is not for this account is data: the password was right', 'data'],
  full: ['a server that is full is said as such, and is not a refused sign-in', 'refused'],
} as const

export type Network = {
  /** Of URLs. */
  readonly scheme: string
  readonly database: string
  /** The server under test: it may be another one after a restart. */
  readonly server: () => SqlServer
  readonly open: OpenDatabase
  /** The TCP resources of this process that the server itself takes, as `settled` shows them. */
  readonly resources: string
  /** How often the server has refused a password so far. */
  readonly refusals: () => number | Promise<number>
  readonly passwordRefusal: RegExp
  readonly conditions: Readonly<Record<keyof typeof conditions, Condition | Absent>>
  /** Sets the server to another time zone; gives what sets it back. */
  readonly inAnotherZone?: () => Promise<() => Promise<unknown>>
  /** Peers that speak the protocol badly, beside those that are bad for every database. */
  readonly hostile: readonly (readonly [name: string, behave: Behaviour])[]
  /** The faults of hostile peers, beside protocol and timeout. */
  readonly hostileFaults: readonly string[]
  /** Makes of random bytes the first ones that a peer sends. */
  readonly randomAnswer: ((bytes: Buffer, round: number) => Buffer) | Absent
  readonly frozen: { readonly freeze: () => void; readonly thaw: () => void } | Absent
  /** A statement that does not end, in a query or by itself, and the accounts or programs for which it runs. */
  readonly sleep: string
  readonly sleeping: () => Promise<readonly string[]>
  readonly sleeper: string
  /** How many statements the server was told to stop, where it counts them. */
  readonly stops?: () => number
  /** Whether the server ends a statement by itself: the statements of svc that run. */
  readonly ownLimit: { readonly running: () => Promise<Rows> } | Absent
  /** A statement that shows for whom the server runs it, and its answer. */
  readonly identity: { readonly sql: string; readonly shows: string }
  /** An account without privileges, and the checks that it fails. */
  readonly privileges:
    | {
        readonly account: string
        readonly kind: { readonly checks: readonly { readonly privilege?: string | undefined }[] }
        readonly begin: () => Promise<unknown>
        readonly end: () => Promise<unknown>
        readonly query: (sql: string) => Promise<unknown>
        readonly unwell: readonly string[]
      }
    | Absent
  readonly restarted: true | Absent
  readonly tls: {
    readonly start: (certificates: Certificates) => Promise<SqlServer & { readonly remove: () => Promise<unknown> }>
    readonly version: string
    /** Whether a certificate can be for an address. */
    readonly verifiesAddress: boolean
    /** Adds tests of this server alone. `connect` gives the result of the sign-in. */
    readonly own?: (connect: (host: string, tls: TlsSetting) => Promise<Result>) => void
  }
  /** Statements with large answers, and how much of them is read. */
  readonly large:
    | {
        /** Rows from 1 to a million, each with some 600 characters besides. */
        readonly million: readonly string[]
        readonly maxBytes: number
        readonly text: (characters: number) => string
        /** 400 rows with a million characters each, in the second column. */
        readonly flood: string
      }
    | Absent
}

export type SqlDatabase = {
  /** Stands before each sentence. */
  readonly name: string
  readonly missing?: string | undefined
  readonly start: () => Promise<unknown>
  readonly stop: () => Promise<unknown>
  readonly run: Run
  /** A run with settings under which all checks are well. */
  readonly runWell: Run
  readonly checks: Readonly<Record<ExecutionMode, readonly string[]>>
  /** The messages of the checks of a healthy server. */
  readonly messages: { readonly mode: ExecutionMode; readonly of: Readonly<Record<string, Text>> }
  /** The sessions or processes that svc has open there. */
  readonly open: () => Rows | Promise<Rows>
  /** All that the server or the database has logged. */
  readonly log: () => string
  readonly network: Network | Absent
  readonly queries: {
    /** Beside what every database is asked of its table `jobs`. */
    readonly judged: readonly (readonly [query: QueryText, status: Result['status'], message: Text])[]
    readonly fails: readonly {
      readonly query: QueryText
      readonly message: Text
      readonly fault: Result['fault']
      readonly details?: Rows
    }[]
    /** Statements that would write, which the server refuses; and what they would change. */
    readonly writes:
      | {
          readonly sql: readonly (readonly [name: string, sql: string, message: Text])[]
          readonly state: () => unknown
        }
      | Absent
    readonly slow: { readonly sql: string; readonly message: Text; readonly next: RegExp; readonly timeoutMs: number }
    /** So many rows of about 1 kB of text. */
    readonly wide: (rows: number) => string
    readonly powers:
      | readonly {
          readonly name: string
          readonly plant: () => Promise<unknown>
          readonly end: () => Promise<unknown>
          readonly as: string
        }[]
      | Absent
  }
}

const has = <T extends object>(part: T | Absent): part is T => !('absent' in part)
const matching = (text: Text): unknown => (typeof text === 'string' ? text : expect.stringMatching(text))
const withDefaults = (queries: readonly QueryText[]): readonly Query[] =>
  queries.map((query) => ({ name: 'jobs', depth: 'Standard', ...query }))

/**
 * The tests that every SQL database passes: those of a healthy one, of its network, of its certificate, and of the
 * queries from svc.yaml. `own` adds tests of this database alone; they run before the last one, which proves that
 * nothing is left.
 */
export function sqlSuite(database: SqlDatabase, own: (tools: SqlTools) => void): void {
  suiteWith(database.missing, database.name, () => {
    const tools = toolsOf(database)
    beforeAll(async () => void (await database.start()))
    afterAll(async () => void (await database.stop()))
    healthy(database, tools)
    if (has(database.network)) {
      connecting(database, database.network, tools)
      ending(database, database.network, tools)
      privileges(database, database.network, tools)
      certificates(database, database.network, tools)
      large(database, database.network, tools)
    }
    describe('queries', () => queries(database, tools))
    own(tools)
    test(`${database.name}: nothing of all these tests is left open there, and no password is in its log`, async () => {
      await tools.nothingOpen()
      expect(database.log()).not.toContain('hunter2')
    })
  })
}

/** The tools that tests of one database share with the suite. */
export type SqlTools = ReturnType<typeof toolsOf>

function toolsOf(database: SqlDatabase) {
  const network = (): Network => {
    if (!has(database.network)) throw new Error(database.network.absent)
    return database.network
  }
  const ask = async (
    queries: readonly QueryText[],
    mode: ExecutionMode = 'Standard',
    options: RunKindOptions = {},
  ): Promise<readonly Result[]> => {
    const results = await database.runWell({ queries: withDefaults(queries) }, mode, options)
    expect(results.filter(({ check, status }) => check !== 'queries' && status !== 'ok')).toEqual([])
    return results.filter(({ check }) => check === 'queries')
  }
  const opened = async (
    signal: AbortSignal = new AbortController().signal,
    msLeft = 60_000,
    { server = network().server(), tls }: { readonly server?: SqlServer; readonly tls?: TlsSetting } = {},
  ) => {
    const socket = await PeerSocket.reach('127.0.0.1', server.port, signal)
    const way = { socket, ip: '127.0.0.1', address: 'here', signal, msLeft: () => msLeft, files }
    // A test that fails leaves the server without a session for the next.
    onTestFinished(() => void socket.destroy())
    const settings = { url: server.url('monitor', network().database), password: secret(word), ...(tls ? { tls } : {}) }
    return { socket, session: await network().open(databaseTarget(settings, server.port), way) }
  }
  return {
    one: async (check: string, ...args: Parameters<Run>): Promise<Result> =>
      checked(await database.run(...args), check),
    /** The results of queries from svc.yaml; all other results are ok. */
    ask,
    /** Nothing of svc is open there, once it has had a moment to end. */
    nothingOpen: () => until(async () => (await database.open()).length === 0),
    /** Runs what makes svc stop one statement on the server. */
    stopping: async (use: () => Promise<void>): Promise<void> => {
      const stops = has(database.network) ? database.network.stops : undefined
      const before = stops?.() ?? 0
      await use()
      if (stops) expect(stops()).toBe(before + 1)
    },
    /** A session of the kind. The server's own limit of a statement is far off, unless `msLeft` says otherwise. */
    opened,
    /** A kind that asks one statement; `msLeft` decides on the server's own limit. */
    asking: (sql: string, msLeft: (left: number) => number = () => 60_000, port = network().server().port): Kind => ({
      name: 'asking',
      title: '',
      settings: {},
      runsOn: 'network',
      checks: [{ name: 'ask', depth: 'Basic', doc: '' }],
      async *run(_, context) {
        const { signal } = context
        const target = databaseTarget(
          { url: network().server().url('monitor', network().database), password: secret(word) },
          port,
        )
        const socket = await PeerSocket.reach('127.0.0.1', port, signal)
        const way = { socket, ip: '127.0.0.1', address: '', signal, msLeft: () => msLeft(context.msLeft()), files }
        try {
          const session = await network().open({ ...target, port }, way)
          try {
            yield rowsAsResult(await session.ask(sql))
          } finally {
            await session.close()
          }
        } finally {
          socket.destroy()
        }
      },
    }),
  }
}

function healthy({ name, runWell, checks, messages }: SqlDatabase, { nothingOpen }: SqlTools): void {
  test(`${name}: each mode runs its checks and those of the shallower ones, and all are well`, async () => {
    for (const mode of ['Basic', 'Standard', 'Advanced'] as const) {
      const results = await runWell({}, mode)
      expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
      expect(results.map(({ check }) => check)).toEqual(checks[mode])
      expect(new Set(results.map(({ address }) => address)).size).toBe(1)
    }
    await nothingOpen()
  })
  test(`${name}: each check says what it saw`, async () => {
    const results = await runWell({}, messages.mode)
    for (const [check, text] of Object.entries(messages.of))
      expect([check, checked(results, check).message]).toEqual([check, matching(text)])
  })
}

function connecting(database: SqlDatabase, network: Network, { one, nothingOpen }: SqlTools): void {
  const { name, run } = database
  const { scheme, server, resources } = network
  const urlOf = (port: number, host = '127.0.0.1'): string => `${scheme}://monitor@${host}:${port}/${network.database}`

  test(`${name}: the address of every result is that of the server`, async () => {
    const results = await run({}, 'Advanced')
    expect(results.map(({ address }) => address)).toEqual(results.map(() => server().address))
  })
  test(`${name}: the clock is judged against ours, as far as a difference is proved`, async () => {
    const off = (ms: number) => one('clock', {}, 'Advanced', { date: () => new Date(Date.now() + ms) })
    const back = await network.inAnotherZone?.()
    const agrees = await off(0)
    await back?.()
    expect(agrees).toMatchObject({ status: 'ok', measurement: { value: 0, limit: 30_000 } })
    expect(agrees.message).toMatch(/^server clock in sync, ±[\d.]+ m?s \(/)
    const behind = await off(600_000)
    expect(behind).toMatchObject({ status: 'failed', fault: 'threshold' })
    expect(behind.message).toMatch(/^the server's clock is behind ours by (?:9\.\d|10) min \(warn 2 s, fail 30 s\)$/)
    const ahead = await off(-12_000)
    expect(ahead.status).toBe('warning')
    expect(ahead.message).toMatch(/^the server's clock is ahead of ours by [\d.]+ s \(warn 2 s, fail 30 s\)$/)
  })
  test(`${name}: a port on which nothing listens is refused`, async () => {
    expectResult(
      await one('connect', { url: urlOf(await refusedPort()) }),
      'failed (refused): …refused the connection…',
    )
  })
  test(`${name}: a peer that accepts and never answers ends at the deadline, and leaves no socket`, async () => {
    await using hole = await peer(blackHole)
    const started = performance.now()
    const result = await one('connect', { url: urlOf(hole.port) }, 'Basic', { timeoutMs: 400 })
    expect(performance.now() - started).toBeLessThan(4_500)
    expect(result).toMatchObject({ fault: 'timeout', message: silenceOf(`127.0.0.1:${hole.port}`) })
    await hole.close()
    expect(await settled(resources)).toBe(resources)
  })
  test(`${name}: answers that come late are above the threshold, with the figure`, async () => {
    await using slow = await proxy(server().port, 155)
    const results = await run({ url: urlOf(slow.port), latency: { warn: 50, limit: 120 } })
    for (const check of ['connect', 'query']) {
      const result = checked(results, check)
      expect(result).toMatchObject({ status: 'failed', fault: 'threshold', measurement: { limit: 120 } })
      expect(result.measurement?.value).toBeGreaterThan(150)
    }
  })
  test(`${name}: a wrong password is auth, is not shown, and is not tried again soon`, async () => {
    const shared = limits()
    const otherPassword = { password: secret('hunter2-wrong') }
    const before = await network.refusals()
    const result = await one('connect', otherPassword, 'Basic', { limits: shared, retries: 3 })
    expect(result).toMatchObject({ status: 'failed', fault: 'auth' })
    expect(result.message).toMatch(network.passwordRefusal)
    expect(JSON.stringify(result)).not.toContain('hunter2')
    await until(async () => (await network.refusals()) === before + 1)
    expect((await one('sign-in', otherPassword, 'Basic', { limits: shared })).message).toMatch(
      /^refused: (?!\S+ refused)/,
    )
    expect(await network.refusals()).toBe(before + 1)
  })
  for (const [key, [sentence, fault]] of Object.entries(conditions)) {
    const condition = network.conditions[key as keyof typeof conditions]
    if (!has(condition)) continue
    test(`${name}: ${sentence}`, async () => {
      await condition.plant?.()
      const run = condition.run ?? (() => database.run(condition.settings?.()))
      const result = checked(await run().finally(() => condition.end?.()), 'connect')
      expect(result).toMatchObject({ status: 'failed', fault, message: matching(condition.message ?? /./) })
    })
  }
  test(`${name}: an address that refuses is passed over with a warning`, async () => {
    const resolve = async (): Promise<readonly string[]> => ['127.0.0.2', '127.0.0.1']
    const url = urlOf(server().port, 'db.example.test')
    const results = await run({ url, tls: { mode: 'off' } }, 'Basic', { resolve })
    expect(results[0]).toMatchObject({ status: 'warning', address: `127.0.0.2:${server().port}` })
    expect(results.at(-1)).toMatchObject({ check: 'query', status: 'ok', address: server().address })
  })
  test.each<readonly [string, Behaviour]>([
    ['an SSH server', speaks('SSH-2.0-OpenSSH_9.2\r\n')],
    ['an HTTP server', speaks('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')],
    ['zeroes', speaks(Buffer.alloc(4_096))],
    ['a connection that is closed at once', (socket) => void socket.end()],
    ['a connection that is reset', (socket) => void socket.resetAndDestroy()],
    ...network.hostile,
  ])(`${name}: %s is a failure, and nothing breaks`, async (_, behave) => {
    await using other = await peer(behave)
    const result = await one('connect', { url: urlOf(other.port) }, 'Basic', { timeoutMs: 700 })
    expect(result.status).toBe('failed')
    expect(['protocol', 'timeout', ...network.hostileFaults]).toContain(result.fault)
    expect(result.message).not.toContain('internal')
    await until(() => other.open() === 0)
  })
  const { randomAnswer, frozen } = network
  if (!('absent' in randomAnswer)) {
    test(`${name}: 200 answers of random bytes are 200 failures, and nothing breaks`, async () => {
      for (let round = 0; round < 200; round += 1) {
        const bytes = Buffer.from(Array.from({ length: 90 }, (_, i) => (round * 31 + i * i * 17 + (round >> 2)) & 0xff))
        await using other = await peer((socket) => void socket.end(randomAnswer(bytes, round)))
        const result = await one('connect', { url: urlOf(other.port) }, 'Basic', { timeoutMs: 300 })
        expect(result.status).toBe('failed')
      }
    })
  }
  if (has(frozen)) {
    test(`${name}: a frozen server ends at the deadline, and nothing of svc is there when it goes on`, async () => {
      frozen.freeze()
      const started = performance.now()
      const result = await one('connect', {}, 'Basic', { timeoutMs: 500 }).finally(frozen.thaw)
      expect(performance.now() - started).toBeLessThan(4_500)
      expect(result).toMatchObject({ fault: 'timeout', message: silenceOf(server().address) })
      await nothingOpen()
    })
  }
}

function ending(
  { name, run }: SqlDatabase,
  network: Network,
  { asking, opened, nothingOpen, stopping }: SqlTools,
): void {
  const { server, sleep, sleeping, resources, ownLimit, identity } = network
  const asleep = () => until(async () => (await sleeping()).length > 0)

  test(`${name}: a statement that hangs is stopped on the server at the deadline`, async () => {
    const started = performance.now()
    await stopping(async () => {
      const result = runKind(asking(sleep), {}, 'Basic', { timeoutMs: 2_000 })
      await asleep()
      expect(await sleeping()).toEqual([network.sleeper])
      expect((await result)[0]).toMatchObject({ fault: 'timeout' })
    })
    expect(performance.now() - started).toBeLessThan(4_500)
    await nothingOpen()
    expect(await settled(resources)).toBe(resources)
  })
  test(`${name}: a run that is called off stops its statement too`, async () => {
    await stopping(async () => {
      const control = new AbortController()
      const result = runKind(asking(sleep), {}, 'Basic', { signal: control.signal }).catch((error: unknown) => error)
      await asleep()
      control.abort(new Error('called off'))
      expect(await result).toMatchObject({ message: 'called off' })
    })
    await nothingOpen()
  })
  test(`${name}: called off at any moment, a run leaves no statement, no session and no socket`, async () => {
    for (let ms = 0; ms < 60; ms += 3) {
      const control = new AbortController()
      const { signal } = control
      const both = [run({}, 'Advanced', { signal }), runKind(asking(sleep), {}, 'Basic', { signal })]
      const ended = Promise.allSettled(both)
      await wait(ms)
      control.abort()
      await ended
    }
    await nothingOpen()
    expect(await settled(resources)).toBe(resources)
  })
  test(`${name}: an end that comes while the driver is loaded is not missed`, async () => {
    const control = new AbortController()
    const opening = PeerSocket.reach('127.0.0.1', server().port, control.signal).then(async (socket) => {
      const way = { socket, ip: '127.0.0.1', address: '', signal: control.signal, msLeft: () => 60_000, files }
      const target = databaseTarget({ url: server().url('monitor'), password: secret(word) }, 0)
      const session = network.open(target, way)
      control.abort(new Error('too late'))
      return await session.finally(() => socket.destroy())
    })
    await expect(opening).rejects.toThrow('too late')
  })
  if (has(ownLimit)) {
    test(`${name}: where no second connection gets through, the server itself ends a statement`, async () => {
      await using once = await proxy(server().port, 0, 1)
      const started = performance.now()
      const kind = asking(sleep, (msLeft) => msLeft, once.port)
      const result = await runKind(kind, {}, 'Basic', { timeoutMs: 1_000 })
      expect(result[0]).toMatchObject({ fault: 'timeout' })
      // The server has not heard that the connection is gone; but nothing runs.
      await until(async () => (await ownLimit.running()).length === 0)
      expect(performance.now() - started).toBeLessThan(15_000)
    })
  }
  test(`${name}: sessions carry the name of svc`, async () => {
    const [result] = await runKind(
      asking(identity.sql, (msLeft) => msLeft),
      {},
    )
    expect(result?.message).toBe(identity.shows)
  })
  test(`${name}: a statement of a session that runs at the deadline is stopped on the server`, async () => {
    const control = new AbortController()
    const { session } = await opened(control.signal)
    const reading = session.read(sleep, false).catch((error: unknown) => error)
    await asleep()
    control.abort()
    await session.close()
    expect(await reading).toBeInstanceOf(Error)
    // MariaDB would see by itself only after 5 s that nobody listens any more.
    await until(async () => (await sleeping()).length === 0, 3_000)
    await nothingOpen()
  })
}

function privileges({ name, runWell }: SqlDatabase, network: Network, { one }: SqlTools): void {
  const { privileges: limited, server } = network
  if (has(limited)) {
    test(`${name}: an account with nothing but the privileges that the checks declare sees all`, async () => {
      const unwell = async (): Promise<readonly string[]> => {
        const results = await runWell({ url: server().url(limited.account) }, 'Advanced')
        return results.filter(({ status }) => status !== 'ok').map(({ check }) => check)
      }
      await limited.begin()
      try {
        expect(await unwell()).toEqual(limited.unwell)
        for (const { privilege = '' } of limited.kind.checks) {
          for (const [grant] of privilege.matchAll(/GRANT [^;]+/g)) await limited.query(grant)
        }
        expect(await unwell()).toEqual([])
      } finally {
        await limited.end()
      }
    })
  }
  if (network.restarted === true) {
    test(`${name}: a server that was restarted is a warning`, async () => {
      expect(await one('restarted', {}, 'Standard')).toMatchObject({ status: 'warning' })
    })
  }
}

function certificates({ name, run }: SqlDatabase, network: Network, { opened }: SqlTools): void {
  suiteWith(opensslMissing(), `${name} over TLS`, () => {
    let made: Certificates
    let secured: Awaited<ReturnType<Network['tls']['start']>>
    beforeAll(async () => {
      made = makeCertificates()
      secured = await network.tls.start(made)
    })
    afterAll(async () => {
      await secured.remove()
      made.remove()
    })
    const options = { resolve: async () => ['127.0.0.1'] }
    const urlOf = (host: string, { port } = secured as SqlServer) =>
      `${network.scheme}://monitor@${host}:${port}/${network.database}`
    const connect = async (host: string, tls: TlsSetting, server?: SqlServer): Promise<Result> =>
      checked(await run({ url: urlOf(host, server), tls }, 'Basic', options), 'connect')

    test(`${name}: a trusted certificate for the right name or address lets the sign-in go on`, async () => {
      const trusted = { mode: 'verify', caFile: made.caFile } as const
      for (const [host, tls] of [
        ['svc.test', trusted],
        ['other.test', { ...trusted, servername: 'svc.test' }],
        ['127.0.0.1', { ...trusted, servername: 'svc.test' }],
        ...(network.tls.verifiesAddress ? [['127.0.0.1', trusted] as const] : []),
      ] as const) {
        const message = expect.stringContaining(`as monitor over ${network.tls.version} in`)
        expect(await connect(host, tls)).toMatchObject({ status: 'ok', message })
      }
    })
    test(`${name}: a pinned certificate is accepted whatever its CA and name, and any other is refused before the sign-in`, async () => {
      const { fingerprint256 } = new X509Certificate(made.good.cert)
      for (const pinned of [[fingerprint256], ['00'.repeat(32), fingerprint256.replaceAll(':', '').toLowerCase()]]) {
        for (const host of ['other.test', '127.0.0.1']) {
          // Without a mode, a fingerprint turns TLS on, also for loopback.
          const results = await run(
            { url: urlOf(host), tls: { mode: 'auto', fingerprint: pinned } },
            'Standard',
            options,
          )
          const message = expect.stringContaining(`as monitor over ${network.tls.version} in`)
          expect(checked(results, 'connect')).toMatchObject({ status: 'ok', message })
          const pin = expect.stringContaining(
            'certificate matches the pinned fingerprint; certificate "svc.test" expires',
          )
          expect(checked(results, 'certificate')).toMatchObject({ status: 'ok', message: pin })
        }
      }
      const trusted = { mode: 'verify', caFile: made.caFile, fingerprint: ['00'.repeat(32)] } as const
      const refused = await run({ url: urlOf('svc.test'), tls: trusted, password: secret('wrong') }, 'Basic', options)
      expect(refused).toMatchObject([{ check: 'connect', status: 'failed', fault: 'tls' }])
      expect(refused[0]?.message).toContain(
        `does not match the pinned fingerprint; its fingerprint is ${fingerprint256}`,
      )
    })
    test(`${name}: from Standard on the end of its certificate is a figure, at every connection`, async () => {
      const at = (mode: ExecutionMode, more: SqlSettings = {}) =>
        run({ url: urlOf('svc.test'), tls: { mode: 'verify', caFile: made.caFile }, ...more }, mode, options)
      const end = new X509Certificate(made.good.cert).validToDate
      for (let connection = 0; connection < 2; connection += 1) {
        expect(checked(await at('Standard'), 'certificate')).toMatchObject({
          status: 'ok',
          measurement: { unit: 'days', warn: 20, limit: 3, bound: 'atLeast', at: end },
        })
      }
      expect(checked(await at('Standard', { certificate: { warn: 100_000 } }), 'certificate').status).toBe('warning')
      expect((await at('Basic')).map(({ check }) => check)).not.toContain('certificate')
    })
    test(`${name}: an unknown issuer or another name is tls`, async () => {
      expect(await connect('svc.test', { mode: 'verify' })).toMatchObject({ status: 'failed', fault: 'tls' })
      expect(await connect('other.test', { mode: 'verify', caFile: made.caFile })).toMatchObject({
        fault: 'tls',
        message: expect.stringMatching(/altnames|does not match/i),
      })
    })
    test(`${name}: a missing caFile is reported`, async () => {
      expect(await connect('svc.test', { mode: 'verify', caFile: `${made.caFile}.none` })).toMatchObject({
        fault: 'data',
        message: expect.stringContaining('.none does not exist'),
      })
    })
    test(`${name}: a server without TLS is reported with the setting that allows it`, async () => {
      const plain = network.server()
      expect(await connect('db.test', { mode: 'verify' }, plain)).toMatchObject({
        fault: 'tls',
        message: `${plain.address} does not offer TLS`,
        details: [expect.stringContaining('tls: {mode: off}')],
      })
    })
    const { large } = network
    if (!('absent' in large)) {
      test(`${name}: an answer without bound ends the connection over TLS too`, async () => {
        const tls = { mode: 'verify', caFile: made.caFile, servername: 'svc.test' } as const
        const { session, socket } = await opened(undefined, 60_000, { server: secured, tls })
        expect(session.encryption).toMatch(/^TLS/)
        expect((await session.read(large.text(3_000_000), false)).rows).toBe(1)
        await expect(session.read(large.flood, false)).rejects.toThrow('the peer sent more than 8 MiB')
        await expect(session.read('SELECT 1', false)).rejects.toThrow('not run: the connection had already ended')
        // A record of TLS is 16 KiB at most, and a few of them may be on their way.
        expect(socket.bytesRead).toBeLessThan(16 * 1024 ** 2)
        await session.close()
      })
    }
    network.tls.own?.(connect)
  })
}

function large({ name }: SqlDatabase, { large }: Network, { ask, opened, nothingOpen }: SqlTools): void {
  if ('absent' in large) return
  test.each(large.million)(`${name}: of a million rows a thousand come, and the session goes on: %s`, async (sql) => {
    const { session, socket } = await opened()
    const column = await session.read(sql, false)
    expect(column).toMatchObject({ rows: 1_000, more: true })
    expect(column.cells.slice(0, 2)).toEqual(['1', '2'])
    expect(socket.bytesRead).toBeLessThan(large.maxBytes)
    // Three of these are more than one session may be sent, were they not counted by themselves.
    for (let time = 0; time < 4; time += 1)
      expect((await session.read(large.text(3_000_000), false)).cells).toEqual(['x'.repeat(1_024)])
    expect(await session.ask('SELECT 1 AS one')).toEqual([{ one: 1 }])
    await session.close()
    await nothingOpen()
  })
  test(`${name}: an endless answer ends the connection, and the queries after it are reported as not run`, async () => {
    const result = await ask([
      { name: 'wide', sql: large.text(9_000_000), expect: 'x' },
      { name: 'next', sql: 'SELECT 1', atMost: { limit: 1 } },
    ])
    expect(result.map(({ message }) => message)).toEqual([
      'wide: the peer sent more than 8 MiB',
      'next: not run: the connection had already ended',
    ])
  })
}

/** Every database has a table `jobs` with two jobs that wait, since an hour and since now, and one that failed. */
const jobs: SqlDatabase['queries']['judged'] = [
  [
    { name: 'queue', sql: "SELECT count(*) FROM jobs WHERE state = 'waiting'", atMost: { limit: 2 } },
    'ok',
    'queue: 2 (fail 2)',
  ],
  [
    { name: 'failed', sql: "SELECT count(*) FROM jobs WHERE state = 'failed'", atMost: { warn: 0 } },
    'warning',
    'failed: 1 (warn 0)',
  ],
  [
    { name: 'oldest', sql: "SELECT min(created_at) FROM jobs WHERE state = 'waiting'", age: { limit: 60_000 } },
    'failed',
    'oldest: oldest 1 h (fail 1 min)',
  ],
  // In UTC, without a time zone.
  [
    { name: 'naive', sql: 'SELECT naive FROM jobs', age: { warn: 60_000 } },
    'warning',
    'naive: oldest 2 h (warn 1 min)',
  ],
  [
    { name: 'stuck', sql: "SELECT id FROM jobs WHERE state = 'stuck'", rows: { limit: 0 } },
    'ok',
    'stuck: rows 0 (fail 0)',
  ],
  [
    { name: 'dead', sql: "SELECT max(created_at) FROM jobs WHERE state = 'dead'", age: { limit: 1 } },
    'ok',
    'dead: none (NULL)',
  ],
  [{ name: 'share', sql: 'SELECT 0.5', atLeast: { limit: 0.5 } }, 'ok', 'share: 0.5 (fail below 0.5)'],
]
const many: QueryText = { name: 'text', sql: "SELECT 'many'", atMost: { limit: 1 } }
const well: QueryText = { name: 'well', sql: 'SELECT 1', atMost: { limit: 1 } }

function queries({ name, run, queries }: SqlDatabase, { ask, nothingOpen, stopping }: SqlTools): void {
  const { fails, writes, slow, wide, powers } = queries

  test(`${name}: the figures, dates and texts of a job table are judged`, async () => {
    const before = 'absent' in writes ? undefined : await writes.state()
    const all = [...jobs, ...queries.judged]
    const result = await ask(all.map(([query]) => query))
    expect(result.map(({ status, message }) => [status, message])).toEqual(
      all.map(([, status, message]) => [status, matching(message)]),
    )
    expect(new Set(result.map(({ address }) => address)).size).toBe(1)
    if (!('absent' in writes)) expect(await writes.state()).toEqual(before)
    await nothingOpen()
  })
  test(`${name}: a query of Advanced is not asked in Standard, and none in Basic`, async () => {
    const both: readonly QueryText[] = [
      { ...well, name: 'a' },
      { ...well, name: 'b', depth: 'Advanced' },
    ]
    const messages = async (mode: ExecutionMode) => (await ask(both, mode)).map(({ message }) => message)
    expect(await messages('Basic')).toEqual([])
    expect(await messages('Standard')).toEqual(['a: 1 (fail 1)'])
    expect(await messages('Advanced')).toEqual(['a: 1 (fail 1)', 'b: 1 (fail 1)'])
  })
  test(`${name}: INSERT is refused before anything is sent`, async () => {
    const insert = { name: 'x', sql: 'INSERT INTO jobs VALUES (1)', rows: { limit: 1 } }
    const results = await run({ queries: withDefaults([insert]) }, 'Standard')
    expect(results.map(({ message }) => message)).toEqual([
      'query "x": sql begins with "INSERT": only SELECT (or WITH … SELECT) is allowed',
    ])
  })
  test(`${name}: a query that fails is one result with the text of the database, and does not hide the others`, async () => {
    const result = await ask([...fails.map(({ query }) => query), many, well])
    expect(result.map(({ fault, message }) => [fault, message])).toEqual([
      ...fails.map(({ fault, message }) => [fault, matching(message)]),
      ['data', 'text: "many" is not a number'],
      [undefined, 'well: 1 (fail 1)'],
    ])
    for (const [at, { details }] of fails.entries()) if (details) expect(result[at]?.details).toEqual(details)
    expect(JSON.stringify(result)).not.toMatch(/\\u001b|\\u0007|\\u009b|\\u202e/)
    expect(JSON.stringify(result)).not.toContain(word)
  })
  if (!('absent' in writes)) {
    test.each(writes.sql)(`${name}: a write is refused: %s`, async (_, sql, message) => {
      const before = await writes.state()
      const [result, ...others] = await ask([{ sql, leastRows: { limit: 0 } }, well])
      expect(result).toMatchObject({ status: 'failed', fault: 'data', message: matching(message) })
      expect(others.map(({ message }) => message)).toEqual(['well: 1 (fail 1)'])
      expect(await writes.state()).toEqual(before)
    })
  }
  test(`${name}: a query that takes too long is ended before the deadline, and named`, async () => {
    const queries = [
      { ...well, name: 'slow', sql: slow.sql },
      { ...well, name: 'next' },
    ]
    await stopping(async () => {
      const result = await endsByDeadline(slow.timeoutMs, ask(queries, 'Standard', { timeoutMs: slow.timeoutMs }))
      expect(result.map(({ message }) => message)).toEqual([matching(slow.message), matching(slow.next)])
      expect(result[0]?.fault).toBe('timeout')
    })
    await nothingOpen()
  })
  test(`${name}: rows are counted beyond the text that is kept`, async () => {
    const result = await ask([
      { sql: wide(1_000), rows: { limit: 600 } },
      { sql: wide(1_000), leastRows: { limit: 900 } },
      { sql: wide(600), rows: { limit: 600 } },
      { sql: wide(899), leastRows: { limit: 900 } },
      { sql: wide(1_001), rows: { limit: 1_000 } },
    ])
    expect(result.map(({ status, message }) => [status, message])).toEqual([
      ['failed', 'jobs: rows 1000 (fail 600)'],
      ['ok', 'jobs: rows 1000 (fail below 900)'],
      ['ok', 'jobs: rows 600 (fail 600)'],
      ['failed', 'jobs: rows 899 (fail below 900)'],
      ['failed', 'jobs: rows, at least 1001 (fail 1000)'],
    ])
  })
  if (!('absent' in powers)) {
    test.each(powers)(`${name}: queries that are asked with $name are warned of once`, async ({ plant, end, as }) => {
      await plant()
      try {
        const result = await ask([well, well])
        expect(result.map(({ status, message }) => [status, message])).toEqual([
          ['warning', `queries run ${as}: use a read-only account for svc`],
          ['ok', 'well: 1 (fail 1)'],
          ['ok', 'well: 1 (fail 1)'],
        ])
        expect(await ask([well], 'Basic')).toEqual([])
      } finally {
        await end()
      }
    })
  }
}
