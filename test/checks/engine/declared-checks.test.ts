import { expect, test } from 'vitest'
import {
  type Check,
  checksOn,
  fail,
  machineKind,
  networkKind,
  ok,
  warn,
} from '../../../src/core/checks/engine/index.ts'
import { runKind } from '../../support/engine/run-kind.ts'

const check = checksOn<object>()
const state = { state: 'It is as it should be' } as const
const flag = { type: 'flag', default: false, doc: '' } as const
const running = check({
  depth: 'Basic',
  results: state,
  settings: { running: flag },
  when: ['running'],
  observe: () => Promise.resolve('running'),
  evaluate: (is) => ok('state', is),
})
const installed = check({
  depth: 'Basic',
  results: state,
  settings: { installed: flag },
  when: ['installed'],
  observe: () => Promise.resolve('installed'),
  evaluate: (is) => ok('state', is),
})
const greeting = check({
  depth: 'Basic',
  results: { greeting: '' },
  settings: {},
  first: true,
  observe: () => Promise.resolve(''),
  evaluate: () => ok('greeting', ''),
})
const machine = (checks: readonly Check<object>[]) =>
  machineKind({ name: 'declared', title: '', settings: {}, open: () => ({}), checks })

test('a result that checks declare in the same words is listed once, with the conditions of all', () => {
  expect(machine([running, installed, greeting]).checks).toMatchObject([
    { name: 'state', when: ['running', 'installed'] },
    { name: 'greeting' },
  ])
})

test('a result that is declared in other words, or at another depth, is listed again', () => {
  const deeper = check({ ...running, depth: 'Advanced' })
  const reworded = check({ ...running, results: { state: 'It is in other words' } })
  expect(machine([running, deeper, reworded]).checks).toHaveLength(3)
})

test('a check that is first keeps its place in the list and runs before the others', async () => {
  const kind = machine([running, greeting])
  expect(kind.checks.map(({ name }) => name)).toEqual(['state', 'greeting'])
  const results = await runKind(kind, { running: true })
  expect(results.map((result) => result.check)).toEqual(['greeting', 'state'])
})

const probed = { host: '127.0.0.1', port: 9 } as const
const here = check({
  depth: 'Basic',
  results: { here: '' },
  settings: {},
  observe: () => Promise.resolve(''),
  evaluate: () => ok('here', '', { address: 'replaced' }),
})
const elsewhere = check({
  depth: 'Basic',
  results: { elsewhere: '' },
  settings: {},
  elsewhere: true,
  observe: () => Promise.resolve(''),
  evaluate: () => warn('elsewhere', '', { address: '192.0.2.1:443' }),
})

test('results of other places keep their own addresses, all others have that of the connection', async () => {
  const open = () => Promise.resolve({ usable: true, close: () => {} })
  const kind = networkKind({
    name: 'places',
    title: '',
    settings: {},
    target: () => probed,
    connect: { results: { connect: '' }, open },
    checks: [here, elsewhere],
  })
  const results = await runKind(kind, {})
  expect(results.map((result) => result.address)).toEqual(['127.0.0.1:9', '192.0.2.1:443'])
})

test('no further check runs on a connection that turns out to be unusable once it is open', async () => {
  const open = () => Promise.resolve({ usable: false, close: () => {} })
  const kind = networkKind({
    name: 'unusable',
    title: '',
    settings: {},
    target: () => probed,
    connect: {
      results: { connect: '' },
      open,
      evaluate: () => ({ check: 'connect', status: 'failed', fault: 'protocol', message: 'no such server' }),
    },
    checks: [here],
  })
  expect((await runKind(kind, {})).map((result) => result.check)).toEqual(['connect'])
})

const withoutResult = check({
  depth: 'Basic',
  results: { size: '' },
  settings: { size: flag },
  when: ['size'],
  observe: () => Promise.resolve(undefined),
  evaluate: () => [],
})

test('a configured check that yields no result is reported as not checked', async () => {
  expect(await runKind(machine([withoutResult]), { size: true })).toMatchObject([
    { check: 'size', status: 'failed', notChecked: 'missing', message: expect.stringContaining('size') },
  ])
})

test('a configured check whose stream ends without an observation is reported as not checked', async () => {
  const stream = check({ ...withoutResult, async *observe() {} })
  expect(await runKind(machine([stream]), { size: true })).toMatchObject([{ check: 'size', notChecked: 'missing' }])
})

test('a check that is not configured, or declares when it yields nothing, is left out', async () => {
  const declared = check({ ...withoutResult, emptyWhere: 'the file is a folder' })
  const always = check({
    depth: 'Basic',
    results: { always: '' },
    settings: {},
    observe: async () => '',
    evaluate: () => [],
  })
  const results = await runKind(machine([greeting, declared, always]), { size: true })
  expect(results.map((result) => result.check)).toEqual(['greeting'])
  const unconfigured = await runKind(machine([greeting, withoutResult]), {})
  expect(unconfigured.map((result) => result.check)).toEqual(['greeting'])
})

test('a configured check is not reported again where the gate that it shares its observation with has failed', async () => {
  const observe = () => Promise.resolve(undefined)
  const gate = check({
    depth: 'Basic',
    results: { there: '' },
    settings: {},
    gate: true,
    observe,
    evaluate: () => fail('there', 'data', 'it does not exist'),
  })
  const results = await runKind(machine([gate, check({ ...withoutResult, observe })]), { size: true })
  expect(results.map((result) => result.check)).toEqual(['there'])
})
