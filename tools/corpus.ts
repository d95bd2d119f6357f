/**
 * Writes dist/faults.md, a page of each release: faults planted on real servers, what svc says of each, and what other
 * programs say.
 *
 *     npm run corpus
 *
 * It needs the packages that `.ci/run` installs. Rows that do not hold are in the page as well, and end it with exit 1.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeKinds } from '../src/core/checks/plan/index.ts'
import type { RowRecord } from '../test/corpus/corpus.ts'
import type { InstallRecord } from '../test/corpus/installs.ts'
import { type FirstRun, installsFolder } from '../test/corpus/row.ts'

const page = new URL('../dist/faults.md', import.meta.url)
const folder = mkdtempSync(join(tmpdir(), 'svc-corpus-'))

const started = Date.now()
const { status } = spawnSync('npx', ['vitest', 'run', 'test/corpus'], {
  stdio: 'inherit',
  env: { ...process.env, SVC_CORPUS_OUT: folder },
})
const minutes = Math.ceil((Date.now() - started) / 60_000)
const recordsIn = <T>(path: string): readonly T[] =>
  readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort()
    .map((name) => JSON.parse(readFileSync(join(path, name), 'utf8')) as T)
const rows = recordsIn<readonly RowRecord[]>(folder).flat()
const installs = recordsIn<InstallRecord>(join(folder, installsFolder))
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

const kinds = await describeKinds()
const checks = kinds.flatMap(({ name, checks: all }) => all.map((check) => `${name} ${check.name}`))
const hits = new Set(rows.flatMap((row) => row.hits))
/** A declared name may have parts in angle brackets, which stand for any text. */
const patternOf = (name: string): RegExp => {
  const parts = name.split(/<[^>]*>/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.+')}$`)
}
const isHit = (name: string): boolean => {
  const pattern = patternOf(name)
  return [...hits].some((hit) => pattern.test(hit))
}
const unhit = checks.filter((check) => !isHit(check))

const simulated = ({ server }: RowRecord): boolean => server.includes('simulated')
const blind = rows.filter((row) => row.blind !== undefined)
/** How the first runs of the blind rows ended, in the order of the page. */
const firstRuns: readonly (readonly [FirstRun, string])[] = [
  ['held', 'the row held'],
  ['false green', 'svc missed the fault, or reported it too mildly'],
  ['false red', 'svc reported a fault that was not there, or too severely'],
  ['wrong cause', 'svc reported the fault with a wrong or a misleading cause'],
  ['wrong expectation', 'the row was mistaken, and was corrected'],
]
/** Once each, whatever the number of modes. */
const invisible = [
  ...new Map(rows.flatMap((row) => (row.invisible ? [[`${row.server} ${row.fault}`, row]] : []))).values(),
]
const holds = ({ verdict }: RowRecord): boolean => verdict.problems.length === 0

/** The entry of the page under a check that needs a setting. */
type Blind = { readonly check: string; readonly settings: readonly string[]; readonly faults: readonly string[] }
const declared = kinds.flatMap(({ name, checks: all }) => all.map((check) => ({ kind: name, check })))
const matches = (name: string, result: string): boolean => patternOf(name).test(result)
/** The checks that run only with a setting in svc.yaml, and the faults of the rows that only they report. */
const needSettings: readonly Blind[] = declared.flatMap(({ kind, check: { name, when } }) => {
  if (when === undefined) return []
  const faults = rows
    .filter((row) => isPlanted(row) && row.kind === kind && row.check !== undefined && matches(name, row.check))
    .map(({ server, fault }) => `${fault} (${server})`)
  return [{ check: `${kind} ${name}`, settings: when, faults }]
})

const installed = installs.filter(({ missing }) => missing === undefined)
const installRow = ({ server, kind, account, missing, results, complaints }: InstallRecord): string => {
  const figures = (['Basic', 'Standard', 'Advanced'] as const).map((mode) => results[mode] ?? 0).join(', ')
  const outcome = missing === undefined ? complaints.map(cell).join('<br>') || 'none' : `skipped: ${cell(missing)}`
  return `| ${cell(server)} | ${kind} | ${cell(account)} | ${figures} | ${outcome} |`
}

const servers = [...new Set(rows.map(({ server }) => server))]
const section = (server: string): string => {
  const own = rows.filter((row) => row.server === server)
  const lines = own.map((row) => {
    const client = row.client === undefined ? [] : [`a plain client: ${cell(row.client)}`]
    const programs = row.peers.map(
      ({ program, state, line }) => `${program}: ${state}${line === '' ? '' : ` (${cell(line).slice(0, 160)})`}`,
    )
    const peers = [...client, ...programs].join('<br>')
    const before = row.before === undefined ? '' : cell(row.before)
    const mark =
      row.verdict.problems.length === 0 ? '' : `**does not hold**: ${cell(row.verdict.problems.join('; '))}<br>`
    const mode = row.mode === 'Advanced' ? '' : `, in ${row.mode}`
    const fault =
      row.blind === undefined
        ? `${cell(row.fault)}${mode}`
        : `${cell(row.fault)}${mode} (blind${row.blind === 'held' ? '' : `: ${row.blind}`})`
    return `| ${fault} | ${cell(row.expected)} | ${mark}${row.verdict.state}: ${cell(row.first)} | ${before} | ${peers} |`
  })
  return `### ${server}\n\n| fault | expected | svc says | version 0.1 said | other programs |\n|---|---|---|---|---|\n${lines.join('\n')}\n`
}

mkdirSync(new URL('.', page), { recursive: true })
writeFileSync(
  page,
  `# Faults on real servers

Each row plants one fault on a real server, runs one monitor on it, and compares the result with what an operator must
read: the state, the fault class, and the cause in the first line. The rows named *healthy* run against the server as it
should be. \`npm run corpus\` runs all of them and writes this page. The last run took ${minutes} minutes on 2 cores.

| | |
|---|---|
| rows | ${rows.length}, in ${servers.length} groups of servers |
| false green: a planted fault that is not reported, or reported too mildly | ${count((row) => isPlanted(row) && row.verdict.falseGreen)} of ${planted} |
| false red: a healthy server that is not reported as healthy, or a fault reported too severely | ${count((row) => row.verdict.falseRed)} of ${rows.length} |
| right cause in the first line | ${share(
    count((row) => isPlanted(row) && row.verdict.rightCause),
    planted,
  )} of ${planted} |
| blind rows that hold now | ${blind.filter(holds).length} of ${blind.length} |
| blind rows that held in their first run | ${blind.filter((row) => row.blind === 'held').length} of ${blind.length} |
| checks that at least one row hits | ${checks.length - unhit.length} of ${checks.length} |
| rows on simulated servers, which are named so; all others run on real ones | ${count(simulated)} |

In every run, each check that was hit is negated afterwards: its result says the opposite, and at least one row must
notice. ${healthy} rows expect a healthy server.

## Blind rows

Who writes a check tests what they had in mind. The expectation of a *blind* row was therefore written before its first run,
by somebody who had not read the sources of the kind, from the manual of the server and from its operation. Blind rows
are marked below. Their first runs ended as follows, before svc or the row was changed:

| first run | rows |
|---|---|
${firstRuns.map(([run, meaning]) => `| ${meaning} | ${blind.filter((row) => row.blind === run).length} |`).join('\n')}

${blind
  .filter((row) => row.blind !== 'held' && row.blind !== 'wrong expectation')
  .map((row) => `- ${row.blind}: ${cell(row.fault)} (${row.server})`)
  .join('\n')}

## What svc cannot see

These faults have rows, which expect a healthy report in every mode. The reply to the plain client shows the fault.

| fault | why svc cannot see it | a plain client |
|---|---|---|
${invisible.map((row) => `| ${cell(row.fault)} (${row.server}) | ${cell(row.invisible ?? '')} | ${cell(row.client ?? '')} |`).join('\n')}

## What svc does not see without a setting

These checks run only if svc.yaml has one of their settings. Without it, svc reports a server with their faults as healthy,
unless another check notices. The faults are those of the rows below.

| check | setting | faults of the rows |
|---|---|---|
${needSettings
  .map(({ check, settings, faults }) => {
    const names = settings.map((name) => `\`${name}\``).join(', ')
    return `| ${cell(check)} | ${names} | ${cell([...new Set(faults)].slice(0, 3).join('; ')) || '–'} |`
  })
  .join('\n')}

## Default installs

Each server as its package installs it, apart from its port and a certificate that svc trusts, with the account of least
privilege that [the reference](reference/monitors.md) documents, and without the host block. \`restarted\` is off, because every
server has just been started. ${installed.length} servers were checked in all three modes, ${installed.filter(({ complaints }) => complaints.length > 0).length} of them with a
warning or a failure; ${installs.length - installed.length} could not be had and were skipped.

| server | kind | account | results in Basic, Standard, Advanced | warnings |
|---|---|---|---|---|
${installs.map(installRow).join('\n')}

## Other programs

The same faults, as other programs report them. They were given the options that their manuals name for the purpose. A
program that is not built to look for a fault reports OK; that is a limit of its scope and not a defect.

| program | faults | reported as OK | healthy servers | not reported as OK |
|---|---|---|---|---|
${peerNames.map(peerRow).join('\n')}

## Rows

${servers.map(section).join('\n')}
## Checks that no row hits

No row can be had here for them with a real server, or none was written yet. Their tests are in \`test/checks/kinds\`.

${unhit.map((check) => `\`${check}\``).join(', ') || 'None.'}
`,
)
process.stdout.write(`${rows.length} rows, ${servers.length} servers, ${unhit.length} checks without a row\n`)
process.exitCode = status === 0 ? 0 : 1
