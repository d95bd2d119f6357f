import fc from 'fast-check'
import { XMLParser } from 'fast-xml-parser'
import { describe, expect, test } from 'vitest'
import { type HealthOutcome, outputs, showHealth } from '../../src/cli/health/health.ts'
import type { HealthCheckResponse } from '../../src/core/protocol/index.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import { commandParts, commandsIn, harmless, runners } from '../support/hostile/runners.ts'
import { runsOf } from '../support/suite/runs.ts'

/** A server that says a text at every place where it may say anything. */
function saying(text: string): HealthOutcome {
  const response: HealthCheckResponse = {
    ServerState: { ServerName: text, TotalRamInMb: 100, AvailableRamInMb: 50, UsedCpuPercent: 10 },
    Status: 'Failure',
    StatusMessage: text,
    CorrelationId: text,
    FailedMonitorCount: 1,
    MonitorSummaries: [
      {
        MonitorName: text,
        Status: 'Failure',
        Results: [{ MonitoringName: text, Status: 'Failure', StatusMessage: text, ErrorMessages: [text] }],
        ErrorMessages: [text],
      },
    ],
  }
  return { type: 'App', exitCode: 3, ageSeconds: 0, response, run: undefined }
}

const formats = [undefined, ...outputs]
type Format = (typeof formats)[number]
type Place = { readonly columns?: number; readonly file?: true }
const places: Readonly<Record<string, Place>> = { 'a terminal': { columns: 80 }, 'a pipe': {}, 'a file': { file: true } }

/** What `svc health` prints in a format, and what it would print without regard to runners. */
async function printed(text: string, output: Format, place: Place, env: Readonly<Record<string, string>>) {
  const { io, stdout, stderr } = capturedIo({ env, ...place })
  const as = { output, target: text, atServer: true, mode: 'Standard', detail: 'usual', header: true } as const
  const shown = await showHealth([saying(text)], { ...as, timeoutState: undefined }, io)
  io.stdout.write(shown.text, shown.form)
  if (shown.log !== undefined) io.stderr.write(shown.log)
  return { plain: shown.text, stdout: stdout(), stderr: stderr() }
}

/** Records have no escape, and no runner reads a file as a log. */
const isExact = (format: Format, { file }: Place): boolean =>
  file === true && [undefined, 'csv', 'tsv', 'prometheus'].includes(format)

/** The commands of the format github, which svc writes on purpose: one for the verdict and one for the result. */
const own = /^GitHub Actions: ::(?:error|warning|notice) title=[^:]*::/

const texts = fc
  .array(fc.constantFrom(...commandParts), { minLength: 1, maxLength: 12 })
  .map((parts) => parts.join(''))
const columns = fc.integer({ min: 20, max: 130 })

const matrix = formats.flatMap((format) =>
  Object.entries(places).flatMap(([place, where]) =>
    Object.entries(runners).map(([runner, { env }]) => ({ format, place, where, runner, env })),
  ),
)

describe('K6 text of a server commands no CI runner', () => {
  test.each(matrix)('in --output $format on $place, $runner', async ({ format, where, env }) => {
    const property = fc.asyncProperty(texts, columns, async (text, width) => {
      const place = where.columns === undefined ? where : { columns: width }
      const { plain, stdout, stderr } = await printed(text, format, place, env)
      expect(commandsIn(stderr)).toEqual([])
      if (isExact(format, place)) return expect(stdout).toBe(plain)
      const found = commandsIn(stdout)
      expect(format === 'github' ? found.filter((each) => !own.test(each)) : found).toEqual([])
      if (format === 'github') expect(commandsIn((await printed('word', format, place, env)).stdout)).toHaveLength(found.length)
    })
    await fc.assert(property, { numRuns: runsOf(80) })
  })

  test.each(formats)('the rules find the commands that %s would print', async (format) => {
    const { plain } = await printed(`::debug::hello ${harmless}`, format, {}, {})
    // PRTG's own rule replaces each #, and no line of these begins with text of a server.
    const hidden = format === 'prtg' || format === 'github'
    expect(commandsIn(plain).length > 0 || hidden).toBe(true)
  })
})

const readXml = (xml: string): unknown =>
  new XMLParser({ ignoreAttributes: false, trimValues: false, processEntities: true, htmlEntities: true }).parse(xml)
/** How the documents of a format are read back. */
const readers: Readonly<Record<string, (text: string) => unknown>> = {
  json: (text) => JSON.parse(text),
  prtg: (text) => JSON.parse(text),
  ndjson: (text) => text.trimEnd().split('\n').map((line) => JSON.parse(line)),
  junit: readXml,
}

describe('K17 documents keep the exact text', () => {
  test.each(matrix.filter(({ format = '' }) => Object.hasOwn(readers, format)))(
    '$format on $place, $runner',
    async ({ format, where, env }) => {
      const read = readers[format ?? ''] as (text: string) => unknown
      const property = fc.asyncProperty(texts, async (text) => {
        const { plain, stdout } = await printed(text, format, where, env)
        expect(read(stdout)).toEqual(read(plain))
        if (format === 'json') expect(read(stdout)).toMatchObject({ StatusMessage: text })
      })
      await fc.assert(property, { numRuns: runsOf(80) })
    },
  )
})
