import { expect, test } from 'vitest'
import {
  type Fence,
  type KnownMonitors,
  type MemberEffect,
  Membership,
  NodesTable,
  outMs,
} from '../../../src/core/watch/nodes/index.ts'
import { monitorsOf } from '../../support/store/nodes.ts'

type Renewal = Extract<MemberEffect, { type: 'renew' }>

/** A node and its store. Renewals wait until the test lets the store have them. */
function nodeWithStore() {
  const table = new NodesTable()
  const settings = (digest: string, monitors: KnownMonitors) => ({ digest, monitors, own: new Set<string>() })
  const both = monitorsOf(['App/one', 'App/two'])
  const member = new Membership(
    { node: 'a', process: 'a1', facts: { version: '1', startedAt: 0 }, settings: settings('v0', both) },
    0,
  )
  const renewals: Renewal[] = []
  const effects: MemberEffect[] = []
  /** Carries out takeovers at once. */
  const obey = (all: readonly MemberEffect[], now: number): void => {
    for (const effect of all) {
      effects.push(effect)
      if (effect.type === 'renew') renewals.push(effect)
      else if (effect.type === 'take over')
        obey(member.taken(effect.id, table.takeOver(effect.fence, effect.choose, effect.news(), now), now), now)
    }
  }
  const next = (): Renewal => {
    const renewal = renewals.shift()
    if (!renewal) throw new Error('nothing is being renewed')
    return renewal
  }
  /** The store gets a renewal, and the node its answer. */
  const arrives = ({ id, request, publishes }: Renewal, now: number): void => {
    if (publishes) table.putConfiguration(request.config, publishes)
    obey(member.renewed(id, table.renew(request, now), now), now)
  }
  const write = (now: number): Fence => {
    const permit = member.beginWrite(now)
    if (!permit) throw new Error('the node may write')
    const outcome = table.writeOutbox(permit.fence, permit.number, [], now)
    obey(member.wrote(permit, outcome, now), now)
    expect(outcome).toBe('stored')
    return permit.fence
  }
  const configure = (digest: string, now: number): void => obey(member.configured(settings(digest, both), now), now)
  /** Nothing reaches the store until the row has expired. */
  const expire = (): number => {
    let now = 0
    while (now < outMs + 1_000) {
      now += 1_000
      obey(member.tick(now), now)
    }
    return now
  }
  obey(member.tick(0), 0)
  arrives(next(), 0)
  return { table, member, renewals, effects, next, arrives, write, configure, expire }
}

test('W4 a renewal that the store gets after its sender has given it up loses nothing', () => {
  const { table, member, next, renewals, arrives, write, expire } = nodeWithStore()
  const first = write(1)
  const now = expire()
  const late = next()
  const latest = renewals.at(-1)
  if (!latest || latest === late) throw new Error('it tries again')
  arrives(latest, now)
  const { epoch } = write(now)
  expect(epoch).not.toBe(first.epoch)
  arrives(late, now + 1)
  expect(write(now + 1).epoch).toBe(epoch)
  expect(member.voice('App/one', now + 1)).toBe('coordinated')
  expect(table.rows(now + 1)).toMatchObject([{ node: 'a', epoch, isLive: true }])
})

test('W4 of two renewals that arrive after the row has expired, the second one neither begins an epoch nor makes the node write again', () => {
  const { next, renewals, effects, arrives, write, expire, configure } = nodeWithStore()
  write(1)
  const now = expire()
  renewals.splice(0)
  configure('v1', now)
  configure('v2', now)
  const [one, other] = [next(), next()]
  expect([one.request.epoch, other.request.epoch]).toEqual([1, 1])
  arrives(one, now)
  arrives(other, now)
  expect(write(now).epoch).toBe(2)
  expect(effects.filter(({ type }) => type === 'write again')).toEqual([])
})

test('W4 a renewal whose answer was lost begins no second epoch', () => {
  const { table, next, renewals, arrives, write, expire } = nodeWithStore()
  write(1)
  const now = expire()
  const [lost, again] = [next(), renewals.at(-1)]
  if (!again) throw new Error('it tries again')
  const answer = table.renew(lost.request, now)
  arrives(again, now + 1)
  expect(write(now + 1)).toMatchObject({ epoch: answer.what === 'renewed' ? answer.epoch : undefined })
})
