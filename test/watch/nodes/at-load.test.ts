import { expect, test } from 'vitest'
import { Steady, storePatience } from '../../../src/core/base/steady.ts'
import { isByItself, type MemberEffect, Membership } from '../../../src/core/watch/nodes/index.ts'
import { LeasesTable } from '../../support/store/leases-table.ts'
import { Chance } from '../simulate/chance.ts'

const second = 1_000
/** PostgreSQL has this long for a statement. */
const statementMs = 1_500

/**
 * A node whose store answers after 0.5 to 3 s for a quarter of an hour, and then never. Gives how often its mode and its words
 * changed at load, and after how long it said that the store is gone.
 */
function atLoad(seed: number): { readonly modes: number; readonly words: number; readonly goneAfterMs: number } {
  const chance = new Chance(seed)
  const table = new LeasesTable()
  const steady = new Steady(storePatience)
  const settings = { digest: 'v0', network: new Map([['App/one', 'App/one']]), own: new Set<string>() }
  const member = new Membership({ node: 'a', process: 'a1', facts: { version: '1', startedAt: 0 }, settings }, 0)
  const loadMs = 900 * second
  const answers: { readonly at: number; readonly give: (now: number) => readonly MemberEffect[] }[] = []
  let modes = 0
  let words = 0
  let isSaid = false
  const obey = (effects: readonly MemberEffect[], now: number): void => {
    for (const effect of effects) {
      if (effect.type === 'changed' && effect.mode !== effect.before) modes += 1
      if (effect.type === 'read') obey(member.read(effect.id, effect.shard, table.stored, now), now)
      if (effect.type !== 'beat') continue
      const { id, request } = effect
      const ms = now > loadMs ? Number.POSITIVE_INFINITY : now < 10 * second ? 10 : chance.between(500, 3_000)
      const answer = ms > statementMs ? undefined : table.beat(request, now + ms)
      answers.push({
        at: now + Math.min(ms, statementMs),
        give: (at) => (answer ? member.answered(id, answer, at) : member.unanswered(id, at)),
      })
    }
  }
  for (let now = 0; ; now += 250) {
    for (const answer of answers.splice(0)) {
      if (answer.at <= now) obey(answer.give(now), now)
      else answers.push(answer)
    }
    if (now % second === 0) obey(member.tick(now), now)
    const mode = member.mode(now)
    if (mode !== 'member' && !isByItself(mode)) continue
    const news = steady.observe(isByItself(mode) ? 'does not answer in time' : undefined, now)
    if (news) isSaid = news.what === 'failed'
    if (now > loadMs && (isSaid || now > 2 * loadMs)) return { modes, words, goneAfterMs: now - loadMs }
    if (news) words += 1
  }
}

test('W4 a simulated node at load says at most twice in a quarter of an hour that it lost the store, and soon that the store is gone', () => {
  const outcomes = Array.from({ length: 40 }, (_, seed) => atLoad(seed))
  const sum = (of: (outcome: (typeof outcomes)[number]) => number): number =>
    outcomes.reduce((total, one) => total + of(one), 0)
  // Without patience, each of these changes was a line of the log.
  expect(sum(({ modes }) => modes)).toBeGreaterThan(2_000)
  expect(Math.max(...outcomes.map(({ words }) => words))).toBeLessThanOrEqual(3)
  expect(sum(({ words }) => words)).toBeLessThan(60)
  expect(Math.max(...outcomes.map(({ goneAfterMs }) => goneAfterMs))).toBeLessThan(30 * second)
})
