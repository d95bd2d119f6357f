import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { aheadBy, aheadByFile, fakeTimeMissing } from '../support/faults/clock.ts'
import { envOf, figure, type ServeNode, startNode } from '../support/program/serve-node.ts'
import { postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { freePort } from '../support/servers/server.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { freshDatabase } from '../support/store/data-fixture.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

const maxMs = 240_000
const program = new URL('../../bin/run.js', import.meta.url).pathname

type Told = { readonly status: string; readonly startsAt: string; readonly endsAt: string }
type Shown = {
  readonly incidents: readonly { readonly beganAt: string; readonly endedAt: string | null; readonly level: string }[]
  readonly monitors: readonly { readonly availability: number | null; readonly observedMinutes?: number }[]
}

/** A peer that is down until it starts, a webhook, and a clock that a file sets. */
async function surroundings() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-shifted-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const clock = join(folder, 'clock')
  const told: Told[] = []
  const hook = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      told.push(...(JSON.parse(body) as { alerts: readonly Told[] }).alerts)
      response.writeHead(204).end()
    })
  })
  const port = await freePort()
  const peer = createServer((socket) => socket.end('hello\n'))
  onTestFinished(async () => {
    await hook[Symbol.asyncDispose]()
    peer.close()
  })
  const yaml = `serve: {confirm: 1s, every: {Standard: 5s, Advanced: off}}
notify:
  - {kind: webhook, name: hook, url: "${hook.origin}/hook"}
types:
  App:
    host: false
    monitors:
      - {kind: tcp, name: peer, host: 127.0.0.1, port: ${port}, expect: hello}
`
  return {
    folder,
    yaml,
    env: aheadByFile(clock),
    set: (seconds: number): void => writeFileSync(clock, `${seconds < 0 ? '' : '+'}${seconds}\n`),
    /** The peer works from now on. */
    start: async (): Promise<void> => {
      await new Promise<void>((resolve) => peer.listen(port, '127.0.0.1', resolve))
    },
    /** The first alert with this status. */
    told: async (status: string): Promise<Told> =>
      await until(() => told.find((one) => one.status === status) ?? false, maxMs, 100),
  }
}

const start = async (options: Parameters<typeof startNode>[0]): Promise<ServeNode> => {
  const node = await startNode(options)
  onTestFinished(async () => void (await node.stop('SIGKILL')))
  return node
}
const shiftOf = async (node: ServeNode): Promise<string> =>
  await until(() => /the times of svc shift[^"]*/.exec(node.log())?.[0] ?? false, maxMs, 100)

/** Far less than the faults of the clocks, and far more than a busy machine needs. Milliseconds. */
const nearMs = 240_000
const isNear = (at: string | null | undefined, ahead = 0): boolean =>
  Math.abs(Date.parse(at ?? '') - Date.now() - ahead) < nearMs

/** The history of the last hours, as a command with this environment shows it. */
async function history(store: string, folder: string, config: string, env: Record<string, string> = {}) {
  const args = [program, 'history', '--since', '6h', '--json', '--config', config]
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { ...envOf(folder), SVC_STORE: store, ...env },
  })
  return JSON.parse(stdout) as Shown
}

peerSuite(postgresMissing ?? fakeTimeMissing, 'W18 W3 W23 the times of svc, and a clock that is wrong', () => {
  test(
    'W18 W23 W3 after a start two hours ahead, messages, incidents and history have the right times once the clock is right',
    async () => {
      const at = await surroundings()
      at.set(7_200)
      const store = join(at.folder, 'svc.db')
      const node = await start({ store, yaml: at.yaml, env: at.env })
      expect(isNear((await at.told('firing')).startsAt, 7_200_000)).toBe(true)
      at.set(0)
      expect(await shiftOf(node)).toMatch(/shift back by 7\d\d\d s: they follow the clock of this machine/)
      await at.start()
      const end = await at.told('resolved')
      expect([isNear(end.startsAt), isNear(end.endsAt)]).toEqual([true, true])
      expect(Date.parse(end.endsAt)).toBeGreaterThan(Date.parse(end.startsAt))
      expect(await figure(node, 'svc_notify_last_success_timestamp_seconds')).toBeLessThan(Date.now() / 1_000 + 60)
      const shown = await until(async () => {
        const answer = await history(store, at.folder, node.config)
        return answer.incidents?.some(({ endedAt }) => endedAt !== null) ? answer : false
      }, maxMs)
      console.log(JSON.stringify(shown, undefined, 1).slice(0, 3_000))
    },
    maxMs,
  )
})
void aheadBy
void startPostgres
void freshDatabase
