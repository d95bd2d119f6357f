import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import fc from 'fast-check'
import { XMLParser } from 'fast-xml-parser'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type HealthOutcome, outputs, showHealth } from '../../src/cli/health/health.ts'
import { openServeLog } from '../../src/cli/serve/serve-log.ts'
import type { HealthCheckResponse } from '../../src/core/protocol/index.ts'
import { commands } from '../../src/registry.ts'
import { commandParts, commandsIn, harmless, runners } from '../support/hostile/runners.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import { entry, svcHome } from '../support/program/svc.ts'
import { runsOf } from '../support/suite/runs.ts'
import { isQuick } from '../support/suite/tier.ts'
import { here, writeFiles } from './document-lines.ts'

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

const formats = outputs
type Format = (typeof formats)[number]
type Place = { readonly columns?: number; readonly file?: true }
const places: Readonly<Record<string, Place>> = {
  'a terminal': { columns: 80 },
  'a pipe': {},
  'a file': { file: true },
}

/** The output of `svc health` in a format, and its output without regard to runners. */
async function printed(text: string, output: Format, place: Place, env: Readonly<Record<string, string>>) {
  const { io, stdout, stderr } = capturedIo({ env, ...place })
  const as = { output, target: text, atServer: true, mode: 'Standard', detail: 'usual', header: true } as const
  const display = await showHealth(
    [saying(text)],
    { ...as, timeoutState: undefined, size: undefined, withoutMachine: false },
    io,
  )
  io.stdout.write(display.text, display.form)
  if (display.log !== undefined) io.stderr.write(display.log)
  return { plain: display.text, stdout: stdout(), stderr: stderr() }
}

/** Records have no escape, and no runner reads a file as a log. */
const isExact = (format: Format, { file }: Place): boolean =>
  file === true && ['csv', 'tsv', 'prometheus'].includes(format)

/** The commands of the format github, which svc writes on purpose: one for the verdict and one for the result. */
const own = /^GitHub Actions: ::(?:error|warning|notice) title=[^:]*::/

const texts = fc.array(fc.constantFrom(...commandParts), { minLength: 1, maxLength: 12 }).map((parts) => parts.join(''))
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
      const inOutput = commandsIn(stdout)
      if (isExact(format, place)) expect(stdout).toBe(plain)
      else if (format !== 'github') expect(inOutput).toEqual([])
      else {
        expect(inOutput.filter((each) => !own.test(each))).toEqual([])
        expect(inOutput).toHaveLength(commandsIn((await printed('word', format, place, env)).stdout).length)
      }
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
  ndjson: (text) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
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

/** Ways in which each command line runs. */
const ways = {
  '--json in a pipe': { args: ['--json'] },
  'a pipe': { args: [] },
  'a terminal': { args: [], columns: 60 },
  'a file': { args: [], file: true },
} as const

/** The commands whose records are exact in a file. */
const lists = new Set(
  [...(await answersOfCommands())].flatMap(([id, { isList }]) => (isList ? [id.replaceAll(':', ' ')] : [])),
)
async function answersOfCommands(): Promise<ReadonlyMap<string, { readonly isList: boolean }>> {
  const loaded = await Promise.all(
    Object.entries(commands).map(async ([id, load]) => [id, (await load()).answers['']] as const),
  )
  return new Map(loaded.flatMap(([id, answer]) => (answer ? [[id, answer] as const] : [])))
}

describe('K6 no command of svc prints a command of a CI runner', () => {
  test.each(Object.entries(ways).filter(([name]) => !isQuick() || name === '--json in a pipe'))(
    'on %s, with paths of stores and files that contain some',
    async (_, way) => {
      const { args: more, ...place } = way
      const folder = mkdtempSync(join(tmpdir(), 'svc ::debug::a ##vso[task.debug]b ##[debug]c '))
      const home = svcHome(undefined, folder)
      onTestFinished(home.remove)
      writeFiles(folder)
      for (const { name, args, stdin } of here(folder)) {
        if (name === 'completion') continue
        const ran = await home.run([...args, ...more], { ...place, stdin: `${stdin}\n` })
        const command = name.replace(/ --.*/, '')
        // svc health prints its table in a file, too.
        const isExact = 'file' in place && lists.has(command) && command !== 'health'
        // In a file, records are exact.
        const inLog = 'file' in place ? ran.stderr : ran.stdout + ran.stderr
        expect({ args, inOutput: commandsIn(inLog) }).toEqual({ args, inOutput: [] })
        const changed = /# #vso|: :debug/.test(JSON.stringify(more.length > 0 ? JSON.parse(ran.stdout) : ran.stdout))
        if (isExact || more.length > 0) expect({ args, changed }).toEqual({ args, changed: false })
      }
    },
  )

  test('each writes through the Io, which knows the form; these write something else', () => {
    const src = new URL('../../src/', import.meta.url).pathname
    const matching = (pattern: RegExp): readonly string[] =>
      readdirSync(src, { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts') && pattern.test(readFileSync(join(src, file), 'utf8')))
        .toSorted()
    expect(matching(/'verbatim'/)).toEqual([
      'cli/help/completion/complete.ts',
      'commands/completion.ts',
      'core/base/sanitize.ts',
      'core/checks/reports/formats.ts',
    ])
    // Children that answer the process that started them.
    expect(matching(/process\.std(?:out|err)\b(?!`)/)).toEqual([
      'cli/io/process.ts',
      'core/base/system/serve-tasks.ts',
      'core/checks/child/serve.ts',
      'keychain-child.ts',
    ])
    expect(matching(/\bconsole\.(?:log|info|warn|error|debug)\(/)).toEqual([])
  })
})

describe('K6 a tcp server that answers with a command of each runner', () => {
  const home = svcHome()
  const server = createServer((socket) => socket.on('error', () => {}).end(`${harmless}\r\n`))
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { readonly port: number }
    const monitor = `{kind: tcp, name: peer, host: 127.0.0.1, port: ${port}, expect: never}`
    const yaml = `types:\n  App:\n    host: false\n    monitors:\n      - ${monitor}\n`
    writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  })
  afterAll(() => {
    server.close()
    home.remove()
  })

  test.each(formats)('%s shows the answer, and no command', async (format) => {
    const args = ['health', '-t', 'App', '-o', format]
    for (const columns of [undefined, 40, 60, 80]) {
      const place = columns === undefined ? {} : { columns }
      const { stdout, stderr } = await home.run(args, { ...place, env: { CI: 'true' } })
      // Metrics have no messages.
      if (format !== 'prometheus') expect(stdout).toContain('hello')
      expect(commandsIn(stdout + stderr).filter((each) => format !== 'github' || !own.test(each))).toEqual([])
    }
  })

  test('the built program does the same: CSV is exact in a file alone', async () => {
    const pipe = await home.svc(['health', '-t', 'App', '-o', 'csv'])
    expect(pipe.stdout).toContain('# #vso[task.debug]hello # #teamcity[message')
    expect(pipe.stdout).toContain(': :debug: :hello')
    const path = join(home.folder, 'health.csv')
    const file = openSync(path, 'w')
    const args = ['health', '-t', 'App', '-o', 'csv']
    const child = spawn(process.execPath, [entry, ...args], { env: home.env, stdio: ['ignore', file, 'ignore'] })
    await once(child, 'close')
    closeSync(file)
    expect(readFileSync(path, 'utf8')).toContain(harmless)
  })
})

describe('K6 the log of svc serve', () => {
  test.each([
    ['JSON lines', false],
    ['a terminal', true],
  ])('has no command: %s', async (_, isTTY) => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-log-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const path = join(folder, 'log')
    const descriptor = openSync(path, 'w')
    const { io } = capturedIo()
    const stderr = { ...io.stderr, isTTY, descriptor, stream: new Writable() } as typeof io.stderr
    const log = await openServeLog({ stderr })
    log.log({ level: 'warn', msg: harmless, reason: '::debug::hello' })
    await log.close(1_000)
    const written = readFileSync(path, 'utf8')
    expect(written).toContain('hello')
    expect(commandsIn(written)).toEqual([])
    if (!isTTY) expect(JSON.parse(written)).toMatchObject({ msg: harmless, reason: '::debug::hello' })
  })
})
