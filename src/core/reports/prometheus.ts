import type { Report } from './entry.ts'
import { divided, type Figure, type MeasuredReading, measuredResults } from './figure.ts'
import { read } from './read.ts'
import type { EntryReading, Level } from './reading.ts'

type Labels = Readonly<Record<string, string>>
type Sample = { readonly labels: Labels; readonly value: number }
type Metric = {
  readonly name: string
  readonly help: string
  readonly samples: (reading: EntryReading, labels: Labels) => readonly Sample[]
  /** Which of two samples with the same labels is told; a scrape with both would be refused whole. */
  readonly keep: (a: number, b: number) => number
}

const one = (labels: Labels, value: number | undefined): readonly Sample[] =>
  value === undefined ? [] : [{ labels, value }]
const answered = (reading: EntryReading, labels: Labels, value: number): readonly Sample[] =>
  reading.error ? [] : [{ labels, value }]

/** All gauges. A server that did not answer has status 0: nothing is green by being absent. */
const metrics: readonly Metric[] = [
  {
    name: 'svc_health_status',
    help: '1 when healthy (warnings included), 0 when unhealthy or not answered.',
    samples: (reading, labels) => one(labels, reading.level === 'ok' || reading.level === 'warn' ? 1 : 0),
    keep: Math.min,
  },
  {
    name: 'svc_health_answered',
    help: '1 when a health answer was had, 0 when not.',
    samples: (reading, labels) => one(labels, reading.error ? 0 : 1),
    keep: Math.min,
  },
  {
    name: 'svc_health_failed_monitors',
    help: 'Monitors that failed.',
    samples: (reading, labels) => answered(reading, labels, reading.failed),
    keep: Math.max,
  },
  {
    name: 'svc_health_monitors',
    help: 'Monitors that were run.',
    samples: (reading, labels) => answered(reading, labels, reading.monitors.length),
    keep: Math.max,
  },
  {
    name: 'svc_health_warnings',
    help: 'Results that warn.',
    samples: (reading, labels) => answered(reading, labels, reading.warnings),
    keep: Math.max,
  },
  {
    name: 'svc_health_duration_seconds',
    help: 'How long the run took.',
    samples: (reading, labels) =>
      one(labels, reading.duration === undefined ? undefined : round(reading.duration / 1_000, 6)),
    keep: Math.max,
  },
  {
    name: 'svc_health_run_end_timestamp_seconds',
    help: 'When the run behind this answer ended, in Unix time.',
    samples: (reading, labels) => one(labels, reading.endedAt && reading.endedAt.getTime() / 1_000),
    keep: Math.min,
  },
  {
    name: 'svc_health_monitor_status',
    help: '1 when the monitor passed, 0 when it failed.',
    samples: (reading, labels) =>
      reading.monitors.map((monitor) => ({
        labels: { ...labels, monitor: monitor.name },
        value: monitor.level === 'fail' ? 0 : 1,
      })),
    keep: Math.min,
  },
  {
    name: 'svc_health_result_status',
    help: '1 when the check passed (warnings included), 0 when it failed.',
    samples: (reading, labels) => perResult(reading, labels, (level) => (level === 'fail' ? 0 : 1)),
    keep: Math.min,
  },
  {
    name: 'svc_health_result_warning',
    help: '1 when the check warns, 0 when not.',
    samples: (reading, labels) => perResult(reading, labels, (level) => (level === 'warn' ? 1 : 0)),
    keep: Math.max,
  },
  {
    name: 'svc_health_result_value',
    help: 'What the check measured, in the unit of the label.',
    samples: (reading, labels) =>
      measuredResults(reading).map((result) => ({ labels: figureLabels(labels, result), value: inBase(result).value })),
    keep: Math.max,
  },
  {
    name: 'svc_health_result_threshold',
    help: 'What the value was compared with: above an upper bound, below a lower one, it is a warning or a failure.',
    samples: (reading, labels) =>
      measuredResults(reading).flatMap((result) => {
        const { warn, limit, bound } = inBase(result)
        if (bound === undefined) return []
        const edge = (severity: string, value: number | undefined): readonly Sample[] =>
          one({ ...figureLabels(labels, result), severity, bound: sides[bound] }, value)
        return [...edge('warning', warn), ...edge('failure', limit)]
      }),
    keep: Math.max,
  },
  {
    name: 'svc_health_server_cpu_used_ratio',
    help: 'CPU in use on the server, 0 to 1.',
    samples: (reading, labels) =>
      one(labels, reading.state?.cpu === undefined ? undefined : round(reading.state.cpu / 100, 4)),
    keep: Math.max,
  },
  {
    name: 'svc_health_server_memory_available_bytes',
    help: 'Memory available on the server.',
    samples: (reading, labels) =>
      one(labels, reading.state?.freeMb === undefined ? undefined : round(reading.state.freeMb * 2 ** 20, 0)),
    keep: Math.min,
  },
  {
    name: 'svc_health_server_memory_total_bytes',
    help: 'Memory of the server.',
    samples: (reading, labels) =>
      one(labels, reading.state?.totalMb === undefined ? undefined : round(reading.state.totalMb * 2 ** 20, 0)),
    keep: Math.min,
  },
]

/** Prometheus text exposition format 0.0.4. */
export default {
  name: 'prometheus',
  contentType: 'text/plain; version=0.0.4; charset=utf-8',
  render: (entries) => {
    const readings = entries.map(read)
    return metrics.map((metric) => family(metric, readings)).join('')
  },
} satisfies Report

function family(metric: Metric, readings: readonly EntryReading[]): string {
  const series = new Map<string, number>()
  for (const reading of readings) {
    const place = { target: reading.target, type: reading.type, mode: reading.mode }
    for (const { labels, value } of metric.samples(reading, place)) {
      const key = `${metric.name}{${Object.entries(labels)
        .map(([name, text]) => `${name}="${escapeLabel(text)}"`)
        .join(',')}}`
      const known = series.get(key)
      series.set(key, known === undefined ? value : metric.keep(known, value))
    }
  }
  if (series.size === 0) return ''
  const lines = [...series].map(([key, value]) => `${key} ${value}\n`)
  return `# HELP ${metric.name} ${metric.help}\n# TYPE ${metric.name} gauge\n${lines.join('')}`
}

const perResult = (reading: EntryReading, labels: Labels, told: (level: Level) => number): readonly Sample[] =>
  reading.monitors.flatMap((monitor) =>
    monitor.results.map((result) => ({
      labels: { ...labels, monitor: monitor.name, check: result.check },
      value: told(result.level),
    })),
  )

const sides = { atMost: 'upper', atLeast: 'lower' } as const
/** Base units: a check's unit → the unit of the sample, and what a figure is divided by. Others stay as they are. */
const baseUnits: Readonly<Record<string, { readonly unit: string; readonly by: number }>> = {
  milliseconds: { unit: 'seconds', by: 1_000 },
  days: { unit: 'seconds', by: 1 / 86_400 },
  percent: { unit: 'ratio', by: 100 },
}
const baseOf = (unit: string) => (Object.hasOwn(baseUnits, unit) && baseUnits[unit]) || { unit, by: 1 }

const inBase = ({ measurement }: MeasuredReading): Figure => divided(measurement, baseOf(measurement.unit).by)

const figureLabels = (labels: Labels, { monitor, check, item, measurement }: MeasuredReading): Labels => ({
  ...labels,
  monitor,
  check,
  ...(item === undefined ? {} : { item }),
  unit: baseOf(measurement.unit).unit,
})

const round = (value: number, digits: number): number => Number(value.toFixed(digits))

const escapeLabel = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
