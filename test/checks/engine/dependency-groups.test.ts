import { expect, test } from 'vitest'
import type { FaultClass } from '../../../src/core/base/probe-error.ts'
import {
  fail,
  notChecked,
  ok,
  type PlannedMonitor,
  type Result,
  runMonitors,
} from '../../../src/core/checks/engine/index.ts'
import { dependenciesElsewhere } from '../../../src/core/checks/plan/index.ts'
import type { ServerType } from '../../../src/core/protocol/index.ts'
import { engineFixture } from '../../support/engine/engine-fixture.ts'

const signal = new AbortController().signal
const fine = ok('connect', 'fine')
const down = fail('connect', 'refused', 'refused')

/** Monitors that report these results, by type and name, and how often each has run. */
function planted(results: Readonly<Record<string, Result>>, shop: Partial<PlannedMonitor>) {
  const runs = new Map<string, number>()
  const monitorOf = (key: string, result: Result, more: Partial<PlannedMonitor> = {}): PlannedMonitor => {
    const [type = '', name = ''] = key.split('/')
    return {
      name,
      type: type as ServerType,
      kind: {
        name: 'planted',
        title: 'Planted',
        runsOn: 'network',
        // Each observes something of its own.
        settings: {},
        checks: [],
        async *run() {
          runs.set(key, (runs.get(key) ?? 0) + 1)
          yield result
        },
      },
      settings: { key },
      depth: 'Basic',
      host: false,
      dependsOn: [],
      retries: 0,
      deployment: false,
      ...more,
    }
  }
  const all = [
    ...Object.entries(results).map(([key, result]) => monitorOf(key, result)),
    monitorOf('App/shop', fine, shop),
    monitorOf('App/second', fine, shop),
  ]
  const run = async (more: { readonly plan?: readonly PlannedMonitor[] } = {}) => {
    const plan = more.plan ?? all.filter(({ type }) => type === 'App')
    const { monitors } = await runMonitors(plan, engineFixture(), {
      mode: 'Basic',
      signal,
      elsewhere: dependenciesElsewhere(all)(plan),
    })
    return monitors.find(({ name }) => name === 'shop')?.results[0]
  }
  return { all, run, runs }
}

const of = (...keys: readonly string[]) =>
  keys.map((key) => ({ type: key.split('/')[0] as ServerType, name: key.split('/')[1] ?? '' }))

test.each(['dns', 'refused', 'timeout', 'tls'] as const)(
  'G2 what fails with %s keeps its dependents from running',
  async (fault) => {
    const { run } = planted({ 'App/db': fail('connect', fault, 'not reached') }, { dependsOn: ['db'] })
    expect(await run()).toMatchObject({ check: 'not run', cause: 'db', message: 'not run: db failed' })
  },
)

test.each(['auth', 'threshold', 'data', 'protocol', 'internal'] satisfies FaultClass[])(
  'G2 what answers and fails with %s keeps nothing from running',
  async (fault) => {
    const { run } = planted({ 'App/db': fail('connect', fault, 'it answers') }, { dependsOn: ['db'] })
    expect(await run()).toMatchObject({ check: 'connect', status: 'ok' })
  },
)

const pair = [{ atLeast: 1, of: of('App/a', 'Sql/b') }]
const two = [{ atLeast: 2, of: of('App/a', 'Sql/b', 'Sql/c') }]

test.each([
  ['any of two with one down', pair, { 'App/a': down, 'Sql/b': fine }, undefined],
  ['any of two with both down', pair, { 'App/a': down, 'Sql/b': down }, 'not run: a and Sql/b failed'],
  [
    'any of two with one down and one that refuses the sign-in',
    pair,
    { 'App/a': down, 'Sql/b': fail('connect', 'auth', 'no') },
    undefined,
  ],
  [
    'any of two with one down and one not checked',
    pair,
    { 'App/a': down, 'Sql/b': notChecked('connect', 'configuration', 'a mistake') },
    undefined,
  ],
  ['any of two with one down and one that does not run', pair, { 'App/a': down }, undefined],
  ['two of three with one down', two, { 'App/a': down, 'Sql/b': fine, 'Sql/c': fine }, undefined],
  [
    'two of three with two down',
    two,
    { 'App/a': fine, 'Sql/b': down, 'Sql/c': down },
    'not run: Sql/b and Sql/c failed',
  ],
  ['two of three with one down and two unknown', two, { 'App/a': down }, undefined],
] as const)('G1 a monitor that depends on %s', async (_, dependsOnGroups, results, message) => {
  const { run } = planted(results, { dependsOnGroups })
  expect(await run()).toMatchObject(message === undefined ? { status: 'ok' } : { check: 'not run', message })
})

test('G1 a monitor of another type in a group runs once per run, for all that depend on it', async () => {
  const { run, runs } = planted({ 'App/a': down, 'Sql/b': fine }, { dependsOnGroups: pair })
  await run()
  expect(Object.fromEntries(runs)).toEqual({ 'App/a': 1, 'Sql/b': 1, 'App/shop': 1, 'App/second': 1 })
})

test('G1 a single name and a group must both be met', async () => {
  const results = { 'App/a': down, 'Sql/b': fine, 'App/gateway': down }
  const { run } = planted(results, { dependsOn: ['gateway'], dependsOnGroups: pair })
  expect(await run()).toMatchObject({ message: 'not run: gateway failed' })
})

test('G2 what did not run because of another keeps its own dependents from running', async () => {
  const { all, run } = planted({ 'App/db': down, 'App/api': fine }, { dependsOn: ['api'] })
  const plan = all.flatMap((one) =>
    one.type !== 'App' ? [] : [one.name === 'api' ? { ...one, dependsOn: ['db'] } : one],
  )
  expect(await run({ plan })).toMatchObject({ check: 'not run', cause: 'api' })
})
