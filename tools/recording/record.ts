import { appendFileSync } from 'node:fs'
import { expect } from 'vitest'
import { rawLine } from './shape.ts'

type Plan = Parameters<typeof rawLine>[0]
type Run = { readonly monitors: readonly Parameters<typeof rawLine>[1][] }
type Arguments = readonly [plan: readonly NonNullable<Plan>[], fixture: unknown, options: { readonly mode: string }]

/** Runs the monitors, and appends a line for each report to the file that SVC_RECORDING names. */
export async function recorded(runMonitors: (...run: Arguments) => Promise<Run>, run: Arguments): Promise<Run> {
  const file = process.env.SVC_RECORDING
  if (file === undefined) throw new Error('SVC_RECORDING names no file')
  const { testPath = '', currentTestName = '' } = expect.getState()
  const answer = await runMonitors(...run)
  const [plan, , { mode }] = run
  const test = `${testPath.split('/test/').at(-1)} > ${currentTestName}`
  const lines = answer.monitors.map((report) => {
    const monitor = plan.find(({ name }) => name === report.name)
    return `${JSON.stringify(rawLine(monitor, report, mode, test), plain)}\n`
  })
  // One write: several test processes share the file.
  appendFileSync(file, lines.join(''))
  return answer
}

/** As text, what JSON leaves out. Secrets write themselves as `[secret]`. */
function plain(_: string, value: unknown): unknown {
  if (typeof value === 'bigint' || value instanceof RegExp) return String(value)
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  return value instanceof Map || value instanceof Set ? [...value] : value
}
