import { expect, test } from 'vitest'
import { type News, Steady } from '../../src/core/base/steady.ts'

const second = 1_000

/** The words about these observations, one for each second: `-` is well, any other letter a reason. */
function saidOf(observations: string): readonly string[] {
  const steady = new Steady({ failedMs: 3 * second, wellMs: 5 * second })
  const text = (news: News | undefined): string =>
    news === undefined ? '' : news.what === 'failed' ? news.why : 'well'
  return Array.from(observations, (one, at) => {
    const words = text(steady.observe(one === '-' ? undefined : one, at * second))
    return words === '' ? '' : `${at} ${words}`
  }).filter((line) => line !== '')
}

test.for([
  ['nothing while it is well', '----------', []],
  ['nothing of a failure that does not last', '--lll--ll--l--', []],
  ['a failure that has lasted, once', '-llllllll', ['4 l']],
  ['a failure that has lasted, although its reason changes', '-lrlrlr', ['4 r']],
  ['another reason once it has lasted', '-lllllrrlrrrrr', ['4 l', '12 r']],
  ['that it is well once nothing has failed for long', 'llll--l----l------', ['3 l', '17 well']],
  ['the next failure like the first', 'llll------llll', ['3 l', '9 well', '13 l']],
] as const)('W4 of a store, svc says %s', ([, observations, lines]) => {
  expect(saidOf(observations)).toEqual(lines)
})
