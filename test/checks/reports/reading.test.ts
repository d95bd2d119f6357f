import { describe, expect, test } from 'vitest'
import { sanitizeLine, sanitizeText } from '../../../src/core/base/sanitize.ts'
import { type Entry, read } from '../../../src/core/checks/reports/index.ts'
import type { HealthCheckResponse, RunDocument } from '../../../src/core/protocol/index.ts'
import { measureWork } from '../../support/suite/processor-time.ts'
import { broken, failing, foreign, healthy, unreachable, warning } from './samples.ts'

describe('the meaning of an entry', () => {
  test('healthy, with warnings, unhealthy, or without an answer', () => {
    expect([healthy, warning, failing, unreachable].map((entry) => [read(entry).level, read(entry).headline])).toEqual([
      ['ok', 'App is healthy: 1 monitor passed'],
      ['warn', 'Sql is healthy, 1 warning'],
      ['fail', 'Sql is unhealthy: 1 of 2 monitors failed'],
      ['unknown', 'Mongo could not be checked'],
    ])
  })

  test('H10 causes are root causes, never checks that were skipped because of them', () => {
    const { causes, failed } = read(broken)
    expect(failed).toBe(4)
    expect(causes.map((cause) => cause.split(':')[0])).toEqual([
      'tcp 10.1.2.3',
      'ftp ftp1 data connection',
      'http 管理画面 応答',
    ])
  })

  test('H11 a warning loses its prefix and keeps its level; the fault class is separate', () => {
    const [configured] = read(warning).monitors.flatMap((monitor) => monitor.results)
    expect(configured).toMatchObject({ level: 'warn', message: expect.stringMatching(/^Sql: no server/) })
    expect(read(warning).causes).toEqual(["Sql: no server configured; svc's own store was checked"])
    const backup = read(failing).monitors[0]?.results[1]
    expect(backup).toMatchObject({ fault: 'threshold', details: ['started 2026-02-26 22:00, job "nightly full"'] })
  })

  test('text that only a foreign StatusMessage or a monitor contains is kept', () => {
    const reading = read(foreign)
    expect(reading.causes).toEqual(['Batch node 3 is down', 'Queue: 412 jobs waiting'])
    expect(reading.monitors[0]?.results).toEqual([
      expect.objectContaining({ check: '', level: 'fail', message: '412 jobs waiting', details: ['oldest 3 h'] }),
    ])
    const extra: HealthCheckResponse = {
      Status: 'Failure',
      MonitorSummaries: [
        {
          MonitorName: 'a',
          Status: 'Failure',
          Results: [{ MonitoringName: 'b', Status: 'Failure', StatusMessage: 'c' }],
          ErrorMessages: ['b: c', 'and more'],
        },
      ],
    }
    expect(read({ ...foreign, Response: extra }).monitors[0]?.results[0]?.details).toEqual(['and more'])
  })

  test.each([
    {},
    { Status: 'Failure' },
    { MonitorSummaries: [] },
    { MonitorSummaries: [{}] },
    { MonitorSummaries: [{ Results: [{}] }], FailedMonitorCount: Number.NaN },
    { ExecutionMetrics: { StartDateTime: new Date(Number.NaN), Duration: Number.NaN } },
  ] as HealthCheckResponse[])('K7 a truncated answer is never healthy: %j', (Response) => {
    const reading = read({ ...healthy, Response })
    expect(reading.level).toBe('fail')
    expect(reading.failed).toBeGreaterThan(0)
    expect(reading.duration).toBeUndefined()
    expect(reading.startedAt).toBeUndefined()
  })

  test('an entry without answer and without error is an unreadable answer', () => {
    const { Response: _, ...nothing }: Entry = healthy
    expect(read(nothing)).toMatchObject({ level: 'unknown', error: { code: 'UnreadableAnswer', exitCode: 8 } })
  })
})

describe('safe text', () => {
  test.each([
    ['colours', '\u001b[31mred\u001b[0m', 'red'],
    ['clearing the screen', 'a\u001b[2J\u001b[Hb', 'ab'],
    ['a title', '\u001b]0;owned\u0007x', 'x'],
    ['a link', '\u001b]8;;https://evil.example\u001b\\text\u001b]8;;\u001b\\', 'text'],
    ['an unfinished title', 'a\u001b]0;owned', 'a]0;owned'],
    ['a device control string', '\u001bP1;2|payload\u001b\\x', 'x'],
    ['a reset', 'a\u001bcb', 'ab'],
    ['a character set', 'a\u001b(0b', 'ab'],
    ['8-bit sequences', '\u009b31mred\u009d0;t\u009cx\u0090q\u009cy', 'redxy'],
    ['bidi controls', 'exe\u202egnp.\u2066x\u2069\u200f', 'exegnp.x'],
    ['backspace, bell and delete', 'a\bb\u0007c\u007f', 'abc'],
    ['invisible tags', 'a\u{e0041}\u200bb', 'ab'],
    ['a lone surrogate', 'a\ud800b', 'a\ufffdb'],
    ['line ends of every kind', 'a\r\nb\rc\u2028d\u0085e\vf', 'a\nb\nc\nd\ne\nf'],
    ['a password of the user named user', 'postgres://user:p@db/x', 'postgres://***@db/x'],
    ['a password behind a user named user', 'postgres://user@p@db/x', 'postgres://***@db/x'],
    [
      'no placeholder of an example',
      'write postgres://user@host:port/database',
      'write postgres://user@host:port/database',
    ],
    ['a password in a URL', 'cannot reach postgres://svc:p@ss@db/x?y', 'cannot reach postgres://***@db/x?y'],
    [
      'nothing of a plain text',
      'disk D:\\Data 41 % – 管理画面 é 👩‍👩‍👧 https://h/x@y',
      'disk D:\\Data 41 % – 管理画面 é 👩‍👩‍👧 https://h/x@y',
    ],
  ])('K6 it removes %s', (_, text, safe) => {
    expect(sanitizeText(text)).toBe(safe)
  })

  test('one line is one line', () => {
    expect(sanitizeLine(' a\r\n\tb\u2029 c ')).toBe('a b c')
  })

  test('K6 text that consists of openings costs time in proportion to its length', () => {
    const openings = ['\u001b]', '\u009d', '\u001b[', '\u001bP', '\u0090', '://', '\u001b', '\u009b0;']
    // Were any of them searched for its end again and again, each would take minutes.
    const spent = measureWork()
    for (const opening of openings) sanitizeText(opening.repeat(200_000 / opening.length))
    expect(spent()).toBeLessThan(4_000)
  })
})

test('the headline of a check of svc itself says that no server is configured', () => {
  const at = new Date('2026-03-01T00:00:00Z')
  const run = (statuses: readonly ('ok' | 'warning' | 'failed')[]): RunDocument => ({
    version: 1,
    type: 'Sql',
    mode: 'Basic',
    view: 'full',
    status: statuses.includes('failed') ? 'failed' : 'warning',
    message: '',
    startedAt: at,
    endedAt: at,
    durationMs: 1,
    ownPart: "svc's own store",
    monitors: statuses.map((status, index) => ({
      kind: 'made',
      name: `made ${index}`,
      status,
      results: [{ check: 'probe', status, message: 'x' }],
    })),
  })
  const headline = (statuses: Parameters<typeof run>[0]): string =>
    read({ Target: 'here', ServerType: 'Sql', ExecutionMode: 'Basic', ExitCode: 0, Run: run(statuses) }).headline
  expect(headline(['ok', 'warning'])).toBe("svc's own store is healthy; no Sql server is configured")
  expect(headline(['warning', 'warning'])).toBe(
    "svc's own store is healthy; no Sql server is configured; 1 other warning",
  )
  expect(headline(['failed', 'warning'])).toBe('Sql is unhealthy: 1 of 2 monitors failed')
})
