import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual, promisify } from 'node:util'
import { type Entry, loadPrometheus, reports } from '../../src/core/checks/reports/index.ts'
import { HealthCheckResponse } from '../../src/core/protocol/index.ts'
import { encodeJson } from '../../src/core/protocol/wire/index.ts'
import { expectations, type Format, rounded, type Summary } from './expected.ts'
import type { Limit, Reader } from './readers.ts'
import { runs } from './runs.ts'

/** A run has the same number in every folder: some readers take a name for a pattern. */
const numbers = Object.keys(runs).map((run, at) => ({ run, number: String(at).padStart(2, '0') }))

/** The files of a run for a reader: the end of their names, and their text. */
type Outputs = (entries: readonly Entry[]) => Promise<readonly (readonly [end: string, text: string])[]>

const ofReport =
  (name: keyof typeof reports, end: string): Outputs =>
  async (entries) => [[end, (await reports[name].load()).default.render(entries)]]

const outputs: Readonly<Record<Format, Outputs>> = {
  junit: ofReport('junit', '.xml'),
  nagios: ofReport('nagios', ''),
  prometheus: ofReport('prometheus', ''),
  // As a server writes it that runs the monitors of one type.
  interface: async ([entry]) => [['', entry?.Response ? encodeJson(HealthCheckResponse, entry.Response) : '']],
}
/** One file with the machine, and the others without it (docs/metrics.md). */
const severalFiles: Outputs = async (entries) => {
  const { default: prometheus } = await loadPrometheus()
  return entries.map((entry, at) => [`@${at}.prom`, prometheus.render([entry], { withoutMachine: at > 0 })] as const)
}

export type Comparison = {
  readonly version: string
  /** The figures of all runs that it was asked for. */
  readonly figures: number
  /** Differences from svc that no limit explains, a line each. */
  readonly differences: readonly string[]
  /** In how many runs each limit shows. */
  readonly limits: readonly { readonly limit: Limit; readonly runs: number }[]
}

type Answer = {
  readonly version: string
  readonly runs: Readonly<Record<string, Summary & { readonly error?: string }>>
}

/** Compares the summaries of a reader with those of the run documents. */
export async function compare(reader: Reader): Promise<Comparison> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-readers-'))
  try {
    const { version, runs: answers } = await answerOf(reader, folder)
    const says = reader.says ?? (['tests', 'failed', 'skipped', 'alerts', 'figures'] as const)
    const limits = (reader.limits ?? []).map((limit) => ({ limit, runs: 0 }))
    let figures = 0
    const differences = numbers.flatMap(({ run, number }) => {
      const summary = answers[number]
      if (summary === undefined) return [`${run}: not read`]
      let expected: Summary = expectations[reader.format](runs[run] ?? [])
      if (says.includes('line')) expected = { ...expected, line: lineOf(readFileSync(join(folder, number), 'utf8')) }
      for (const entry of limits) {
        const changed = entry.limit.change(expected, run)
        if (!isDeepStrictEqual(changed, expected)) entry.runs += 1
        expected = changed
      }
      if (summary.error !== undefined) return [`${run}: ${summary.error}`]
      expected = withoutLeftOut(expected, summary)
      if (says.includes('figures')) figures += Object.keys(expected.figures).length
      return says.flatMap((part) => {
        const [own, other] = [inOrder(expected[part]), inOrder(summary[part])]
        return isDeepStrictEqual(own, other)
          ? []
          : [`${run}: ${part}: ${differing(other, own)} instead of ${differing(own, other)}`]
      })
    })
    return { version, figures, differences, limits }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function answerOf({ format, files, command, name }: Reader, folder: string): Promise<Answer> {
  const write = files === 'several' ? severalFiles : outputs[format]
  mkdirSync(folder, { recursive: true })
  for (const { run, number } of numbers)
    for (const [end, text] of await write(runs[run] ?? [])) writeFileSync(join(folder, `${number}${end}`), text)
  const [program = '', ...args] = command
  const { stdout } = await promisify(execFile)(program, [...args, folder], { maxBuffer: 1e8, timeout: 300_000 })
  // Some readers say something of their own before.
  const answer = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Answer
  if (answer.version === undefined) throw new Error(`${name} does not say its version`)
  return {
    ...answer,
    runs: Object.fromEntries(Object.entries(answer.runs).map(([file, own]) => [file.slice(0, 2), own])),
  }
}

/** `-o nagios` counts the healthy figures without a place (docs/serve.md): then as many are absent, and none that alerts. */
function withoutLeftOut(expected: Summary, { figures }: Summary): Summary {
  const leftOut = figures[leftOutName]
  if (leftOut === undefined) return expected
  const names = Object.keys(expected.figures)
  const absent = new Set(names.filter((name) => !Object.hasOwn(figures, name)))
  const isRight = absent.size === leftOut && !expected.alerts.some((name) => absent.has(name))
  const there = Object.entries(expected.figures).filter(([name]) => !absent.has(name))
  return isRight ? { ...expected, figures: { ...Object.fromEntries(there), [leftOutName]: leftOut } } : expected
}
const leftOutName = 'perfdata_left_out'

/** The status line of a plugin, without its figures. */
const lineOf = (text: string): string => text.split(/ \| |\n/, 1)[0] ?? ''

/** Numbers as svc writes them, and names in one order. */
const inOrder = (part: Summary[keyof Summary]): unknown =>
  part === null || typeof part !== 'object'
    ? part
    : Array.isArray(part)
      ? part.toSorted()
      : Object.entries(part)
          .map(([name, value]) => [name, rounded(value)])
          .toSorted()

/** Of two lists, what the first has beyond the second. */
const differing = (one: unknown, other: unknown): string => {
  if (!Array.isArray(one) || !Array.isArray(other)) return JSON.stringify(one)
  const texts = new Set(other.map((item) => JSON.stringify(item)))
  return JSON.stringify(one.filter((item) => !texts.has(JSON.stringify(item)))).slice(0, 200)
}
