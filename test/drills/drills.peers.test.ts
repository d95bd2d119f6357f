import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { deadlines } from '../../src/core/checks/engine/observe.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { peerSuite } from '../support/suite/peer.ts'
import type { DrillRecord } from './record.ts'
import { type DrillServer, drills, environment, type Fault, faults, output, waitingConnections } from './servers.ts'

/** Where `npm run drills` collects the records for the page. */
const folder = process.env.SVC_DRILLS_OUT

const home = temporaryHome()
const file = join(home.folder, 'svc.yaml')
const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => {
  certificates?.remove()
})

/** The true cause, where a drill does not name another one. */
const causes: Readonly<Record<Fault, RegExp>> = {
  limit: /./,
  'wrong password': /refused/,
  'expired certificate': /^127\.0\.0\.1:\d+: certificate "svc\.test" expired on \d{4}-\d\d-\d\d /,
  freeze: /^127\.0\.0\.1:\d+ accepted the connection but sent nothing for \d/,
  stop: /^127\.0\.0\.1:\d+ refused the connection in .*: host up, nothing listens on that port$/,
}
const deadlineMs = deadlines.Standard.monitor
/** The engine ends an observation that does not end by itself. */
const graceMs = 1_000

type Answer = {
  readonly code: number | null
  readonly seconds: number
  readonly ms: number
  readonly sentence: string
  readonly step: string
}

/** `svc health` as an operator runs it, and its first failure. */
async function health(): Promise<Answer> {
  const since = performance.now()
  const args = ['health', '--type', 'App', '--only', 'drill', '--config', file, '--output', 'tsv']
  const { code, stdout } = await home.svc(args, { env: environment })
  const seconds = (performance.now() - since) / 1_000
  const [header = [], ...rows] = stdout.split('\n').map((line) => line.split('\t'))
  const cell = (row: readonly string[] | undefined, name: string): string => row?.[header.indexOf(name)] ?? ''
  const failed = rows.find((row) => cell(row, 'Status') === 'Failure')
  const step = cell(failed, 'ErrorMessages')
    .split('\\n')
    .find((line) => line.startsWith('next: '))
  return {
    code,
    seconds,
    ms: Number(cell(failed, 'DurationMs')),
    sentence: cell(failed, 'StatusMessage'),
    step: step ?? '',
  }
}

/** The command of svc in a step, as a shell reads it. */
function ownCommand(step: string): readonly string[] {
  const [, command = ''] = /\btry now: svc (.*)$/.exec(step) ?? []
  return (command.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replaceAll("'", ''))
}

/** Takes the steps that look alike on all servers, and returns what they show. */
const helps: Readonly<Record<Fault, (step: string, port: string, corrected: string) => Promise<void>>> = {
  limit: () => Promise.reject(new Error('each server has its own')),
  'wrong password': async (step, _, corrected) => {
    const [, name = ''] =
      /^next: correct \{env: (WRONG|WRONG_KEY)\} or the account; then try now: svc monitors test /.exec(step) ?? []
    const { code } = await home.svc(ownCommand(step), { env: { ...environment, [name]: corrected } })
    expect(code).toBe(0)
  },
  'expired certificate': async (step) => {
    expect(step).toMatch(/^next: renew the certificate, and make the server load it; then try now: svc monitors test /)
    const still = await home.svc(ownCommand(step), { env: environment })
    expect([still.code, still.stdout]).toEqual([3, expect.stringContaining('expired on')])
  },
  freeze: async (step, port) => {
    expect(step).toContain('ss -ltnp')
    expect(step).toContain('ps -o stat,args -p PID')
    const report = output('ss', '-ltnp', `sport = :${port}`)
    expect(report).toMatch(waitingConnections)
    const [, pid = ''] = /pid=(\d+)/.exec(report) ?? []
    expect(output('ps', '-o', 'stat,args', '-p', pid)).toMatch(/^T/m)
  },
  stop: async (step, port) => {
    expect(step).toContain('ss -ltn ')
    expect(output('ss', '-ltn')).not.toContain(`:${port} `)
  },
}

for (const { server: name, kind, missing, planted, start } of drills) {
  peerSuite(missing ?? opensslMissing(), `drill: ${name}`, () => {
    let server: DrillServer | undefined
    const records: DrillRecord[] = []
    beforeAll(async () => {
      if (certificates) server = await start(certificates)
    }, 180_000)
    afterAll(async () => {
      await server?.remove()
      if (folder === undefined) return
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, `${kind}.json`), JSON.stringify(records))
    })

    test.each(faults)(
      `H40 ${name}, %s: svc health names the cause in time and offers a step that helps`,
      { timeout: 90_000 },
      async (fault) => {
        if (server === undefined) throw new Error('the server is not running')
        const { monitor, says = causes[fault], step: own, corrected = '', cure } = await server.plant[fault]()
        onTestFinished(async () => void (await cure?.()))

        writeFileSync(file, JSON.stringify({ types: { App: [{ name: 'drill', ...monitor }] } }))
        const { code, seconds, ms, sentence, step } = await health()
        records.push({ server: name, kind, fault, planted: planted[fault] ?? '', seconds, exit: code, sentence, step })
        expect(code).toBe(3)
        expect(ms).toBeLessThan(deadlineMs + graceMs)
        expect(sentence).toMatch(says)
        expect(step).not.toBe('')
        const [, port = ''] = /:(\d+)/.exec(sentence) ?? []
        if (own === undefined) return await helps[fault](step, port, corrected)
        expect(step).toMatch(own.command)
        const report = await own.run()
        expect(typeof report === 'string' ? report : JSON.stringify(report)).toMatch(own.shows)
      },
    )
  })
}
