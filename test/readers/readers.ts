import { existsSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { delimiter, join } from 'node:path'
import { type Format, rounded, type Summary } from './expected.ts'

const repository = join(import.meta.dirname, '../..')
const cache = join(repository, 'node_modules/.cache')
const scripts = join(import.meta.dirname, 'read')
const packages = join(cache, 'readers/npm')
const python = join(cache, 'readers/python/bin/python')
const jars = join(cache, 'java-clients')

/** Where `npm run readers` builds the readers in Go and in Java, a folder of its own for each account. */
export const built = join(tmpdir(), `svc-readers-built-${userInfo().uid}`)
export const goProgram = join(built, 'readers')
export const nodeExporter = join(built, 'node_exporter')
/** Where it unpacks the packages of Debian. */
export const icinga = join(built, 'icinga2')
export const nagiosCore = join(built, 'nagios-core')
export const classPath = [built, 'client-1.0.49.jar', 'gson-2.8.6.jar', 'kotlin-stdlib-2.1.21.jar']
  .map((name) => (name === built ? name : join(jars, name)))
  .join(delimiter)

/** A difference that is the reader's own: how it changes what it should have seen. */
export type Limit = {
  readonly text: string
  /** The day on which it was seen, with the version in the table. */
  readonly day: string
  readonly change: (summary: Summary, run: string) => Summary
}

export type Reader = {
  readonly name: string
  readonly format: Format
  readonly from: 'npm' | 'Python' | 'Go' | 'Java' | 'Debian'
  /** The program and its arguments; the folder with the outputs follows. */
  readonly command: readonly string[]
  /** A file of the program. */
  readonly needs: string
  /** The parts that it says of a run. Absent: all. */
  readonly says?: readonly (keyof Summary)[]
  /** A run is several files, as node_exporter collects them. */
  readonly files?: 'several'
  readonly limits?: readonly Limit[]
}

const node = (name: string, format: Format, script: string, more: Partial<Reader> = {}): Reader => ({
  ...{ name, format, from: 'npm', command: [process.execPath, join(scripts, script), packages], needs: packages },
  ...more,
})
const pip = (name: string, format: Format, script: string, more: Partial<Reader> = {}): Reader => ({
  ...{ name, format, from: 'Python', command: [python, join(scripts, script)], needs: python },
  ...more,
})
const go = (name: string, format: Format, argument: string, more: Partial<Reader> = {}): Reader => ({
  ...{ name, format, from: 'Go', command: [goProgram, argument], needs: goProgram },
  ...more,
})

/** A monitoring system that runs plugins. It shows a state and a line, and leaves the ranges of figures to the plugin. */
const plugins = (name: string, script: string, unpacked: string, more: Partial<Reader> = {}): Reader => ({
  ...{ name, format: 'nagios', from: 'Debian', needs: unpacked },
  ...{ command: [process.execPath, join(scripts, script), unpacked] },
  ...{ says: ['state', 'line', 'tests', 'failed', 'skipped', 'figures'] },
  ...more,
})

const day = '2026-11-30'
const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** A duration in whole milliseconds. */
const inMilliseconds = (summary: Summary): Summary => {
  const { seconds, ...others } = summary.figures
  if (seconds === undefined) return summary
  return { ...summary, figures: { ...others, seconds: Math.trunc(rounded(seconds * 1_000)) / 1_000 } }
}

export const readers: readonly Reader[] = [
  node('Allure', 'junit', 'allure.mjs', {
    limits: [
      {
        ...{ text: 'shows entities in names as they stand in the file: `&lt;` for `<`', day },
        change: (summary) => ({
          ...summary,
          alerts: summary.alerts.map((name) => name.replace(/[&<>"]/g, (one) => entities[one] ?? '')),
        }),
      },
    ],
  }),
  node('xunit-viewer', 'junit', 'xunit-viewer.mjs'),
  node('junit-to-ctrf', 'junit', 'ctrf.mjs', {
    limits: [
      {
        ...{ text: 'leaves out the class name; the monitor is in the name of the suite', day },
        change: (summary) => ({ ...summary, alerts: summary.alerts.map((name) => name.split(' › ').at(-1) ?? '') }),
      },
    ],
  }),
  pip('junitparser', 'junit', 'junit_parser.py'),
  pip('junit2html', 'junit', 'junit_html.py'),
  pip('nagiosplugin', 'nagios', 'nagios_plugin.py'),
  go('Telegraf, parser nagios', 'nagios', 'telegraf-nagios', {
    limits: [
      {
        ...{
          text: 'reads `~:10` as 5e-324 to 10: a healthy value of 0 or less is below `warning_lt` and `critical_lt`',
          day,
        },
        change: (summary, run) => {
          const below = Object.entries(summary.figures).filter(([, value]) => run === 'negative value' && value < 0)
          return { ...summary, alerts: [...summary.alerts, ...below.map(([name]) => name)] }
        },
      },
    ],
  }),
  plugins('Icinga 2', 'icinga.mjs', icinga),
  plugins('Nagios Core', 'nagios-core.mjs', nagiosCore, {
    limits: [
      {
        ...{ text: 'shows `;` in the status line as `:`', day },
        change: (summary) => ({ ...summary, line: summary.line?.replaceAll(';', ':') ?? '' }),
      },
    ],
  }),
  pip('prometheus_client', 'prometheus', 'prometheus_text.py'),
  go('Telegraf, parser prometheus', 'prometheus', 'telegraf-prometheus'),
  go('VictoriaMetrics, its parser', 'prometheus', 'victoriametrics'),
  go('Prometheus, the parser of a scrape', 'prometheus', 'prometheus'),
  go('client_golang, the linter of promtool 3', 'prometheus', 'promlint'),
  {
    ...{ name: 'promtool', format: 'prometheus', from: 'Debian', needs: '/usr/bin/promtool', says: [] },
    command: [process.execPath, join(scripts, 'promtool.mjs')],
  },
  {
    ...{ name: 'node_exporter, textfile collector', format: 'prometheus', from: 'Go', needs: nodeExporter },
    ...{ files: 'several', command: [process.execPath, join(scripts, 'node-exporter.mjs'), nodeExporter, goProgram] },
  },
  node('@servicestack/client', 'interface', 'servicestack-client.mjs'),
  pip('servicestack', 'interface', 'servicestack_client.py', {
    limits: [{ text: 'cuts durations to whole milliseconds', day, change: inMilliseconds }],
  }),
  {
    ...{ name: 'net.servicestack:client', format: 'interface', from: 'Java', needs: join(built, 'Reader.class') },
    command: ['java', '-cp', classPath, 'Reader', '1.0.49'],
    limits: [{ text: 'has durations in whole milliseconds, by `TimeSpan.getMillis`', day, change: inMilliseconds }],
  },
]

/** Why a reader cannot run here; undefined if it can. */
export const missingOf = ({ name, from, needs }: Reader): string | undefined =>
  existsSync(needs)
    ? undefined
    : `${name} is not fetched: it comes from a package index for ${from}, by .ci/readers or npm run readers`
