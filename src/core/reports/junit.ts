import { read } from './read.ts'
import { type EntryReading, type MonitorReading, type Reading, type Report, results } from './reading.ts'

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Escapes text for XML. `sanitizeText` has already removed characters that XML cannot express. */
const xmlText = (text: string): string => text.replace(/[&<>"]/g, (char) => entities[char] ?? '')
/** Escapes an attribute, where line feeds and tabs survive only as references. */
const xml = (text: string): string => xmlText(text).replace(/[\t\n]/g, (char) => `&#${char.charCodeAt(0)};`)

/**
 * JUnit XML as Jenkins, GitLab and Azure read it: one test suite per monitor, one test case per result. What was not
 * checked is skipped.
 */
export default {
  name: 'junit',
  contentType: 'application/xml; charset=utf-8',
  render: (entries) => {
    const readings = entries.map(read)
    const all = readings.flatMap(results)
    const failures = all.filter(isFailure).length
    const skipped = all.filter(isSkipped).length
    const errors = readings.filter((reading) => reading.error !== undefined).length
    const tests = readings.reduce((sum, reading) => sum + Math.max(1, results(reading).length), 0)
    const seconds = readings.reduce((sum, reading) => sum + (reading.duration ?? 0), 0) / 1_000
    const bare = readings.filter(failedWithoutResults).length
    const head = `<testsuites name="svc health" tests="${tests}" failures="${failures + bare}" errors="${errors}" skipped="${skipped}" time="${time(seconds)}">`
    return `<?xml version="1.0" encoding="UTF-8"?>\n${[head, ...readings.flatMap(suites), '</testsuites>'].join('\n')}\n`
  },
} satisfies Report

const failedWithoutResults = (reading: EntryReading): boolean =>
  reading.level === 'fail' && results(reading).length === 0

const isSkipped = ({ notChecked }: Reading): boolean => notChecked !== undefined
const isFailure = (result: Reading): boolean => result.level === 'fail' && !isSkipped(result)

function suites(reading: EntryReading): readonly string[] {
  const place = `${reading.type} ${reading.mode}`
  const monitors = reading.monitors.filter((monitor) => monitor.results.length > 0)
  if (monitors.length > 0) return monitors.flatMap((monitor) => suite(reading, place, monitor))
  const kind = reading.error ? 'error' : reading.level === 'fail' ? 'failure' : undefined
  const why = reading.error ? [...reading.error.hints, `error: ${reading.error.code}`] : []
  const message = reading.causes.join('; ') || reading.headline
  return [
    opening(reading, place, { tests: 1, failures: kind === 'failure' ? 1 : 0, errors: kind === 'error' ? 1 : 0 }),
    ...testCase(place, 'health', kind && { kind, type: reading.error?.code ?? 'unhealthy', message, more: why }),
    '  </testsuite>',
  ]
}

function suite(reading: EntryReading, place: string, monitor: MonitorReading): readonly string[] {
  const { results: cases } = monitor
  const counts = {
    tests: cases.length,
    failures: cases.filter(isFailure).length,
    skipped: cases.filter(isSkipped).length,
  }
  return [
    opening(reading, `${place}: ${monitor.name}`, counts),
    ...cases.flatMap((result) => resultCase(place, monitor, result)),
    '  </testsuite>',
  ]
}

type Counts = {
  readonly tests: number
  readonly failures: number
  readonly errors?: number
  readonly skipped?: number
}

function opening(reading: EntryReading, name: string, counts: Counts): string {
  const { tests, failures, errors = 0, skipped = 0 } = counts
  // A run has a single duration and its monitors run in parallel, so suites have none.
  const when = reading.startedAt ? ` timestamp="${reading.startedAt.toISOString().slice(0, 19)}"` : ''
  return `  <testsuite name="${xml(name)}" hostname="${xml(reading.target)}" tests="${tests}" failures="${failures}" errors="${errors}" skipped="${skipped}"${when}>`
}

function resultCase(place: string, monitor: MonitorReading, result: Reading): readonly string[] {
  // Readers treat the part before the last dot as a package.
  const classname = `${place}.${monitor.name.replaceAll('.', '_')}`
  const name = result.check || monitor.name
  if (isSkipped(result)) {
    return testCase(classname, name, { kind: 'skipped', message: result.message, more: result.details })
  }
  if (result.level === 'fail') {
    const type = result.fault ?? 'unhealthy'
    return testCase(classname, name, { kind: 'failure', type, message: result.message, more: result.details })
  }
  const message = result.level === 'warn' ? `warning: ${result.message}` : result.message
  return [
    `    <testcase classname="${xml(classname)}" name="${xml(name)}">`,
    `      <system-out>${xmlText([message, ...result.details].join('\n'))}</system-out>`,
    '    </testcase>',
  ]
}

type Problem = {
  readonly kind: 'failure' | 'error' | 'skipped'
  readonly type?: string
  readonly message: string
  readonly more: readonly string[]
}

function testCase(classname: string, name: string, problem: Problem | undefined): readonly string[] {
  const open = `    <testcase classname="${xml(classname)}" name="${xml(name)}"`
  if (!problem) return [`${open}/>`]
  const { kind, type, message, more } = problem
  const body = xmlText([message, ...more].join('\n'))
  const attributes = `${type === undefined ? '' : ` type="${xml(type)}"`} message="${xml(message)}"`
  return [`${open}>`, `      <${kind}${attributes}>${body}</${kind}>`, '    </testcase>']
}

const time = (seconds: number): string => seconds.toFixed(3)
