import { describe, expect, test } from 'vitest'
import { renderHealth } from '../../../src/cli/health/screen.ts'
import type { MonitorReport, Result } from '../../../src/core/checks/engine/index.ts'
import host from '../../../src/core/checks/kinds/host.ts'
import {
  type Entry,
  foreignWarning,
  healthCheckResponse,
  type ReportName,
  read,
  reports,
  selectRun,
  withSilences,
} from '../../../src/core/checks/reports/index.ts'
import { nagiosState } from '../../../src/core/checks/reports/nagios.ts'
import { loadMeasures, type RunDocument } from '../../../src/core/protocol/index.ts'
import { decodeRun, encodeRun } from '../../../src/core/protocol/wire/index.ts'
import { entryOf } from '../../../src/core/server/health.ts'
import { cardsOf, headline } from '../../../src/core/server/pages/cards.ts'
import { verdictsOf } from '../../../src/core/service/watch/states.ts'
import { recentRun } from '../../server/recent.ts'
import { render } from './render.ts'
import { document, report, run } from './runs.ts'

/** The results that a measure may have. */
const outcomes = {
  'beyond its warning': { status: 'warning', message: 'much (warn 1)' },
  'beyond a limit': { status: 'failed', fault: 'threshold', message: 'very much (fail 2)' },
  'that cannot be read': { status: 'failed', fault: 'internal', message: 'EIO', notChecked: 'missing' },
  'whose reading fails': { status: 'failed', fault: 'internal', message: 'EIO' },
} as const satisfies Readonly<Record<string, Omit<Result, 'check'>>>

const figure = { value: 3, unit: 'percent', warn: 1, limit: 2, bound: 'atMost' } as const
const fine = report('tcp orders', [{ check: 'connect', status: 'ok', message: '1 ms' }])
const machine = (measure: string, outcome: Omit<Result, 'check'>): MonitorReport =>
  report(
    'host',
    [
      { check: 'uptime', status: 'ok', message: 'up 1 d' },
      { check: measure, measurement: figure, ...outcome },
    ],
    { host: true, checks: host.checks },
  )
const calm = { status: 'ok', message: 'little' } as const

const entry = (made: RunDocument): Entry => ({
  Target: 't',
  ServerType: 'Sql',
  ExecutionMode: 'Standard',
  ExitCode: 0,
  Run: made,
  Response: healthCheckResponse(made),
})

type Lines = { readonly [name: string]: unknown }
const jsonLines = (text: string): readonly Lines[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Lines)
const matches = (text: string, pattern: RegExp): readonly string[] => [...text.matchAll(pattern)].map(([all]) => all)

/** A sensor of PRTG, as its own limits colour it. */
const colouredByPrtg = (text: string): readonly unknown[] =>
  (JSON.parse(text) as { prtg: { result: readonly Readonly<Record<string, number>>[] } }).prtg.result.filter(
    ({ value = 0, limitmaxwarning, limitmaxerror, limitminwarning, limitminerror }) =>
      [limitmaxwarning, limitmaxerror].some((limit) => limit !== undefined && value > limit) ||
      [limitminwarning, limitminerror].some((limit) => limit !== undefined && value < limit),
  )

/** The verdict on the type in each format: they go red or yellow by this. A new format needs a row. */
const coloursIn: Readonly<Record<ReportName, (text: string, of: Entry) => unknown>> = {
  csv: (text) => matches(text, /,Failure,/g),
  tsv: (text) => matches(text, /\tFailure\t/g),
  ndjson: (text) => jsonLines(text).map(({ Status }) => Status),
  junit: (text) => matches(text, /<(?:failure|error) |failures="\d+"|errors="\d+"/g),
  github: (text) => matches(text, /^::(?:error|warning) .*/gm),
  nagios: (text, of) => [
    nagiosState([of]),
    /^[^|\n]*/.exec(text)?.[0],
    matches(text, /\b(?:failed|not_checked|warnings)=\d+/g),
  ],
  prtg: colouredByPrtg,
  prometheus: (text) => matches(text, /^svc_type_(?:success|answered|monitors).*/gm),
  'health+json': (text) => [JSON.parse(text).status, JSON.parse(text).output, JSON.parse(text).description],
}

/** All who read an answer, and what they make of the server type: its colour, its counts, its words. */
const readers: Readonly<Record<string, (made: RunDocument) => unknown>> = {
  'the status of the run, for exit codes and --fail-on warn': ({ status }) => status,
  'the document of the interface': (made) => {
    const { Status, StatusMessage, FailedMonitorCount, MonitorSummaries } = healthCheckResponse(made)
    const results = MonitorSummaries?.flatMap(({ Results = [] }) => Results.map((one) => one.Status))
    return { Status, StatusMessage, FailedMonitorCount, all: MonitorSummaries?.map((one) => one.Status), results }
  },
  'a reader of that document alone': (made) => {
    const { Run: _, ...foreign } = entry(made)
    const { level, headline: words, causes, failed, unchecked, warnings } = read(foreign)
    return { level, words, causes, failed, unchecked, warnings, isWarning: foreignWarning(healthCheckResponse(made)) }
  },
  'another svc that reads the run': (made) => {
    const { status, monitors } = decodeRun(encodeRun(made) ?? '')
    return [status, monitors.map((one) => one.status)]
  },
  'the exit code that a server reports': (made) => entryOf(recentRun(made, 1), 'http://svc').ExitCode,
  'a selection of monitors': (made) => {
    const { status, message } = selectRun(made, { only: ['host'], skip: [] })
    return { status, message }
  },
  'an answer that honours silences': (made) => {
    const silence = { source: 'hand', until: new Date(0) } as const
    const { status } = withSilences(made, (at) => (at === 1 ? silence : undefined), { honors: false, names: true })
    return status
  },
  'the reading of all formats': (made) => {
    const { level, headline: words, causes, failed, unchecked, warnings } = read(entry(made))
    return { level, words, causes, failed, unchecked, warnings }
  },
  'the verdict on the terminal': (made) =>
    renderHealth([entry(made)], { width: 120, colour: false, unicode: true, atServer: false, detail: 'verdict' }),
  'the card of the type': (made) => {
    const card = cardsOf(['Sql'], [recentRun(made, 1)], 'http://svc').find(({ type }) => type === 'Sql')
    return { level: card?.level, own: card?.decisiveRun?.ownLevel, causes: card?.decisiveRun?.causes }
  },
  'the check of another svc': (made) => made.monitors.map(({ status }) => status),
}

const ways = loadMeasures.flatMap((measure) =>
  Object.entries(outcomes).map(([words, outcome]) => [measure, words, outcome] as const),
)

describe.each(ways)('%s %s', (measure, _, outcome) => {
  const busy = document(run(fine, machine(measure, outcome)))
  const quiet = document(run(fine, machine(measure, calm)))

  test.each(Object.entries(readers))('M15 leaves the colour of the type unchanged for %s', (_name, colours) => {
    expect(colours(busy)).toEqual(colours(quiet))
  })

  test.each(Object.keys(reports) as ReportName[])('M15 leaves the colour of the type unchanged in %s', async (name) => {
    const text = await render(name, [entry(busy)])
    expect(coloursIn[name](text, entry(busy))).toEqual(
      coloursIn[name](await render(name, [entry(quiet)]), entry(quiet)),
    )
  })

  test('M15 is shown with the machine: on the terminal, in the records and on the card of the host', async () => {
    const look = { width: 120, colour: false, unicode: true, atServer: false } as const
    expect(renderHealth([entry(busy)], look)).toContain(outcome.message)
    expect(await render('ndjson', [entry(busy)])).toContain(`warning: ${outcome.message}`)
    const cards = cardsOf(['Sql'], [recentRun(busy, 1)], 'http://svc')
    expect(cards.find(({ type }) => type === undefined)?.level).toBe('warn')
    expect(headline(cards)).toBe('Healthy, with warnings: the host')
  })

  test('M15 colours a type whose only monitor is the machine, as each of its checks does', () => {
    const only = document(run({ ...machine(measure, outcome), host: false }))
    expect(only.status).toBe(outcome.status)
  })

  test('M15 the brief view says the same', () => {
    const brief = document(run(fine, machine(measure, outcome)), { view: 'brief' })
    expect([brief.status, read(entry(brief)).warnings]).toEqual(['ok', 0])
    expect(read(entry(brief)).level).toBe('ok')
  })
})

test.each(loadMeasures)('M15 a confirmed state of %s is a failure only beyond a limit', (measure) => {
  const levels = Object.values(outcomes).map(
    (outcome) => verdictsOf(machine(measure, outcome)).find(({ check }) => check === measure)?.level,
  )
  expect(levels.slice(0, 3)).toEqual(['warning', 'failed', undefined])
})

test('M15 the measures of the load are checks of the host block, and no other check is one', () => {
  expect(loadMeasures.filter((measure) => host.checks.every(({ name }) => name !== measure))).toEqual([])
  const others = host.checks.map(({ name }) => name).filter((name) => !loadMeasures.some((one) => one === name))
  for (const check of others) {
    const made = document(run(fine, machine(check, outcomes['beyond its warning'])))
    expect(made.status, check).toBe('warning')
  }
})

test.each(loadMeasures)('M15 %s has no limit of its own, so that it fails only for whoever writes one', (measure) => {
  expect(host.settings[measure]).toMatchObject({ type: 'threshold', default: { warn: expect.any(Number) } })
  expect(host.settings[measure]).not.toHaveProperty('default.limit')
})
