import { expect, test } from 'vitest'
import type { DatabaseConnection, Row } from '../../../src/core/checks/database/index.ts'
import { readRole } from '../../../src/core/checks/kinds/postgres/checks.ts'

/** Asks twice over one connection, whose server gives these answers in turn. */
async function roles(...answers: readonly (Row | Error)[]) {
  const left = [...answers]
  const ask = async () => {
    const answer = left.shift()
    if (answer instanceof Error) throw answer
    return answer ? [answer] : []
  }
  const connection = { ask } as unknown as DatabaseConnection
  const rows = [await readRole(connection).catch(() => 'refused'), await readRole(connection)]
  return { rows, unasked: left.length }
}

const row = (standby: boolean, names: string | null): Row => ({ standby, names, commit: 'on' })

test('a primary is asked for its role once, and a standby each time, because it may be promoted', async () => {
  const primary = row(false, '')
  expect(await roles(primary, row(true, ''))).toEqual({ rows: [primary, primary], unasked: 1 })
  expect(await roles(row(true, ''), primary)).toEqual({ rows: [row(true, ''), primary], unasked: 0 })
})

test('a role that was refused or is incomplete is asked for again', async () => {
  expect(await roles(new Error('statement timeout'), row(false, 'a'))).toEqual({
    rows: ['refused', row(false, 'a')],
    unasked: 0,
  })
  expect(await roles(row(false, null), row(false, 'a'))).toEqual({
    rows: [row(false, null), row(false, 'a')],
    unasked: 0,
  })
})
