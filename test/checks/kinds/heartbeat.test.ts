import { describe, expect, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import heartbeat from '../../../src/core/checks/kinds/heartbeat/index.ts'
import type { ExecutionMode, Heartbeat } from '../../../src/core/protocol/index.ts'
import { expectResult, finds } from '../../support/engine/finds.ts'
import { checked, runKind } from '../../support/engine/run-kind.ts'
import { escapeSequences } from '../../support/faults/faults.ts'
import { beatAt } from '../../support/store/heartbeats.ts'
import { measureWork } from '../../support/suite/processor-time.ts'

const minute = 60_000
const now = 1_800_000_000_000
const beat = (name: string, ageMs: number, more: Partial<Heartbeat> = {}): Heartbeat => beatAt(name, now - ageMs, more)
type Settings = Parameters<typeof runKind<typeof heartbeat.settings>>[1]
const look = (beats: readonly Heartbeat[], settings: Settings = {}, mode: ExecutionMode = 'Advanced') =>
  runKind(heartbeat, settings, mode, { date: () => new Date(now), services: { heartbeats: async () => beats } })
const one = async (check: string, ...args: Parameters<typeof look>) => checked(await look(...args), check)
const status = async (...args: Parameters<typeof one>) => (await one(...args)).status
const checksOf = async (...args: Parameters<typeof look>) => (await look(...args)).map(({ check }) => check)

describe('at Basic the newest heartbeat counts', () => {
  test('B4 its age is measured in intervals, and is ok at the boundary', async () => {
    const aged = (ms: number) => status('newest', [beat('old', 999 * minute), beat('new', ms)], {}, 'Basic')
    expect(await aged(0)).toBe('ok')
    expect([await aged(2 * minute), await aged(2 * minute + 1)]).toEqual(['ok', 'warning'])
    expect([await aged(5 * minute), await aged(5 * minute + 1)]).toEqual(['warning', 'failed'])
    await finds(
      look([beat('new', 6 * minute)], {}, 'Basic'),
      'newest (threshold): last heartbeat, from new, came 6 min ago (warn 2 min, fail 5 min)',
    )
  })

  test('the interval is that of svc.yaml, else that of the agent, else a minute', async () => {
    const hourly = [beat('a', 90 * minute, { intervalMs: 60 * minute })]
    expect(await status('newest', hourly, {}, 'Basic')).toBe('ok')
    expect(await status('newest', hourly, { interval: 10 * minute }, 'Basic')).toBe('failed')
  })

  test('a heartbeat slightly ahead of the local clock is new', () =>
    finds(look([beat('a', -5_000)], {}, 'Basic'), ['newest ok', { measurement: { value: 0 } }]))

  test('B4 a heartbeat of more than a minute in the future proves nothing', async () => {
    const ahead = beat('ahead', -minute - 1)
    await finds(look([ahead]), 'newest failed (data)')
    await finds(look([ahead]), 'newest: …is dated 1 min in the future…')
    expect(await status('newest', [ahead, beat('b', 0)])).toBe('ok')
    await finds(look([ahead, beat('b', 0)]), 'reporting: …1 of 2 agents reports; missing: ahead…')
    expect(await status('newest', [beat('a', -minute)])).toBe('ok')
  })

  test('B5 a run that begins before the earlier one has ended is a warning while it is in progress', async () => {
    const run = { id: 2, startedAt: now - minute, overlaps: { id: 1, startedAt: now - 5 * minute } }
    await finds(
      look([beat('a', 0, { run })]),
      'overlap warning: a: the run that began 5 min ago has not ended, and another one has begun',
    )
    const single = { ...run, overlaps: undefined }
    expect(await status('overlap', [beat('a', 0, { run: single })])).toBe('ok')
    expect(await checksOf([beat('a', 0, { run: { ...run, endedAt: now } })])).not.toContain('overlap')
    expect(await checksOf([beat('a', 0, { run })], { overlapping: true })).not.toContain('overlap')
  })

  test('B4 a missing heartbeat is a failure in each mode, also for a pattern', async () => {
    await finds(look([], {}, 'Basic'), 'newest failed (data)')
    await finds(
      look([beat('other', 0)], { agents: ['agent-*'] }),
      'newest: no heartbeat from agent-* has arrived: svc heartbeat NAME sends one',
      'reporting failed: 0 of 0 agents report',
    )
  })

  test('B4 an unreadable store and a missing one are failures and reported as such', async () => {
    const fault = new Fault('Unavailable', 'The store does not answer in time', { hints: ['Look at the store.'] })
    const [unread, ...rest] = await runKind(heartbeat, {}, 'Advanced', {
      services: { heartbeats: () => Promise.reject(fault) },
    })
    expect(rest).toEqual([])
    expectResult(unread, 'failed (internal): heartbeats cannot be read: The store does not answer in time', {
      details: ['Look at the store.'],
    })
    expect(await runKind(heartbeat, {})).toMatchObject([
      { status: 'failed', message: 'there is no store to keep heartbeats in' },
    ])
  })

  test('B4 a store that never answers ends at the deadline', async () => {
    const heartbeats = () => new Promise<never>(() => {})
    expect(await runKind(heartbeat, {}, 'Basic', { services: { heartbeats }, timeoutMs: 50 })).toMatchObject([
      { status: 'failed', fault: 'timeout' },
    ])
  })
})

describe('selection of agents', () => {
  test.each([
    ['*', ['a', 'agent-1', 'agent-22', 'db.example.com']],
    ['agent-*', ['agent-1', 'agent-22']],
    ['*.example.com', ['db.example.com']],
    ['a*t*2', ['agent-22']],
    ['*m*e*m', ['db.example.com']],
    ['a*a', []],
    ['agent-1', ['agent-1']],
    ['agent', []],
  ])('%s', async (pattern, meant) => {
    const beats = ['a', 'agent-1', 'agent-22', 'db.example.com'].map((name) => beat(name, 0, { version: name }))
    const results = await look(beats, { agents: [pattern] }, 'Standard')
    const { measurement } = checked(results, 'reporting')
    expect(measurement?.value).toBe(meant.length)
    const versionResult = results.find(({ check }) => check === 'version')
    expect(meant.every((name) => `${versionResult?.message} ${versionResult?.details?.join()}`.includes(name))).toBe(
      true,
    )
  })

  test('B3 an unnamed agent raises no alarm after 30 days of silence, a named one and one with a schedule do', async () => {
    const day = 1_440 * minute
    const beats = [beat('here', 0), beat('gone', 30 * day + 1)]
    const silent = async (settings: Settings) => (await one('silent', beats, settings)).message
    expect(await silent({})).toBe('no agent is silent')
    await finds(look([beat('here', 0), beat('gone', 30 * day)]), ['silent', /^gone: 1 silent agent/])
    expect(await silent({ agents: ['here', 'gone'] })).toMatch(/^gone: 1 silent agent/)
    expect(await silent({ schedule: '@monthly' })).toMatch(/gone: 1 silent agent/)
  })

  test('a pattern of many asterisks and a long name take no time', async () => {
    const spent = measureWork()
    await look([beat('a'.repeat(128), 0)], { agents: ['*a'.repeat(60).concat('*b')] }, 'Standard')
    expect(spent()).toBeLessThan(1_000)
  })
})

describe('at Standard', () => {
  test('each named agent must report, even one that never did', async () => {
    const beats = [beat('a', 0), beat('b', 6 * minute)]
    await finds(look(beats, { agents: ['a', 'b', 'c'] }), [
      'reporting failed: 1 of 3 agents reports; missing: c, b (fail below 3)',
      { details: ['c: has never reported', 'b: silent for 6 min'], measurement: { value: 1, limit: 3 } },
    ])
    expect(await status('reporting', beats, { agents: ['a'] })).toBe('ok')
  })

  test('a silent agent of a pattern is a warning, unless a number is expected', async () => {
    const beats = [beat('a', 0), beat('b', 6 * minute)]
    expect(await status('reporting', beats)).toBe('warning')
    expect(await status('reporting', beats, { expected: 1 })).toBe('ok')
    await finds(look(beats, { expected: 2 }), ['reporting failed', { measurement: { limit: 2 } }])
    await finds(look(beats, { expected: 4 }), 'reporting: …1 of 4…')
  })

  test('the worst status that an agent reports counts, and that of a silent one does not', async () => {
    const beats = [
      beat('a', 0),
      beat('b', 0, { status: 'Warn', message: 'slow' }),
      beat('c', 9 * minute, { status: 'Fail' }),
    ]
    await finds(look(beats), ['status warning: b reports Warn: "slow"', { details: [] }])
    const worse = [...beats, beat('d', 0, { status: 'Fail', message: 'disk full' })]
    await finds(look(worse), 'status failed (data): d reports Fail: "disk full" (and 1 other)')
    await finds(look([beat('a', 0)]), 'status ok')
  })

  test('H5 an unexpected version is a deployment-related failure, and two versions side by side are a warning', async () => {
    const beats = [beat('a', 0, { version: '2' }), beat('b', 0, { version: '2' }), beat('c', 0, { version: '1' })]
    await finds(look(beats), ['version warning', { deployment: true, details: ['"2": a, b', '"1": c'] }])
    await finds(look(beats, { version: '2' }), ['version failed: c runs "1", expected "2"', { deployment: true }])
    expect(await status('version', beats.slice(0, 2), { version: '2' })).toBe('ok')
    expect(await status('version', [beat('a', 0)], { version: '2' })).toBe('failed')
    expect(await checksOf([beat('a', 0)])).not.toContain('version')
  })

  test('disk and clock are evaluated for the agents that report them, the worst by name', async () => {
    const beats = [
      beat('a', 0, { diskFreePercent: 50, skewMs: 100 }),
      beat('b', 0, { diskFreePercent: 9.9, skewMs: -31_000 }),
      beat('c', 0),
    ]
    await finds(look(beats), 'disk failed: b: free disk space 9.9 % (warn below 20 %, fail below 10 %)')
    await finds(look(beats), 'clock failed: b: clock offset 31 s (warn 2 s, fail 30 s)')
    const level2 = async (free: number, skew: number) => [
      await status('disk', [beat('a', 0, { diskFreePercent: free })]),
      await status('clock', [beat('a', 0, { skewMs: skew })]),
    ]
    expect(await level2(20, 2_000)).toEqual(['ok', 'ok'])
    expect(await level2(10, 30_000)).toEqual(['warning', 'warning'])
    const silentOnes = await checksOf([beat('c', 0)], {}, 'Standard')
    expect(silentOnes).toEqual(['newest', 'reporting', 'status'])
  })
})

describe('at Advanced', () => {
  test('a backlog is evaluated where a threshold is set', async () => {
    const beats = [beat('a', 0, { backlog: 5 }), beat('b', 0, { backlog: 11 })]
    await finds(look(beats, { backlog: { warn: 5, limit: 10 } }), [
      'backlog failed: b: backlog 11 (warn 5, fail 10)',
      { details: ['b: 11', 'a: 5'] },
    ])
    expect(await checksOf(beats)).not.toContain('backlog')
  })

  test('a backlog or a run that no agent reports is not checked where a threshold is set', async () => {
    const beats = [beat('a', 0)]
    await finds(
      look(beats, { backlog: { warn: 5 } }),
      'backlog not checked (missing): not checked: no agent reports a backlog',
    )
    await finds(
      look(beats, { runtime: { warn: minute } }),
      'runtime not checked (missing): not checked: no agent reports the start and the end of its runs',
    )
    expect(await checksOf([beat('a', 300 * minute)], { backlog: { warn: 5 } })).not.toContain('backlog')
  })

  test('agents that once reported may not be silent, except for a configured number', async () => {
    const beats = [beat('a', 0), beat('b', 9 * minute), beat('c', 300 * minute)]
    await finds(look(beats), [
      'silent failed: c, b: 2 silent agents (fail 0)',
      { details: ['c: for 5 h', 'b: for 9 min'] },
    ])
    expect(await status('silent', beats, { silent: { limit: 2 } })).toBe('ok')
    await finds(look([beat('a', 0)]), ['silent ok: no agent is silent', { measurement: { value: 0 } }])
  })

  test('flapping counts changes and silences in the history, and is omitted without one', async () => {
    const history = (statuses: string, everyMs = minute) =>
      [...statuses].map((one, n) => ({
        at: now - (statuses.length - n) * everyMs,
        status: one === 'o' ? ('Ok' as const) : ('Fail' as const),
      }))
    const flapping = (statuses: string, everyMs?: number) =>
      one('flapping', [beat('a', 0, { history: history(statuses, everyMs) })])
    expect(await flapping('oooooo')).toMatchObject({ status: 'ok', measurement: { value: 0 } })
    expect(await flapping('oxoxo')).toMatchObject({ status: 'ok', measurement: { value: 4 } })
    expect(await flapping('oxoxox')).toMatchObject({ status: 'warning', measurement: { value: 5 } })
    expect(await flapping('oxoxoxoxox')).toMatchObject({ status: 'failed', measurement: { value: 9 } })
    // Silent for longer than the limit before every one of them.
    expect(await flapping('oooooo', 6 * minute)).toMatchObject({ status: 'failed', measurement: { value: 10 } })
    expect(await checksOf([beat('a', 0, { history: history('oxox') })])).not.toContain('flapping')
  })
})

test('hostile text from agents becomes one truncated line without escapes', async () => {
  const hostile = `${escapeSequences}${'x'.repeat(5_000)}`
  const beats = [
    beat(hostile, 0, { status: 'Fail', message: hostile, version: hostile }),
    beat('b', 0, { version: '1' }),
  ]
  for (const { message, details = [] } of await look(beats)) {
    for (const line of [message, ...details]) {
      expect(line).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
      expect(line.length).toBeLessThan(1_000)
    }
  }
})

test('10,000 agents are evaluated at once, and few are named', async () => {
  const beats = Array.from({ length: 10_000 }, (_, n) => beat(`agent-${n}`, 9 * minute, { version: `${n % 50}` }))
  const spent = measureWork()
  const results = await look([...beats, beat('last', 0)])
  expect(spent()).toBeLessThan(3_000)
  for (const { details = [] } of results) expect(details.length).toBeLessThanOrEqual(20)
  await finds(results, ['reporting', /^1 of 10001 agents reports; missing: agent-0, .* and 9997 more$/])
})
