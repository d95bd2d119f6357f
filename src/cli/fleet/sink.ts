import type { TextForm } from '../../core/base/sanitize.ts'
import { type Entry, type ReportName, reports } from '../../core/checks/reports/index.ts'
import { accepting } from '../command/base.ts'
import {
  type HealthOutcome,
  isReport,
  type Output,
  type Presentation,
  resultJson,
  resultsJson,
} from '../health/health.ts'
import type { Io } from '../io/io.ts'

/** The outcomes of one server, with its place in the list of servers. */
export type FleetAnswer = {
  readonly at: number
  readonly outcomes: readonly HealthOutcome[]
  readonly entries: readonly Entry[]
  readonly mode: string
  readonly target: string
}

/** The answers in one format: a stream writes each as it arrives, a document all of them at the end. */
export type FleetSink = {
  /** Resolves when the next answer may come. */
  readonly add: (answer: FleetAnswer) => Promise<void>
  readonly end: () => Promise<{
    readonly text: string
    readonly form: TextForm
    readonly exitCode?: number | undefined
  }>
}

/** How the answers are presented. */
export type FleetPresentation = Omit<Presentation, 'target' | 'mode' | 'atServer'>

const streams: ReadonlySet<Output> = new Set<Output>(['csv', 'tsv', 'ndjson'])
const nothing = { text: '', form: 'text' } as const

export function fleetSink(as: FleetPresentation, io: Pick<Io, 'stdout'>): FleetSink {
  const { output } = as
  if (output === 'table') return { add: async () => {}, end: async () => nothing }
  if (!isReport(output)) return documentOf()
  return streams.has(output) ? streamOf(output, as, io) : reportOf(output, as)
}

function documentOf(): FleetSink {
  const results: string[][] = []
  return {
    add: async ({ at, outcomes, target, mode }) => {
      results[at] = await Promise.all(outcomes.map((outcome) => resultJson(outcome, { target, mode })))
    },
    end: async () => ({ text: resultsJson(results.flat()), form: 'json' }),
  }
}

function streamOf(output: ReportName, { header }: FleetPresentation, { stdout }: Pick<Io, 'stdout'>): FleetSink {
  const { load, form } = reports[output]
  let isFirst = true
  return {
    // Where nobody reads any more, the exit code is still that of all servers.
    add: async ({ entries }) => {
      const { default: report } = await load()
      const text = report.render(entries, { header: header && isFirst })
      isFirst = false
      if (stdout.write(text, form)) await accepting(stdout.stream)
    },
    end: async () => nothing,
  }
}

function reportOf(output: ReportName, as: FleetPresentation): FleetSink {
  const { load, form } = reports[output]
  const answers: (readonly Entry[])[] = []
  return {
    add: async ({ at, entries }) => {
      answers[at] = entries
    },
    end: async () => {
      const { default: report } = await load()
      const all = answers.flat()
      return { text: report.render(all, as), form, exitCode: report.exitCode?.(all, as) }
    },
  }
}
