import { expect, test } from 'vitest'
import { type Entry, healthCheckResponse, type ReportName, reports } from '../../../src/core/checks/reports/index.ts'
import type { RunDocument } from '../../../src/core/protocol/index.ts'
import { prometheusSeries } from '../../checks/reports/grammar.ts'

const run = (mark: string): RunDocument => ({
  version: 1,
  type: 'Sql',
  mode: 'Basic',
  view: 'full',
  status: 'failed',
  message: `${mark}Sql is unhealthy: 1 of 1 monitors failed`,
  startedAt: new Date(0),
  endedAt: new Date(0),
  durationMs: 1,
  ...(mark === '' ? {} : { drill: true }),
  monitors: [
    {
      name: 'orders',
      kind: 'tcp',
      status: 'failed',
      results: [{ check: 'connect', status: 'failed', fault: 'refused', message: `${mark}no listener` }],
    },
  ],
})
const entry = { Target: 'https://svc.test', ServerType: 'Sql', ExecutionMode: 'Basic', ExitCode: 3 }
const shapes: Readonly<Record<string, (mark: string) => Entry>> = {
  'a run': (mark) => ({ ...entry, Run: run(mark) }),
  'the document of the interface': (mark) => ({ ...entry, Response: healthCheckResponse(run(mark)) }),
  'a refusal': (mark) => {
    const message = `https://svc.test is unavailable (503): ${mark}the script of this rehearsal answers 503`
    const error = { code: 'Unavailable', exitCode: 8, message, hints: [] }
    return { ...entry, ExitCode: 8, Error: mark === '' ? error : { ...error, drill: true } }
  },
}

/** The formats that write this entry without a mark. */
async function unmarked(written: Entry): Promise<readonly ReportName[]> {
  const names = Object.keys(reports) as ReportName[]
  const texts = await Promise.all(
    names.map(async (name) => ({ name, text: (await reports[name].load()).default.render([written]) })),
  )
  return texts.flatMap(({ name, text }) => {
    const series = name === 'prometheus' ? prometheusSeries(text) : []
    const isMarked = name === 'prometheus' ? series.length > 0 : text.includes('DRILL: ')
    return isMarked && series.every(({ labels }) => labels['drill'] === 'true') ? [] : [name]
  })
}

test.each(Object.keys(shapes))(
  'Y1 every format of svc health marks a rehearsal that it knows from %s',
  async (shape) => {
    expect(await unmarked((shapes[shape] as (mark: string) => Entry)('DRILL: '))).toEqual([])
  },
)

test('Y1 a format without the mark is found', async () => {
  for (const shape of Object.values(shapes)) expect(await unmarked(shape(''))).toEqual(Object.keys(reports))
})
