import { describe, expect, test } from 'vitest'
import { MissingPrivilegeError } from '../../../src/core/base/probe-error.ts'
import {
  type Check,
  checksOn,
  machineKind,
  networkKind,
  notChecked,
  ok,
  sharedRead,
} from '../../../src/core/checks/engine/index.ts'
import { checked, runKind } from '../../support/engine/run-kind.ts'

const grant = 'GRANT READ TO monitor'
const threshold = { type: 'threshold', unit: 'count', doc: '' } as const
const check = checksOn<object>()
const refuse = (): Promise<never> => Promise.reject(new MissingPrivilegeError(`it needs ${grant}`, [grant]))

const greeting = check({
  depth: 'Basic',
  results: { greeting: '' },
  settings: {},
  observe: async () => '',
  evaluate: () => ok('greeting', 'hello'),
})
const thrown = check({
  depth: 'Basic',
  results: { thrown: '' },
  settings: { thrown: threshold },
  privilege: grant,
  observe: refuse,
  evaluate: () => ok('thrown', ''),
})
const hidden = async () => 'hidden'
/** A check with one setting, both of that name, that the account is refused. */
const hiddenFrom = <const Name extends string>(name: Name) =>
  check({
    depth: 'Basic',
    results: { [name]: '' } as Record<Name, string>,
    settings: { [name]: threshold } as Record<Name, typeof threshold>,
    privilege: grant,
    observe: hidden,
    evaluate: (why) => notChecked(name, 'permission', why) as never,
  })
/** A check with one setting, both of that name, over a read that may be refused. */
const over = <const Name extends string>(name: Name, observe: Check<object>['observe']) =>
  check({
    depth: 'Basic',
    results: { [name]: '' } as Record<Name, string>,
    settings: { [name]: threshold } as Record<Name, typeof threshold>,
    privilege: grant,
    observe: observe as () => Promise<string>,
    evaluate: (message) => ok(name, message) as never,
  })
const evaluated = check({
  depth: 'Basic',
  results: { evaluated: '' },
  settings: { evaluated: threshold, skip: { type: 'texts', narrows: true, doc: '' } },
  privilege: grant,
  observe: async () => 'hidden',
  evaluate: (why) => notChecked('evaluated', 'permission', why),
})
const machine = (checks: readonly Check<object>[]) =>
  machineKind({ name: 'denied', title: '', settings: {}, open: () => ({}), checks })
const kind = machine([greeting, thrown, evaluated])

describe('H10 what the account may not look at', () => {
  test('H10 a check that runs by default is a warning with what to grant', async () => {
    expect(await runKind(kind, {})).toMatchObject([
      { check: 'greeting', status: 'ok' },
      { check: 'thrown', status: 'warning', notChecked: 'permission', details: [grant] },
      { check: 'evaluated', status: 'warning', notChecked: 'permission' },
    ])
  })
  test('H10 a check whose own setting stands in svc.yaml fails as not checked, and only that check', async () => {
    expect(await runKind(kind, { thrown: { limit: 1 } })).toMatchObject([
      { check: 'greeting', status: 'ok' },
      { check: 'thrown', status: 'failed', notChecked: 'permission', details: [grant] },
      { check: 'evaluated', status: 'warning', notChecked: 'permission' },
    ])
    const results = await runKind(kind, { evaluated: { limit: 1 } })
    expect(checked(results, 'evaluated')).toMatchObject({ status: 'failed', notChecked: 'permission' })
    expect(checked(results, 'thrown')).toMatchObject({ status: 'warning' })
  })
  test('H10 a setting that only leaves out a part demands no check', async () => {
    expect(checked(await runKind(kind, { skip: ['a'] }), 'evaluated')).toMatchObject({ status: 'warning' })
  })
  test('H10 a failure for a missing privilege does not end a connection that goes on', async () => {
    const gate = { ...hiddenFrom('gate'), gate: true } as const
    expect(await runKind(machine([gate, greeting]), { gate: { limit: 1 } })).toMatchObject([
      { check: 'gate', status: 'failed', notChecked: 'permission' },
      { check: 'greeting', status: 'ok' },
    ])
  })
})

describe('H10 checks that share an observation', () => {
  const [first, second] = [hiddenFrom('first'), hiddenFrom('second')]
  const both = machine([greeting, first, second])
  test('H10 by default, one obstacle is reported once', async () => {
    expect((await runKind(both, {})).map((result) => result.check)).toEqual(['greeting', 'first'])
  })
  test('H10 a demanded check reports the obstacle that another one has reported before', async () => {
    expect(await runKind(both, { second: { limit: 1 } })).toMatchObject([
      { check: 'greeting' },
      { check: 'first', status: 'warning' },
      { check: 'second', status: 'failed', notChecked: 'permission' },
    ])
  })
  test('H10 one check reports every subject that it was refused', async () => {
    const family = check({
      depth: 'Basic',
      results: { 'disk <mount>': '' },
      settings: {},
      async *observe() {
        yield* ['/a', '/b']
      },
      evaluate: (mount) => notChecked(`disk ${mount}`, 'permission', 'hidden'),
    })
    expect((await runKind(machine([greeting, family]), {})).map((result) => result.check)).toEqual([
      'greeting',
      'disk /a',
      'disk /b',
    ])
  })
  test('H46 an optional check is left out without its privilege, unless svc.yaml gives one of its settings', async () => {
    const optional = machine([greeting, { ...over('a', refuse), optional: true }])
    expect((await runKind(optional, {})).map(({ check }) => check)).toEqual(['greeting'])
    expect(checked(await runKind(optional, { a: { limit: 1 } }), 'a')).toMatchObject({ notChecked: 'permission' })
  })
  test('H10 a refused read is reported once by default, and by each demanded check that needs it', async () => {
    const read = sharedRead('status', '', refuse)
    const a = over('a', read)
    const b = over('b', async (one, settings, context) => await read(one, settings, context))
    const reading = machine([greeting, a, b])
    expect(await runKind(reading, {})).toMatchObject([{ check: 'greeting' }, { check: 'status', status: 'warning' }])
    expect(await runKind(reading, { b: { limit: 1 } })).toMatchObject([
      { check: 'greeting' },
      { check: 'status', status: 'warning' },
      { check: 'b', status: 'failed', notChecked: 'permission', details: [grant] },
    ])
    expect(await runKind(reading, { a: { limit: 1 } })).toMatchObject([
      { check: 'greeting' },
      { check: 'status', status: 'warning' },
      { check: 'a', status: 'failed', notChecked: 'permission' },
    ])
  })
})

describe('H10 an account that may read nothing', () => {
  type Open = { readonly usable: boolean; readonly close: () => void }
  const connected = (checks: readonly Check<Open>[], account?: string) =>
    networkKind({
      name: 'connected',
      title: '',
      settings: {},
      target: () => ({ host: '127.0.0.1', port: 9 }),
      signsIn: () => (account === undefined ? undefined : { account, secrets: [] }),
      connect: {
        results: { connect: '' },
        open: () => Promise.resolve({ usable: true, close: () => {} }),
        evaluate: () => ok('connect', 'signed in'),
      },
      checks,
    })
  const ping = { ...greeting, results: { ping: '' }, provesNoReading: true, evaluate: () => ok('ping', '') } as const
  test('H10 a sign-in after which nothing could be read fails as not checked', async () => {
    expect(await runKind(connected([ping, thrown], 'monitor'), {})).toMatchObject([
      { check: 'connect', status: 'ok' },
      { check: 'ping', status: 'ok' },
      { check: 'thrown', status: 'failed', notChecked: 'permission', details: [grant] },
    ])
  })
  test('H10 one check that read something keeps the others warnings', async () => {
    const results = await runKind(connected([ping, greeting, thrown], 'monitor'), {})
    expect(checked(results, 'thrown')).toMatchObject({ status: 'warning', notChecked: 'permission' })
  })
  test('H10 a sign-in that was to prove nothing more is ok', async () => {
    expect((await runKind(connected([ping], 'monitor'), {})).map(({ status }) => status)).toEqual(['ok', 'ok'])
  })
  test('H10 without a sign-in, what the server shows to everybody is enough for a warning', async () => {
    expect(checked(await runKind(connected([ping, thrown]), {}), 'thrown')).toMatchObject({ status: 'warning' })
  })
  test('H10 a monitor of this machine that could read nothing fails as not checked', async () => {
    expect(await runKind(machine([thrown]), {})).toMatchObject([{ status: 'failed', notChecked: 'permission' }])
  })
})
