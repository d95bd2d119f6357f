import { getEventListeners } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { ProbeError } from '../../../src/core/base/probe-error.ts'
import {
  type AnyKind,
  type CheckContext,
  limits,
  notChecked,
  type PlannedMonitor,
  type Result,
  runMonitors,
} from '../../../src/core/checks/engine/index.ts'
import { engineFixture } from '../../support/engine/engine-fixture.ts'
import { endsByDeadline } from '../../support/suite/deadline.ts'
import { until } from '../../support/suite/until.ts'

type Made = Partial<Omit<PlannedMonitor, 'kind'>> & {
  readonly observe?: (context: CheckContext) => AsyncIterable<Result>
  readonly target?: { readonly host?: string; readonly port?: number; readonly database?: string }
  readonly signsIn?: boolean
}

const ok = (check = 'probe'): Result => ({ check, status: 'ok', message: 'fine' })
const bad = (check = 'probe'): Result => ({ check, status: 'failed', fault: 'threshold', message: 'too much' })

function monitor(name: string, made: Made = {}): PlannedMonitor {
  const {
    observe = async function* () {
      yield ok()
    },
    target,
    signsIn,
    ...rest
  } = made
  const kind: AnyKind = {
    name: 'made',
    title: 'made for a test',
    settings: {},
    checks: [{ name: 'probe', depth: 'Basic', doc: '' }],
    runsOn: 'network',
    run: (_: never, context) => observe(context),
    ...(target ? { target: () => target } : {}),
    ...(signsIn ? { signsIn: () => ({ account: 'svc', secrets: ['secret'] }) } : {}),
  }
  return {
    name,
    kind,
    settings: {},
    depth: 'Basic',
    host: false,
    dependsOn: [],
    retries: 0,
    deployment: false,
    ...rest,
  }
}

const never = new AbortController().signal
const run = (
  plan: readonly PlannedMonitor[],
  context = engineFixture(),
  mode: 'Basic' | 'Standard' | 'Advanced' = 'Basic',
) => runMonitors(plan, context, { mode, signal: never })

describe('the engine', () => {
  test('H10 a monitor that throws does not hide the others', async () => {
    const thrower = monitor('a', {
      observe: () => ({
        [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('boom\nsecond line')) }),
      }),
    })
    const evaluate = monitor('b')
    const broken: PlannedMonitor = {
      ...evaluate,
      name: 'b',
      kind: {
        ...evaluate.kind,
        // biome-ignore lint/correctness/useYield: it throws before it could
        async *run() {
          throw new TypeError('judge broke')
        },
      },
    }
    const { monitors } = await run([thrower, broken, monitor('c')])
    expect(
      monitors.map(({ name, results }) => [name, results[0]?.status, results[0]?.fault, results[0]?.message]),
    ).toEqual([
      ['a', 'failed', 'internal', 'boom'],
      ['b', 'failed', 'internal', 'judge broke'],
      ['c', 'ok', undefined, 'fine'],
    ])
  })

  test('each mode includes the shallower ones', async () => {
    const plan = [
      monitor('b', { depth: 'Basic' }),
      monitor('s', { depth: 'Standard' }),
      monitor('a', { depth: 'Advanced' }),
    ]
    for (const [mode, names] of [
      ['Basic', ['b']],
      ['Standard', ['b', 's']],
      ['Advanced', ['b', 's', 'a']],
    ] as const) {
      expect((await run(plan, engineFixture(), mode)).monitors.map(({ name }) => name)).toEqual(names)
    }
  })

  test('H9 a monitor that hangs ends at its deadline, keeps its results so far, and its signal is aborted', async () => {
    let aborted = false
    let closed = false
    const hangs = monitor('hangs', {
      timeoutMs: 80,
      observe: async function* (context) {
        try {
          yield ok('first')
          context.step('second', '127.0.0.1:9')
          await new Promise((_, reject) => {
            context.signal.addEventListener('abort', () => {
              aborted = true
              reject(context.signal.reason)
            })
          })
        } finally {
          closed = true
        }
      },
    })
    const { monitors } = await endsByDeadline(80, run([hangs, monitor('quick')]), 50)
    expect({ aborted, closed }).toEqual({ aborted: true, closed: true })
    expect(monitors[0]?.results.map(({ check, status, fault }) => [check, status, fault])).toEqual([
      ['first', 'ok', undefined],
      ['second', 'failed', 'timeout'],
    ])
    expect(monitors[0]?.results[1]?.message).toBe('127.0.0.1:9 did not answer within 0.1 s')
    expect(monitors[1]?.results[0]?.status).toBe('ok')
  })

  test('H9 a monitor that ignores its signal does not delay the run', async () => {
    const deaf = monitor('deaf', {
      timeoutMs: 50,
      observe: async function* () {
        await new Promise(() => {})
        yield ok()
      },
    })
    const { monitors } = await endsByDeadline(50, run([deaf]), 50)
    expect(monitors[0]?.results[0]?.fault).toBe('timeout')
  })

  test('H9 the deadline of the run ends monitors that have more time of their own', async () => {
    const slow = monitor('slow', {
      timeoutMs: 60_000,
      observe: async function* (context) {
        await pause(60_000, undefined, { signal: context.signal })
        yield ok()
      },
    })
    const run = runMonitors([slow], engineFixture(), { mode: 'Basic', signal: never, timeoutMs: 60 })
    const report = await endsByDeadline(60, run, 50)
    expect(report.monitors[0]?.results[0]?.fault).toBe('timeout')
  })

  test('a report is handed over when its monitor ends, while another one still runs', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const slow = monitor('slow', {
      observe: async function* () {
        await released
        yield ok()
      },
    })
    const quick = monitor('quick', {
      observe: async function* () {
        yield ok()
      },
    })
    const names: string[] = []
    const handedOver = Promise.withResolvers<void>()
    const onReport = ({ name }: { readonly name: string }): void => {
      names.push(name)
      handedOver.resolve()
    }
    const running = runMonitors([slow, quick], engineFixture(), { mode: 'Basic', signal: never, onReport })
    await handedOver.promise
    expect(names).toEqual(['quick'])
    release()
    await running
    expect(names).toEqual(['quick', 'slow'])
  })

  test('an aborted run rejects with the reason, and leaves no listener behind', async () => {
    const controller = new AbortController()
    const reason = new Error('enough')
    const slow = monitor('slow', {
      observe: async function* (context) {
        await pause(60_000, undefined, { signal: context.signal })
        yield ok()
      },
    })
    const running = runMonitors([slow], engineFixture(), { mode: 'Basic', signal: controller.signal })
    setTimeout(() => controller.abort(reason), 20)
    await expect(running).rejects.toBe(reason)
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
  })

  test('H9 at most 4 monitors run on a host and 1 on a database, and all of them run in the end', async () => {
    const at = { host: 0, database: 0, hostMost: 0, databaseMost: 0 }
    const busy = (key: 'host' | 'database', most: 'hostMost' | 'databaseMost') =>
      async function* () {
        at[key] += 1
        at[most] = Math.max(at[most], at[key])
        await pause(10)
        at[key] -= 1
        yield ok()
      }
    const plan = [
      ...Array.from({ length: 12 }, (_, i) =>
        monitor(`h${i}`, { target: { host: 'One.example' }, observe: busy('host', 'hostMost') }),
      ),
      ...Array.from({ length: 5 }, (_, i) =>
        monitor(`d${i}`, { target: { host: `h${i}`, database: 'db' }, observe: busy('database', 'databaseMost') }),
      ),
    ]
    const context = engineFixture()
    const { monitors } = await run(plan, context)
    expect(monitors.every(({ results }) => results[0]?.status === 'ok')).toBe(true)
    expect([at.hostMost, at.databaseMost]).toEqual([4, 1])
  })

  test('H10 a monitor that depends on a failed one is skipped and names it, transitively', async () => {
    let order = 0
    const count = async function* () {
      order += 1
      yield ok()
    }
    const plan = [
      monitor('child', { dependsOn: ['parent'], observe: count }),
      monitor('grandchild', { dependsOn: ['child'], observe: count }),
      monitor('parent', {
        observe: async function* () {
          yield { check: 'probe', status: 'failed', fault: 'refused', message: 'nobody there' }
        },
      }),
      monitor('free', { observe: count }),
    ]
    const { monitors } = await run(plan)
    expect(order).toBe(1)
    expect(monitors.map(({ name, results }) => [name, results[0]?.message])).toEqual([
      ['child', 'not run: parent failed'],
      ['grandchild', 'not run: child failed'],
      ['parent', 'nobody there'],
      ['free', 'fine'],
    ])
    expect(monitors[0]?.results[0]?.fault).toBe('dependency')
  })

  test('H11 a late pass reports its attempt, and retries are off unless configured', async () => {
    const flaky = (retries: number) => {
      let attempt = 0
      return monitor('flaky', {
        retries,
        observe: async function* () {
          attempt += 1
          yield attempt < 3 ? bad() : ok()
        },
      })
    }
    expect((await run([flaky(0)])).monitors[0]?.results[0]?.status).toBe('failed')
    const passed = (await run([flaky(2)])).monitors[0]
    expect(passed?.results[0]?.message).toBe('fine (passed on attempt 3)')
    expect(passed?.attempts).toBe(3)
  })

  test('H11 a refused sign-in is not repeated, neither at once nor by the next run, until its pause ends', async () => {
    let tries = 0
    let refuse = true
    const signing = monitor('postgres orders', {
      retries: 3,
      signsIn: true,
      observe: async function* () {
        tries += 1
        if (refuse) throw new ProbeError('auth', 'password authentication failed')
        yield ok()
      },
    })
    let clock = 0
    const context = engineFixture({ limits: limits(), date: () => new Date(clock) })
    await run([signing], context)
    expect(tries).toBe(1)
    clock = 4 * 60_000
    const second = await run([signing], context)
    expect(tries).toBe(1)
    expect(second.monitors[0]?.results[0]?.message).toContain(
      'next attempt in 1 min, so that the account is not locked',
    )
    clock = 6 * 60_000
    await run([signing], context)
    expect(tries).toBe(2)
    clock = 6 * 60_000 + 9 * 60_000
    await run([signing], context)
    expect(tries).toBe(2)
    clock = 6 * 60_000 + 11 * 60_000
    refuse = false
    expect((await run([signing], context)).monitors[0]?.results[0]?.status).toBe('ok')
  })

  test('H9 the resources of an observation are released when its evaluation throws', async () => {
    let closed = false
    const holding = monitor('holding', {
      observe: async function* () {
        try {
          yield ok()
          yield ok()
        } finally {
          closed = true
        }
      },
    })
    const evaluate = (): never => {
      throw new TypeError('judge broke')
    }
    const { run: observe } = holding.kind
    const evaluated = async function* (settings: never, context: CheckContext) {
      for await (const _ of observe(settings, context)) yield evaluate()
    }
    await run([{ ...holding, kind: { ...holding.kind, run: evaluated } }])
    expect(closed).toBe(true)
  })

  test('H11 a refused sign-in at one target does not pause another, even of the same name', async () => {
    const context = engineFixture({ limits: limits() })
    const signing = (host: string, refuse: boolean) =>
      monitor('postgres orders', {
        signsIn: true,
        target: { host, port: 5_432 },
        settings: { host },
        observe: async function* () {
          if (refuse) throw new ProbeError('auth', 'password authentication failed')
          yield ok()
        },
      })
    await run([signing('a', true)], context)
    expect((await run([signing('b', false)], context)).monitors[0]?.results[0]?.status).toBe('ok')
    expect((await run([signing('a', false)], context)).monitors[0]?.results[0]?.fault).toBe('auth')
  })

  test('a monitor without results is a failure, not a success', async () => {
    const { monitors } = await run([monitor('empty', { observe: async function* () {} })])
    expect(monitors[0]?.results[0]).toMatchObject({ status: 'failed', message: 'the check produced no result' })
  })

  test('a run leaves no timer behind', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    await run(Array.from({ length: 50 }, (_, i) => monitor(`m${i}`)))
    await until(() => timers() <= before)
  })
})

describe('the engine with monitors of the machine and of svc.yaml', () => {
  test('K11 G1 a monitor runs although its dependency was not checked, unless another one cannot be reached', async () => {
    const invalid = monitor('wrong', {
      observe: async function* () {
        yield notChecked('configured', 'configuration', 'svc.yaml:4:37: types.Sql[1].prot is not a setting')
      },
    })
    const down = monitor('down', {
      observe: async function* () {
        yield { check: 'probe', status: 'failed', fault: 'refused', message: 'refused' }
      },
    })
    const { monitors } = await run([
      invalid,
      down,
      monitor('after wrong', { dependsOn: ['wrong'] }),
      monitor('after both', { dependsOn: ['wrong', 'down'] }),
    ])
    const byName = new Map(monitors.map((report) => [report.name, report]))
    expect(byName.get('after wrong')?.results[0]?.status).toBe('ok')
    expect(byName.get('after both')?.results[0]?.notChecked).toBeUndefined()
    expect(byName.get('after both')?.results[0]).toMatchObject({ fault: 'dependency', cause: 'down' })
  })
})
