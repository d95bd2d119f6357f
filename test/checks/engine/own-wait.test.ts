import { expect, test } from 'vitest'
import { processorWaitMs } from '../../../src/core/base/system/resources.ts'
import { atMost, fail, type Result, withOwnWait } from '../../../src/core/checks/engine/result.ts'
import tcp from '../../../src/core/checks/kinds/tcp.ts'
import { checked, runKind } from '../../support/engine/run-kind.ts'
import { blackHole, peer, replies } from '../../support/faults/faults.ts'

const figure = {
  check: 'answer',
  what: 'answered in',
  unit: 'duration',
  threshold: { warn: 1_000, limit: 3_000 },
} as const
const slow = atMost({ ...figure, value: 2_000 })
const noteOf = (result: Result, wait: number, ms = 2_000) =>
  withOwnWait([result], { ms, waitMs: () => wait })[0]?.details?.[0]
const note = /^svc itself waited 1\.\d+ s for a processor in this time: this machine is too busy to tell/

test('H62 a latency of which svc itself waited at least half for a processor says so, and keeps its verdict', () => {
  expect(noteOf(slow, 1_200)).toMatch(note)
  expect(noteOf(slow, 900)).toBeUndefined()
  expect(withOwnWait([slow], { ms: 2_000, waitMs: () => 1_200 })[0]).toMatchObject({ status: 'warning' })
})

test('H62 a timeout does, too, and nothing else does', () => {
  expect(noteOf(fail('connect', 'timeout', 'did not answer within 2 s'), 1_200)).toMatch(note)
  expect(noteOf(fail('connect', 'refused', 'refused the connection'), 1_200)).toBeUndefined()
  expect(noteOf(atMost({ ...figure, value: 10 }), 1_200)).toBeUndefined()
  expect(noteOf(atMost({ ...figure, unit: 'count', value: 4_000 }), 3_000)).toBeUndefined()
})

test('H62 svc asks the system only where a time is too long', () => {
  const waitMs = () => expect.fail('asked')
  const fine = atMost({ ...figure, value: 10 })
  expect(withOwnWait([fine], { ms: 10, waitMs })).toEqual([fine])
})

test('H62 a run gets what the system says from its beginning to its end (simulated)', async () => {
  await using server = await peer(replies('pong', 30))
  await using silent = await peer(blackHole)
  let wait = 5_000
  const processorWaitMs = () => {
    wait += 60_000
    return wait
  }
  const at = { host: '127.0.0.1', expect: 'pong', latency: { warn: 1 } } as never
  const late = checked(
    await runKind(tcp, { ...(at as object), port: server.port, send: 'ping' } as never, 'Basic', { processorWaitMs }),
    'answer',
  )
  expect([late.status, late.details?.at(-1)]).toEqual(['warning', expect.stringMatching(/svc itself waited \d min/)])
  const more = { processorWaitMs, timeoutMs: 500 }
  const none = checked(await runKind(tcp, { ...(at as object), port: silent.port } as never, 'Basic', more), 'answer')
  expect([none.fault, none.details?.at(-1)]).toEqual(['timeout', expect.stringContaining('svc itself waited')])
})

test('H62 the system says how long svc has waited (Linux)', () => {
  expect(typeof processorWaitMs()).toBe(process.platform === 'linux' ? 'number' : 'undefined')
})
