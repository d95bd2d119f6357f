import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import { type AnyKind, type MonitorReport, plannedChecks } from '../../../src/core/checks/engine/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import redis from '../../../src/core/checks/kinds/redis/index.ts'
import tcp from '../../../src/core/checks/kinds/tcp.ts'
import { configurableKinds } from '../../../src/core/checks/plan/index.ts'
import { type Entry, healthCheckResponse, type RunDocumentOptions } from '../../../src/core/checks/reports/index.ts'
import type { ExecutionMode, RunDocument } from '../../../src/core/protocol/index.ts'
import { decodeRun, encodeRun } from '../../../src/core/protocol/wire/run-document.ts'
import { type RunKindOptions, reportKind } from '../../support/engine/run-kind.ts'
import { peer, refusedPort, replies } from '../../support/faults/faults.ts'
import { xmlElements } from './grammar.ts'
import { render } from './render.ts'
import { document, report, run } from './runs.ts'

const host = '127.0.0.1'
const place = { Target: 't', ServerType: 'Sql', ExecutionMode: 'Standard', ExitCode: 0 }
const entryOf = (of: RunDocument): Entry => ({ ...place, Run: of, Response: healthCheckResponse(of) })

/** The test cases of a report, with what became of each. */
async function casesIn(entry: Entry): Promise<Readonly<Record<string, string>>> {
  const cases: Record<string, string> = {}
  let name = ''
  for (const { name: element, attributes } of xmlElements(await render('junit', [entry]))) {
    if (element === 'testcase') {
      name = `${attributes['name']}`
      expect(cases).not.toHaveProperty([name])
      cases[name] = 'passed'
    } else if (['failure', 'error', 'skipped'].includes(element)) cases[name] = `${element}: ${attributes['message']}`
  }
  return cases
}
const casesOf = (of: MonitorReport | readonly MonitorReport[], more: Partial<RunDocumentOptions> = {}) =>
  casesIn(entryOf(document(run(...[of].flat()), more)))

const measure = [
  { name: 'waiting', path: '/r/waiting', count: { limit: 1 }, atMost: { warn: 100, limit: 500 } },
  { name: 'failed jobs', path: '/r/failed', atMost: { warn: 5, limit: 10 } },
]
const jobs = async (port: number, mode: ExecutionMode = 'Standard', more: RunKindOptions = {}, at = host) =>
  await reportKind(tcp, { host: at, port, send: 'jobs', measure } as never, mode, more)
const answer = replies('<r><waiting>900</waiting><failed>1</failed></r>')

describe('F5 the identity of the test cases', () => {
  test('F5 each measure has one test case, and the failure of one is no repetition of the other', async () => {
    await using server = await peer(answer)
    expect(await casesOf(await jobs(server.port))).toEqual({
      connect: 'passed',
      answer: 'passed',
      // The number of items is well, the figure is not.
      'measure waiting': expect.stringMatching(/^failure: .*waiting: 900/),
      'measure failed jobs': 'passed',
      open: 'skipped: nothing to report here',
    })
  })

  test('F5 checks that did not run because an earlier one failed are skipped, with the reason', async () => {
    const skipped = 'skipped: not run: connect failed'
    const all = { answer: skipped, 'measure waiting': skipped, 'measure failed jobs': skipped, open: skipped }
    expect(await casesOf(await jobs(await refusedPort()))).toEqual({
      connect: expect.stringMatching(/^failure: .* refused the connection/),
      ...all,
    })
  })

  test('F5 it is the same in the answer of a server', async () => {
    const refused = document(run(await jobs(await refusedPort())))
    const received = decodeRun(encodeRun(refused) ?? '')
    expect(await casesIn(entryOf(received))).toEqual(await casesIn(entryOf(refused)))
  })

  test('F5 a caller who may not read details learns the names of the checks, and nothing else', async () => {
    const refused = document(run(await jobs(await refusedPort())), { view: 'brief' })
    expect(refused.monitors[0]?.notRun).toContainEqual({ check: 'answer' })
    expect(JSON.stringify(refused)).not.toContain('waiting')
    expect(Object.keys(await casesIn(entryOf(refused)))).toEqual(['connect', 'answer', 'measure', 'open'])
  })

  test('F5 a server that does not send what it planned has its results as test cases', async () => {
    const { planned, ...older } = await jobs(await refusedPort())
    expect(planned).not.toHaveLength(0)
    expect(Object.keys(await casesOf(older))).toEqual(['connect'])
  })

  test('F5 where one of two addresses fails, the names are those of two healthy ones', async () => {
    const both = createServer(answer).listen(0, '0.0.0.0')
    const one = createServer(answer).listen(0, host)
    await Promise.all([once(both, 'listening'), once(one, 'listening')])
    const portOf = (of: typeof both): number => (of.address() as { readonly port: number }).port
    const resolve = () => Promise.resolve([host, '127.0.0.2'])
    const namesOf = async (port: number) =>
      Object.entries(await casesOf(await jobs(port, 'Advanced', { resolve }, 'jobs.test'))).map(
        ([name, outcome]) => [name.replaceAll(`:${port}`, ''), outcome.split(':', 2).join(':')] as const,
      )
    const [healthy, failing] = await Promise.all([namesOf(portOf(both)), namesOf(portOf(one))])
    const names = (all: typeof healthy) => all.map(([name]) => name).toSorted()
    expect(names(healthy)).toContain('answer 127.0.0.2')
    expect(names(failing)).toEqual(names(healthy))
    expect(failing).toContainEqual(['answer 127.0.0.2', 'skipped: not run'])
    expect(failing).toContainEqual(['answer 127.0.0.1', 'passed'])
    both.close()
    one.close()
  })

  test('F5 a result that is none of the checks stands in the place of the first check that it prevented', async () => {
    const planned = [
      { name: 'connect', items: [] },
      { name: 'queries', items: ['orders'] },
    ]
    const checks = planned.map(({ name }) => ({ name, depth: 'Basic' as const, doc: '' }))
    const paused = { check: 'sign-in', status: 'failed', fault: 'auth', message: 'refused 3 min ago' } as const
    expect(await casesOf(report('postgres orders', [paused], { planned, checks }))).toEqual({
      connect: 'failure: sign-in: refused 3 min ago',
      'queries orders': 'skipped: not run: sign-in failed',
    })
    // The step that had no time left names no item.
    const ok = { check: 'connect', status: 'ok', message: 'connected' } as const
    const late = { check: 'queries', status: 'failed', fault: 'timeout', message: 'no answer', isLast: true } as const
    expect(await casesOf(report('postgres orders', [ok, late], { planned, checks }))).toEqual({
      connect: 'passed',
      'queries orders': 'failure: no answer',
    })
  })
})

describe('F5 a check of which the settings tell that it has no result', () => {
  const namesOf = (kind: AnyKind, settings: Readonly<Record<string, unknown>>): readonly string[] => {
    const { values, problems } = readSettings(kind.settings, settings, { env: {}, folder: '/' })
    expect(problems).toEqual([])
    return plannedChecks({ kind, settings: values }, 'Advanced').map(({ name }) => name)
  }
  const url = 'http://shop.example/'
  test.each([
    ['addresses', tcp, { host: '::1', port: 9 }, { host: 'localhost', port: 9 }],
    ['addresses', redis, { url: 'redis://[::1]' }, { url: 'redis://cache.example' }],
    ['certificate', redis, { url: 'redis://cache.example' }, { url: 'rediss://cache.example' }],
    ['certificate', http, { url }, { url, redirects: 1 }],
    ['certificate', http, { url }, { url: 'https://shop.example/' }],
    ['empty body', http, { url, contains: 'open' }, { url }],
    ['empty body', http, { url, status: [200] }, { url }],
  ] as const)('F5 the plan lacks %s of a monitor that cannot have it', (name, kind, without, withIt) => {
    expect(namesOf(kind as AnyKind, without)).not.toContain(name)
    expect(namesOf(kind as AnyKind, withIt)).toContain(name)
  })
})

/** One result for the whole, whatever the lists say about parts of it: an answer, all links, the database of all queues. */
const joint =
  /^(?:http (?:empty body|cache|json|xml|links)|(?:tcp|tls) answer|redis database|http-steps client certificate): (?:measure|links|queues|steps)$/

test('F5 each check with a list of named entries in svc.yaml declares the items of its results', async () => {
  const kinds = await configurableKinds()
  const lists = kinds.flatMap(({ name: kind, settings, checks }) =>
    checks.flatMap(({ name, when = [], settings: own = [], items }) =>
      (when.length > 0 ? when : own).flatMap((setting) => {
        const declared = settings[setting]
        const isNamed = declared?.type === 'groups' && ('name' in declared.fields || 'key' in declared.fields)
        return isNamed && items === undefined ? [`${kind} ${name}: ${setting}`] : []
      }),
    ),
  )
  expect(lists.filter((one) => !joint.test(one))).toEqual([])
  expect(lists.length).toBeGreaterThan(0)
})

describe('F5 a mistake in svc.yaml', () => {
  const mistake = { check: 'configured', status: 'failed', fault: 'data', message: 'port is not a number' } as const
  const entry = report('tcp queue', [{ ...mistake, notChecked: 'configuration' }])
  const failed = report('tcp other', [{ check: 'connect', status: 'failed', fault: 'refused', message: 'refused' }])
  const ok = report('tcp third', [{ check: 'connect', status: 'ok', message: 'connected' }])

  test.each([
    ['alone', [entry]],
    ['beside a failure', [failed, entry]],
    ['beside a healthy monitor', [ok, entry]],
  ])('F5 is an error %s', async (_, monitors) => {
    expect((await casesOf(monitors))['configured']).toBe('error: port is not a number')
  })

  test('F5 is an error where only the run of the monitor finds it', async () => {
    const cases = await casesOf(await reportKind(tcp, { host, port: 9, expect: '/[/' } as never, 'Standard'))
    expect(Object.values(cases)[0]).toMatch(/^error: settings: expect/)
  })
})
