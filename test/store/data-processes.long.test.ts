import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Data, openData } from '../../src/core/store/index.ts'
import { actor, backends, newUser, nobody, program, twoNodes } from '../support/store/data-fixture.ts'

describe.each(backends)('several processes with a store on $name', ({ start, fresh, stop }) => {
  let store = ''
  let data: Data
  beforeAll(start)
  afterAll(stop)
  beforeEach(async () => {
    let other: Data
    ;({ store, data, other } = await twoNodes(fresh, store))
    await other.close()
  })
  afterEach(() => data.close())

  test('D2 six processes that open a store for the first time concurrently create it once', async () => {
    const place = await fresh()
    const programs = await Promise.all(Array.from({ length: 3 }, () => program([place])))
    for (const { go } of programs) go()
    const three = await Promise.all(Array.from({ length: 3 }, () => openData({ store: place, create: true })))
    await Promise.all(programs.map(({ waitForLine }) => waitForLine('closed')))
    await three[0]?.users.add(newUser('alice'), actor())
    expect((await three[2]?.users.find('alice'))?.userName).toBe('alice')
    await Promise.all(three.map((one) => one.close()))
  })

  test('two processes that change the roles of one user concurrently lose nothing of each other', async () => {
    const { id } = await data.users.add(newUser('alice'), actor())
    const prefixes = ['one', 'two']
    const programs = await Promise.all(prefixes.map((prefix) => program([store, 'alice', '150', prefix, 'meet'])))
    for (const { go } of programs) go()
    // Each waits for the other's first change and for its first half, so that neither ends before the other has made
    // changes. The first change alone is not enough: it changes nothing if the other has made the same.
    for (const at of [0, 75]) {
      await Promise.all(programs.map(({ waitForLine }, n) => waitForLine(`done ${prefixes[n]}-${at}`)))
      for (const { go } of programs) go()
    }
    await Promise.all(programs.map(({ ended }) => ended()))
    for (const { lines } of programs) expect(lines.filter((line) => line.startsWith('done'))).toHaveLength(150)
    const audit = (await data.audit.list({ limit: 1_000 })).toReversed().slice(1)
    let now = JSON.stringify(nobody)
    for (const { before, after } of audit) {
      expect(before).toBe(now)
      now = after ?? ''
    }
    const last = await data.users.byId(id)
    expect(last && { roles: last.roles, permissions: last.permissions }).toEqual(JSON.parse(now))
    const who = audit.map(({ correlationId }) => correlationId.slice(0, 3))
    expect(new Set(who)).toEqual(new Set(['one', 'two']))
    expect(who.lastIndexOf('one')).toBeGreaterThan(who.indexOf('two'))
    expect(who.lastIndexOf('two')).toBeGreaterThan(who.indexOf('one'))
  })
})
