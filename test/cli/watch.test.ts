import { describe, expect, onTestFinished, test } from 'vitest'
import type { HealthOutcome } from '../../src/cli/health/health.ts'
import { liveScreen } from '../../src/cli/health/live.ts'
import { type Plan, type Round, watchPlan, whatNext } from '../../src/cli/health/watch-plan.ts'
import {
  changeLine,
  firstView,
  frameLines,
  keys,
  keysIn,
  rowsOf,
  type View,
  type WatchRow,
} from '../../src/cli/health/watch-screen.ts'
import { afterRound, changesOf, type Watched } from '../../src/cli/health/watched.ts'
import { painter } from '../../src/cli/io/terminal.ts'
import { marks } from '../../src/cli/render/table.ts'
import { width } from '../../src/cli/render/width.ts'
import { Fault } from '../../src/core/base/errors.ts'
import { zonedTime } from '../../src/core/base/zone.ts'
import { read } from '../../src/core/checks/reports/index.ts'
import type { RunDocument } from '../../src/core/protocol/index.ts'
import { main } from '../../src/main.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { password, signInServer, user } from '../support/simulated/sign-in-server.ts'

const began = Date.parse('2026-11-30T10:50:00Z')
const look = { width: 80, marks: marks(true), paint: painter(false) }

type Status = 'ok' | 'warning' | 'failed'
/** The answer of a type whose monitors have these states, or the reason why there is none. */
const reading = (monitors: Readonly<Record<string, Status>> | string, ServerType = 'App') => {
  const base = { Target: 'web1', ServerType, ExecutionMode: 'Standard' }
  if (typeof monitors === 'string') {
    return read({ ...base, ExitCode: 6, Error: { code: 'Unreachable', exitCode: 6, message: monitors, hints: [] } })
  }
  const failed = Object.values(monitors).includes('failed')
  const run = {
    status: failed ? 'failed' : Object.values(monitors).includes('warning') ? 'warning' : 'ok',
    message: '',
    monitors: Object.entries(monitors).map(([name, status]) => ({
      ...{ name, kind: 'tcp', status, durationMs: 1 },
      results: [
        {
          check: 'connect',
          status,
          message: `10.0.0.7:9100 is ${status}`,
          ...(status === 'failed' ? { fault: 'refused' } : {}),
        },
      ],
    })),
  } as unknown as RunDocument
  return read({ ...base, ExitCode: failed ? 3 : 0, Run: run })
}
/** The rounds, 10 s apart, with the ages of their answers in seconds. */
const rounds = (
  ...all: readonly (Parameters<typeof reading>[0] | readonly [Parameters<typeof reading>[0], number])[]
): Watched => {
  let watched: Watched | undefined
  for (const [at, round] of all.entries()) {
    const [monitors, age] = Array.isArray(round) ? (round as [Parameters<typeof reading>[0], number]) : [round, 0]
    watched = afterRound(watched, {
      at: began + at * 10_000,
      readings: [reading(monitors as Parameters<typeof reading>[0])],
      ages: [age],
    })
  }
  if (!watched) throw new Error('no round')
  return watched
}
const many = (count: number, status: Status, from = 0): Record<string, Status> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`tcp m${from + at}`, status]))
const news = (watched: Watched) =>
  changesOf(watched).map((one) => changeLine(one, watched, look).replace(/^\S+ \S+ \S+ /, ''))
const screen = (watched: Watched, view: View = firstView(false), height = 24, columns = 80, now = watched.at) =>
  frameLines(
    { watched, view, height, now, title: 'svc health', next: () => 'next in 3 s', report: undefined },
    { ...look, width: columns },
  )

describe('what a round has changed', () => {
  test.each<[string, Watched, readonly string[]]>([
    [
      'of the first round, what is not ok',
      rounds({ 'tcp a': 'ok', 'tcp b': 'failed' }),
      ['✗ App tcp b failed: connect: 10.0.0.7:9100 is failed', '✗ UNHEALTHY: 1 of 2 monitors failed'],
    ],
    ['nothing', rounds({ 'tcp a': 'failed' }, { 'tcp a': 'failed' }), []],
    [
      'a failure',
      rounds({ 'tcp a': 'ok' }, { 'tcp a': 'ok' }, { 'tcp a': 'failed' }),
      [
        '✗ App tcp a failed: connect: 10.0.0.7:9100 is failed (was ok for at least 20 s)',
        '✗ UNHEALTHY: 1 of 1 monitor failed (was HEALTHY for at least 20 s)',
      ],
    ],
    [
      'a warning, which leaves the verdict healthy',
      rounds({ 'tcp a': 'ok' }, { 'tcp a': 'warning' }),
      ['! App tcp a warning: connect: 10.0.0.7:9100 is warning (was ok for at least 10 s)'],
    ],
    [
      'a recovery',
      rounds({ 'tcp a': 'ok' }, { 'tcp a': 'failed' }, { 'tcp a': 'failed' }, { 'tcp a': 'ok' }),
      ['✓ App tcp a ok (was failed for 20 s)', '✓ HEALTHY: 1 monitor (was UNHEALTHY for 20 s)'],
    ],
    [
      'a server that is not reached, and no monitor of it',
      rounds({ 'tcp a': 'failed' }, 'refused'),
      [
        '? App not reached: refused (was ok for at least 10 s)',
        '? NOT REACHED: refused (was UNHEALTHY for at least 10 s)',
      ],
    ],
    [
      'what is otherwise than before the server was lost',
      rounds({ 'tcp a': 'failed', 'tcp b': 'ok' }, 'refused', { 'tcp a': 'ok', 'tcp b': 'ok' }),
      [
        '✓ App ok (was not reached for 10 s)',
        '✓ App tcp a ok (was failed for at least 20 s)',
        '✓ HEALTHY: 2 monitors (was NOT REACHED for 10 s)',
      ],
    ],
  ])('K71 %s', (_, watched, lines) => {
    expect(news(watched)).toEqual(lines)
  })
})

describe('the screen of svc health --watch', () => {
  test('K71 has one row for monitors that say the same, the worst first, and marks what the last round changed', () => {
    const broken = { ...many(260, 'ok'), ...many(40, 'failed', 260) }
    const lines = screen(rounds(many(300, 'ok'), broken), undefined, undefined, 100)
    expect(lines[1]).toBe(`✗ UNHEALTHY * just now · 40 of 300 monitors failed · since ${clockOf(10_000)}`)
    expect(lines.slice(3, 6).map((line) => line.trimEnd())).toEqual([
      `> ✗ * App 40 monitors   connect: 10.0.0.7:9100 is failed                       since ${clockOf(10_000)}`,
      '  ✓   App 260 monitors',
      '',
    ])
    expect(screen(rounds(many(300, 'ok'), broken, broken))[1]).not.toContain('*')
    const recovered = rounds(many(300, 'ok'), broken, many(300, 'ok'))
    expect(screen(recovered)[3]).toContain('> ✓ * App 40 monitors   was failed for 10 s')
  })

  const clockOf = (ms: number): string => {
    const { time, offset } = zonedTime(new Date(began + ms))
    return `${time} ${offset}`
  }

  test.each([80, 40, 20, 3, 1])('K71 fits %i columns, and any height', (columns) => {
    const watched = rounds({ ...many(30, 'ok'), 'tcp 管理画面の応答がありません': 'failed' })
    for (const height of [1, 2, 5, 24, 60]) {
      const lines = screen(watched, undefined, height, columns)
      expect(lines.length).toBeLessThanOrEqual(height)
      expect(lines.filter((line) => width(line) > Math.max(columns, 2))).toEqual([])
    }
    if (columns >= 20) expect(screen(watched, undefined, 1, columns)[0]).toMatch(/^✗ UNHEALTHY/)
  })

  test('K71 never says healthy of a server that is not reached, and says how old the last answer is', () => {
    const healthy = { 'tcp a': 'ok' } as const
    const lost = rounds(healthy, 'connection refused')
    const lines = screen(lost, undefined, 24, 100, lost.at + 15_000)
    expect(lines[1]).toBe(`? NOT REACHED * since ${clockOf(10_000)} · last answer 25 s ago · connection refused`)
    expect(lines.join('\n')).not.toMatch(/HEALTHY|UNHEALTHY|tcp a/)
    expect(screen(rounds('connection refused'))[1]).not.toMatch(/HEALTHY/)
    // What the schedule found 45 s ago, 3 s after the answer.
    const stored = rounds([healthy, 45])
    expect(screen(stored, undefined, 24, 20, stored.at + 3_000)[1]).toMatch(/^✓ HEALTHY 48 s ago/)
  })

  /** The keys one after the other, and what they demand. */
  function press(watched: Watched, sent: string) {
    let view = firstView(false)
    const demands: string[] = []
    for (const key of keysIn(sent)) {
      const action = keys[key]
      if (typeof action === 'function') view = action(view, rowsOf(watched, view, 10))
      else if (action) demands.push(action)
    }
    return { view, demands, rows: rowsOf(watched, view, 10) }
  }
  const titles = (rows: readonly WatchRow[]) =>
    rows.map(({ subjects: [first, ...others] }) => (others.length > 0 ? `${others.length + 1}` : first.name))
  const some = rounds({ 'tcp z': 'ok', 'tcp a': 'failed', 'tcp b': 'failed', 'tcp c': 'failed', 'tcp w': 'warning' })

  test.each<[string, string, (pressed: ReturnType<typeof press>) => unknown, unknown]>([
    ['q ends', 'q', ({ demands }) => demands, ['quit']],
    ['space asks now', ' ', ({ demands }) => demands, ['now']],
    [
      'ctrl-C, ctrl-Z and ctrl-\\ are those of every terminal',
      '\u0003\u001a\u001c',
      ({ demands }) => demands,
      ['interrupt', 'suspend', 'abort'],
    ],
    ['f shows only failures', 'f', ({ rows }) => titles(rows), ['3', 'tcp w']],
    ['f again shows all', 'ff', ({ rows }) => titles(rows), ['3', 'tcp w', 'tcp z']],
    ['j goes down, and no further than the end', 'jjjjj', ({ view }) => view.selected, 'App/tcp z'],
    ['k goes up', 'jjk', ({ view }) => view.selected, 'App/tcp w'],
    ['arrows do the same', '\u001b[B\u001b[B\u001b[A', ({ view }) => view.selected, 'App/tcp w'],
    [
      'enter opens the row of several',
      '\r',
      ({ rows }) => titles(rows),
      ['3', 'tcp a', 'tcp b', 'tcp c', 'tcp w', 'tcp z'],
    ],
    ['enter again closes it', '\r\r', ({ rows }) => titles(rows), ['3', 'tcp w', 'tcp z']],
    ['enter shows the report of a monitor', 'j\r', ({ view }) => view.report, 'App/tcp w'],
    ['enter or escape leaves the report', 'j\r\rj\r\u001b', ({ view }) => view.report, undefined],
    ['in a report, j scrolls', 'j\rjj', ({ view }) => [view.scroll, view.selected], [2, 'App/tcp w']],
    ['other keys do nothing', 'x\u001b[15~', ({ view, demands }) => [view, demands], [firstView(false), []]],
  ])('K71 %s', (_, sent, of, expected) => {
    expect(of(press(some, sent))).toEqual(expected)
  })
})

describe('when a watch asks again, and when it ends', () => {
  const outcome = (exitCode: number): HealthOutcome =>
    exitCode === 0 || exitCode === 3
      ? {
          type: 'App',
          exitCode,
          ageSeconds: 0,
          run: undefined,
          response: { Status: exitCode === 0 ? 'Success' : 'Failure' },
        }
      : { type: 'App', exitCode, ageSeconds: 0, fault: new Fault('Unreachable', 'refused') }
  const watch: Plan = { everyMs: 10_000, until: undefined, withinMs: undefined, overExit: 7, shows: 'lines' }
  const until = (goal: 'healthy' | 'unhealthy', withinMs = 60_000): Plan => ({
    ...watch,
    everyMs: 0,
    until: goal,
    withinMs,
  })
  /** After a round of 500 ms that begins at this time. */
  const next = (plan: Plan, exitCode: number, beganAt = 0, more: Partial<Round> = {}) =>
    whatNext(plan, {
      ...{
        outcomes: [outcome(exitCode)],
        signInPaused: false,
        number: 2,
        firstBegan: 0,
        began: beganAt,
        ended: beganAt + 500,
      },
      ...{ isLast: false, ranThere: false, ...more },
    })

  test.each<[string, ReturnType<typeof next>, object]>([
    ['--watch asks every 10 s', next(watch, 3, 20_000), { type: 'ask', at: 30_000, isLast: false }],
    ['--watch goes on when the server is not reached', next(watch, 6), { type: 'ask' }],
    ['--watch ends when there is nothing to watch', next(watch, 12), { type: 'end' }],
    [
      'a round begins at least 1 s after the one before',
      next({ ...watch, everyMs: 200 }, 0),
      { type: 'ask', at: 1_500 },
    ],
    ['--until healthy ends healthy', next(until('healthy'), 0), { type: 'end' }],
    ['--until healthy goes on while unhealthy', next(until('healthy'), 3), { type: 'ask', at: 1_500 }],
    ['--until unhealthy ends with 0', next(until('unhealthy'), 3), { type: 'end', exit: 0 }],
    ['--until unhealthy goes on while not reached', next(until('unhealthy'), 6), { type: 'ask' }],
    ['--until unhealthy goes on while healthy', next(until('unhealthy'), 0), { type: 'ask' }],
    ...[2, 4, 5, 9, 12].map((code): [string, ReturnType<typeof next>, object] => [
      `--until ends at once on ${code}`,
      next(until('healthy'), code),
      { type: 'end' },
    ]),
    [
      'the last round begins when the time is over',
      next(until('healthy', 2_000), 3, 1_000),
      { type: 'ask', at: 2_000, isLast: true },
    ],
    [
      'after it, the exit code is 7',
      next(until('healthy', 2_000), 3, 2_000, { isLast: true }),
      { type: 'end', exit: 7, gaveUp: 'Gave up after 2 attempts in 2.5 s: not healthy' },
    ],
    [
      'a server that runs its checks is asked once in 10 s',
      next({ ...watch, everyMs: 2_000 }, 0, 4_000, { ranThere: true }),
      { type: 'ask', at: 14_000, soonest: 14_000 },
    ],
    [
      'also at the end of the time',
      next(until('healthy', 8_000), 3, 0, { ranThere: true }),
      {
        type: 'end',
        exit: 7,
        gaveUp: 'Gave up after 2 attempts in 500 ms: not healthy; this server is asked once in 10 s at most',
      },
    ],
  ])('K71 %s', (_, decision, expected) => {
    expect(decision).toMatchObject(expected)
  })

  const plan = (
    flags: Partial<Parameters<typeof watchPlan>[0]>,
    columns?: number,
    env = {},
    output: 'table' | 'json' = 'table',
  ) =>
    watchPlan(
      { watch: false, quiet: false, ...flags },
      output,
      capturedIo({ env, ...(columns === undefined ? {} : { columns }) }).io,
    )

  test.each<[string, Parameters<typeof plan>, RegExp]>([
    ['--until without a terminal needs --within', [{ until: 'healthy' }], /--until needs --within/],
    ['--within needs --until', [{ within: 1 }], /--within has an effect only with --until/],
    ['--interval needs --watch', [{ interval: 5_000 }], /--interval has an effect only with --watch/],
    ['--interval has a least', [{ watch: true, interval: 1_999 }], /between 2s and 1h/],
    ['--interval has a most', [{ watch: true, interval: 3_600_001 }], /between 2s and 1h/],
    ['--wait is --until healthy', [{ wait: 1, until: 'healthy' }], /--wait and --until cannot be combined/],
    ['--watch without an end has no document', [{ watch: true }, 80, {}, 'json'], /omit --output json, or add --until/],
  ])('K71 %s', (_, args, message) => {
    expect(() => plan(...args)).toThrow(message)
  })

  test.each<[string, Parameters<typeof plan>, Partial<Plan> | undefined]>([
    ['no flag asks once', [{}, 80], undefined],
    ['--watch moves on a terminal', [{ watch: true }, 80], { shows: 'screen', everyMs: 10_000 }],
    ['--watch prints lines elsewhere', [{ watch: true }], { shows: 'lines' }],
    ...[{ CI: '1' }, { TERM: 'dumb' }, { ACCESSIBLE: '1' }].map(
      (env): [string, Parameters<typeof plan>, Partial<Plan>] => [
        `--watch prints lines with ${Object.keys(env)}`,
        [{ watch: true }, 80, env],
        { shows: 'lines' },
      ],
    ),
    [
      '--until needs no time on a terminal',
      [{ until: 'healthy' }, 80],
      { shows: 'screen', withinMs: undefined, overExit: 7 },
    ],
    [
      '--wait 5m is --until healthy --within 5m with a line of progress and the exit code of the answer',
      [{ wait: 300_000 }, 80],
      { until: 'healthy', withinMs: 300_000, shows: 'progress', overExit: undefined },
    ],
  ])('K71 %s', (_, args, expected) => {
    if (expected === undefined) expect(plan(...args)).toBeUndefined()
    else expect(plan(...args)).toMatchObject(expected)
  })
})

describe('svc health --watch in this process, on a clock whose time passes in pauses', () => {
  /** Runs a command line. `inPause` is called in each pause, with the milliseconds so far. */
  async function watching(
    args: readonly string[],
    inPause: (ms: number, signal: (name: 'SIGINT') => void) => void,
    home = temporaryHome(),
  ) {
    const clock = {
      ms: 0,
      elapsed: () => clock.ms,
      now: () => new Date(began + clock.ms),
      pause: async (ms: number) => {
        clock.ms += ms
        inPause(clock.ms, captured.signal)
      },
    }
    const captured = capturedIo({ env: home.env, clock })
    await main(captured.io, ['health', ...args])
    return { code: captured.io.exitCode, stdout: captured.stdout(), stderr: captured.stderr(), clock }
  }
  const answer = (Status: string): string =>
    JSON.stringify({ Status, StatusMessage: `Sql: ${Status}`, MonitorSummaries: [{ MonitorName: 'Sql', Status }] })

  test('K71 a server without a schedule (simulated) is asked once in 10 s, and the end of the time is exit 7', async () => {
    const times: number[] = []
    let now = 0
    await using server = await httpPeer((_, response) => {
      times.push(now)
      response.writeHead(503, { 'Content-Type': 'application/json' }).end(answer('Failure'))
    })
    const args = ['-t', 'Sql', '--server', server.origin, '--until', 'healthy', '--within', '25s']
    const { code, stderr } = await watching(args, (ms) => {
      now = ms
    })
    expect([times, code]).toEqual([[0, 10_000, 20_000], 7])
    expect(stderr).toContain(
      'Gave up after 3 attempts in 20 s: Sql: Failure; this server is asked once in 10 s at most',
    )
  })

  test('K71 in a pipe, it prints a line for each change, and while nothing changes the verdict once a minute', async () => {
    let status = 'Success'
    await using server = await httpPeer((_, response) =>
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(answer(status)),
    )
    const { code, stdout, stderr } = await watching(
      ['-t', 'Sql', '--server', server.origin, '--watch'],
      (ms, signal) => {
        if (ms >= 90_000) status = 'Failure'
        if (ms >= 110_000) signal('SIGINT')
      },
    )
    const lines = stdout.trimEnd().split('\n')
    expect(lines.map((line) => line.replace(/^\S+ \S+ \S+ /, ''))).toEqual([
      '✓ HEALTHY: 1 monitor',
      '✓ HEALTHY: 1 monitor',
      // What a server says itself is a line of its own.
      '✗ Sql failed: Sql: Failure (was ok for at least 1.5 min)',
      expect.stringMatching(/^✗ Sql Sql failed: .*\(was ok for at least 1.5 min\)$/),
      '✗ UNHEALTHY: 1 of 1 monitor failed (was HEALTHY for at least 1.5 min)',
    ])
    expect([code, stderr]).toEqual([130, expect.stringMatching(/^Error: Interrupted/)])
  })

  test('K71 an expired token (simulated) is renewed between two rounds, and a sign-in that ended ends the watch with 4', async () => {
    const server = await signInServer({ dialect: 'rotating' })
    onTestFinished(server.close)
    const home = temporaryHome()
    const login = ['login', '--server', server.url, '-u', user, '--password-stdin', '--insecure-storage']
    await home.run(login, { stdin: password })
    const { code, stdout } = await watching(
      ['-t', 'Sql', '--watch'],
      (ms) => {
        if (ms === 20_000) server.expire()
        if (ms === 50_000) server.forget()
      },
      home,
    )
    expect(server.rotations()).toBe(1)
    expect([code, stdout]).toEqual([4, expect.stringMatching(/^.*✓ HEALTHY: 1 monitor\n.*\n.*NOT CHECKED.*\n$/)])
  })

  test('K71 an unexpected failure gives the terminal back before it is reported', async () => {
    const { io, stdout } = capturedIo({ columns: 80 })
    let written = ''
    io.reportUncaught = async () => {
      written = stdout()
    }
    const nothing = (): void => {}
    const wishes = { quit: nothing, now: nothing }
    const live = liveScreen({ io, title: '', failuresOnly: false, atServer: false, wishes, next: () => '' })
    expect(stdout()).toContain('\u001b[?1049h')
    await io.reportUncaught(new Error('unexpected'))
    live.close()
    expect(written).toMatch(/\[\?7h\S+\[\?25h\S+\[\?1049l$/)
    expect(stdout()).toBe(written)
  })
})
