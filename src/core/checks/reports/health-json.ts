import { read } from './read.ts'
import { type EntryReading, type Level, type Report, results } from './reading.ts'

type Status = 'pass' | 'warn' | 'fail'
type Check = {
  readonly componentId?: string
  readonly componentType?: string
  readonly observedValue?: number
  readonly observedUnit?: string
  readonly status?: Status
  readonly time?: string
  readonly output?: string
  /** Why the check came to no verdict. The draft allows members of one's own. */
  readonly notChecked?: string
}

const statuses: Record<Level | 'unknown', Status> = {
  ok: 'pass',
  warn: 'warn',
  'not checked': 'fail',
  fail: 'fail',
  unknown: 'fail',
}
const rank: Record<Status, number> = { pass: 0, warn: 1, fail: 2 }

/** `application/health+json` (draft-inadarei-api-health-check). */
export default {
  name: 'health+json',
  contentType: 'application/health+json; charset=utf-8',
  render: (entries) => {
    const readings = entries.map(read)
    const worst = readings
      .map((reading) => statuses[reading.level])
      // Without entries the status is not a pass.
      .reduce<Status>((most, status) => (rank[status] > rank[most] ? status : most), readings[0] ? 'pass' : 'fail')
    const output = readings.flatMap((reading) => reading.causes).join('\n')
    const notes = readings.flatMap((reading) => (reading.correlationId ? [`correlation ${reading.correlationId}`] : []))
    return `${JSON.stringify({
      status: worst,
      description: readings.map((reading) => reading.headline).join('; ') || 'nothing was checked',
      ...(notes.length > 0 ? { notes } : {}),
      // The draft omits `output` from a pass.
      ...(worst === 'pass' || output === '' ? {} : { output }),
      checks: checks(readings),
    })}\n`
  },
} satisfies Report

function checks(readings: readonly EntryReading[]): Readonly<Record<string, readonly Check[]>> {
  const byKey = new Map<string, Check[]>()
  const add = (component: string, measurement: string, check: Check): void => {
    const key = `${withoutColon(component)}:${withoutColon(measurement)}`
    const existing = byKey.get(key)
    if (existing) existing.push(check)
    else byKey.set(key, [check])
  }
  for (const reading of readings) {
    const time = reading.endedAt ? { time: reading.endedAt.toISOString() } : {}
    const id: Pick<Check, 'componentId'> =
      readings.length > 1 ? { componentId: `${reading.type} at ${reading.target}` } : {}
    for (const result of results(reading)) {
      const status = statuses[result.level]
      const output = [result.message, ...result.details].join('\n')
      const { item, measurement } = result
      const component = [id.componentId, item].filter((part) => part !== undefined).join(' ')
      add(result.monitor, result.check || 'status', {
        ...(component === '' ? {} : { componentId: component }),
        ...(measurement ? { observedValue: measurement.value, observedUnit: measurement.unit } : {}),
        status,
        ...time,
        ...(status === 'pass' ? {} : { output }),
        ...(result.notChecked === undefined ? {} : { notChecked: result.notChecked }),
      })
    }
    if (reading.error) add(reading.type, 'status', { ...id, status: 'fail', output: reading.error.message })
    const { state } = reading
    const measured = { ...id, componentType: 'system', ...time }
    if (state?.cpu !== undefined) {
      add('cpu', 'utilization', { ...measured, observedValue: state.cpu, observedUnit: 'percent' })
    }
    if (state?.freeMb !== undefined) {
      add('memory', 'available', { ...measured, observedValue: state.freeMb, observedUnit: 'MiB' })
    }
  }
  return Object.fromEntries(byKey)
}

/** A colon may only separate a component from its measurement. */
const withoutColon = (text: string): string => text.replaceAll(':', ' ').trim() || 'unnamed'
