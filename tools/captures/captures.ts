import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../pages/stage.ts'
import { screenAfter } from './ansi.ts'
import { type Fixture, openFixture } from './fixture.ts'
import { imageOf, recordingOf, themes } from './svg.ts'

const widths = [80, 120] as const

type Screen = {
  readonly name: string
  readonly command: string
  /** The exit code. */
  readonly code: number
  readonly prepare?: (fixture: Fixture) => Promise<void> | void
}

/** The machine that makes the captures may be busy, so its load has no threshold. */
const host = '{load: off, cpu: off}'

const config = ({ shopPort, workerPort }: Fixture): string => `types:
  App:
    host: ${host}
    monitors:
      - {kind: http, name: shop, url: 'http://127.0.0.1:${shopPort}/health', latency: 30s}
      - kind: http
        name: queue
        url: http://127.0.0.1:${shopPort}/status
        latency: 30s
        measure:
          - {name: waiting jobs, path: $.waiting, atMost: {warn: 20, limit: 100}}
  Batch:
    host: ${host}
    monitors:
      - {kind: tcp, name: worker, host: 127.0.0.1, port: ${workerPort}}
      - {kind: http, name: scheduler, url: 'http://127.0.0.1:${shopPort}/jobs', dependsOn: [worker]}
`

const names = ['basket', 'billing', 'catalog', 'images', 'invoices', 'mail', 'orders', 'prices', 'reports', 'search']

/** 199 monitors, which are 200 with the machine. Six of them fail. */
function manyConfig({ shopPort, workerPort }: Fixture): string {
  const failing: Readonly<Record<number, string>> = {
    6: `kind: tcp, host: 127.0.0.1, port: ${workerPort}`,
    58: `kind: http, url: 'http://127.0.0.1:${shopPort}/status', json: {$.state: open}`,
    93: `kind: http, url: 'http://127.0.0.1:${shopPort}/pages', contains: checkout`,
    121: `kind: tcp, host: 127.0.0.1, port: ${workerPort}`,
    144: `kind: http, url: 'http://127.0.0.1:${shopPort}/status', measure: [{name: jobs, path: $.waiting, atMost: 20}]`,
    187: `kind: http, url: 'http://127.0.0.1:${shopPort}/jobs', status: 204`,
  }
  const monitors = Array.from({ length: 199 }, (_, at) => {
    const name = `${names[at % names.length]}-${Math.floor(at / names.length) + 1}`
    const settings = failing[at] ?? `kind: http, url: 'http://127.0.0.1:${shopPort}/${name}', latency: 30s`
    return `      - {name: ${name}, ${settings}}`
  })
  const type = (from: number, to: number): string =>
    `    host: ${host}\n    monitors:\n${monitors.slice(from, to).join('\n')}\n`
  return `types:\n  App:\n${type(0, 100)}  Batch:\n${type(100, 199)}`
}

const screens: readonly Screen[] = [
  {
    name: 'healthy',
    command: 'svc health -t App -t Batch',
    code: 0,
    prepare: (fixture) => fixture.configure(config(fixture)),
  },
  { name: 'healthy-verbose', command: 'svc health -t App -t Batch -v', code: 0 },
  {
    name: 'unhealthy',
    command: 'svc health -t App -t Batch',
    code: 3,
    prepare: async (fixture) => {
      fixture.setWaiting(42)
      await fixture.stopWorker()
    },
  },
  { name: 'doctor', command: 'svc doctor', code: 0 },
  {
    name: 'mistake',
    command: 'svc health -t App',
    code: 12,
    prepare: (fixture) => fixture.configure(config(fixture).replace('warn: 20', 'warns: 20')),
  },
  { name: 'validate', command: 'svc monitors validate', code: 12 },
  {
    name: 'many',
    command: 'svc health',
    code: 3,
    prepare: (fixture) => fixture.configure(manyConfig(fixture)),
  },
  { name: 'many-failed', command: 'svc health --failed', code: 3 },
]

/** Captures every screen to docs/screens. */
export async function writeCaptures(): Promise<void> {
  const folder = join(root, 'docs/screens')
  mkdirSync(folder, { recursive: true })
  const program = join(root, 'bin/run.js')
  const fixture = await openFixture()
  try {
    for (const { name, command, code, prepare } of screens) {
      await prepare?.(fixture)
      for (const columns of widths) {
        const lines = screenAfter(await settled(fixture, { program, command, columns, code }), columns)
        for (const [theme, colours] of Object.entries(themes)) {
          const title = `${command} on a ${theme} terminal of ${columns} columns`
          writeFileSync(join(folder, `${name}-${columns}-${theme}.svg`), imageOf(lines, columns, colours, title))
        }
      }
    }
    await writeRecording(fixture)
  } finally {
    await fixture.remove()
  }
}

/** 300 monitors, of which 40 are those of the worker. */
const watchedConfig = ({ shopPort, workerPort }: Fixture): string => `types:
  App:
    host: false
    monitors:
${Array.from({ length: 260 }, (_, at) => `      - {kind: http, name: shop-${at + 1}, url: 'http://127.0.0.1:${shopPort}/', latency: 30s}`).join('\n')}
  Batch:
    host: false
    monitors:
${Array.from({ length: 40 }, (_, at) => `      - {kind: tcp, name: worker-${at + 1}, host: 127.0.0.1, port: ${workerPort}, latency: 30s}`).join('\n')}
`

/** Records `svc health --watch` while the worker is stopped and started again, one screen for each round. */
export async function writeRecording(fixture: Fixture): Promise<void> {
  const columns = 100
  const command = 'svc health --watch --interval 2s'
  fixture.configure(watchedConfig(fixture))
  let rounds = 0
  const answer = (output: string): string | undefined => {
    if (!output.includes('just now')) return undefined
    rounds += 1
    if (rounds === 2) void fixture.stopWorker()
    if (rounds === 5) void fixture.startWorker()
    return rounds === 8 ? 'q' : undefined
  }
  const { text } = await fixture.capture(join(root, 'bin/run.js'), command, columns, { rows: 10, answer })
  // What is drawn between two ends of a round is the clock.
  const [drawn = ''] = text.split('\u001b[?7h')
  const screens = [...drawn.matchAll(/just now.*?next in/gs)].map(({ index, 0: piece }) =>
    screenAfter(`${drawn.slice(0, index + piece.length)} 2 s`, columns),
  )
  const title = `${command}: 40 of 300 monitors fail, and are ok again`
  writeFileSync(join(root, 'docs/screens/watch-recording.svg'), recordingOf(screens, columns, themes.dark, title))
}

type Capture = { readonly program: string; readonly command: string; readonly columns: number; readonly code: number }

/** The output of the command when it ends as it should. Repeated, because a request to a busy machine may be slow. */
async function settled(fixture: Fixture, { program, command, columns, code }: Capture): Promise<string> {
  let output = ''
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const ran = await fixture.capture(program, command, columns)
    output = ran.text
    if (ran.code === code) return output
  }
  throw new Error(`${command} did not end with ${code}, or this machine is too busy:\n${output}`)
}
