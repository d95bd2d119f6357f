/**
 * Writes docs/faults.md: faults planted on real servers, what svc says of each, and what other programs say.
 *
 *     npm run corpus
 *
 * It needs the packages that `.ci/run` installs. Rows that do not hold are in the page as well, and end it with exit 1.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeKinds } from '../src/core/plan/index.ts'
import type { RowRecord } from '../test/corpus/corpus.ts'

const page = new URL('../docs/faults.md', import.meta.url)
const folder = mkdtempSync(join(tmpdir(), 'svc-corpus-'))

const started = Date.now()
const { status } = spawnSync('npx', ['vitest', 'run', 'test/corpus'], {
  stdio: 'inherit',
  env: { ...process.env, SVC_CORPUS_OUT: folder },
})
const minutes = Math.ceil((Date.now() - started) / 60_000)
const rows = readdirSync(folder)
  .sort()
  .flatMap((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as readonly RowRecord[])
rmSync(folder, { recursive: true, force: true })

const count = (test: (row: RowRecord) => boolean): number => rows.filter(test).length
const share = (part: number, whole: number): string => (whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`)
const isPlanted = (row: RowRecord): boolean => row.expected !== 'healthy'
const planted = count(isPlanted)
const healthy = rows.length - planted

/** Ports, folders and durations differ from run to run, and would make every new page a difference. */
const stable = (text: string): string =>
  text
    .replaceAll(/(127\.0\.0\.1|localhost|\[::1\]):\d+/g, '$1:PORT')
    .replaceAll(/\/tmp\/[\w.-]+/g, 'FOLDER')
    .replaceAll(/\b\d+(?:\.\d+)?(?= ?(?:ms|s|µs)\b)/g, 'N')
const cell = (text: string): string =>
  stable(text)
    .replaceAll(/[\r\n]+/g, ' ')
    .replaceAll('\\', '\\\\')
    .replaceAll('|', '\\|')
    .replaceAll('<', '&lt;')
    .slice(0, 400)

type Peer = RowRecord['peers'][number]
const peerNames = [...new Set(rows.flatMap(({ peers }) => peers.map(({ program }) => program)))].sort()
const answers = (program: string): readonly { readonly row: RowRecord; readonly peer: Peer }[] =>
  rows.flatMap((row) =>
    row.peers.filter((peer) => peer.program === program && peer.state !== 'missing').map((peer) => ({ row, peer })),
  )
const peerRow = (program: string): string => {
  const all = answers(program)
  const faults = all.filter(({ row }) => isPlanted(row))
  const green = faults.filter(({ peer }) => peer.state === 'OK').length
  const red = all.filter(({ row, peer }) => !isPlanted(row) && peer.state !== 'OK').length
  return `| ${program} | ${faults.length} | ${share(green, faults.length)} | ${all.length - faults.length} | ${share(red, all.length - faults.length)} |`
}

const checks = (await describeKinds()).flatMap(({ name, checks: all }) => all.map((check) => `${name} ${check.name}`))
const hits = new Set(rows.flatMap((row) => row.hits))
/** A declared name may have parts in angle brackets, which stand for any text. */
const isHit = (declared: string): boolean => {
  const parts = declared.split(/<[^>]*>/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const pattern = new RegExp(`^${parts.join('.+')}$`)
  return [...hits].some((hit) => pattern.test(hit))
}
const unhit = checks.filter((check) => !isHit(check))

const servers = [...new Set(rows.map(({ server }) => server))]
const section = (server: string): string => {
  const own = rows.filter((row) => row.server === server)
  const lines = own.map((row) => {
    const peers = row.peers
      .map(({ program, state, line }) => `${program}: ${state}${line === '' ? '' : ` (${cell(line).slice(0, 160)})`}`)
      .join('<br>')
    const before = row.before === undefined ? '' : cell(row.before)
    const mark =
      row.verdict.problems.length === 0 ? '' : `**does not hold**: ${cell(row.verdict.problems.join('; '))}<br>`
    return `| ${cell(row.fault)} | ${cell(row.expected)} | ${mark}${row.verdict.state}: ${cell(row.first)} | ${before} | ${peers} |`
  })
  return `### ${server}\n\n| fault | expected | svc says | version 0.1 said | other programs |\n|---|---|---|---|---|\n${lines.join('\n')}\n`
}

writeFileSync(
  page,
  `<!-- Written by tools/corpus.ts; changes here are lost. -->
# Faults on real servers

Each row plants one fault on a real server, runs one monitor on it, and compares the result with what an operator must
read: the state, the fault class, and the cause in the first line. The rows named *healthy* run against the server as it
should be. \`npm run corpus\` runs all of them and writes this page. The last run took ${minutes} minutes on 2 cores.

| | |
|---|---|
| rows | ${rows.length}, in ${servers.length} groups of real servers |
| false green: a planted fault that is not reported, or reported too mildly | ${count((row) => isPlanted(row) && row.verdict.falseGreen)} of ${planted} |
| false red: a healthy server that is not reported as healthy, or a fault reported too severely | ${count((row) => row.verdict.falseRed)} of ${rows.length} |
| right cause in the first line | ${share(
    count((row) => isPlanted(row) && row.verdict.rightCause),
    planted,
  )} of ${planted} |
| checks that at least one row hits | ${checks.length - unhit.length} of ${checks.length} |

In every run, each check that was hit is negated afterwards: its result says the opposite, and at least one row must
notice. ${healthy} rows expect a healthy server.

## Other programs

The same faults, as other programs report them. They were given the options that their manuals name for the purpose. A
program that is not built to look for a fault reports OK; that is a limit of its scope and not a defect.

| program | faults | reported as OK | healthy servers | not reported as OK |
|---|---|---|---|---|
${peerNames.map(peerRow).join('\n')}

## Rows

${servers.map(section).join('\n')}
## Checks that no row hits

Their tests are in \`test/kinds\`.

${unhit.map((check) => `\`${check}\``).join(', ') || 'None.'}
`,
)
process.stdout.write(`${rows.length} rows, ${servers.length} servers, ${unhit.length} checks without a row\n`)
process.exitCode = status === 0 ? 0 : 1
