import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { ProbeError } from '../../../src/core/base/probe-error.ts'
import { Secret } from '../../../src/core/base/settings/index.ts'
import {
  type CheckContext,
  limits,
  type MonitorReport,
  type PlannedMonitor,
  type RefusalStore,
  type Result,
  runMonitors,
} from '../../../src/core/checks/engine/index.ts'
import { SignIns } from '../../../src/core/checks/engine/sign-ins.ts'
import { engineFixture } from '../../support/engine/engine-fixture.ts'
import { files } from '../../support/engine/files.ts'

const never = new AbortController().signal
const minute = 60_000

/** A server with one account, whose sign-ins it counts. */
class Directory {
  password: string
  attempts = 0
  concurrent = 0
  most = 0
  constructor(password: string) {
    this.password = password
  }
  async signIn(password: string): Promise<void> {
    this.attempts += 1
    this.concurrent += 1
    this.most = Math.max(this.most, this.concurrent)
    await pause(20)
    this.concurrent -= 1
    if (password !== this.password) throw new ProbeError('auth', 'invalid credentials')
  }
}

type Account = { readonly host?: string; readonly account?: string; readonly password?: string }

function signingIn(
  name: string,
  directory: Directory,
  { host = 'dc1', account = 'svc', password = 'old' }: Account = {},
  rest: (context: CheckContext) => Promise<void> = async () => {},
): PlannedMonitor {
  return {
    name,
    kind: {
      name: 'made',
      title: 'made for a test',
      settings: {},
      checks: [
        { name: 'bind', depth: 'Basic', doc: '' },
        { name: 'search', depth: 'Basic', doc: '' },
      ],
      runsOn: 'network',
      target: () => ({ host, port: 389 }),
      signsIn: () => ({ account, secrets: [password], result: 'bind' }),
      async *run(_: never, context): AsyncGenerator<Result> {
        yield { check: 'connect', status: 'ok', message: 'connected' }
        context.step('bind')
        await directory.signIn(password)
        yield { check: 'bind', status: 'ok', message: 'signed in' }
        await rest(context)
        yield { check: 'search', status: 'ok', message: 'found' }
      },
    },
    settings: {},
    depth: 'Basic',
    host: false,
    dependsOn: [],
    retries: 0,
    deployment: false,
  }
}

const run = async (plan: readonly PlannedMonitor[], context = engineFixture(), more = {}) =>
  (await runMonitors(plan, context, { mode: 'Basic', signal: never, ...more })).monitors
const lastOf = ({ results }: MonitorReport): Result | undefined => results.at(-1)

describe('H11 sign-ins with one account', () => {
  test('a refused sign-in is attempted once, however many monitors have the account', async () => {
    const directory = new Directory('new')
    const monitors = await run(['a', 'b', 'c'].map((name) => signingIn(name, directory)))
    expect(directory.attempts).toBe(1)
    expect(lastOf(monitors[0] as MonitorReport)).toMatchObject({ check: 'bind', status: 'failed', fault: 'auth' })
    for (const monitor of monitors.slice(1)) {
      expect(lastOf(monitor)).toMatchObject({
        check: 'sign-in',
        status: 'failed',
        notChecked: 'refused',
        message: expect.stringMatching(
          /^not checked: the sign-in of a was refused \(invalid credentials\) .* ago and is not repeated; next attempt in 5 min, so that the account is not locked$/,
        ),
      })
    }
  })

  test('a defect before the sign-in stops it, and never signs in without the guard', async () => {
    const directory = new Directory('old')
    const monitor = signingIn('a', directory)
    const secrets = [new Secret('{env: PASSWORD}', () => Promise.reject(new TypeError('a defect')))]
    const kind = { ...monitor.kind, signsIn: () => ({ account: 'svc', secrets, result: 'bind' }) }
    await expect(run([{ ...monitor, kind }])).rejects.toThrow('a defect')
    expect(directory.attempts).toBe(0)
  })

  test('a monitor whose secret cannot be read reports that itself', async () => {
    const directory = new Directory('old')
    const monitor = signingIn('a', directory, {}, async () => {
      throw new ProbeError('internal', 'the secret cannot be read')
    })
    const secrets = [new Secret('{env: PASSWORD}', () => Promise.reject(new ProbeError('internal', 'not set')))]
    const kind = { ...monitor.kind, signsIn: () => ({ account: 'svc', secrets, result: 'bind' }) }
    const [report] = await run([{ ...monitor, kind }])
    expect(lastOf(report as MonitorReport)).toMatchObject({ status: 'failed', message: 'the secret cannot be read' })
  })

  test('also by monitors of other server types, whose runs begin together', async () => {
    const directory = new Directory('new')
    const context = engineFixture()
    await Promise.all(['a', 'b', 'c'].map((name) => run([signingIn(name, directory)], context)))
    expect(directory.attempts).toBe(1)
  })

  test('once the first has been accepted, the others sign in together, and need not wait for the end of the first', async () => {
    const directory = new Directory('old')
    let others = 0
    const { promise: allSignedIn, resolve } = Promise.withResolvers<void>()
    const monitors = await run([
      signingIn('a', directory, {}, () => allSignedIn),
      ...['b', 'c', 'd'].map((name) =>
        signingIn(name, directory, {}, async () => {
          others += 1
          if (others === 3) resolve()
          await allSignedIn
        }),
      ),
    ])
    expect(monitors.map((monitor) => lastOf(monitor)?.status)).toEqual(['ok', 'ok', 'ok', 'ok'])
    expect([directory.attempts, directory.most]).toEqual([4, 3])
  })

  test('another server, another account and another secret are tried', async () => {
    const directory = new Directory('new')
    await run([
      signingIn('a', directory),
      signingIn('b', directory, { host: 'dc2' }),
      signingIn('c', directory, { account: 'other' }),
      signingIn('d', directory, { password: 'other' }),
      signingIn('e', directory, { account: 'SVC', host: 'DC1' }),
    ])
    expect(directory.attempts).toBe(4)
  })

  test('a corrected secret is tried at once, and the monitor that was refused stays failed until then', async () => {
    const directory = new Directory('new')
    const context = engineFixture()
    await run([signingIn('a', directory), signingIn('b', directory)], context)
    const [a, b] = await run([signingIn('a', directory), signingIn('b', directory)], context)
    expect(a?.results).toEqual([
      expect.objectContaining({
        status: 'failed',
        fault: 'auth',
        message: expect.stringMatching(
          /^refused: invalid credentials \([\d.]+ m?s ago\); next attempt in (?:4\.\d|5) min, so that the account is not locked$/,
        ),
      }),
    ])
    expect(b?.results).toEqual([expect.objectContaining({ notChecked: 'refused' })])
    expect(directory.attempts).toBe(1)
    const mended = await run([signingIn('a', directory, { password: 'new' })], context)
    expect(mended.map((monitor) => lastOf(monitor)?.status)).toEqual(['ok'])
  })

  test('a first sign-in without an answer passes the turn on', async () => {
    const directory = new Directory('old')
    const hangs = signingIn('a', directory)
    const silent: PlannedMonitor = {
      ...hangs,
      timeoutMs: 200,
      kind: {
        ...hangs.kind,
        async *run(_: never, { signal }): AsyncGenerator<Result> {
          await pause(minute, undefined, { signal })
          yield { check: 'bind', status: 'ok', message: 'never' }
        },
      },
    }
    const [a, b] = await run([silent, signingIn('b', directory)])
    expect([lastOf(a as MonitorReport)?.fault, lastOf(b as MonitorReport)?.status]).toEqual(['timeout', 'ok'])
  })

  test('a monitor that waits for a sign-in until the end of the run names it', async () => {
    const directory = new Directory('old')
    const silent = signingIn('a', directory)
    const hanging: PlannedMonitor = {
      ...silent,
      kind: {
        ...silent.kind,
        async *run(_: never, { signal }): AsyncGenerator<Result> {
          await pause(minute, undefined, { signal })
          yield { check: 'bind', status: 'ok', message: 'never' }
        },
      },
    }
    const [, b] = await run([hanging, signingIn('b', directory)], engineFixture(), { timeoutMs: 400 })
    expect(lastOf(b as MonitorReport)).toMatchObject({
      check: 'not run',
      notChecked: 'budget',
      message: expect.stringMatching(/^not checked: waited [\d.]+ s for the sign-in of a; /),
    })
  })

  test('monitors that are tried in spite of a refusal repeat it once, however many have the account', async () => {
    const directory = new Directory('new')
    const context = engineFixture()
    const plan = ['a', 'b', 'c'].map((name) => signingIn(name, directory))
    await run(plan, context)
    const until = { repeatsRefusedUntil: Date.now() }
    await Promise.all([run(plan, context, until), run(plan, context, until)])
    expect(directory.attempts).toBe(2)
  })

  test('the next step is the command that tries the monitor, which the program provides', async () => {
    const directory = new Directory('new')
    const tryNow = async ({ name }: PlannedMonitor): Promise<string> => `try now: svc monitors test ${name}`
    const context = engineFixture({ tryNow })
    const plan = ['a', 'b'].map((name) => signingIn(name, directory))
    await run(plan, context)
    const monitors = await run(plan, context)
    expect(monitors.map((monitor) => lastOf(monitor)?.details)).toEqual([
      ['try now: svc monitors test a'],
      ['try now: svc monitors test b'],
    ])
  })

  test('somebody who tries a monitor signs in even after a refusal', async () => {
    const directory = new Directory('new')
    const context = engineFixture()
    await run([signingIn('a', directory)], context)
    await run([signingIn('a', directory)], context, { repeatsRefusedUntil: Date.now() })
    expect(directory.attempts).toBe(2)
  })

  test('a refusal to one monitor does not stop the others when the server has accepted the account', async () => {
    const directory = new Directory('old')
    const context = engineFixture()
    const forbidden = signingIn('b', directory, {}, async () => {
      throw new ProbeError('auth', 'not allowed here')
    })
    const plan = [signingIn('a', directory), forbidden]
    await run(plan, context)
    const [a] = await run(plan, context)
    expect(lastOf(a as MonitorReport)?.status).toBe('ok')
  })
})

const target = { host: 'dc1.example', port: 389 }
const passwordRefusal = { by: 'a', cause: 'wrong password' }
const ldapCorp = { by: 'ldap corp', cause: 'dc1.example:389 refused the sign-in as "svc-monitor": wrong password' }
const account = { account: 'svc-monitor', secrets: ['hunter2'] }

test('H11 the pause after a refused sign-in is 5 min at first and doubles to an hour, until one succeeds', async () => {
  const signIns = await limits().signIns()
  const key = await signIns.keyOf(target, account, files)
  let now = 0
  const pauseAfterRefusal = async (): Promise<number> => {
    await signIns.refused(key, passwordRefusal, now)
    let minutes = 0
    while (minutes < 200 && (await signIns.blocked(key, now + minutes * minute))) minutes += 1
    now += minutes * minute
    return minutes
  }
  const pauses: number[] = []
  for (let n = 0; n < 6; n += 1) pauses.push(await pauseAfterRefusal())
  expect(pauses).toEqual([5, 10, 20, 40, 60, 60])
  await signIns.accepted(key, now)
  expect(await pauseAfterRefusal()).toBe(5)
})

describe('H11 refused sign-ins outlive the process', () => {
  /** A store in memory, and the processes that share it. */
  function shared(first?: string) {
    let text = first
    const store: RefusalStore = {
      read: async () => text,
      write: async (next) => {
        text = next
      },
    }
    return { store, process: () => new SignIns(store), text: () => text ?? '' }
  }

  /** Copies the last refusal of a file so many times, for other places, since each refusal costs one scrypt. */
  async function fill(file: ReturnType<typeof shared>, count: number, at: number): Promise<void> {
    const content = JSON.parse(file.text()) as { readonly refusals: readonly object[] }
    const copies = Array.from({ length: count }, (_, n) => {
      return { ...content.refusals.at(-1), place: `p${n}`, by: `m${n + 1}`, at }
    })
    await file.store.write(JSON.stringify({ ...content, refusals: [...content.refusals, ...copies] }))
  }

  test('another process does not repeat one, waits longer after the next, and tries a corrected secret', async () => {
    const file = shared()
    const first = file.process()
    await first.refused(await first.keyOf(target, account, files), ldapCorp, 0)
    const second = file.process()
    const key = await second.keyOf(target, account, files)
    expect(await second.blocked(key, minute)).toEqual({ ...ldapCorp, ago: '1 min', next: '4 min' })
    await second.refused(key, ldapCorp, 6 * minute)
    const third = file.process()
    expect((await third.blocked(await third.keyOf(target, account, files), 7 * minute))?.next).toBe('9 min')
    const corrected = await third.keyOf(target, { ...account, secrets: ['corrected'] }, files)
    expect(await third.blocked(corrected, 7 * minute)).toBeUndefined()
    await third.accepted(corrected, 7 * minute)
    const old = await third.keyOf(target, account, files)
    expect(await third.blocked(old, 7 * minute)).toMatchObject({ by: 'ldap corp' })
    await third.accepted(old, 7 * minute)
    expect(JSON.parse(file.text())).toMatchObject({ refusals: [] })
  })

  test('another process names the cause, which nobody can read who does not know the server and the account', async () => {
    const file = shared()
    const first = file.process()
    await first.refused(await first.keyOf(target, account, files), ldapCorp, 0)
    expect(file.text()).not.toMatch(/wrong password|refused the sign-in/)
    const second = file.process()
    expect((await second.blocked(await second.keyOf(target, account, files), 1))?.cause).toBe(ldapCorp.cause)
    // Whoever knows the server and the account reads the cause without the secret: it cannot confirm a guess.
    const { refusals } = JSON.parse(file.text()) as { readonly refusals: readonly { readonly sealed: string }[] }
    expect(Buffer.from(refusals[0]?.sealed ?? '', 'base64').length).toBe(28 + ldapCorp.cause.length)
  })

  test('an entry with a damaged cause, or without one, still forbids the sign-in', async () => {
    for (const damage of [(sealed: string) => `AAAA${sealed.slice(4)}`, () => 'AAAA', () => 5, () => undefined]) {
      const file = shared()
      const first = file.process()
      await first.refused(await first.keyOf(target, account, files), passwordRefusal, 0)
      const content = JSON.parse(file.text()) as { refusals: { sealed: unknown }[] }
      for (const entry of content.refusals) entry.sealed = damage(String(entry.sealed))
      const second = shared(JSON.stringify(content)).process()
      const blocked = await second.blocked(await second.keyOf(target, account, files), minute)
      expect(blocked).toEqual({ by: 'a', cause: undefined, ago: '1 min', next: '4 min' })
    }
  })

  test('a process that keeps running signs in again as soon as the same sign-in has succeeded in another one', async () => {
    const file = shared()
    const server = file.process()
    const key = await server.keyOf(target, account, files)
    await server.refused(key, passwordRefusal, 0)
    expect(await server.blocked(key, minute)).toMatchObject({ cause: 'wrong password' })
    const other = file.process()
    const same = await other.keyOf(target, account, files)
    await other.blocked(same, minute, minute)
    await other.accepted(same, minute)
    expect(await server.blocked(key, minute)).toBeUndefined()
  })

  test('a process that keeps running respects a later refusal of another one', async () => {
    const file = shared()
    const server = file.process()
    const key = await server.keyOf(target, account, files)
    await server.refused(key, passwordRefusal, 0)
    const other = file.process()
    const same = await other.keyOf(target, account, files)
    await other.blocked(same, 6 * minute)
    await other.refused(same, { by: 'b', cause: 'the account is locked' }, 6 * minute)
    expect(await server.blocked(key, 7 * minute)).toEqual({
      by: 'b',
      cause: 'the account is locked',
      ago: '1 min',
      next: '9 min',
    })
  })

  test('refusals of several accounts at the same moment, also of two processes, all count afterwards', async () => {
    let text: string | undefined
    const slow: RefusalStore = {
      read: async () => {
        const now = text
        await pause(5)
        return now
      },
      write: async (next) => {
        await pause(5)
        text = next
      },
    }
    const processes = [new SignIns(slow), new SignIns(slow)]
    const names = ['a', 'b', 'c', 'd']
    const keys = await Promise.all(
      names.map(async (name, at) => {
        const signIns = processes[at % 2] as SignIns
        const key = await signIns.keyOf(target, { ...account, account: name }, files)
        await signIns.blocked(key, 0)
        return { signIns, key, name }
      }),
    )
    await Promise.all(keys.map(({ signIns, key, name }) => signIns.refused(key, { by: name, cause: name }, 0)))
    for (const { signIns, key, name } of keys) expect(await signIns.blocked(key, minute)).toMatchObject({ by: name })
  })

  test('a full file forgets no refusal of this process', async () => {
    const file = shared()
    const signIns = file.process()
    const first = await signIns.keyOf(target, account, files)
    await signIns.refused(first, passwordRefusal, 0)
    await fill(file, 99, 1)
    expect(file.text()).toContain('"at":0')
    await signIns.refused(await signIns.keyOf(target, { ...account, account: 'last' }, files), passwordRefusal, 1)
    expect(file.text()).not.toContain('"at":0')
    expect(await signIns.blocked(first, minute)).toMatchObject({ by: 'a' })
  })

  test('a sign-in that succeeds when somebody tries the monitor ends the pause for other processes', async () => {
    const { store } = shared()
    const directory = new Directory('new')
    await run([signingIn('a', directory)], engineFixture({ limits: limits(store) }))
    directory.password = 'old'
    await run([signingIn('a', directory)], engineFixture({ limits: limits(store) }), {
      repeatsRefusedUntil: Date.now(),
    })
    const [a] = await run([signingIn('a', directory)], engineFixture({ limits: limits(store) }))
    expect(lastOf(a as MonitorReport)?.status).toBe('ok')
  })

  test('S3 the file has neither server, account nor secret, and too few bits of the secret to confirm a guess', async () => {
    const file = shared()
    const signIns = file.process()
    await signIns.refused(await signIns.keyOf(target, account, files), ldapCorp, 0)
    // The whole name of the host: three characters of it may be a part of the random salt.
    expect(file.text()).not.toMatch(/hunter2|svc-monitor|dc1\.example/)
    const { refusals } = JSON.parse(file.text()) as { readonly refusals: readonly { readonly check: string }[] }
    expect(refusals.map(({ check }) => check)).toEqual([expect.stringMatching(/^[0-9a-f]{4}$/)])
  })

  test('the file keeps 100 refusals, the latest', async () => {
    const file = shared()
    const signIns = file.process()
    const refuse = async (n: number): Promise<void> => {
      const key = await signIns.keyOf(target, { ...account, account: `a${n}` }, files)
      await signIns.refused(key, { by: `m${n}`, cause: undefined }, n)
    }
    await refuse(0)
    await fill(file, 97, 1)
    for (let n = 98; n < 105; n += 1) await refuse(n)
    const { refusals } = JSON.parse(file.text()) as { readonly refusals: readonly { readonly by: string }[] }
    expect([refusals.length, refusals[0]?.by, refusals.at(-1)?.by]).toEqual([100, 'm5', 'm104'])
  })

  test.each([
    ['empty', ''],
    ['no JSON', '{"version":1'],
    ['another version', '{"version":2,"salt":"x","refusals":[]}'],
    ['no object', 'null'],
    ['wrong members', '{"version":1,"salt":"x","refusals":[null,5,{"place":1}]}'],
    ['too long', `{"version":1,"salt":"x","refusals":[]}${' '.repeat(300_000)}`],
  ])('a file that is %s counts as having no refusals, and is replaced', async (_, text) => {
    const file = shared(text)
    const signIns = file.process()
    const key = await signIns.keyOf(target, account, files)
    expect(await signIns.blocked(key, 0)).toBeUndefined()
    await signIns.refused(key, passwordRefusal, 0)
    expect(JSON.parse(file.text())).toMatchObject({ version: 1, refusals: [{ by: 'a' }] })
  })

  test('a store that fails costs the memory and nothing else', async () => {
    const failing = new SignIns({
      read: () => Promise.reject(new Error('EACCES')),
      write: () => Promise.reject(new Error('EROFS')),
    })
    const key = await failing.keyOf(target, account, files)
    await failing.refused(key, passwordRefusal, 0)
    expect(await failing.blocked(key, minute)).toMatchObject({ by: 'a' })
  })

  test('a refusal from the future, after the clock was set back, does not block', async () => {
    const signIns = shared().process()
    const key = await signIns.keyOf(target, account, files)
    await signIns.refused(key, passwordRefusal, 10 * minute)
    expect(await signIns.blocked(key, 0)).toBeUndefined()
  })
})
