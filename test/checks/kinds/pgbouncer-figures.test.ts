import { expect, test } from 'vitest'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import { clients, databases, maxWait, waitingClients } from '../../../src/core/checks/kinds/pgbouncer/checks.ts'
import { evaluated } from '../../support/engine/run-kind.ts'

const full = { name: 'full', paused: 0, disabled: 0, current: 5, max: 10 }

test('a database whose connections PgBouncer does not report is not taken for an unused or unlimited one', () => {
  expect(evaluated(databases, [full])).toMatchObject([{ status: 'ok', measurement: { value: 50 } }])
  for (const missing of [{ current: undefined }, { max: undefined }]) {
    expect(evaluated(databases, [full, { ...full, name: 'other', ...missing }])).toMatchObject([
      { check: 'databases', status: 'failed', notChecked: 'missing' },
    ])
  }
})

test('a pool whose server connections PgBouncer does not report is not taken for one that has some', () => {
  const pool = { name: 'app/app', waiting: 1, maxMs: 5, servers: 1 }
  expect(evaluated(maxWait, [pool])).toMatchObject([{ status: 'ok' }])
  expect(evaluated(maxWait, [{ ...pool, servers: undefined }])).toMatchObject([
    { check: 'wait time', status: 'failed', notChecked: 'missing' },
  ])
})

test('the clients and connections that PgBouncer has are ok to the boundary, and a paused database warns', () => {
  const pool = (waiting: number, maxMs = 0) => [{ name: 'app/app', waiting, maxMs, servers: 1 }]
  const levels = (...results: readonly (readonly Result[])[]) => results.map(([one]) => one?.status).join(' ')
  expect(levels(...[1_000, 1_001, 5_001].map((ms) => evaluated(maxWait, pool(1, ms))))).toBe('ok warning failed')
  expect(levels(...[10, 11, 101].map((n) => evaluated(waitingClients, pool(n))))).toBe('ok warning failed')
  expect(levels(...[80, 81, 96].map((used) => evaluated(clients, { used, max: 100 })))).toBe('ok warning failed')
  expect(levels(...[8, 9, 10].map((current) => evaluated(databases, [{ ...full, current }])))).toBe('ok warning failed')
  expect(evaluated(databases, [{ ...full, paused: 1 }])).toMatchObject([
    { status: 'warning', message: 'full is paused' },
  ])
})
