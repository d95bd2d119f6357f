import { expect, test } from 'vitest'
import { ProbeError } from '../../../src/core/base/probe-error.ts'
import {
  type Check,
  type CheckContext,
  type Connection,
  networkKind,
  ok,
  sharedRead,
} from '../../../src/core/checks/engine/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { type RunKindOptions, runKind } from '../../support/engine/run-kind.ts'

const checkNamed = (name: string, more: Partial<Check<Connection>> = {}): Check<Connection> => ({
  depth: 'Basic',
  results: { [name]: name },
  settings: {},
  observe: () => Promise.resolve({}),
  evaluate: () => ok(name, ''),
  ...more,
})
const kindOf = (checks: readonly Check<Connection>[], more: object = {}) =>
  networkKind({
    name: 'placed',
    title: '',
    settings: { from: { type: 'choice', values: ['Basic', 'Advanced'], default: 'Advanced', doc: '' } },
    target: () => ({ host: '127.0.0.1', port: 9 }),
    connect: { results: { connect: '' }, open: () => Promise.resolve({ usable: true, close: () => {} }) },
    checks,
    ...more,
  })
const run = async (checks: readonly Check<Connection>[], mode: ExecutionMode = 'Basic', input = {}, more = {}) =>
  await runKind(kindOf(checks, more), input, mode, {})
const names = async (...args: Parameters<typeof run>) => (await run(...args)).map((result) => result.check)

test('a check that runs first keeps its place among the declared results', async () => {
  const checks = [checkNamed('middle'), checkNamed('late', { last: true }), checkNamed('early', { first: true })]
  expect(await names(checks)).toEqual(['early', 'middle', 'late'])
  expect(kindOf(checks).checks.map(({ name }) => name)).toEqual([
    'connect',
    'middle',
    'late',
    'early',
    'addresses',
    'samples',
  ])
})

test('settings may make a check run in a shallower mode than lists show', async () => {
  const deep = checkNamed('deep', {
    depth: 'Advanced',
    depthWith: (settings: { readonly from: ExecutionMode }) => settings.from,
  })
  expect(await names([checkNamed('always'), deep], 'Basic')).toEqual(['always'])
  expect(await names([checkNamed('always'), deep], 'Basic', { from: 'Basic' })).toEqual(['always', 'deep'])
  expect(kindOf([deep]).checks).toContainEqual(expect.objectContaining({ name: 'deep', depth: 'Advanced' }))
})

test('results carry the address of the connection, and those of other places carry their own or none', async () => {
  const elsewhere = checkNamed('elsewhere', {
    elsewhere: true,
    evaluate: () => [ok('there', '', { address: '192.0.2.1:80' }), ok('nowhere', '')],
  })
  const results = await run([checkNamed('here'), elsewhere])
  expect(results.map(({ address }) => address)).toEqual(['127.0.0.1:9', '192.0.2.1:80', undefined])
})

test('a result that several checks declare in the same words is listed once, with the conditions of all', () => {
  const shared = { results: { values: 'As expected' } }
  const checks = [
    checkNamed('values', { ...shared, when: ['json'] }),
    checkNamed('other'),
    checkNamed('links', { results: { links: '', ...shared.results }, when: ['links'] }),
  ]
  expect(kindOf(checks).checks.map(({ name, when }) => [name, when])).toEqual([
    ['connect', undefined],
    ['values', ['json', 'links']],
    ['other', undefined],
    ['links', ['links']],
    ['addresses', undefined],
    ['samples', ['samples']],
  ])
})

test('a shared read that fails is reported once, under the current step, also by reads that await it', async () => {
  const head = sharedRead('head', '', (_: Connection, context: CheckContext): Promise<string> => {
    context.step('redirect')
    return Promise.reject(new ProbeError('data', 'leads nowhere'))
  })
  const whole = sharedRead(
    'whole',
    '',
    async (connection: Connection, context) => await head(connection, undefined, context),
  )
  const results = await run([
    checkNamed('one', { observe: head }),
    checkNamed('two', { observe: whole }),
    checkNamed('three'),
  ])
  expect(results.map((result) => `${result.check}: ${result.message}`)).toEqual(['redirect: leads nowhere', 'three: '])
})

test('a run that is declined resolves no name, and an address that is declined is not connected to', async () => {
  const steps: string[] = []
  const options: RunKindOptions = {
    resolve: (host) => {
      steps.push(`resolve ${host}`)
      return Promise.resolve([host])
    },
  }
  const open = () => {
    steps.push('open')
    return Promise.resolve({ usable: true, close: () => {} })
  }
  const prepare = () => {
    steps.push('prepare')
    return Promise.resolve(undefined)
  }
  const common = { connect: { results: { connect: '' }, open }, prepare }
  const declineRun = () => ok('connect', 'not asked')
  expect(await runKind(kindOf([checkNamed('one')], { ...common, declineRun }), {}, 'Basic', options)).toMatchObject([
    { check: 'connect', message: 'not asked' },
  ])
  expect(steps).toEqual([])
  const declineAddress = ({ address }: { readonly address: string }) => ok('connect', `${address} is not asked`)
  expect(await runKind(kindOf([checkNamed('one')], { ...common, declineAddress }), {}, 'Basic', options)).toMatchObject(
    [{ check: 'connect', message: '127.0.0.1:9 is not asked' }],
  )
  expect(steps).toEqual(['prepare', 'resolve 127.0.0.1'])
})
