import { expect, test } from 'vitest'
import { costOf } from '../../../src/core/checks/engine/cost.ts'
import exec from '../../../src/core/checks/kinds/exec/index.ts'
import ftp from '../../../src/core/checks/kinds/ftp/index.ts'
import ping from '../../../src/core/checks/kinds/ping/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import processes from '../../../src/core/checks/kinds/process.ts'

const queries = [{ name: 'one' }, { name: 'two' }]

test('the cost of a run grows with the items of a setting, from the depth on that reads them', () => {
  const more = (mode: 'Basic' | 'Standard', settings: object): number =>
    (costOf(postgres, mode, { ...settings })?.requests ?? 0) - (costOf(postgres, mode)?.requests ?? 0)
  expect(more('Basic', { queries })).toBe(0)
  expect(more('Standard', { queries: [] })).toBe(0)
  const [one, two] = [more('Standard', { queries: queries.slice(1) }), more('Standard', { queries })]
  const three = more('Standard', { queries: [...queries, { name: 'three' }] })
  expect(one).toBeGreaterThan(0)
  expect(two).toBeGreaterThan(one)
  expect(three - two).toBe(two - one)
})

test('a number says how often it adds its cost', () => {
  expect(costOf(ping, 'Basic', { count: 7 })?.requests).toBe(7)
  expect(costOf(ping, 'Basic')).toEqual(costOf(ping, 'Basic', { count: 5 }))
})

test('a setting that is off adds nothing', () => {
  expect(costOf(ftp, 'Advanced', { allowWrites: false })).toEqual(costOf(ftp, 'Advanced'))
})

test('a kind that reads this machine costs no server anything, and the cost of a program is unknown, not nothing', () => {
  expect(costOf(processes, 'Advanced')).toEqual({ connections: 0, requests: 0, signIns: 0 })
  expect(costOf(exec, 'Basic')).toBeUndefined()
})
