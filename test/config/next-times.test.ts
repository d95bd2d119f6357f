import { expect, test } from 'vitest'
import { nextTimes } from '../../src/cli/monitors/next-times.ts'
import { load } from './given.ts'

const env = { HOOK: 'https://chat.test/hook' }

test('M7 K11 the next five times of each cron expression are shown with weekday, offset and zone, over a change of the clock', async () => {
  const config = await load(
    `notify: [{name: chat, webhook: {url: {env: HOOK}}}]
drill: {when: '30 2 * * SUN', timezone: Europe/Berlin, through: [chat]}
silences: [{monitors: ['Sql/*'], when: '30 2 * * *', timezone: Europe/Berlin, for: 2h, reason: patches}]
types:
  Batch: [{kind: heartbeat, name: nightly, agents: [a], schedule: '30 2 * * *', timezone: Europe/Berlin, grace: {limit: 1h}}]
  Sql: [{kind: tcp, name: a, host: h, port: 1}]
`,
    env,
  )
  expect(nextTimes(config, Date.parse('2026-03-28T00:00Z'))).toEqual([
    'silences: Sql/*: Sat 2026-03-28 02:30 +01:00, Sun 2026-03-29 03:00 +02:00, Mon 2026-03-30 02:30 +02:00, Tue 2026-03-31 02:30 +02:00, Wed 2026-04-01 02:30 +02:00, Europe/Berlin',
    'drill: Sun 2026-03-29 03:00 +02:00, Sun 2026-04-05 02:30 +02:00, Sun 2026-04-12 02:30 +02:00, Sun 2026-04-19 02:30 +02:00, Sun 2026-04-26 02:30 +02:00, Europe/Berlin',
    'heartbeat nightly: Sat 2026-03-28 02:30 +01:00, Sun 2026-03-29 03:00 +02:00, Mon 2026-03-30 02:30 +02:00, Tue 2026-03-31 02:30 +02:00, Wed 2026-04-01 02:30 +02:00, Europe/Berlin',
  ])
})

test('M7 an expression in UTC, and one that ends, are shown as far as they go', async () => {
  const config = await load(
    "silences: [{monitors: ['Sql/*'], when: '@monthly', for: 1h, reason: r}]\ntypes: {Sql: [{kind: tcp, name: a, host: h, port: 1}]}\n",
    env,
  )
  expect(nextTimes(config, Date.parse('2026-11-29T00:00Z'))[0]).toMatch(
    /^silences: Sql\/\*: Tue 2026-12-01 00:00 \+00:00, .*, UTC$/,
  )
})
