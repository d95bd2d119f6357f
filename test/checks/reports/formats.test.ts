import { parse } from 'csv-parse/sync'
import { describe, expect, test } from 'vitest'
import { type Entry, loadPrometheus, read, reports } from '../../../src/core/checks/reports/index.ts'
import nagios from '../../../src/core/checks/reports/nagios.ts'
import tsv from '../../../src/core/checks/reports/tsv.ts'
import type { Family } from '../../../src/core/protocol/service/family.ts'
import { overHttp } from '../../../src/core/server/routes.ts'
import { prtgSchema } from '../../support/simulated/prtg.ts'
import { nagiosLine, prometheusSeries, workflowCommand, xmlElements } from './grammar.ts'
import { monitor, refusing, runOf, warned, wellOnes } from './many.ts'
import { render } from './render.ts'
import {
  broken,
  failing,
  foreign,
  healthy,
  hostile,
  measured,
  measuredWith,
  partlyChecked,
  refused,
  samples,
  unchecked,
  unreachable,
  warning,
} from './samples.ts'

const withStatus = (exit: number): Entry => ({
  ...unreachable,
  ExitCode: exit,
  Error: { code: 'X', exitCode: exit, message: 'it failed', hints: [] },
})

type Prtg = {
  readonly error?: number
  readonly text: string
  readonly result?: readonly { readonly channel: string; readonly value: number }[]
}
const prtg = async (entries: readonly Entry[]): Promise<Prtg> =>
  (JSON.parse(await render('prtg', entries)) as { readonly prtg: Prtg }).prtg
const seriesOf = async (...entries: readonly Entry[]) => prometheusSeries(await render('prometheus', entries))
/** The annotations of GitHub, one a line. */
const annotationsOf = async (...entries: readonly Entry[]) =>
  (await render('github', entries)).split('\n').filter(Boolean).map(workflowCommand)
const firstLine = async (name: Parameters<typeof render>[0], ...entries: readonly Entry[]): Promise<string> =>
  (await render(name, entries)).split('\n')[0] ?? ''
const rowsOf = async (...entries: readonly Entry[]) =>
  (await render('ndjson', entries))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
/** A Failure without monitors. */
const bare: Entry = { ...failing, Response: { Status: 'Failure', StatusMessage: 'all is lost' } }

describe('the size of the output for nagios', () => {
  const many = runOf('App', [...wellOnes(150), warned('http slow'), refusing('http shop')], 3)
  const few = runOf('App', [...wellOnes(5), refusing('http shop')], 3)

  test('lists everything where it fits', async () => {
    expect(await render('nagios', [few])).toContain('OK http shop-5 / latency: 12 ms')
  })

  test.each([1_024, 4_000, 8_192])('is at most %i bytes, with every failure before healthy results', async (size) => {
    const text = nagios.render([many], { size })
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(size)
    expect(text).toContain('FAIL http shop / connect: 10.0.0.7:9100 refused the connection')
    expect(text).toContain('WARN http slow / certificate: expires in 12 d')
    expect(text).toContain('and 301 healthy results\n')
    const { data } = nagiosLine(text.split('\n')[0] ?? '')
    const left = data.at(-1)
    expect(data[0]).toEqual({ label: 'failed', value: 1, unit: '' })
    expect(left?.label).toBe('perfdata_left_out')
    expect(data.length - 1 + (left?.value ?? 0)).toBe(
      nagiosLine(nagios.render([many], { size: 1_048_576 }).split('\n')[0] ?? '').data.length,
    )
  })

  test('is at most the size that is asked for, however long a cause is', () => {
    const long = monitor('http shop', [
      { check: 'status', status: 'failed', fault: 'data', message: `expected 200, ${'and more '.repeat(400)}` },
    ])
    expect(Buffer.byteLength(nagios.render([runOf('App', [long], 3)], { size: 1_024 }))).toBeLessThanOrEqual(1_024)
  })

  test('is at most 4,000 bytes, however many types there are', async () => {
    const types = Array.from({ length: 40 }, () => runOf('App', [...wellOnes(20), refusing('http shop')], 3))
    const sizes = types.map((_, at) => Buffer.byteLength(nagios.render(types.slice(at), {})))
    expect(sizes.filter((size) => size > 4_000)).toEqual([])
  })

  test('names how many failures are left out', async () => {
    const all = runOf(
      'App',
      Array.from({ length: 300 }, (_, at) => refusing(`http shop-${at}`)),
      3,
    )
    const text = nagios.render([all], {})
    const lines = text.split('\n').filter((line) => line.startsWith('FAIL ')).length
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4_000)
    expect(text).toContain(`and ${300 - lines} other results that are not ok\n`)
  })

  test('has the figures of failures first where not all fit', async () => {
    const slow: ReturnType<typeof monitor> = monitor('http slow', [
      {
        ...{ check: 'latency', status: 'failed', fault: 'threshold', message: '9 s (fail 3 s)' },
        measurement: { value: 9_000, unit: 'milliseconds', limit: 3_000, bound: 'atMost' },
      },
    ])
    const [line = ''] = nagios.render([runOf('App', [...wellOnes(150), slow], 3)], {}).split('\n')
    expect(nagiosLine(line).data[4]).toEqual({ label: 'http slow latency', value: 9, unit: 's' })
  })
})

describe('nagios', () => {
  test.each([
    ['healthy', [healthy], 0],
    ['only warnings', [warning], 1],
    ['warnings that --fail-on warn made exit 3', [{ ...warning, ExitCode: 3 }], 1],
    ['unhealthy', [failing], 2],
    ['unreachable', [withStatus(6)], 2],
    ['timeout', [withStatus(7)], 2],
    ['server error', [withStatus(8)], 2],
    ['defect', [withStatus(1)], 3],
    ['usage', [withStatus(2)], 3],
    ['sign-in needed', [withStatus(4)], 3],
    ['forbidden', [withStatus(5)], 3],
    ['rejected', [withStatus(9)], 3],
    ['no keychain', [withStatus(11)], 3],
    ['local fault', [withStatus(12)], 3],
    ['nothing asked', [], 3],
    ['healthy and warning', [healthy, warning], 1],
    ['warning and unknown', [warning, refused], 3],
    ['unknown and critical', [refused, failing, healthy], 2],
    ['not checked, although nothing failed', [unchecked], 3],
    ['partly not checked, partly failed', [partlyChecked], 2],
    ['not checked, and elsewhere a warning', [unchecked, warning], 3],
    ['not checked, and elsewhere a failure', [unchecked, failing], 2],
  ] as const)('%s exits with the code of its state', (_, entries, state) => {
    expect(nagios.exitCode(entries)).toBe(state)
  })

  test.each(Object.keys(samples))('the status line of %s conforms to the guidelines', async (sample) => {
    const entries = samples[sample] ?? []
    const [line = ''] = (await render('nagios', entries)).split('\n')
    const { state, text } = nagiosLine(line)
    expect(['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'][nagios.exitCode(entries)]).toBe(state)
    expect(text.length).toBeLessThanOrEqual(2_000)
  })

  test('the status line contains a long message whole, up to its last word', async () => {
    const message = `https://${'orders.'.repeat(40)}example.com/checkout did not answer, last byte after 29 s`
    const entry: Entry = { ...unreachable, Error: { code: 'Unreachable', exitCode: 6, message, hints: [] } }
    const line = await firstLine('nagios', entry)
    expect(message.length).toBeGreaterThan(300)
    expect(line).toBe(`SVC CRITICAL - Mongo: ${message}`)
  })

  test.each([
    ['critical', 2, 'CRITICAL'],
    ['unknown', 3, 'UNKNOWN'],
    [undefined, 2, 'CRITICAL'],
  ] as const)(
    'a target that did not answer in time with the option %s is state %i',
    async (timeoutState, state, word) => {
      expect(nagios.exitCode([withStatus(7)], { timeoutState })).toBe(state)
      const { default: report } = await reports.nagios.load()
      expect(report.render([withStatus(7)], { timeoutState })).toMatch(new RegExp(`^SVC ${word} - `))
      expect(nagios.exitCode([withStatus(6)], { timeoutState })).toBe(2)
      expect(nagios.exitCode([withStatus(7), failing], { timeoutState })).toBe(2)
    },
  )

  test('performance data has a label for a value whose server has an empty name', async () => {
    const result = { check: '', status: 'ok', measurement: { value: 5, unit: 'count' } } as const
    const line = await firstLine('nagios', measuredWith({ kind: '', status: 'ok', results: [result] }))
    expect(nagiosLine(line).data.at(-1)).toEqual({ label: 'figure', value: 5, unit: '' })
  })

  test('performance data contains the counts, the duration and the server', async () => {
    const line = await firstLine('nagios', failing)
    expect(nagiosLine(line).data).toEqual([
      { label: 'failed', value: 1, unit: '' },
      { label: 'not_checked', value: 0, unit: '' },
      { label: 'warnings', value: 0, unit: '' },
      { label: 'duration', value: 1.28, unit: 's' },
      { label: 'cpu', value: 37.2, unit: '%' },
      { label: 'ram_available', value: 9830.4, unit: 'MB' },
    ])
  })

  test('labels differ when one type is checked at two targets', async () => {
    const line = await firstLine('nagios', healthy, { ...healthy, Target: "lab's = b|ox" })
    const labels = nagiosLine(line).data.map(({ label }) => label)
    expect(new Set(labels).size).toBe(labels.length)
    expect(labels).toHaveLength(8)
  })

  test('the worst results come first, because a transport may cut the end', async () => {
    const lines = (await render('nagios', [broken])).split('\n').filter((line) => /^(FAIL|WARN|OK) /.test(line))
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['FAIL', 'FAIL', 'FAIL', 'FAIL', 'WARN', 'OK', 'OK'])
  })

  test('no text can begin performance data of its own', async () => {
    const [first = '', ...rest] = (await render('nagios', [hostile])).split('\n')
    expect(first.split('|')).toHaveLength(2)
    expect(rest.join('\n')).not.toContain('|')
  })
})

describe('prtg', () => {
  test('F5 it implies SuppressErrorCodes, and no other format does', async () => {
    const implied = await Promise.all(
      Object.entries(reports).map(async ([name, { load }]) => [name, 'impliesSuppress' in (await load()).default]),
    )
    expect(implied.filter(([, implies]) => implies)).toEqual([['prtg', true]])
    expect(overHttp).toEqual({
      format: ['nagios', 'prtg', 'prometheus'],
      accept: [{ type: 'application/health+json', name: 'health+json' }],
    })
  })

  test('an unhealthy answer keeps its channels, and their limits set the state of the sensor', async () => {
    const { error, result = [] } = await prtg([failing])
    expect(error).toBeUndefined()
    expect(result).toContainEqual(expect.objectContaining({ channel: 'Failed monitors', value: 1, limitmaxerror: 0 }))
    expect(result).toContainEqual(
      expect.objectContaining({ channel: 'Monitor sqlserver orders', value: 2, limitmaxwarning: 0, limitmaxerror: 1 }),
    )
  })

  test('limits and their messages are the same whatever the result, because PRTG keeps the first ones', async () => {
    const limits = async (entries: readonly Entry[]): Promise<readonly unknown[]> =>
      ((await prtg(entries)).result ?? []).map(({ value: _, ...channel }) => channel)
    const mended: Entry = {
      ...failing,
      ExitCode: 0,
      Response: {
        ...failing.Response,
        Status: 'Success',
        FailedMonitorCount: 0,
        MonitorSummaries: (failing.Response?.MonitorSummaries ?? []).map((summary) => ({
          ...summary,
          Status: 'Success',
          ErrorMessages: [],
          Results: (summary.Results ?? []).map((result) => ({ ...result, Status: 'Success', ErrorMessages: [] })),
        })),
      },
    }
    expect(await limits([mended])).toEqual(await limits([failing]))
  })

  test('a missing answer is an error, one missing of several is a channel', async () => {
    expect(await prtg([unreachable])).toEqual({ error: 1, text: expect.stringContaining('refused the connection') })
    const { error, result } = await prtg([healthy, unreachable])
    expect(error).toBeUndefined()
    expect(result).toContainEqual(expect.objectContaining({ channel: 'Not answered', value: 1, limitmaxerror: 0 }))
  })

  test.each(Object.keys(samples))(
    '%s conforms to the documented schema of custom sensors (simulated)',
    async (sample) => {
      const body: unknown = JSON.parse(await render('prtg', samples[sample] ?? []))
      expect({ valid: prtgSchema(body), errors: prtgSchema.errors }).toEqual({ valid: true, errors: null })
    },
  )

  test.each([
    ['an unknown unit', { result: [{ channel: 'a', value: 1, unit: 'Weeks' }], text: '' }],
    ['a value that is text', { result: [{ channel: 'a', value: '1' }], text: '' }],
    ['a fraction without float', { result: [{ channel: 'a', value: 1.5 }], text: '' }],
    ['a channel without a name', { result: [{ value: 1 }], text: '' }],
    ['51 channels', { result: Array.from({ length: 51 }, (__, n) => ({ channel: `${n}`, value: 1 })), text: '' }],
    ['a text of 2001 characters', { error: 1, text: 'x'.repeat(2_001) }],
    ['an error with channels', { error: 1, text: 'x', result: [{ channel: 'a', value: 1 }] }],
  ])('the schema of custom sensors refuses %s', (_, prtgBody) => {
    expect(prtgSchema({ prtg: prtgBody })).toBe(false)
  })

  test('at most 50 channels with unique names, 2000 characters of text and no number sign', async () => {
    const summaries = Array.from({ length: 300 }, (_, n) => ({
      MonitorName: `tcp host#${n % 200}`,
      Status: 'Failure' as const,
      Results: [{ MonitoringName: 'c', Status: 'Failure' as const, StatusMessage: 'no answer '.repeat(9) }],
    }))
    const { text, result = [] } = await prtg([
      { ...failing, Response: { ...failing.Response, MonitorSummaries: summaries } },
    ])
    expect(result).toHaveLength(50)
    expect(new Set(result.map(({ channel }) => channel)).size).toBe(50)
    expect(result[0]).toMatchObject({ channel: 'Failed monitors', value: 300 })
    expect(text.length).toBeLessThanOrEqual(2_000)
    expect(JSON.stringify(result) + text).not.toContain('#')
  })
})

describe('prometheus', () => {
  test.each(Object.keys(samples))('Prometheus would accept the scrape of %s', async (sample) => {
    const series = await seriesOf(...(samples[sample] ?? []))
    expect(series.filter(({ name }) => name === 'svc_type_success')).toHaveLength(samples[sample]?.length ?? 0)
  })

  test('labels survive a round trip, backslashes and quotes included', async () => {
    const result = { check: 'disk D:\\Data', slug: 'disk', subject: 'D:\\Data', status: 'ok' } as const
    const series = await seriesOf(measuredWith(monitor('postgres orders', [result])), hostile)
    expect(series).toContainEqual({
      name: 'svc_check_success',
      labels: { type: 'Sql', monitor: 'postgres orders', check: 'disk', item: 'D:\\Data' },
      value: 1,
    })
    expect(series.map(({ labels }) => labels['monitor'])).toContain(`=cmd|' /C calc'!A0 "q" <b>&amp; a:b,c`)
  })

  test('the worse of two results of one check counts', async () => {
    const twice = (status: 'Success' | 'Failure') => ({ MonitoringName: 'same', Status: status, StatusMessage: 'x' })
    const entry: Entry = {
      ...failing,
      Response: {
        ...failing.Response,
        MonitorSummaries: [
          { MonitorName: 'a', Status: 'Failure', Results: [twice('Success'), twice('Failure'), twice('Success')] },
        ],
      },
    }
    const series = await seriesOf(entry)
    expect(series.filter(({ name }) => name === 'svc_check_success').map(({ value }) => value)).toEqual([0])
  })

  test('a server without an answer is 0 and never absent; a warning is a success with a warning', async () => {
    const series = await seriesOf(unreachable, warning)
    const of = (metric: string) => series.filter(({ name }) => name === metric).map(({ value }) => value)
    expect(of('svc_type_success')).toEqual([0, 1])
    expect(of('svc_type_answered')).toEqual([0, 1])
    expect(of('svc_check_warning')).toEqual([1, 0])
    expect(of('svc_type_duration_seconds')).toEqual([0.0614])
  })

  test('servers are distinguished where there are several, and have no label where there is one', async () => {
    const there = { ...measured, Target: 'lab' }
    const servers = async (...entries: readonly Entry[]) => [
      ...new Set((await seriesOf(...entries)).flatMap(({ labels }) => labels['server'] ?? [])),
    ]
    expect(await servers(measured)).toEqual([])
    expect(await servers(measured, there)).toEqual([measured.Target, 'lab'])
  })

  test('a monitor that did not run is neither up nor down: skipped after another failure, or not checked before the end', async () => {
    const notRun = { check: 'not run', slug: 'not_run', status: 'failed', message: 'not run' } as const
    const series = await seriesOf(
      measuredWith(
        monitor('http shop', [{ ...notRun, fault: 'dependency', cause: 'postgres orders' }]),
        monitor('tcp queue', [{ ...notRun, fault: 'timeout', notChecked: 'starved' }]),
      ),
    )
    const states = series.filter(({ name }) => /^svc_check_(?!items)/.test(name))
    expect(states).toEqual([
      {
        name: 'svc_check_skipped',
        labels: { type: 'Sql', monitor: 'http shop', check: 'not_run', cause: 'postgres orders' },
        value: 1,
      },
      {
        name: 'svc_check_not_checked',
        labels: { type: 'Sql', monitor: 'tcp queue', check: 'not_run', reason: 'starved' },
        value: 1,
      },
    ])
  })

  test('a check that did not run because an earlier one failed is neither up nor down, as in JUnit', async () => {
    const failed = { check: 'step', subject: 'sign in', status: 'failed', fault: 'status', message: '401' } as const
    const message = 'read: not run: step "sign in" failed'
    const prevented = { ...failed, subject: 'read', fault: 'dependency', message } as const
    const run = measuredWith(monitor('http-steps shop', [failed, prevented]))
    const series = (await seriesOf(run)).filter(({ labels }) => labels['check'] === 'step')
    expect(series.map(({ name, labels, value }) => [name, labels['item'], value])).toEqual([
      ['svc_check_success', 'sign in', 0],
      ['svc_check_warning', 'sign in', 0],
      ['svc_check_fault', 'sign in', 1],
      ['svc_check_skipped', 'read', 1],
    ])
    expect(await render('junit', [run])).toMatch(/name="step read".*\n *<skipped type="dependency"/)
  })

  test('a check exports 50 items, failed ones first, and counts the others', async () => {
    const results = Array.from({ length: 60 }, (_, at) => ({
      check: 'queue',
      subject: `q${at}`,
      status: at === 59 ? ('failed' as const) : ('ok' as const),
    }))
    const series = await seriesOf(measuredWith(monitor('postgres orders', results)))
    const exported = series.filter(({ name }) => name === 'svc_check_success')
    expect(exported).toHaveLength(50)
    expect(exported.find(({ value }) => value === 0)?.labels['item']).toBe('q59')
    expect(series.find(({ name }) => name === 'svc_check_items_dropped')?.value).toBe(10)
  })

  test('series beyond the limit are omitted and counted', async () => {
    const { healthFamilies } = await loadPrometheus()
    const size = (families: readonly Family[]) => families.reduce((sum, { samples: all }) => sum + all.length, 0)
    const whole = healthFamilies([read(measured)], 1_000)
    const cut = healthFamilies([read(measured)], 12)
    expect(size(cut)).toBe(13)
    expect(cut.at(-1)).toMatchObject({ name: 'svc_series_dropped', samples: [{ value: size(whole) - 1 - 12 }] })
  })
})

describe('junit', () => {
  test.each(Object.keys(samples))('%s is well-formed, and its counts are true', async (sample) => {
    const elements = xmlElements(await render('junit', samples[sample] ?? []))
    const [root] = elements
    const many = (name: string) => elements.filter((element) => element.name === name).length
    expect(root?.name).toBe('testsuites')
    expect(root?.attributes).toMatchObject({
      tests: String(many('testcase')),
      failures: String(many('failure')),
      errors: String(many('error')),
    })
    expect(
      elements.filter(({ name }) => name === 'testsuite').reduce((n, e) => n + Number(e.attributes['skipped']), 0),
    ).toBe(many('skipped'))
    const sum = (attribute: string) =>
      elements.filter(({ name }) => name === 'testsuite').reduce((n, e) => n + Number(e.attributes[attribute]), 0)
    expect([sum('tests'), sum('failures'), sum('errors')].map(String)).toEqual([
      root?.attributes['tests'],
      root?.attributes['failures'],
      root?.attributes['errors'],
    ])
  })

  test('an unhealthy answer without monitors is a failure, not an empty report of success', async () => {
    const elements = xmlElements(await render('junit', [bare]))
    expect(elements.find(({ name }) => name === 'failure')?.attributes['message']).toBe('all is lost')
  })

  test('an unhealthy answer whose monitors all passed is a failure too', async () => {
    const bare: Entry = { ...healthy, ExitCode: 3, Response: { ...healthy.Response, Status: 'Failure' } }
    const elements = xmlElements(await render('junit', [bare]))
    expect(elements.find(({ name }) => name === 'testsuites')?.attributes).toMatchObject({ tests: '2', failures: '1' })
    expect(elements.filter(({ name }) => name === 'failure')).toHaveLength(1)
  })

  test('a suite has the duration of its monitor, and its test cases add up to it', async () => {
    const elements = xmlElements(await render('junit', [measured]))
    const times = (name: string) =>
      elements.filter((one) => one.name === name).map(({ attributes }) => attributes['time'])
    expect(times('testsuites')).toEqual(['1.280'])
    expect(times('testsuite')).toEqual(['1.205', '0.001'])
    expect(times('testcase').filter((time) => time !== undefined)).toEqual(['1.205', '0.001'])
  })

  describe('a result without a verdict', () => {
    const outcomes = async (entry: Entry): Promise<readonly string[]> =>
      xmlElements(await render('junit', [entry])).flatMap(({ name, attributes }) =>
        name === 'testcase'
          ? [`${attributes['classname']} ${attributes['name']}`]
          : ['failure', 'error', 'skipped'].includes(name)
            ? [`${name} ${attributes['type']}`]
            : [],
      )

    test('is skipped: what did not run, and what could not be measured', async () => {
      expect(await outcomes(partlyChecked)).toEqual([
        'Sql Advanced.http orders not run',
        'skipped starved',
        'Sql Advanced.http basket not run',
        'skipped starved',
        'Sql Advanced.postgres orders connect',
        'Sql Advanced.postgres orders replication lag',
        'skipped permission',
        'Sql Advanced.tcp db connect',
        'failure refused',
      ])
    })

    test('is an error when nothing else failed, because a report without one counts as a success', async () => {
      expect(await outcomes(unchecked)).toEqual([
        'Sql Advanced.http orders not run',
        'error starved',
        'Sql Advanced.http basket not run',
        'error starved',
        'Sql Advanced.postgres orders connect',
        'Sql Advanced.postgres orders replication lag',
        'skipped permission',
      ])
    })
  })
})

describe('github', () => {
  test.each(Object.keys(samples))('each line of %s is one annotation of svc', async (sample) => {
    const commands = await annotationsOf(...(samples[sample] ?? []))
    expect(commands.map((command) => command?.command ?? 'none')).toEqual(
      commands.map(() => expect.stringMatching(/^(error|warning|notice)$/)),
    )
    expect(commands.map((command) => Object.keys(command?.properties ?? {}))).toEqual(commands.map(() => ['title']))
  })

  test('a hostile message arrives as text', async () => {
    const [, command] = await annotationsOf(hostile)
    expect(command?.properties).toEqual({ title: `App =cmd|' /C calc'!A0 "q" <b>&amp; a:b,c -1+1gnp.exe\ufffd` })
    expect(command?.data.split('\n')[0]).toContain('line one ::add-mask::x # #[error]y %0A::stop-commands::z')
  })

  test('the verdict is an error and comes first, then root causes; checks that were skipped because of them are a notice', async () => {
    const annotations = (await annotationsOf(broken)).map((one) => [one?.command, one?.properties['title']])
    expect(annotations).toEqual([
      ['error', 'Ftp health'],
      ['error', 'Ftp tcp 10.1.2.3:5432 connect'],
      ['error', 'Ftp ftp ftp1 data connection'],
      ['error', 'Ftp http 管理画面 応答'],
      ['warning', 'Ftp ftp ftp1 certificate chain'],
      ['notice', 'Ftp postgres orders-replica-eu-central not run'],
    ])
  })

  test('the verdict has the command of its state, and that of a failure where warnings fail the step', async () => {
    const verdictOf = async (entry: Entry) =>
      (await annotationsOf(entry)).find((one) => one?.properties['title'] === `${entry.ServerType} health`)?.command
    expect(await verdictOf(healthy)).toBe('notice')
    expect(await verdictOf(warning)).toBe('warning')
    expect(await verdictOf({ ...warning, ExitCode: 3 })).toBe('error')
    expect(await verdictOf(failing)).toBe('error')
  })

  test('no message ends with its fault class in brackets', async () => {
    for (const format of ['github', 'nagios'] as const) {
      expect(await render(format, [broken, failing])).not.toMatch(
        /\((?:refused|timeout|protocol|threshold|dependency)\)/,
      )
      expect(await render(format, [broken])).toMatch(/(?:\n {2}|%0A)fault class: refused/)
    }
  })

  test('an unhealthy answer always has an error', async () => {
    const output = await render('github', [bare])
    expect(workflowCommand(output)).toMatchObject({ command: 'error', data: expect.stringContaining('all is lost') })
  })
})

describe('health+json', () => {
  type Health = { readonly status: string; readonly output?: string; readonly checks: Record<string, unknown[]> }
  const health = async (entries: readonly Entry[]): Promise<Health> =>
    JSON.parse(await render('health+json', entries)) as Health

  test.each([
    ['pass', [healthy]],
    ['warn', [warning]],
    ['fail', [failing]],
    ['fail', [unreachable]],
    ['fail', [healthy, warning, unreachable]],
    ['fail', []],
  ] as const)('status %s', async (status, entries) => {
    expect((await health(entries)).status).toBe(status)
  })

  test('a pass has no output, and a key has one colon', async () => {
    const passed = await health([healthy])
    expect(passed.output).toBeUndefined()
    expect(passed.checks).toEqual({ 'http shop:status': [{ status: 'pass', time: '2026-03-01T03:00:01.280Z' }] })
    const keys = Object.keys((await health([broken])).checks)
    expect(keys.map((key) => key.split(':').length)).toEqual(keys.map(() => 2))
  })

  test('checks of one name at several targets are separate', async () => {
    const { checks } = await health([healthy, { ...healthy, Target: 'lab' }])
    expect(checks['http shop:status']).toEqual([
      expect.objectContaining({ componentId: 'App at prod · https://svc.example.com' }),
      expect.objectContaining({ componentId: 'App at lab' }),
    ])
  })
})

describe('csv, tsv and ndjson', () => {
  const header =
    'Target ServerType ExecutionMode MonitorName MonitoringName Status StatusMessage ErrorMessages Level Value Unit Warn Limit Bound Item DurationMs Host Fault NotChecked'.split(
      ' ',
    )

  test('csv is read back by a CSV reader, line feeds within cells included', async () => {
    const text = await render('csv', [failing, hostile])
    const [head, ...rows] = parse(text, { record_delimiter: '\r\n' }) as string[][]
    expect(head).toEqual(header)
    expect(rows).toHaveLength(4)
    expect(rows[1]?.[7]).toBe('started 2026-02-26 22:00, job "nightly full"\nfault: threshold')
    expect(rows[3]?.[7]).toBe('tab\there | pipe # hash \\ back\npostgres://***@db1.internal/orders\nfault: protocol')
  })

  test.each(['=1+1', '+1', '-1', '@SUM(A1)', '＝1'])('F3 a spreadsheet does not run %s', async (cell) => {
    const entry: Entry = {
      ...failing,
      Target: cell,
      Response: {
        Status: 'Failure',
        MonitorSummaries: [
          {
            MonitorName: cell,
            Status: 'Failure',
            Results: [{ MonitoringName: cell, Status: 'Failure', StatusMessage: `\t${cell}`, ErrorMessages: [cell] }],
          },
        ],
      },
    }
    const [, row = []] = parse(await render('csv', [entry]), { record_delimiter: '\r\n' }) as string[][]
    const safe = `'${cell}`
    expect(row.slice(0, 8)).toEqual([safe, 'Sql', 'Advanced', safe, safe, 'Failure', safe, safe])
  })

  test('tsv has one line for each record and as many cells on each line as the header, whatever the text', async () => {
    const [head, ...lines] = (await render('tsv', [failing, hostile])).split('\n').slice(0, -1)
    expect(head?.split('\t')).toEqual(header)
    expect(lines.map((line) => line.split('\t').length)).toEqual([19, 19, 19, 19])
    expect(lines[2]).toContain('disk D:\\\\Data')
    expect(lines[3]).toContain('tab\\there | pipe # hash \\\\ back\\npostgres://***@')
  })

  test('ndjson keeps the warning prefix, the fault class and the list', async () => {
    const rows = await rowsOf(warning, failing)
    expect(rows[0]).toMatchObject({
      StatusMessage: "warning: Sql: no server configured; svc's own store was checked",
      ErrorMessages: [],
    })
    expect(rows[3]).toMatchObject({ ErrorMessages: [expect.any(String), 'fault: threshold'] })
  })

  test('no entry is lost: an error and an answer without results are one record each', async () => {
    const bare: Entry = { ...foreign, Response: { Status: 'Failure', StatusMessage: 'Batch node 3 is down' } }
    const rows = await rowsOf(unreachable, bare, foreign)
    expect(rows.map((row) => [row.MonitorName, row.Status, row.StatusMessage, row.ErrorMessages.at(-1)])).toEqual([
      ['', 'Failure', '10.9.9.9:8443 refused the connection in 3 ms', 'error: Unreachable'],
      ['', 'Failure', 'Batch is unhealthy; Batch node 3 is down', undefined],
      ['Queue', 'Failure', '412 jobs waiting', 'oldest 3 h'],
      ['Scheduler', 'Success', 'passed', undefined],
    ])
  })
})

describe('values', () => {
  test('performance data has ranges on the side of the limits', async () => {
    const line = await firstLine('nagios', measured)
    expect(line).toContain("'postgres orders round trip'=0.0004127341s;;3 ")
    expect(line).toContain("'postgres orders connections'=85%;80;95 ")
    expect(line).toContain("'host disk /var'=41.3%;10:;5: ")
    expect(line).toContain("'host memory'=2576980378B ")
  })

  test.each([
    ['a query, whose answer may be negative', { check: 'queries', value: -5 }, '-5;~:10;~:20'],
    ['the form does not depend on the value', { check: 'queries', value: 5 }, '5;~:10;~:20'],
    ['a count of items, which is never negative', { check: 'measure', value: 5, unit: 'count' }, '5;10;20'],
    ['a figure of svc', { check: 'load', value: 5 }, '5;10;20'],
    ['a limit below zero', { check: 'load', value: -25, warn: -20, limit: -10 }, '-25;~:-20;~:-10'],
    ['a lower bound', { check: 'queries', value: 25, bound: 'atLeast' }, '25;10:;20:'],
    ['a tiny limit', { check: 'load', value: 0.000_000_2, warn: undefined, limit: 5e-7 }, '0.0000002;;0.0000005'],
    ['a huge value', { check: 'load', value: 3e22, warn: undefined, limit: undefined }, '30000000000000000000000'],
  ] as const)('the range of nagios has the form that its declaration says: %s', async (_, figure, written) => {
    const { check, ...more } = figure
    const measurement = { unit: 'ratio', warn: 10, limit: 20, bound: 'atMost' as const, ...more }
    const one = monitor('sqlite balance', [{ check, subject: 'lowest', status: 'ok', message: 'fine', measurement }])
    expect(await firstLine('nagios', measuredWith(one))).toContain(`'sqlite balance ${check} lowest'=${written}`)
  })

  test('a figure whose value svc demands to be at least 0 has a range of nagios that begins at 0', async () => {
    const of = (bound: 'atMost' | 'atLeast', limit: number) => ({
      ...{ check: 'queries', subject: 'jobs', status: 'ok' as const, message: 'fine' },
      measurement: { value: 5, unit: 'ratio', limit, bound },
    })
    const line = await firstLine('nagios', measuredWith(monitor('sqlite jobs', [of('atLeast', 0), of('atMost', 20)])))
    expect(line).toContain("'sqlite jobs queries jobs'=5;;0: 'sqlite jobs queries jobs 2'=5;;20")
  })

  test.each(Object.keys(reports).filter((name) => name !== 'junit' && name !== 'github'))(
    'a figure keeps its value in %s, and stays on its side of a limit',
    async (name) => {
      const figures = [0.000_000_2, 95.000_000_000_000_01, 3e22, 9_007_199_254_740_991, -0.1 - 0.2]
      const one = monitor(
        'sqlite jobs',
        figures.map((value) => ({
          ...{ check: 'load', subject: `is ${figures.indexOf(value)}`, status: 'ok' as const, message: 'fine' },
          measurement: { value, unit: 'ratio', limit: 95, bound: 'atMost' as const },
        })),
      )
      const text = await render(name as Parameters<typeof render>[0], [measuredWith(one)])
      const numbers = new Set((text.match(/-?\d+(?:\.\d+)?(?:e[-+]?\d+)?/g) ?? []).map(Number))
      expect(
        figures.map((value) => (value === -0.1 - 0.2 ? -0.3 : value)).filter((value) => !numbers.has(value)),
      ).toEqual([])
    },
  )

  test('a prtg channel has the unit of its value, and its limits on their side', async () => {
    const { result } = await prtg([measured])
    expect(result).toContainEqual({
      channel: 'postgres orders connections',
      value: 85,
      float: 1,
      unit: 'Percent',
      limitmode: 1,
      limitmaxwarning: 80,
      limitmaxerror: 95,
    })
    expect(result).toContainEqual(
      expect.objectContaining({ channel: 'postgres orders certificate', limitminwarning: 20, limitminerror: 7 }),
    )
    expect(result).toContainEqual({ channel: 'host memory', value: 2_576_980_378, unit: 'BytesDisk' })
  })

  test('of more than 50 prtg channels the failed values stay, and the text counts the omitted ones', async () => {
    const results = Array.from({ length: 60 }, (_, n) => ({
      check: 'queue',
      status: n === 59 ? ('failed' as const) : ('ok' as const),
      message: '',
      subject: `q${n}`,
      measurement: { value: n, unit: 'count', limit: 58, bound: 'atMost' as const },
    }))
    const { result, text } = await prtg([measuredWith(monitor('postgres orders', results))])
    expect(result).toHaveLength(50)
    expect(result).toContainEqual(expect.objectContaining({ channel: 'postgres orders queue q59' }))
    expect(text).toMatch(/ \(16 channels omitted\)$/)
  })

  test('health+json reports a value in a unit, of a component where there are several', async () => {
    const { checks } = JSON.parse(await render('health+json', [measured]))
    expect(checks['postgres orders:replication lag']).toEqual([
      expect.objectContaining({ componentId: 'standby eu', observedValue: 12_000, observedUnit: 'milliseconds' }),
    ])
  })

  test('prometheus has each value in its base unit, instants in Unix time, and the thresholds beside them', async () => {
    const series = await seriesOf(measured)
    const of = (name: string, check: string) =>
      series
        .filter((one) => one.name === name && one.labels['check'] === check)
        .map(({ labels: { type: _type, monitor: _monitor, check: _check, ...labels }, value }) => ({
          ...labels,
          value,
        }))
    expect(of('svc_check_value_seconds', 'replication_lag')).toEqual([{ item: 'standby eu', value: 12 }])
    expect(of('svc_check_value_ratio', 'disk')).toEqual([{ item: '/var', value: 0.413 }])
    expect(of('svc_check_value_bytes', 'memory')).toEqual([{ value: 2_576_980_378 }])
    expect(of('svc_check_value', 'clock')).toEqual([{ value: -2 }])
    expect(of('svc_check_value_timestamp_seconds', 'certificate')).toEqual([
      { value: Date.UTC(2026, 3, 11, 3) / 1_000 },
    ])
    expect(of('svc_check_value_seconds', 'certificate')).toEqual([])
    expect(of('svc_check_threshold_seconds', 'certificate')).toEqual([
      { severity: 'warning', bound: 'lower', value: 20 * 86_400 },
      { severity: 'failure', bound: 'lower', value: 7 * 86_400 },
    ])
  })

  test('a spreadsheet reads a negative value as a number', async () => {
    const rows = parse(await render('csv', [measured]), { record_delimiter: '\r\n', columns: true }) as Record<
      string,
      string
    >[]
    const clock = rows.find((row) => row['MonitoringName'] === 'clock')
    expect([clock?.['StatusMessage'], clock?.['Value'], clock?.['Unit']]).toEqual(["'-2", '-2', 'count'])
  })

  test('results of one check at several addresses are distinguished by the address', async () => {
    const results = ['10.0.0.5:25', '10.0.0.6:25'].map((address, at) => ({
      check: 'connect',
      status: 'ok' as const,
      message: '',
      address,
      measurement: { value: at, unit: 'count' },
    }))
    const series = await seriesOf(measuredWith(monitor('postgres orders', results)))
    const values = series.filter(({ name }) => name === 'svc_check_value')
    expect(values.map(({ labels }) => labels['item'])).toEqual(['10.0.0.5:25', '10.0.0.6:25'])
  })
})

describe('C9 a Failure of which every result passed, as of an answer that contradicts its HTTP status,', () => {
  const message = 'the server reports Success, which contradicts its HTTP status 503'
  const contradiction: Entry = {
    ...healthy,
    ExitCode: 3,
    Response: { ...healthy.Response, Status: 'Failure', StatusMessage: message },
  }
  test.each([
    ['csv', /,Failure,"App is unhealthy; the server reports Success, which contradicts/],
    ['tsv', /\tFailure\tApp is unhealthy; the server reports Success/],
    ['ndjson', /"Status":"Failure","StatusMessage":"[^"]*the server reports Success/],
    ['junit', /<failure [^>]*message="[^"]*the server reports Success/],
    ['github', /^::error .*the server reports Success/m],
    ['nagios', /^SVC CRITICAL - .*the server reports Success/],
    ['prtg', /"channel":"Status","value":2,.*the server reports Success/],
    ['prometheus', /^svc_type_success\{[^}]*\} 0$/m],
  ] as const)('is one in %s', async (name, failure) => {
    expect(await render(name, [contradiction])).toMatch(failure)
  })

  test('is the first record of tsv', () => {
    const [first = '', ...others] = tsv.render([contradiction], { header: false }).trimEnd().split('\n')
    expect(first).toContain(`\tFailure\tApp is unhealthy; ${message}`)
    expect(others.every((line) => line.includes('\tSuccess\t'))).toBe(true)
  })
})
