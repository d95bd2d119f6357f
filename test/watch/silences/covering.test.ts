import { expect, test } from 'vitest'
import { isMonitor } from '../../../src/core/watch/notify/index.ts'
import { coveringIn } from '../../../src/core/watch/silences/covering.ts'
import { type SilenceRules, type StoredSilence, silencesOfMonitors } from '../../../src/core/watch/silences/index.ts'

const now = 1_700_000_000_000
const silence = (id: string, monitors: readonly string[], ms = 60_000): StoredSilence => ({
  ...{ what: 'silence', id, monitors, from: now, until: now + ms, by: 'alice', reason: 'patch night' },
})
const names = ['postgres orders', 'Postgres Orders', 'http shop', 'tcp a/b', 'tcp *', 'ß', 'İ x']
const monitors = [...names.map((monitor) => ({ type: 'Sql', monitor })), ...names.map((monitor) => ({ monitor }))]
const patterns = [
  ...names,
  ...names.map((name) => `sQL/${name}`),
  ...['*', '**', 'Sql/*', 'S*', '*orders', 'post*ord*', '*a/b', 'App/*', 'postgres', '*s*s*s*s*', `${'*'.repeat(256)}`],
]

test('M8 what covers a monitor is what isMonitor says, for names and patterns in any letter case', () => {
  const rules: SilenceRules = { clock: [], entries: patterns.map((pattern) => silence(pattern, [pattern])) }
  for (const monitor of monitors) {
    const ids = coveringIn(rules)(monitor).byHand.map(({ id }) => id)
    expect(ids.toSorted()).toEqual(patterns.filter((pattern) => isMonitor(pattern, monitor)).toSorted())
  }
})

test('M11 of thousands of entries that cover a monitor, the one that lasts lasting is shown, and patterns are compared once', () => {
  const entries = Array.from({ length: 2_000 }, (_, at) => silence(String(at), ['*'], 1_000 + ((at * 7) % 2_000)))
  const rules: SilenceRules = { clock: [], entries }
  const [lasting, ...others] = silencesOfMonitors([{ type: 'Sql', monitor: 'postgres orders' }], rules, now)
  expect([lasting?.until, others]).toEqual([now + 2_999, []])
  const covering = coveringIn(rules)
  expect(covering({ type: 'Sql', monitor: 'a' })).toBe(coveringIn(rules)({ type: 'Sql', monitor: 'a' }))
})
