import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { pastHoldersHeadline, roleChange, roleHistory } from '../../src/cli/accounts/audit-lists.ts'
import { audit, sessions } from '../../src/cli/accounts/lists.ts'
import { message } from '../../src/cli/health/text.ts'
import { changeLine, firstView, frameLines } from '../../src/cli/health/watch-screen.ts'
import { afterRound, changesOf, type Watched } from '../../src/cli/health/watched.ts'
import type { Screen } from '../../src/cli/io/io.ts'
import { marks, moment } from '../../src/cli/render/table.ts'
import { formatDay } from '../../src/core/base/net/certificates.ts'
import { read, readMonitor } from '../../src/core/checks/reports/index.ts'
import { messageOf } from '../../src/core/checks/reports/run-document.ts'
import type { RunDocument } from '../../src/core/protocol/index.ts'
import type { Incidents } from '../../src/core/protocol/service/service.ts'
import { boardMarkup } from '../../src/core/server/pages/board-markup.ts'
import { cardsOf } from '../../src/core/server/pages/cards.ts'
import { pageMarkup } from '../../src/core/server/pages/page-markup.ts'
import { historyMarkup, monitorMarkup } from '../../src/core/server/pages/page-monitor.ts'
import { linesOf } from '../../src/core/watch/notify/receivers/message.ts'
import { recentRun } from '../server/recent.ts'
import { serveYaml } from '../server/serve-yaml.ts'
import { ask, withSite } from '../server/site.ts'
import { notice } from '../support/notify/notice.ts'
import { boardFacts, pageFacts, runtimeFacts } from '../support/page/facts.ts'

const root = join(import.meta.dirname, '..', '..')
const usual = process.env['TZ']
beforeEach(() => {
  // The machine and the reader at the prompt are in Kolkata, and svc.yaml says so for pages and messages.
  process.env['TZ'] = zone
})
afterEach(() => {
  if (usual === undefined) delete process.env['TZ']
  else process.env['TZ'] = usual
})

const zone = 'Asia/Kolkata'
const offset = '+05:30'
const at = new Date('2026-11-24T10:42:54Z')
const until = new Date('2026-11-25T01:00:00Z')
const screen: Screen = { isTTY: true, columns: 400, colour: false, unicode: true }
const silence = { source: 'hand', until, by: 'alice', reason: 'patch night' } as const
const id = { type: 'Sql', monitor: 'tcp one' } as const

const run: RunDocument = {
  ...{ version: 1, type: 'Sql', mode: 'Basic', view: 'full', status: 'failed', message: 'Sql is unhealthy' },
  ...{ startedAt: at, endedAt: at, durationMs: 15 },
  monitors: [
    {
      ...{ name: 'tcp one', kind: 'tcp', status: 'failed' },
      results: [{ check: 'connect', status: 'failed', fault: 'refused', message: 'refused', silence }],
    },
  ],
}
const cards = cardsOf(['Sql'], [recentRun(run, 3)], 'http://svc')
const fault = { check: 'connect', level: 'failed', message: 'refused' } as const
const since = at.getTime() - 3_600_000
const open = { ...fault, since, certainty: 'confirmed', isFlapping: false, isUnobserved: false } as const
const over = { beganAt: since - 90_000_000, endedAt: since - 86_400_000 }
const ended = { ...id, ...fault, ...over, end: 'recovered', victims: 0 } as const
const incidents: Incidents = {
  ...{ hidden: 0, ended: [ended], isIsolated: undefined },
  open: [{ ...id, faults: [open], victims: [{ ...id, monitor: 'tcp two', since }], hiddenVictims: 0 }],
}
const silences = { byMonitor: new Map([['Sql/tcp one', silence]]), entries: [], maySilence: false }
const facts = pageFacts(['Sql'], { at, zone, incidents, silences, reads: () => true })
const hour = 3_600_000
const from = new Date(at.getTime() - hour)
const figure = { MonitoringName: 'latency', Unit: 'milliseconds', Minimum: 1, Average: 2, Maximum: 3, Count: 9 }
const period = { From: from, To: at, Status: 'Ok', AvailabilityPercent: 100, Figures: [figure] } as const
const history = {
  Monitors: [{ From: from, To: at, Periods: [period], Worst: [{ From: from, To: at, Down: 5, FailedChecks: [] }] }],
}
const windows = [history, history, history]
const entry = {
  ...{ id: 1, at, event: 'roles', who: 'ann', address: undefined, target: 'bob', reason: undefined },
  ...{ before: '{"roles":[]}', after: `{"roles":["Ops"],"ends":[{"name":"Ops","endsAt":"${until.toISOString()}"}]}` },
  correlationId: 'c',
}
const session = {
  id: 'a',
  createdAt: at,
  lastUsedAt: at,
  expiresAt: until,
  current: true,
  rememberMe: false,
  provider: '',
}
const watched = (): Watched =>
  ['failed', 'ok', 'failed'].reduce<Watched | undefined>((before, status, round) => {
    const monitors = run.monitors.map((one) => ({
      ...one,
      status,
      results: one.results.map((it) => ({ ...it, status })),
    }))
    const Run = { ...run, status, monitors } as RunDocument
    const entry = { Target: 'web1', ServerType: 'Sql', ExecutionMode: 'Basic', ExitCode: status === 'ok' ? 0 : 3, Run }
    return afterRound(before, { at: +at + round * 10_000, readings: [read(entry)], ages: [0] })
  }, undefined) as Watched
const look = { width: 120, marks: marks(true), paint: (_: unknown, text: string) => text }
const withoutMarkup = (markup = ''): string =>
  markup.replace(/<style>.*?<\/style>/s, '').replace(/<(?!title)[^>]*>/g, ' ')

async function drillText(): Promise<string> {
  const link = { receiver: 'ops', beganAt: at.getTime(), confirmedAt: at.getTime() }
  const drillLinks = { read: async () => link, confirm: async () => link }
  let text = ''
  await withSite({ runtime: { drillLinks, facts: runtimeFacts({ timezone: zone }) } }, async ({ port }) => {
    text = await (await fetch(`http://127.0.0.1:${port}/drills/opened/token`)).text()
  })
  return withoutMarkup(text)
}

/**
 * Outputs for people, by the file of src that writes its times. A text in UTC is a part of a message or a document that
 * programs have, too.
 */
const outputs: Readonly<Record<string, readonly (readonly [what: string, text: () => string | Promise<string>])[]>> = {
  'src/core/server/pages/page-words.ts': [
    ['the status page', () => withoutMarkup(pageMarkup(cards, facts).markup)],
    ['the page of a monitor', () => withoutMarkup(monitorMarkup(id, cards, { windows }, facts)?.markup)],
    ['the history of a monitor', () => withoutMarkup(historyMarkup(windows, { now: at.getTime(), zone }).markup)],
    ['the board', () => withoutMarkup(boardMarkup(cards, boardFacts({ at, zone, incidents, silences })).markup)],
    ['the page of a drill', drillText],
  ],
  // The axes of the charts: their caption names the zone.
  'src/core/server/pages/chart.ts': [],
  'src/core/server/pages/page-chart.ts': [],
  'src/core/watch/notify/receivers/message.ts': [
    ['a message', () => linesOf(notice({ timezone: zone }), 'full').join('\n')],
    ['the end in a message', () => linesOf(notice({ timezone: zone, what: 'end', endedAt: +at }), 'full').join('\n')],
  ],
  // Tests of their own: test/watch/notify/email.test.ts and test/accounts/roles/role-end-receivers.test.ts.
  'src/core/watch/notify/receivers/email.ts': [],
  // test/watch/notify/webhook-body.test.ts
  'src/core/watch/notify/receivers/template.ts': [],
  'src/core/service/notify/role-ends.ts': [],
  'src/core/checks/reports/reading.ts': [
    [
      'a silenced result at the prompt',
      () =>
        run.monitors
          .flatMap((one) => readMonitor(one).results.flatMap((result) => message(result, marks(true))))
          .map(({ text }) => text)
          .join('\n'),
    ],
  ],
  'src/cli/render/table.ts': [
    ['a time in a sentence', () => moment(at)],
    ['svc audit', () => audit.table([entry], screen)],
    ['svc sessions', () => sessions.table([session], screen)],
    ['svc roles history', () => roleHistory.table([roleChange(entry, new Map([['Ops', +until]]))], screen)],
  ],
  'src/cli/accounts/audit-lists.ts': [['svc roles holders --at', () => pastHoldersHeadline(2, 'Ops', at).sentence]],
  'src/cli/health/watch-screen.ts': [
    [
      'a change of svc health --watch',
      () =>
        changesOf(watched())
          .map((one) => changeLine(one, watched(), look))
          .join('\n'),
    ],
    [
      'the screen of svc health --watch',
      () => {
        const view = firstView(false)
        const rest = { height: 24, now: +until, title: '', next: () => '', report: undefined }
        return frameLines({ watched: watched(), view, ...rest }, look).join('\n')
      },
    ],
  ],
  // It reads times.
  'src/cli/command/instant.ts': [],
  // Messages of checks, which are in documents, too.
  'src/core/base/net/certificates.ts': [],
  'src/core/checks/kinds/oidc/token-checks.ts': [],
}

/** Times on a clock, with what follows them. Those of an axis stand alone, and ports and durations are no times. */
const clockTimes = (text: string): readonly string[] =>
  [...text.matchAll(/(?<![\d.:+-])([01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?![\d:]).{0,7}/g)].map(([whole]) => whole)
const isOnAxis = (time: string): boolean => /^(?:00|06|12|18):00\s*$/.test(time.slice(0, 6))

test.each(Object.values(outputs).flat())('M17 each time of %s has the offset of its zone', async (_, text) => {
  const written = await text()
  const times = clockTimes(written).filter((time) => !isOnAxis(time))
  expect(times.length, written).toBeGreaterThan(0)
  expect(times.filter((time) => !time.includes(` ${offset}`))).toEqual([])
  expect(written).not.toContain('(UTC)')
})

test('M17 svc serve shows its pages on the clock of serve.timezone in its svc.yaml', async () => {
  process.env['TZ'] = 'UTC'
  const monitor = '{kind: tcp, name: one, host: 127.0.0.1, port: 9}'
  const site = await serveYaml(`serve: {timezone: ${zone}}\ntypes: {Sql: {host: false, monitors: [${monitor}]}}\n`)
  try {
    await ask(site.port, '/healthcheck?ExecutionMode=Basic&ServerType=Sql')
    for (const path of ['/', '/board', '/?monitor=Sql%2Ftcp%20one', '/sign-in']) {
      const { status, text } = await ask(site.port, path)
      expect([path, status]).toEqual([path, 200])
      const times = clockTimes(withoutMarkup(text)).filter((time) => !isOnAxis(time))
      expect(times.length, path).toBeGreaterThan(0)
      expect(times.filter((time) => !time.includes(` ${offset}`))).toEqual([])
    }
  } finally {
    await site.close()
  }
})

const files = globSync('src/**/*.ts', { cwd: root })
const sourceOf = (file: string): string => readFileSync(join(root, file), 'utf8')

test('M17 each file that writes times for people has its outputs in the table of this test', () => {
  const writers = files.filter((file) => /\b(?:humanTime|zonedTime)\(/.test(sourceOf(file)))
  expect(writers.filter((file) => file !== 'src/core/base/zone.ts').toSorted()).toEqual(Object.keys(outputs).toSorted())
})

/** Files that cut a time of their own, and why people do not read it as one. */
const cutters: Readonly<Record<string, string>> = {
  'src/core/base/zone.ts': 'the one place',
  'src/core/server/pages/page-words.ts': 'the attribute datetime, for programs',
  'src/core/protocol/metadata/languages/language.ts': 'a header of generated code, as ServiceStack writes it',
  'src/core/watch/notify/receivers/alertmanager-silences.ts': 'a mark that svc reads back',
  'src/core/checks/reports/junit.ts': 'an attribute of JUnit',
  'src/core/checks/folders/index.ts': 'the name of a folder',
  'src/core/store/upkeep/restore.ts': 'the name of a file',
  'src/core/protocol/wire/scalars.ts': 'a field of a document',
}
test('M17 no other file writes times for people', () => {
  const cuts =
    /toISOString\(\)\s*\.(?!slice\(0, 10\))(?:slice|split|replace|substring)|toLocale(?:Date|Time)?String\((?!'en'\))/
  expect(files.filter((file) => cuts.test(sourceOf(file))).toSorted()).toEqual(Object.keys(cutters).toSorted())
})

test('M17 what programs read is in UTC: attributes, messages of documents, and the messages of checks', () => {
  const { markup } = pageMarkup(cards, facts)
  const machine = [...markup.matchAll(/datetime="([^"]*)"/g)].map(([, time = '']) => time)
  expect(machine.length).toBeGreaterThan(0)
  expect(machine.filter((time) => !time.endsWith('Z'))).toEqual([])
  expect(run.monitors[0]?.results.map(messageOf)).toEqual([
    'refused (silenced until 2026-11-25 01:00 UTC, alice: patch night)',
  ])
  expect(formatDay(until)).toBe('2026-11-25 01:00 UTC')
  const change = roleChange(entry, new Map([['Ops', +until]]))
  expect(roleHistory.json(change)).toMatchObject({ until: ['Ops 2026-11-25 01:00 UTC'] })
  expect(JSON.stringify(roleHistory.json(change))).not.toContain(offset)
})
