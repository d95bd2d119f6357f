import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { expect, type OnTestFinishedHandler, test } from 'vitest'
import { early } from '../server/scheduled-web.ts'
import { aheadBy, aheadByFile, fakeTimeMissing } from '../support/faults/clock.ts'
import { envOf, figure, type ServeNode, startNode } from '../support/program/serve-node.ts'
import { postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { freePort } from '../support/servers/server.ts'
import { startSmtp } from '../support/servers/smtp.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { freshDatabase } from '../support/store/data-fixture.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

const maxMs = 240_000
const program = new URL('../../bin/run.js', import.meta.url).pathname

type Alert = { readonly status: string; readonly startsAt: string; readonly endsAt: string }
type Cleanup = (clean: OnTestFinishedHandler) => void

/** A peer that is down until it starts, a webhook, and a clock that a file sets. */
async function surroundings(onEnd: Cleanup) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-shifted-'))
  onEnd(() => rmSync(folder, { recursive: true, force: true }))
  const clock = join(folder, 'clock')
  const all: Alert[] = []
  const hook = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      all.push(...(JSON.parse(body) as { alerts: readonly Alert[] }).alerts)
      response.writeHead(204).end()
    })
  })
  onEnd(async () => await hook[Symbol.asyncDispose]())
  const mailDates: string[] = []
  const smtp = await startSmtp({
    onData: (stream, _, done) => {
      void textOf(stream).then((mail) => {
        mailDates.push(/^Date: (.*?)\r$/m.exec(mail)?.[1] ?? '')
        done()
      })
    },
  })
  onEnd(async () => await smtp[Symbol.asyncDispose]())
  const port = await freePort()
  const peer = createServer((socket) => socket.end('hello\n'))
  onEnd(() => void peer.close())
  const yaml = `serve: {confirm: 5s, every: {Standard: 10s, Advanced: off}}
notify:
  - {kind: webhook, name: hook, url: "${hook.origin}/hook"}
  - {kind: email, name: mail, server: "smtp://127.0.0.1:${smtp.port}", from: svc@svc.test, to: [accepted@svc.test]}
types:
  App:
    host: false
    monitors:
      - {kind: tcp, name: ${early('App', 'tcp', 10_000)}, host: 127.0.0.1, port: ${port}, timeout: 5s, expect: hello}
`
  return {
    folder,
    yaml,
    all,
    mailDates,
    env: aheadByFile(clock),
    set: (seconds: number): void => writeFileSync(clock, `${seconds < 0 ? '' : '+'}${seconds}\n`),
    /** The peer works from now on. */
    start: async (): Promise<void> => {
      await new Promise<void>((resolve) => peer.listen(port, '127.0.0.1', resolve))
    },
    /** The first alert with this status. */
    alert: async (status: string): Promise<Alert> =>
      await until(() => all.find((one) => one.status === status) ?? false, maxMs, 100),
    node: async (store: string, env: Record<string, string>): Promise<ServeNode> => {
      const node = await startNode({ store, yaml, env })
      onEnd(async () => void (await node.stop('SIGKILL')))
      return node
    },
  }
}

const shiftOf = async (node: ServeNode): Promise<string> =>
  await until(() => /the times of svc shift[^"]*/.exec(node.log())?.[0] ?? false, maxMs, 100)

/** Far less than the faults of the clocks, and far more than a busy machine needs. Milliseconds. */
const nearMs = 500_000
const isNear = (at: string, aheadMs = 0): boolean => Math.abs(Date.parse(at) - Date.now() - aheadMs) < nearMs
const hours = 3_600_000

/** The output of a command whose clock is ahead, as this environment says. */
async function shownBy(args: readonly string[], store: string, node: ServeNode, folder: string): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [program, ...args, '--json', '--config', node.config],
    { env: { ...envOf(folder), SVC_STORE: store } },
  )
  return stdout
}

peerSuite(postgresMissing ?? fakeTimeMissing, 'W18 W3 W23 the times of svc, and a clock that is wrong', () => {
  test.concurrent(
    'W18 W23 W3 after a start two hours ahead, messages, the dates of mails, incidents and history have the right times once the clock is right',
    async ({ onTestFinished }) => {
      const at = await surroundings(onTestFinished)
      at.set(7_200)
      const store = join(at.folder, 'svc.db')
      const node = await at.node(store, at.env)
      expect(isNear((await at.alert('firing')).startsAt, 2 * hours)).toBe(true)
      at.set(0)
      expect(await shiftOf(node)).toMatch(/shift back by 7\d\d\d s: they follow the clock of this machine/)
      await at.start()
      const end = await at.alert('resolved')
      expect([isNear(end.startsAt), isNear(end.endsAt)]).toEqual([true, true])
      expect(Date.parse(end.endsAt)).toBeGreaterThan(Date.parse(end.startsAt))
      await until(() => at.mailDates.length === 2, maxMs)
      expect(at.mailDates.map((date, nth) => isNear(date, nth === 0 ? 2 * hours : 0))).toEqual([true, true])
      const accepted = await figure(node, 'svc_notify_last_success_timestamp_seconds')
      expect(isNear(new Date((accepted ?? 0) * 1_000).toISOString())).toBe(true)
      const history = await until(async () => {
        const listed = await shownBy(['history', '--since', '6h'], store, node, at.folder)
        return /"incidents":\[\{[^\]]*"to":"/.test(listed) ? listed : false
      }, maxMs)
      const times = history.match(/2\d{3}-\d\d-\d\dT[^"]+/g) ?? []
      expect(times.length).toBeGreaterThan(3)
      expect(times.filter((time) => !isNear(time))).toEqual([])
    },
    maxMs,
  )

  test.concurrent(
    'W23 a clock that is set back by two hours while a fault stands begins and ends nothing, and the end is after the begin',
    async ({ onTestFinished }) => {
      const at = await surroundings(onTestFinished)
      at.set(0)
      const node = await at.node(join(at.folder, 'svc.db'), at.env)
      const begin = await at.alert('firing')
      at.set(-7_200)
      expect(await shiftOf(node)).toMatch(/shift back by 7\d\d\d s/)
      await at.start()
      const end = await at.alert('resolved')
      expect([isNear(end.startsAt, -2 * hours), isNear(end.endsAt, -2 * hours)]).toEqual([true, true])
      expect(Date.parse(begin.startsAt) - Date.parse(end.startsAt)).toBeGreaterThan(1.9 * hours)
      expect(Date.parse(end.endsAt)).toBeGreaterThan(Date.parse(end.startsAt))
      expect(at.all.map(({ status }) => status)).toEqual(['firing', 'resolved'])
    },
    maxMs,
  )

  test.concurrent(
    'W4 W23 a node whose clock is ten minutes ahead of PostgreSQL sends the times of PostgreSQL',
    async ({ onTestFinished }) => {
      const at = await surroundings(onTestFinished)
      const server = await startPostgres()
      onTestFinished(async () => void (await server.remove()))
      const node = await at.node(await freshDatabase(server), aheadBy('600'))
      expect(await shiftOf(node)).toMatch(/shift back by (5\d\d|6\d\d) s: they follow the clock of the store/)
      await at.alert('firing')
      await at.start()
      const end = await at.alert('resolved')
      const now = Date.now()
      expect(Date.parse(end.startsAt)).toBeLessThan(Date.parse(end.endsAt))
      // No end lies in the future. The clock of a database server is read over a network.
      expect(Date.parse(end.endsAt)).toBeLessThan(now + 5_000)
      expect([isNear(end.startsAt), isNear(end.endsAt)]).toEqual([true, true])
    },
    maxMs,
  )
})
