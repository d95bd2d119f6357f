import { describe, expect, test } from 'vitest'
import { MissingPrivilegeError, ProbeError } from '../../../src/core/base/probe-error.ts'
import { type Check, checksOn, networkKind, ok, warn } from '../../../src/core/checks/engine/index.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { runKind } from '../../support/engine/run-kind.ts'

type Session = { usable: boolean; readonly close: () => void }
const check = checksOn<Session>()
const ended = new ProbeError('protocol', 'the server closed the connection')

/** A check whose observation needs the session. */
const needing = (name: string, cause: Error = ended) =>
  check({
    depth: 'Basic',
    results: { [name]: '' },
    settings: {},
    observe: async ({ usable }) => {
      if (!usable) throw cause
    },
    evaluate: () => ok(name, 'observed'),
  })
/** A check after whose warning the server ends the connection. */
const ending = check({
  depth: 'Basic',
  results: { ending: '' },
  settings: {},
  observe: async (session) => {
    session.usable = false
  },
  evaluate: () => warn('ending', 'goodbye'),
})
const left = check({ ...needing('left out'), applies: () => false })
const optional = check({
  depth: 'Basic',
  results: { always: '', sometimes: { doc: '', when: ['extra'] } },
  settings: { extra: { type: 'flag', doc: '' } },
  observe: async () => {},
  evaluate: () => ok('always', 'observed'),
})
const deep = check({ ...needing('deep'), depth: 'Advanced' })
/** It needs nothing of the connection: it judges what earlier checks have seen. */
const hindsight = check({ ...needing('hindsight'), observe: async () => {}, evaluate: () => ok('hindsight', '') })

const run = async (checks: readonly Check<Session>[]) => {
  const kind = networkKind({
    name: 'ending',
    title: '',
    settings: {},
    target: () => ({ host: '127.0.0.1', port: 1 }),
    connect: { results: { connect: '' }, open: async (): Promise<Session> => ({ usable: true, close: () => {} }) },
    checks,
  })
  return await runKind(kind, {}, 'Standard')
}

describe('H22 a server that ends the connection after a warning', () => {
  test('the first check that needs the connection fails, and names all others that would have run', async () => {
    const results = await run([ending, needing('second'), left, deep, optional, needing('last')])
    expect(results.map(({ check: name, status }) => `${name} ${status}`)).toEqual(['ending warning', 'second failed'])
    expectResult(results[1], '(protocol): the server closed the connection', {
      details: ['not checked, because the connection ended: always, last'],
      address: '127.0.0.1:1',
    })
  })
  test('a check that judges what earlier ones have seen still runs', async () => {
    const results = await run([ending, hindsight, needing('last')])
    expect(results.map(({ check: name, status }) => `${name} ${status}`)).toEqual([
      'ending warning',
      'hindsight ok',
      'last failed',
    ])
    expect(results[2]?.details ?? []).toEqual([])
  })
  test('a missing privilege as its last word is a failure, and no warning', async () => {
    const results = await run([ending, needing('second', new MissingPrivilegeError('no permission', []))])
    expect(results[1]).toMatchObject({ check: 'second', status: 'failed', notChecked: 'permission' })
  })
})
