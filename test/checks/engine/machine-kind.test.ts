import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { ProbeError } from '../../../src/core/base/probe-error.ts'
import { checksOn, machineKind, ObservationError, ok, sharedRead } from '../../../src/core/checks/engine/index.ts'
import { runKind } from '../../support/engine/run-kind.ts'

type Log = { readonly lines: string[] }
const check = checksOn<Log>()
const lines: string[] = []
const summary = (results: Awaited<ReturnType<typeof runKind>>): readonly string[] =>
  results.map(({ check, status }) => `${check}: ${status}`)

describe('checks that share a stream', () => {
  async function* numbers({ lines }: Log): AsyncGenerator<number> {
    lines.push('read')
    yield 1
    yield 2
  }
  const base = { settings: {}, observe: numbers } as const
  const kind = machineKind({
    name: 'numbers',
    title: 'Numbers',
    settings: {},
    open: () => ({ lines }),
    checks: [
      check({ ...base, depth: 'Basic', results: { 'size <n>': 'Size' }, evaluate: (n) => ok(`size ${n}`, 'small') }),
      check({
        depth: 'Basic',
        results: { between: 'Its own' },
        settings: {},
        observe: () => Promise.resolve(0),
        evaluate: () => ok('between', 'there'),
      }),
      check({ ...base, depth: 'Standard', results: { 'odd <n>': 'Odd' }, evaluate: (n) => ok(`odd ${n}`, 'known') }),
      check({
        ...base,
        depth: 'Basic',
        results: { left: 'Left out' },
        applies: () => false,
        evaluate: () => ok('left', 'not expected'),
      }),
    ],
  })

  test('evaluate each piece in turn, and read it once', async () => {
    lines.length = 0
    expect(summary(await runKind(kind, {}, 'Standard'))).toEqual([
      'size 1: ok',
      'odd 1: ok',
      'size 2: ok',
      'odd 2: ok',
      'between: ok',
    ])
    expect(lines).toEqual(['read'])
    expect(kind.checks.map(({ name }) => name)).toEqual(['size <n>', 'between', 'odd <n>', 'left'])
  })
  test('are skipped in a mode that is too shallow for them', async () => {
    expect(summary(await runKind(kind, {}, 'Basic'))).toEqual(['size 1: ok', 'size 2: ok', 'between: ok'])
  })
})

test('a check that waits is listed in its place and runs after the others', async () => {
  const one = (name: string, last?: true) =>
    check({
      depth: 'Basic',
      results: { [name]: name },
      settings: {},
      ...(last && { last }),
      observe: () => Promise.resolve(name),
      evaluate: () => ok(name, name),
    })
  const kind = machineKind({
    name: 'order',
    title: 'Order',
    settings: {},
    open: () => ({ lines }),
    checks: [one('a'), one('slow', true), one('b')],
  })
  expect(kind.checks.map(({ name }) => name)).toEqual(['a', 'slow', 'b'])
  expect(summary(await runKind(kind, {}))).toEqual(['a: ok', 'b: ok', 'slow: ok'])
})

test('an observation that fails reports the content of its error, and a shared read is declared once', async () => {
  const read = sharedRead('first', 'First', async (_: Log): Promise<number> => {
    throw new ObservationError(new ProbeError('data', 'is broken', ['a detail']), {
      address: 'there',
      deployment: true,
    })
  })
  const kind = machineKind({
    name: 'broken',
    title: 'Broken',
    settings: {},
    open: () => ({ lines }),
    checks: [
      check({ depth: 'Basic', results: { first: 'First' }, settings: {}, observe: read, evaluate: () => [] }),
      check({ depth: 'Basic', results: { second: 'Second' }, settings: {}, observe: read, evaluate: () => [] }),
    ],
  })
  expect(kind.checks.map(({ name }) => name)).toEqual(['first', 'second'])
  expect(await runKind(kind, {})).toEqual([
    {
      check: 'first',
      status: 'failed',
      fault: 'data',
      message: 'is broken',
      details: ['a detail'],
      address: 'there',
      deployment: true,
    },
  ])
})

test('what a machine kind opens is closed once, after its checks or after its deadline', async () => {
  const observing = (ms: number) =>
    machineKind({
      name: 'opened',
      title: 'Opened',
      settings: {},
      open: () => ({ lines }),
      close: ({ lines }) => void lines.push('closed'),
      checks: [
        check({
          depth: 'Basic',
          results: { wait: 'Waits' },
          settings: {},
          observe: ({ lines }, _, { signal }) => {
            lines.push('observed')
            return pause(ms, undefined, { signal })
          },
          evaluate: () => ok('wait', 'over'),
        }),
      ],
    })
  for (const [ms, status] of [
    [1, 'ok'],
    [60_000, 'failed'],
  ] as const) {
    lines.length = 0
    expect(summary(await runKind(observing(ms), {}, 'Basic', { timeoutMs: 300 }))).toEqual([`wait: ${status}`])
    expect(lines).toEqual(['observed', 'closed'])
  }
})
