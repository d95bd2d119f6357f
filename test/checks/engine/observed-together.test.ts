import { expect, test } from 'vitest'
import { ProbeError } from '../../../src/core/base/probe-error.ts'
import {
  attempt,
  type Check,
  checksOn,
  fail,
  failedAttempt,
  machineKind,
  ok,
  sharedRead,
} from '../../../src/core/checks/engine/index.ts'
import { runKind } from '../../support/engine/run-kind.ts'

type Machine = { readonly reads: string[] }
const check = checksOn<Machine>()
const reads: string[] = []
const results = async (
  checks: readonly Check<Machine>[],
  mode: 'Basic' | 'Advanced' = 'Advanced',
): Promise<string[]> => {
  reads.length = 0
  const kind = machineKind({ name: 'together', title: '', settings: {}, open: () => ({ reads }), checks })
  return (await runKind(kind, {}, mode)).map((result) => `${result.check}: ${result.message}`)
}

async function* items(machine: Machine): AsyncGenerator<string> {
  for (const item of ['a', 'b']) {
    await Promise.resolve()
    machine.reads.push(item)
    yield item
  }
}
const length = check({
  depth: 'Basic',
  results: { length: '' },
  settings: {},
  observe: items,
  evaluate: (item) => ok('length', item),
})
const age = check({
  depth: 'Advanced',
  results: { age: '' },
  settings: {},
  observe: items,
  evaluate: (item) => ok('age', item),
})
const other = check({
  depth: 'Basic',
  results: { other: '' },
  settings: {},
  observe: () => Promise.resolve(''),
  evaluate: () => ok('other', 'ran'),
})

test('checks that share one observe are observed once, and each evaluates each piece', async () => {
  expect(await results([length, other, age])).toEqual(['length: a', 'age: a', 'length: b', 'age: b', 'other: ran'])
  expect(reads).toEqual(['a', 'b'])
  expect(await results([length, other, age], 'Basic')).toEqual(['length: a', 'length: b', 'other: ran'])
})

test('a check that runs last keeps its place among the declared results', async () => {
  const last = { ...length, last: true } as const
  expect(await results([last, other])).toEqual(['other: ran', 'length: a', 'length: b'])
  const kind = machineKind({ name: 'last', title: '', settings: {}, open: () => ({ reads }), checks: [last, other] })
  expect(kind.checks.map(({ name }) => name)).toEqual(['length', 'other'])
})

test('a check that cannot evaluate does not hide those that share its observation', async () => {
  const broken = {
    ...length,
    evaluate: () => {
      throw new Error('no such figure')
    },
  }
  expect(await results([broken, age])).toEqual(['length: no such figure', 'age: a', 'length: no such figure', 'age: b'])
})

test('a shared read that fails is reported once, under its own name', async () => {
  const read = sharedRead('status', '', (): Promise<string> => Promise.reject(new ProbeError('data', 'not readable')))
  const shared = { depth: 'Basic', settings: {}, observe: read } as const
  const checks = [
    check({ ...shared, results: { one: '' }, evaluate: () => ok('one', '') }),
    other,
    check({ ...shared, results: { two: '' }, evaluate: () => ok('two', '') }),
  ]
  expect(await results(checks)).toEqual(['status: not readable', 'other: ran'])
})

test('a gate that fails ends the checks, and one that only exceeds its limit does not', async () => {
  const gate = (evaluate: () => ReturnType<typeof fail<'gate'>>) =>
    check({
      depth: 'Basic',
      results: { gate: '' },
      settings: {},
      gate: true,
      observe: () => Promise.resolve(''),
      evaluate,
    })
  expect(await results([gate(() => fail('gate', 'data', 'closed')), other])).toEqual(['gate: closed'])
  const slow = await results([gate(() => fail('gate', 'threshold', 'slow')), other])
  expect(slow).toEqual(['gate: slow', 'other: ran'])
})

test('one item that cannot be observed does not hide the next', async () => {
  const things = check({
    depth: 'Basic',
    results: { thing: '' },
    settings: {},
    async *observe(_, __, context) {
      for (const name of ['a', 'b']) {
        yield await attempt({ address: 'here', usable: true }, context, async () => {
          if (name === 'a') throw new ProbeError('data', 'a is missing')
          return Promise.resolve(name)
        })
      }
    },
    evaluate: (piece) => ('failure' in piece ? failedAttempt('thing', piece.failure) : ok('thing', piece.observation)),
  })
  expect(await results([things])).toEqual(['thing: a is missing', 'thing: b'])
})
