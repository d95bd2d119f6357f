import { describe, expect, test } from 'vitest'
import { asDrill, fail, notChecked, ok, type Result, warn } from '../../../src/core/checks/engine/index.ts'
import { healthCheckResponse, loadPrometheus, selectRun } from '../../../src/core/checks/reports/index.ts'
import { markBody, type RunDocument, select } from '../../../src/core/protocol/index.ts'
import { decodeRun } from '../../../src/core/protocol/wire/index.ts'
import { prometheusSeries } from '../../checks/reports/grammar.ts'

const run: RunDocument = {
  version: 1,
  type: 'Sql',
  mode: 'Basic',
  view: 'full',
  status: 'failed',
  message: 'DRILL: Sql is unhealthy: 2 of 2 monitors failed',
  startedAt: new Date(0),
  endedAt: new Date(0),
  durationMs: 1,
  drill: true,
  monitors: ['orders', 'queue'].map((name) => ({
    name,
    kind: 'tcp',
    status: 'failed',
    results: [{ check: 'connect', status: 'failed', fault: 'refused', message: 'DRILL: refused' }],
  })),
}

describe('Y1 the marks of a rehearsal', () => {
  test.each<[string, Result]>([
    ['ok', ok('connect', 'connected')],
    ['a warning', warn('connect', 'slow')],
    ['a warning for a missing privilege', notChecked('connect', 'permission', 'no privilege')],
  ])('%s was not checked', (_, result) => {
    expect(asDrill(result)).toMatchObject({
      status: 'failed',
      notChecked: 'rehearsal',
      message: `DRILL: ${result.message}`,
    })
  })

  test('a failure has the mark once, and is not related to a deployment', () => {
    const marked = asDrill({ ...fail('connect', 'refused', 'no listener'), deployment: true })
    expect(marked).toEqual({ check: 'connect', status: 'failed', fault: 'refused', message: 'DRILL: no listener' })
    expect(asDrill(marked)).toEqual(marked)
  })

  test('a selection keeps it, in the run and in the document of the interface', () => {
    const selection = { only: ['orders'], skip: [] }
    expect(selectRun(run, selection)).toMatchObject({
      drill: true,
      message: expect.stringMatching(/^DRILL: unhealthy: /),
    })
    expect(select(healthCheckResponse(run), selection).StatusMessage).toMatch(/^DRILL: unhealthy: 1 of 1 /)
  })

  test('a client takes no rehearsal for a success, whatever its statuses say', () => {
    const ok = { status: 'ok', fault: undefined } as const
    const lying = {
      ...run,
      status: 'ok',
      monitors: run.monitors.map((one) => ({
        ...one,
        status: 'ok',
        results: one.results.map((result) => ({ ...result, ...ok })),
      })),
    }
    expect(decodeRun(JSON.stringify(lying))).toMatchObject({ drill: true, status: 'failed' })
    expect(decodeRun(JSON.stringify({ ...lying, drill: undefined }))).toMatchObject({ status: 'ok' })
  })

  test('each sample of a page has the label, whatever its labels contain', async () => {
    const { exposition, expositionTypes, renderFamilies } = await loadPrometheus()
    const families = [
      {
        name: 'svc_a',
        type: 'gauge',
        help: 'A.\nsvc_b 1',
        samples: [{ value: 1 }, { labels: { x: 'a\nsvc_b{y="z"} 1 # {' }, value: 2 }],
      },
      { name: 'svc_c', type: 'counter', help: 'C.', samples: [{ labels: { x: '' }, value: 3 }] },
      {
        name: 'svc_d',
        type: 'gauge',
        help: 'D.',
        samples: [{ labels: { x: 'a\u2028svc_e{drill="true"} 1' }, value: 4 }],
      },
    ] as const
    for (const format of ['text', 'openmetrics'] as const) {
      const before = exposition([renderFamilies(families, format)], format)
      const after = markBody(expositionTypes[format], before)
      expect(after.split('\n').length).toBe(before.split('\n').length)
      const samples = after.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
      expect(samples).toEqual([
        'svc_a{drill="true"} 1',
        'svc_a{drill="true",x="a\\nsvc_b{y=\\"z\\"} 1 # {"} 2',
        'svc_c_total{drill="true"} 3',
        'svc_d{drill="true",x="a\u2028svc_e{drill=\\"true\\"} 1"} 4',
      ])
    }
    const text = markBody(expositionTypes.text, renderFamilies(families, 'text'))
    expect(prometheusSeries(text)).toHaveLength(4)
    expect(markBody(expositionTypes.text, text)).toBe(text)
  })
})
