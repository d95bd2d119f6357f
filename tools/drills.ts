/**
 * Writes docs/drills.md: what an operator meets at 3 am, from `svc health` against real servers.
 *
 *     npm run drills
 *
 * It needs the packages that `.ci/run` installs. A drill that does not hold ends it with exit 1, without a page.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DrillRecord } from '../test/drills/record.ts'

const page = new URL('../docs/drills.md', import.meta.url)
const folder = mkdtempSync(join(tmpdir(), 'svc-drills-'))
const { status } = spawnSync('npx', ['vitest', 'run', 'test/drills'], {
  stdio: 'inherit',
  env: { ...process.env, SVC_DRILLS_OUT: folder, SVC_TEST_REQUIRE: 'all' },
})
if (status !== 0) process.exit(1)
const records = readdirSync(folder)
  .sort()
  .flatMap((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as readonly DrillRecord[])
rmSync(folder, { recursive: true, force: true })

/** Ports, folders, dates and durations differ from run to run. */
const stable = (text: string): string =>
  text
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replaceAll(/(?<=sport = :)\d+/g, 'PORT')
    .replaceAll(/ --config \/\S+/g, '')
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d UTC/g, 'DATE')
    .replaceAll(/SHA256:[\w+/]+/g, 'SHA256:…')
    .replaceAll(/svc\d+@localhost \([^)]*\)/g, 'NODE')
    .replaceAll(/\b\d+(?:\.\d+)?(?= ?(?:ms|s|µs)\b)/g, 'N')
const cell = (text: string): string => stable(text).replaceAll('|', '\\|').replaceAll('<', '&lt;')

const faults = [...new Set(records.map(({ fault }) => fault))]
const slowest = (fault: string): number =>
  Math.max(...records.filter((record) => record.fault === fault).map(({ seconds }) => seconds))
const section = (fault: string): string => {
  const rows = records
    .filter((record) => record.fault === fault)
    .map(({ server, kind, planted, seconds, exit, sentence, step }) => {
      const what = planted === '' ? '' : `: ${planted}`
      return `| ${server} (\`${kind}\`)${what} | ${seconds.toFixed(0)} s | ${exit} | ${cell(sentence)} | ${cell(step)} |`
    })
  return `## ${fault[0]?.toUpperCase()}${fault.slice(1)}\n\n| server | after | exit code | svc says | next step |\n|---|---|---|---|---|\n${rows.join('\n')}\n`
}

writeFileSync(
  page,
  `<!-- Written by tools/drills.ts; changes here are lost. -->
# Drills for 3 am

These are tests of svc. To test whether alarms arrive, see [notifications.md](notifications.md#drills); to test what reads svc,
see [rehearsals.md](rehearsals.md).

Each row plants a fault on a real server and runs \`svc health\`, as an operator does who has been called at night. The
tests in \`test/drills\` compare the sentence with the true cause and the time with the deadline of a Standard run (10 s),
and take the next step: they run its command while the fault lasts, and the command must show the cause. After a wrong
password, they correct the secret first, and the monitor must then be healthy. \`npm run drills\` runs all of them and
writes this page.

| fault | servers | slowest answer, with the start of svc |
|---|---|---|
${faults
  .map(
    (fault) =>
      `| ${fault} | ${records.filter((record) => record.fault === fault).length} | ${slowest(fault).toFixed(0)} s |`,
  )
  .join('\n')}

A step names a command of Linux that runs on the host of the server. After a refused sign-in, svc pauses the sign-ins of
the monitor, so that the account is not locked; \`svc monitors test\` signs in at once.

${faults.map(section).join('\n')}`,
)
process.stdout.write(`${records.length} drills\n`)
