import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import heartbeat from '../../../src/core/checks/kinds/heartbeat/index.ts'
import type { Heartbeat } from '../../../src/core/protocol/index.ts'
import { file, folder, load, refused } from '../../config/given.ts'
import { expectResult, finds } from '../../support/engine/finds.ts'
import { checked, runKind, withDefaults } from '../../support/engine/run-kind.ts'
import { beatAt as beat } from '../../support/store/heartbeats.ts'
import { measureWork } from '../../support/suite/processor-time.ts'
import { isQuick } from '../../support/suite/tier.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const utc = (text: string): number => Date.parse(text.endsWith('Z') ? text : `${text}Z`)
type Settings = Parameters<typeof runKind<typeof heartbeat.settings>>[1]
const nightly: Settings = { schedule: '0 2 * * *' }
const look = (now: number, beats: readonly Heartbeat[], settings: Settings = nightly) =>
  runKind(heartbeat, settings, 'Advanced', { date: () => new Date(now), services: { heartbeats: async () => beats } })
const newest = async (...args: Parameters<typeof look>) => checked(await look(...args), 'newest')

describe('a job with a schedule', () => {
  const due = utc('2026-01-14T02:00')
  const before = beat('nightly', utc('2026-01-13T02:05'))

  test('B4 is reported by the run that was due and its age, in its own zone', async () => {
    expectResult(
      await newest(due + 31 * hour, [before]),
      'failed (threshold): nightly has not reported since 2026-01-14 02:00 UTC, when it was due (31 h ago, 2 runs missed; warn 10 min, fail 30 min)',
      { measurement: { value: 31 * hour, unit: 'milliseconds', limit: 30 * minute } },
    )
    const berlin: Settings = { schedule: '0 3 * * *', timezone: 'Europe/Berlin' }
    expect((await newest(due + 40 * minute, [before], berlin)).message).toBe(
      'nightly has not reported since 03:00 Europe/Berlin, when it was due (40 min ago, 1 run missed; warn 10 min, fail 30 min)',
    )
  })

  test('B4 has a grace period, first warns, and is ok at the boundary', async () => {
    const past = async (ms: number) => (await newest(due + ms, [before])).status
    expect([await past(-1), await past(0), await past(10 * minute)]).toEqual(['ok', 'ok', 'ok'])
    expect([await past(10 * minute + 1), await past(30 * minute)]).toEqual(['warning', 'warning'])
    expect(await past(30 * minute + 1)).toBe('failed')
    const withGrace = async (grace: object) => (await newest(due + 2 * hour, [before], { ...nightly, grace })).status
    expect([await withGrace({ limit: 2 * hour }), await withGrace({ limit: 2 * hour - 1 })]).toEqual(['ok', 'failed'])
    expect([await withGrace({ warn: 2 * hour - 1 }), await withGrace({})]).toEqual(['warning', 'ok'])
  })

  test('is not overdue while the grace period lasts', async () => {
    const message = async (ms: number) => (await newest(due + day + ms, [before])).message
    expect(await message(30 * minute)).toContain('(24.5 h ago, 1 run missed; warn 10 min, fail 30 min)')
    expect(await message(30 * minute + 1)).toContain('(24.5 h ago, 2 runs missed; warn 10 min, fail 30 min)')
  })

  test('has this message while it is ok', async () => {
    const messageOf = async (now: number, at: number, settings = nightly) =>
      (await newest(now, [beat('nightly', at)], settings)).message
    expect(await messageOf(due + 7 * hour, due + 5 * minute)).toBe(
      'last heartbeat, from nightly, came 6.9 h ago; it was due at 02:00 UTC (warn 10 min, fail 30 min)',
    )
    expect(await messageOf(due + 5 * minute, due - day)).toBe(
      'nightly has been due since 02:00 UTC, 5 min ago (warn 10 min, fail 30 min)',
    )
    expect(await messageOf(due + 12 * minute, due - day)).toBe(
      'nightly has not reported since 02:00 UTC, when it was due (12 min ago; warn 10 min, fail 30 min)',
    )
    const patient: Settings = { schedule: '* * * * *', grace: { limit: 6 * hour } }
    expect(await messageOf(due, due - 5.5 * hour, patient)).toBe(
      'last heartbeat, from nightly, came 5.5 h ago (fail 6 h)',
    )
    expect((await newest(due, [beat('a', due - 6 * hour - 2 * minute)], patient)).status).toBe('failed')
  })

  test('may report a minute early, or a quarter of the time between two runs where that is less', async () => {
    const early = async (ms: number, settings: Settings) =>
      (await newest(due + 31 * minute, [beat('a', due - ms)], settings)).status
    expect([await early(minute, nightly), await early(minute + 1, nightly)]).toEqual(['ok', 'failed'])
    const often = async (ms: number) =>
      (await newest(due, [beat('a', due - ms)], { schedule: '* * * * *', grace: { limit: 0 } })).message
    expect(await often(15 * second)).toMatch(/^last heartbeat, from a, came 15 s ago; it was due at 02:00 UTC/)
    // Too early for this minute, and due by now: its grace of nothing has not passed yet.
    expect(await often(15 * second + 1)).toMatch(/^a has been due since 02:00 UTC, 0 ms ago/)
  })

  test('does not complete a later run by an early report: someone ran it by hand in the evening', async () => {
    const hand = beat('nightly', due - 4 * hour)
    expect((await newest(due + 10 * minute, [hand])).status).toBe('ok')
    expect((await newest(due + 31 * minute, [hand])).status).toBe('failed')
  })

  test('ignores the interval that the agent reports', async () => {
    expect((await newest(due + 20 * hour, [beat('a', due, { intervalMs: minute })])).status).toBe('ok')
  })

  test('has a hostile name on one line, without escapes', async () => {
    const { message } = await newest(due + hour, [beat('a\u001b[31m\nb', due - day)])
    expect(message).toMatch(/^a b has not reported since/)
  })
})

describe('the other checks of a schedule', () => {
  const due = utc('2026-01-14T02:00')
  const there = beat('a', due + minute)
  const gone = beat('b', due - 2 * day)

  test('B4 an overdue agent is silent, and its own status no longer counts', async () => {
    const now = due + 31 * minute
    const result = await look(now, [there, { ...gone, status: 'Fail' }], { ...nightly, agents: ['a', 'b', 'c'] })
    await finds(result, 'newest ok', ['status ok', /^\w+ reports Ok$/])
    const messageOf = 'b: has not reported since 2026-01-13 02:00 UTC, when it was due (24.5 h ago, 2 runs missed)'
    await finds(
      result,
      [
        'reporting failed: 1 of 3 agents reports; missing: c, b (fail below 3)',
        { details: ['c: has never reported', messageOf] },
      ],
      ['silent failed', { details: [messageOf], measurement: { value: 1 } }],
    )
  })

  test('B4 no check contradicts another, whenever the heartbeats arrive', async () => {
    const graces = [undefined, { limit: 0 }, { warn: 5 * minute }, { warn: minute, limit: 3 * hour }, {}]
    // The slow tier takes each of them.
    const steps = isQuick() ? [1, 6] : [0, 1, 2, 3, 4, 5, 6, 7]
    let looked = 0
    for (const schedule of ['0 2 * * *', '*/5 * * * *', '17 4,16 * * 1-5', '@weekly']) {
      // The times of a schedule at one time are searched for once.
      for (const step of steps) {
        for (const grace of graces) {
          const now = due + step * 7 * hour + step * 12_345
          const beats = [0, 3, 30, 700, 9_000].slice(step % 3).map((ago) => beat(`a${ago}`, now - ago * minute))
          const result = await look(now, beats, grace ? { schedule, grace } : { schedule })
          const alive = checked(result, 'reporting').measurement?.value ?? Number.NaN
          const silent = checked(result, 'silent').measurement?.value
          const { status } = checked(result, 'newest')
          expect(alive + (silent ?? 0)).toBe(beats.length)
          if (status === 'failed') expect(alive).toBe(0)
          if (status === 'ok') expect(alive).toBeGreaterThan(0)
          if (alive === 0) expect(status).not.toBe('ok')
          looked += 1
        }
      }
    }
    expect(looked).toBe(20 * steps.length)
  })

  test('where only a warning is set, an agent beyond it is silent', async () => {
    const alive = async (ms: number) => {
      const result = await look(due + ms, [beat('a', due - day)], { ...nightly, grace: { warn: 5 * minute } })
      return [
        checked(result, 'newest').status,
        checked(result, 'reporting').measurement?.value,
        checked(result, 'silent').status,
      ]
    }
    expect(await alive(5 * minute)).toEqual(['ok', 1, 'ok'])
    expect(await alive(5 * minute + 1)).toEqual(['warning', 0, 'failed'])
  })

  test('flapping counts missed runs, and not the time between two of them', async () => {
    const now = due + hour
    const flapping = async (daysAgo: readonly number[], lateMs = minute) => {
      const history = daysAgo.map((days) => ({ at: due - days * day + lateMs, status: 'Ok' as const }))
      const result = await look(now, [beat('a', due + minute, { history })])
      return checked(result, 'flapping')
    }
    expect(await flapping([5, 4, 3, 2, 1, 0])).toMatchObject({ status: 'ok', measurement: { value: 0 } })
    // The one of a day came, and too late: at the boundary of the grace, and beyond.
    expect((await flapping([5, 4, 3, 2, 1, 0], 30 * minute)).measurement?.value).toBe(0)
    expect((await flapping([5, 4, 3, 2, 1, 0], 30 * minute + 1)).measurement?.value).toBe(10)
    expect((await flapping([8, 6, 5, 3, 2, 0])).measurement?.value).toBe(6)
  })
})

describe('days of a clock change', () => {
  const berlin = (schedule: string): Settings => ({ schedule, timezone: 'Europe/Berlin', grace: { limit: 0 } })
  /** When a job without a heartbeat was last due, and how many times it missed. */
  const missed = async (now: string, at: string, settings: Settings) =>
    (await newest(utc(now), [beat('a', utc(at))], settings)).message

  test('a time that the clock skips comes directly after, once', async () => {
    // 29 March 2026: from 02:00 to 03:00 at 01:00 UTC.
    expect(await missed('2026-03-29T00:59', '2026-03-28T01:30', berlin('30 2 * * *'))).toMatch(
      /^last heartbeat, from a, came .* it was due at 2026-03-28 02:30 Europe\/Berlin/,
    )
    expect(await missed('2026-03-29T04:00', '2026-03-28T01:30', berlin('30 2 * * *'))).toBe(
      'a has not reported since 03:00 Europe/Berlin, when it was due (3 h ago, 1 run missed; fail 0 ms)',
    )
  })

  test('a time that the clock repeats counts once, the first time', async () => {
    // 25 October 2026: from 03:00 to 02:00 at 01:00 UTC.
    expect(await missed('2026-10-25T05:30', '2026-10-24T00:30', berlin('30 2 * * *'))).toBe(
      'a has not reported since 02:30 Europe/Berlin, when it was due (5 h ago, 1 run missed; fail 0 ms)',
    )
    expect(await missed('2026-10-25T05:30', '2026-10-25T00:30', berlin('30 2,14 * * *'))).toMatch(/^last heartbeat/)
  })

  test('an hourly job is due in each hour that exists', async () => {
    const runs = async (now: string, at: string) =>
      /(\d+) runs missed/.exec(await missed(now, at, berlin('0 * * * *')))?.[1]
    expect(await runs('2026-03-29T22:00:01', '2026-03-28T23:00')).toBe('23')
    expect(await runs('2026-10-25T23:00:01', '2026-10-24T22:00')).toBe('25')
  })

  test('a grace period across the change keeps its length', async () => {
    const settings = { ...berlin('0 23 * * *'), grace: { limit: 6 * hour } }
    const at = async (now: string, ms: number) =>
      (await newest(utc(now) + ms, [beat('a', utc('2026-03-27T22:00'))], settings)).status
    // Due at 22:00 UTC of the day before.
    expect([await at('2026-03-29T04:00', 0), await at('2026-03-29T04:00', 1)]).toEqual(['ok', 'failed'])
  })

  test('a zone with a half-hour summer time, and a reference a century ago, are handled', async () => {
    const settings: Settings = { schedule: '0 2 * * *', timezone: 'Australia/Lord_Howe', grace: { limit: 0 } }
    expect(await missed('2026-06-01T12:00', '1926-01-01T00:00', settings)).toMatch(
      /^a has not reported since its heartbeat of 19\d\d-.* ago, more than 300 runs missed; fail 0 ms\)$/,
    )
  })
})

test('thousands of missed runs are reported without counting them, and 10,000 agents are evaluated at once', async () => {
  const now = utc('2026-01-14T02:00:30')
  const history = Array.from({ length: 20 }, (_, n) => ({ at: now - 29 * day + n * hour, status: 'Ok' as const }))
  const beats = Array.from({ length: 10_000 }, (_, n) => beat(`agent-${n}`, now - 28 * day - n, { history }))
  const spent = measureWork()
  const results = await look(now, beats, { schedule: '* * * * *' })
  expect(spent()).toBeLessThan(4_000)
  await finds(results, [
    'newest failed',
    {
      message:
        'agent-0 has not reported since its heartbeat of 2025-12-17 02:00 UTC (28 d ago, more than 300 runs missed; warn 10 min, fail 30 min)',
      measurement: { value: 28 * day },
    },
  ])
  for (const { details = [] } of results) expect(details.length).toBeLessThanOrEqual(20)
})

describe('schedule in svc.yaml', () => {
  const invalid = (withGrace: Settings): string | undefined =>
    heartbeat.validate?.(withDefaults(heartbeat.settings, withGrace))

  test.each(['0 2 * * *', '@daily', '@HOURLY', '@weekly', '*/5 8-17 * * MON-FRI', '0 0 1,15 * *', ' 30 6 * * 7 '])(
    '%s is read',
    (schedule) => {
      expect(invalid({ schedule })).toBeUndefined()
      expect(invalid({ schedule, timezone: 'America/New_York' })).toBeUndefined()
    },
  )

  test.each([
    ['* * * * * *', 'schedule "* * * * * *" has 6 fields: write 5'],
    ['0 2 * *', 'schedule "0 2 * *" has 4 fields'],
    ['2026-01-01T00:00:00', 'has 1 field: write 5'],
    ['', 'schedule "" has 0 fields'],
    ['@reboot', 'schedule "@reboot" is not one of @hourly, @daily'],
    ['@every 5m', 'is not one of @hourly'],
    ['60 2 * * *', 'schedule "60 2 * * *" cannot be read: Invalid value for minute: 60'],
    ['0 2 * * FOO', 'cannot be read: '],
    ['0 5-1 * * *', "cannot be read: From value is larger than to value: '5-1'"],
    ['0 0 31 2 *', 'schedule "0 0 31 2 *" matches no date'],
    ['0 0 31 4,6,9,11 *', 'matches no date'],
    ['0 0 29 2 *', 'leaves 1461 d between two times'],
    ['0 0 1 */6 *', 'leaves 184 d between two times, and with grace that is more than 100 d: an agent'],
    ['0 * 1 1,7 *', 'between two times'],
    ['@yearly', 'leaves 365 d between two times'],
  ])('%s is refused with the reason', (schedule, reason) => {
    const spent = measureWork()
    expect(invalid({ schedule, timezone: 'Europe/Berlin' })).toContain(reason)
    expect(spent()).toBeLessThan(1_000)
  })

  test('a job that runs each month or quarter can be monitored', () => {
    expect(invalid({ schedule: '@monthly', timezone: 'Europe/Berlin' })).toBeUndefined()
    expect(invalid({ schedule: '0 2 1 1,4,7,10 *' })).toBeUndefined()
  })

  test('grace counts towards the 100 days after which an agent is deleted', () => {
    const weekly = (limit: number) => invalid({ schedule: '@weekly', grace: { limit } })
    expect(weekly(93 * day)).toBeUndefined()
    expect(weekly(93 * day + 1)).toContain('leaves 7 d between two times, and with grace that is more than 100 d')
    expect(invalid({ schedule: '* * * * *', grace: { limit: 100 * day - 61 * second } })).toBeUndefined()
  })

  test('a zone is a name, and a typing error is reported', () => {
    const zone = (timezone: string) => invalid({ ...nightly, timezone })
    expect(zone('Europe/Berln')).toBe('timezone "Europe/Berln" is not a time zone: did you mean Europe/Berlin?')
    for (const timezone of ['Mars/Olympus', '+02:00', '', '\u001b[31mX'])
      expect(zone(timezone)).toContain('is not a time zone: use a name such as Europe/Berlin')
  })

  test('interval and late exclude it, and its own parts require it', () => {
    expect(invalid({ ...nightly, interval: hour })).toContain('has both schedule and interval')
    expect(invalid({ ...nightly, late: { warn: 2, limit: 5 } })).toContain('has both schedule and late')
    expect(invalid({ timezone: 'UTC' })).toContain('has timezone without schedule')
    expect(invalid({ grace: { limit: hour } })).toContain('has grace without schedule')
    expect(invalid({ interval: hour, late: { limit: 3 } })).toBeUndefined()
  })

  test('an error has its place in the file', async () => {
    const yaml = (line: string) => `types:\n  Batch:\n    - {kind: heartbeat, name: nightly, ${line}}\n`
    expect((await refused(yaml('schedule: "0 0 31 2 *"'))).message).toMatch(/svc\.yaml:3:\d+: .*matches no date/)
    const late = await refused(yaml('schedule: "@daily", late: {limit: 3}'))
    expect(late.message).toContain('has both schedule and late')
    const config = await load(yaml('schedule: "@daily", timezone: Europe/Berlin, grace: {limit: 2h}'))
    expect(JSON.stringify(config)).toContain('"grace":{"warn":600000,"limit":7200000}')
  })

  test('croner is loaded for a file with a schedule only', async () => {
    const config = new URL('../../../src/core/config/index.ts', import.meta.url).href
    const code = `
      import { registerHooks } from 'node:module'
      const seen = new Set()
      registerHooks({
        resolve(specifier, context, next) {
          const found = next(specifier, context)
          const [, name] = /\\/node_modules\\/([^/]+)/.exec(found.url) ?? []
          if (name !== undefined) seen.add(name)
          return found
        },
      })
      const { loadConfig } = await import(${JSON.stringify(config)})
      const [home] = process.argv.slice(1)
      await loadConfig({ env: { SVC_HOME: home }, platform: process.platform, home })
      process.stdout.write([...seen].sort().join())`
    const loads = async (settings: string): Promise<string> => {
      const home = await folder()
      await file(join(home, 'svc.yaml'), `types: {Batch: [{kind: heartbeat${settings}}]}`)
      const run = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code, home])
      return run.stdout
    }
    expect(await loads('')).toBe('yaml')
    expect(await loads(', schedule: "@daily"')).toBe('croner,yaml')
  })
})
