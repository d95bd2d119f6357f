import { expect, test } from 'vitest'
import { databases, maxWait } from '../../../src/core/checks/kinds/pgbouncer/checks.ts'
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
