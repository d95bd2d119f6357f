import { markText } from '../../protocol/index.ts'
import { read } from './read.ts'
import {
  type EntryReading,
  figureName,
  isBad,
  isConsequence,
  type MonitorReading,
  type Reading,
  type Report,
} from './reading.ts'

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Escapes text for XML. `sanitizeText` has already removed characters that XML cannot express. */
const xmlText = (text: string): string => text.replace(/[&<>"]/g, (char) => entities[char] ?? '')
/** Escapes an attribute, where line feeds and tabs survive only as references. */
const xml = (text: string): string => xmlText(text).replace(/[\t\n]/g, (char) => `&#${char.charCodeAt(0)};`)

/**
 * JUnit XML as Jenkins, GitLab and Azure read it: one test suite for each monitor, one test case for each check and item.
 * What was not checked is skipped.
 */
export default {
  name: 'junit',
  contentType: 'application/xml; charset=utf-8',
  render: (entries) => {
    const readings = entries.map(read)
    const all = readings.flatMap(suites)
    const cases = all.flatMap((suite) => suite.cases)
    const seconds = readings.reduce((sum, reading) => sum + (reading.duration ?? 0), 0) / 1_000
    // The schema has no attribute for skipped test cases here.
    const head = `<testsuites name="svc health" tests="${cases.length}" failures="${tally(cases, 'failure')}" errors="${tally(cases, 'error')}" time="${time(seconds)}">`
    return `<?xml version="1.0" encoding="UTF-8"?>\n${[head, ...all.flatMap(suiteLines), '</testsuites>'].join('\n')}\n`
  },
} satisfies Report

type Problem = {
  readonly kind: 'failure' | 'error' | 'skipped'
  readonly type: string
  readonly message: string
  readonly more: readonly string[]
}

type Case = {
  readonly classname: string
  readonly name: string
  /** Seconds; undefined when unknown. */
  readonly seconds: number | undefined
  readonly problem: Problem | undefined
  /** The lines of a test case that passed. */
  readonly output: readonly string[]
}

type Suite = {
  readonly name: string
  readonly host: string
  readonly startedAt: Date | undefined
  readonly seconds: number | undefined
  readonly cases: readonly Case[]
}

const tally = (cases: readonly Case[], kind: Problem['kind']): number =>
  cases.filter(({ problem }) => problem?.kind === kind).length

function suites(reading: EntryReading): readonly Suite[] {
  // Readers treat the part before the last dot as a package.
  const server = reading.server.replaceAll('.', '_')
  const plain = [server, reading.type, reading.mode].filter(Boolean).join(' ')
  const place = reading.drill ? markText(plain) : plain
  const base = { host: reading.target, startedAt: reading.startedAt }
  const monitors = reading.monitors.filter((monitor) => monitor.results.length > 0)
  const hasFailure = monitors.some((monitor) => monitor.results.some((one) => one.level === 'fail' && hasVerdict(one)))
  const ofMonitors = monitors.map((monitor) => ({
    ...base,
    name: `${place}: ${monitor.name}`,
    seconds: secondsOf(monitor.duration),
    cases: casesOf(monitor, hasFailure).map((one, at) => ({
      ...one,
      // Readers treat the part before the last dot as a package.
      classname: `${place}.${monitor.name.replaceAll('.', '_')}`,
      // Readers add up the test cases, but the checks of a monitor share its time: the first one carries it.
      seconds: at === 0 ? secondsOf(monitor.duration) : undefined,
    })),
  }))
  // A foreign server may report a failure that none of its results explains.
  const isExplained = !isBad(reading.level) || ofMonitors.some(({ cases }) => cases.some(isRed))
  if (ofMonitors.length > 0 && isExplained) return ofMonitors
  const seconds = ofMonitors.length > 0 ? undefined : secondsOf(reading.duration)
  const whole = { classname: place, name: 'health', seconds, problem: wholeProblem(reading), output: [] }
  return [{ ...base, name: place, seconds, cases: [whole] }, ...ofMonitors]
}

type Outcome = Pick<Case, 'problem' | 'output'>

const severest = ['failure', 'error', 'skipped', undefined] as const

/**
 * One test case for each check and item: readers take a second one of the same name for a repetition of the first, and
 * drop its failure. The checks of the plan without a result are skipped, so that a failure changes no names.
 */
function casesOf(
  { name: monitor, depth, results, notRun }: MonitorReading,
  hasFailure: boolean,
): readonly Omit<Case, 'classname' | 'seconds'>[] {
  const nameOf = (one: Pick<Reading, 'check' | 'item'>): string => figureName({ ...one, monitor: '' }) || monitor
  // The brief view has no depths.
  const isPlanned = (result: Reading): boolean =>
    result.depth !== undefined || (depth === undefined && result.check !== 'not run')
  const places = new Map(notRun.map((one) => [nameOf(one), one]))
  const byName = Map.groupBy(results, (result) => {
    // What ended the run, and is none of its checks, stands in the place of the first check that it kept from running.
    const place = isBad(result.level)
      ? [...places].find(([, { check }]) => !isPlanned(result) || (result.item === undefined && check === result.check))
      : undefined
    if (!place) return nameOf(result)
    places.delete(place[0])
    return place[0]
  })
  const ran = [...byName].map(([name, all]) => ({
    name,
    ...merged(all.map((one) => outcomeOf(one, name, hasFailure))),
  }))
  const others = [...places].filter(([name]) => !byName.has(name))
  return [
    ...ran,
    ...others.map(([name, { message }]) => ({
      name,
      problem: { kind: 'skipped', type: 'not run', message, more: [] } as const,
      output: [],
    })),
  ]
}

function outcomeOf(result: Reading, name: string, hasFailure: boolean): Outcome {
  const { level, check, details } = result
  const isNamed = name.startsWith(check) || result.message.startsWith(check)
  const message = isNamed ? result.message : `${check}: ${result.message}`
  const output = [level === 'warn' ? `warning: ${message}` : message, ...details]
  return { output, problem: problemOf({ ...result, message }, hasFailure) }
}

/** The worst of some outcomes, with the texts of all. */
function merged(all: readonly Outcome[]): Outcome {
  const rank = ({ problem }: Outcome): number => severest.indexOf(problem?.kind)
  const [first = { problem: undefined, output: [] }, ...others] = all.toSorted((a, b) => rank(a) - rank(b))
  const rest = others.flatMap(({ output }) => output)
  const { problem } = first
  return { problem: problem && { ...problem, more: [...problem.more, ...rest] }, output: [...first.output, ...rest] }
}

const isRed = ({ problem }: Case): boolean => problem?.kind === 'failure' || problem?.kind === 'error'

const secondsOf = (milliseconds: number | undefined): number | undefined =>
  milliseconds === undefined ? undefined : milliseconds / 1_000

/** Whether the result is a verdict. A check that did not run, or could not measure, has none. */
const hasVerdict = (result: Reading): boolean => result.notChecked === undefined && !isConsequence(result)

/**
 * A result without a verdict is skipped. If nothing else of the run failed, it is an error instead: readers take a
 * report in which everything passed or was skipped for a success. A mistake in svc.yaml is always an error.
 */
function problemOf(result: Reading, hasFailure: boolean): Problem | undefined {
  const { level, message, details: more, fault } = result
  if (level === 'ok') return undefined
  if (!hasVerdict(result)) {
    const isMistake = result.notChecked === 'configuration' && !isConsequence(result)
    const kind = !isMistake && (level === 'warn' || hasFailure) ? 'skipped' : 'error'
    return { kind, type: result.notChecked ?? fault ?? 'not run', message, more }
  }
  return level === 'warn' ? undefined : { kind: 'failure', type: fault ?? 'unhealthy', message, more }
}

/** The problem of an answer without results, or of no answer. */
function wholeProblem({ error, level, causes, headline }: EntryReading): Problem | undefined {
  const message = causes.join('; ') || headline
  if (error) return { kind: 'error', type: error.code, message, more: [...error.hints, `error: ${error.code}`] }
  return isBad(level) ? { kind: 'failure', type: 'unhealthy', message, more: [] } : undefined
}

function suiteLines({ name, host, startedAt, seconds, cases }: Suite): readonly string[] {
  const counts = `tests="${cases.length}" failures="${tally(cases, 'failure')}" errors="${tally(cases, 'error')}" skipped="${tally(cases, 'skipped')}"`
  const when = startedAt ? ` timestamp="${startedAt.toISOString().slice(0, 19)}"` : ''
  return [
    `  <testsuite name="${xml(name)}" hostname="${xml(host)}" ${counts}${timeOf(seconds)}${when}>`,
    ...cases.flatMap(caseLines),
    '  </testsuite>',
  ]
}

function caseLines({ classname, name, seconds, problem, output }: Case): readonly string[] {
  const open = `    <testcase classname="${xml(classname)}" name="${xml(name)}"${timeOf(seconds)}`
  const content = problem ? problemElement(problem) : output.length > 0 ? outputElement(output) : undefined
  return content === undefined ? [`${open}/>`] : [`${open}>`, `      ${content}`, '    </testcase>']
}

function problemElement({ kind, type, message, more }: Problem): string {
  const body = xmlText([message, ...more].join('\n'))
  return `<${kind} type="${xml(type)}" message="${xml(message)}">${body}</${kind}>`
}

const outputElement = (lines: readonly string[]): string => `<system-out>${xmlText(lines.join('\n'))}</system-out>`

const time = (seconds: number): string => seconds.toFixed(3)
const timeOf = (seconds: number | undefined): string => (seconds === undefined ? '' : ` time="${time(seconds)}"`)
