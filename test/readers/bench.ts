/**
 * Writes docs/readers.md: what the readers of svc's formats make of the outputs of 40 runs.
 *
 *     npm run readers
 *
 * It fetches the readers from npm, a package index for Python, Maven Central, the Go module proxy and Debian, and needs
 * Python, Go, Java and promtool. A reader that cannot be had is a row `not run here`. A difference that is no limit of the reader
 * ends it with exit 1.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Comparison, compare } from './compare.ts'
import {
  built,
  classPath,
  goProgram,
  icinga,
  missingOf,
  nagiosCore,
  nodeExporter,
  type Reader,
  readers,
} from './readers.ts'
import { runs } from './runs.ts'

const root = new URL('../../', import.meta.url).pathname
const page = join(root, 'docs/readers.md')
const sources = join(import.meta.dirname, 'read')

/** The modules of `main.go`, and node_exporter. */
const modules = [
  'github.com/VictoriaMetrics/VictoriaMetrics@v1.136.0',
  'github.com/influxdata/telegraf@v1.37.2',
  'github.com/prometheus/client_golang@v1.25.0',
  'github.com/prometheus/node_exporter@v1.12.1',
  'github.com/prometheus/prometheus@v0.316.0',
]

/** Runs a program and says if it fails: a reader that is missing is a row of the table. */
function attempt(program: string, args: readonly string[], cwd = root, env: NodeJS.ProcessEnv = {}): void {
  const { status, error } = spawnSync(program, args, {
    ...{ cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'inherit'], timeout: 900_000 },
  })
  if (status !== 0) process.stderr.write(`${program} ${args.join(' ')}: ${error?.message ?? `exit ${status}`}\n`)
}

/** The monitoring systems of Debian 12, with those of their libraries that others rarely have. */
const debian: readonly (readonly [folder: string, packages: readonly string[]])[] = [
  [
    icinga,
    ['icinga2-bin', 'icinga2-common'].concat(
      ['context', 'coroutine', 'filesystem', 'iostreams', 'program-options', 'regex', 'system', 'thread'].map(
        (name) => `libboost-${name}1.74.0`,
      ),
    ),
  ],
  [nagiosCore, ['nagios4-core']],
]

/** Unpacks packages without installing them. */
function unpack(folder: string, packages: readonly string[]): void {
  const archives = mkdtempSync(join(tmpdir(), 'svc-readers-debian-'))
  attempt('apt-get', ['download', '-qq', '-o', 'APT::Sandbox::User=root', ...packages], archives)
  for (const name of readdirSync(archives)) attempt('dpkg-deb', ['-x', join(archives, name), folder])
  rmSync(archives, { recursive: true, force: true })
}

function fetchReaders(): void {
  attempt('.ci/readers', [])
  attempt('.ci/clients', [])
  rmSync(built, { recursive: true, force: true })
  mkdirSync(built, { recursive: true })
  for (const [folder, packages] of debian) unpack(folder, packages)
  attempt('javac', ['-cp', classPath, '-d', built, join(sources, 'Reader.java')])
  const folder = mkdtempSync(join(tmpdir(), 'svc-readers-go-'))
  copyFileSync(join(sources, 'main.go'), join(folder, 'main.go'))
  const go = (...args: readonly string[]): void => attempt('go', args, folder, { GOFLAGS: '-mod=mod' })
  go('mod', 'init', 'readers')
  go('get', ...modules)
  go('build', '-o', goProgram, '.')
  go('build', '-o', nodeExporter, 'github.com/prometheus/node_exporter')
  rmSync(folder, { recursive: true, force: true })
}

/** Readers that no package of a reachable registry contains. */
const elsewhere: readonly (readonly [name: string, format: string])[] = [
  ['PRTG', 'prtg'],
  ['GitLab, Jenkins, Azure DevOps', 'junit'],
  ['GitHub Actions', 'github'],
]

const formatNames: Readonly<Record<string, string>> = { interface: 'JSON of `/healthcheck`' }
const row = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |`
const count = Object.keys(runs).length

function rowOf({ name, format, says }: Reader, { version, figures, limits }: Comparison): string {
  const equal = says?.length === 0 ? `${count} without a finding` : `${count} equal`
  const texts = limits.map(
    ({ limit, runs: many }) => `${limit.text} (${many} ${many === 1 ? 'run' : 'runs'}, ${limit.day})`,
  )
  return row(
    name,
    version,
    formatNames[format] ?? `\`-o ${format}\``,
    equal,
    `${figures || '–'}`,
    texts.join('; ') || '–',
  )
}

fetchReaders()
const rows: string[] = []
let isSound = true
for (const reader of readers) {
  const missing = missingOf(reader)
  if (missing !== undefined) {
    rows.push(
      row(reader.name, '–', formatNames[reader.format] ?? `\`-o ${reader.format}\``, '**not run here**', '–', '–'),
    )
    continue
  }
  const comparison = await compare(reader)
  for (const difference of comparison.differences) process.stderr.write(`${reader.name}: ${difference}\n`)
  const idle = comparison.limits.filter(({ runs: many }) => many === 0)
  for (const { limit } of idle) process.stderr.write(`${reader.name}: no run shows that it ${limit.text}\n`)
  if (comparison.differences.length > 0 || idle.length > 0) isSound = false
  rows.push(rowOf(reader, comparison))
}
rows.push(...elsewhere.map(([name, format]) => row(name, '–', `\`-o ${format}\``, '**not run here**', '–', '–')))
if (!isSound) process.exit(1)

writeFileSync(
  page,
  `# What readers make of svc's output

\`svc health -o …\` writes for programs of others. \`npm run readers\` gives them the outputs of ${count} runs
(\`test/readers/runs.ts\`): healthy, with a warning, failing, not run and not configured; monitors whose names have
blanks, quotes, \`|\`, \`=\`, \`%\`, \`;\`, commas and 200 characters; negative, tiny and huge figures. It compares what each
reader counts, shows as failed and reads as a figure with the document of the run (\`-o json\`), and writes this page.

*equal* means: the number of tests, of failures and of those without a verdict, the names of all that is not healthy,
and the value of every figure. *Limits* are what the reader itself does otherwise; the numbers in parentheses say in how
many of the runs it shows, and when that was tried.

| reader | version | format | runs | figures | limits |
|---|---|---|---|---|---|
${rows.join('\n')}

## How names and figures are written

- Each output is of single lines: several blanks, tabs and line ends in a name are one blank.
- \`-o junit\`: the class name is the type, the mode and the monitor, whose dots are \`_\`, since a dot begins a package. A
  test case is a check and its item.
- \`-o nagios\`: a label has \`¦\`, \`’\` and \`-\` in place of \`|\`, \`'\` and \`=\`, which would end it. A label that exists
  already gets a number. Ranges are \`~:10\` where a figure or its limit may be negative. Beyond 4,000 bytes healthy
  figures are left out, and \`perfdata_left_out\` counts them.
- \`-o prometheus\`: seconds, bytes and ratios, also where the check measures milliseconds, days or percent.
- Figures have 15 significant digits, integers all digits that they have. Those beyond 1e100 are left out.
`,
)
