import { expect, test } from 'vitest'
import type { PlannedMonitor } from '../../../src/core/checks/engine/index.ts'
import { fail, notChecked, ok, type Result, runMonitors } from '../../../src/core/checks/engine/index.ts'
import { dependenciesElsewhere } from '../../../src/core/checks/plan/index.ts'
import { runDocument } from '../../../src/core/checks/reports/index.ts'
import type { ServerType } from '../../../src/core/protocol/index.ts'
import { engineFixture } from '../../support/engine/engine-fixture.ts'

const signal = new AbortController().signal

/** The names of the monitors that ran, with their types. */
type Log = string[]

function monitor(type: ServerType, name: string, result: Result, log: Log, more: Partial<PlannedMonitor> = {}) {
  const planned: PlannedMonitor = {
    name,
    type,
    kind: {
      name: 'planted',
      title: 'Planted',
      runsOn: 'network',
      settings: {},
      checks: [],
      async *run() {
        log.push(`${type}/${name}`)
        yield result
      },
    },
    settings: {},
    depth: 'Basic',
    host: false,
    dependsOn: [],
    retries: 0,
    deployment: false,
    ...more,
  }
  return planned
}
const fine = ok('connect', 'fine')
const down = fail('connect', 'refused', 'refused by host-marker')

function fixture(orders: Result, ofOrders: Partial<PlannedMonitor> = {}, ofWeb: Partial<PlannedMonitor> = {}) {
  const log: Log = []
  const sql = [
    monitor('Sql', 'gateway', fine, log),
    monitor('Sql', 'orders', orders, log, { dependsOn: ['gateway'], ...ofOrders }),
    monitor('Sql', 'unrelated', fine, log),
  ]
  const app = [
    monitor('App', 'web', fine, log, { dependsOnElsewhere: [{ type: 'Sql', name: 'orders' }], ...ofWeb }),
    monitor('App', 'gateway', fine, log),
  ]
  const dependedOn = dependenciesElsewhere([...sql, ...app])
  const run = (plan: readonly PlannedMonitor[], mode: 'Basic' | 'Advanced' = 'Basic') =>
    runMonitors(plan, engineFixture(), { mode, signal, elsewhere: dependedOn(plan) })
  return { log, sql, app, run }
}

test('H23 a type alone also observes what it depends on in another type, and reports only its own monitors', async () => {
  const { log, app, run } = fixture(fine)
  const { monitors } = await run(app)
  expect(log.toSorted()).toEqual(['App/gateway', 'App/web', 'Sql/gateway', 'Sql/orders'])
  expect(monitors.map(({ name, results }) => [name, results[0]?.status])).toEqual([
    ['web', 'ok'],
    ['gateway', 'ok'],
  ])
})

test('H23 a failure in another type skips its dependents as one of the same type does', async () => {
  const { log, app, run } = fixture(down)
  const { monitors } = await run(app)
  expect(log).not.toContain('App/web')
  expect(monitors[0]).toMatchObject({
    name: 'web',
    attempts: 0,
    results: [
      {
        check: 'not run',
        status: 'failed',
        fault: 'dependency',
        cause: 'Sql/orders',
        message: 'not run: Sql/orders failed',
      },
    ],
  })
  expect(JSON.stringify(monitors)).not.toContain('host-marker')
  const document = runDocument({ ...(await run(app)) }, { type: 'App', correlationId: 'c', flags: {}, view: 'full' })
  expect(document.message).toBe('App is unhealthy: 1 of 2 monitors failed: not run: Sql/orders failed')
})

test('H23 G1 what was not checked in another type keeps nothing from running', async () => {
  const { app, run } = fixture(notChecked('configured', 'configuration', 'svc.yaml:4:37: a mistake'))
  const { monitors } = await run(app)
  expect(monitors[0]?.results[0]?.status).toBe('ok')
})

test('H23 a monitor of another type that is too deep for the mode keeps nothing from running', async () => {
  const { log, app, run } = fixture(down, { depth: 'Advanced' })
  expect((await run(app)).monitors[0]?.results[0]?.status).toBe('ok')
  expect(log.toSorted()).toEqual(['App/gateway', 'App/web'])
  expect((await run(app, 'Advanced')).monitors[0]?.results[0]?.cause).toBe('Sql/orders')
})

test('H23 a chain through another type back to the own type observes each monitor once', async () => {
  const { log, app, run } = fixture(fine, { dependsOn: [], dependsOnElsewhere: [{ type: 'App', name: 'gateway' }] })
  await run(app)
  expect(log.toSorted()).toEqual(['App/gateway', 'App/web', 'Sql/orders'])
})

test('H23 the monitors of another type run within the deadline of the run', async () => {
  const { app, sql } = fixture(fine)
  const hanging: PlannedMonitor = {
    ...monitor('Sql', 'orders', fine, []),
    kind: {
      ...(sql[0]?.kind as PlannedMonitor['kind']),
      async *run(_, context) {
        await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
        context.signal.throwIfAborted()
        yield fine
      },
    },
  }
  const options = { mode: 'Basic', signal, timeoutMs: 50, elsewhere: [hanging] } as const
  const { monitors } = await runMonitors(app, engineFixture(), options)
  expect(monitors[0]?.results[0]).toMatchObject({ check: 'not run', notChecked: 'budget' })
})

test('H23 a reader who may not read the other type reads no name of it, however names begin', async () => {
  const { app, run } = fixture(down, {}, { dependsOnElsewhere: [{ type: 'Sql', name: 'orders' }] })
  const whole = await run(app)
  const hidden = { type: 'App', correlationId: 'c', flags: {}, view: 'full', reads: () => false } as const
  expect(runDocument(whole, hidden).monitors[0]?.results[0]).toMatchObject({
    cause: 'a monitor of another type',
    message: 'not run: a monitor of another type failed',
  })
  const [first, ...rest] = whole.monitors
  const [result] = first?.results ?? []
  if (!first || !result) throw new Error('no result')
  const elsewhere = [
    { type: 'Sql', text: 'Sql/a' },
    { type: 'Sql', text: 'Sql/ab' },
  ] as const
  const results = [{ ...result, message: 'waited 3 s for Sql/ab, Sql/a', details: ['it waited for Sql/ab'], elsewhere }]
  const document = runDocument({ ...whole, monitors: [{ ...first, results }, ...rest] }, hidden)
  expect(document.monitors[0]?.results[0]).toMatchObject({
    message: 'waited 3 s for a monitor of another type, a monitor of another type',
    details: ['it waited for a monitor of another type'],
  })
})
