import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startServe } from '../../support/program/serve-command.ts'
import type { Serving } from '../../support/program/serving.ts'
import { type Home, svcHome } from '../../support/program/svc.ts'
import { type AlertmanagerServer, alertmanagerMissing, startAlertmanager } from '../../support/servers/alertmanager.ts'
import { type HttpPeer, httpPeer } from '../../support/simulated/http-peer.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const minute = 60_000
vi.setConfig({ testTimeout: 8 * minute, hookTimeout: 4 * minute })

/** A peer that accepts connections, as a witness. */
const startWitness = async (): Promise<{ readonly address: string; readonly server: Server }> => {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return { address: `tcp://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`, server }
}
const prlimit = (pid: number, ...limits: readonly string[]): void =>
  void execFileSync('prlimit', ['--pid', String(pid), ...limits])

/** The faults of one svc serve. Everything else about it is well. */
const faults: Readonly<
  Record<string, (serve: Serving, witness: Server, hold: (timer: NodeJS.Timeout) => void) => void>
> = {
  none: () => {},
  hangs: ({ pid }) => void process.kill(pid, 'SIGSTOP'),
  isolated: (_, witness) => void witness.close(),
  late: ({ pid }, _, hold) => {
    // It gets half a second of every eight.
    process.kill(pid, 'SIGSTOP')
    hold(
      setInterval(() => {
        process.kill(pid, 'SIGCONT')
        setTimeout(() => process.kill(pid, 'SIGSTOP'), 500)
      }, 8_000),
    )
  },
  'cannot write': ({ pid }) => prlimit(pid, '--fsize=4096:4096'),
  // It keeps those that it has open, and gets no other.
  'no descriptors': ({ pid }) => prlimit(pid, '--nofile=1'),
  'hangs and cannot write': (serve, witness, hold) => {
    faults['cannot write']?.(serve, witness, hold)
    faults['hangs']?.(serve, witness, hold)
  },
  'isolated without descriptors': (serve, witness, hold) => {
    faults['isolated']?.(serve, witness, hold)
    faults['no descriptors']?.(serve, witness, hold)
  },
}
const names = Object.keys(faults)

peerSuite(alertmanagerMissing, 'real processes that cannot watch', () => {
  const homes = new Map<string, Home>()
  const serves = new Map<string, Serving>()
  const witnesses = new Map<string, Server>()
  const pings = new Map<string, number[]>()
  const timers: NodeJS.Timeout[] = []
  let alertmanager: AlertmanagerServer
  let hook: HttpPeer

  beforeAll(async () => {
    alertmanager = await startAlertmanager('route: {receiver: none}\nreceivers: [{name: none}]\n')
    hook = await httpPeer((request, response) => {
      const name = decodeURIComponent(request.url?.slice(1) ?? '')
      pings.set(name, [...(pings.get(name) ?? []), performance.now()])
      response.writeHead(200).end('OK')
    })
    for (const [at, name] of names.entries()) {
      const home = svcHome()
      homes.set(name, home)
      const file = join(home.folder, 'ping-url')
      writeFileSync(file, `${hook.origin}/${encodeURIComponent(name)}\n`, { mode: 0o600 })
      const witness = await startWitness()
      witnesses.set(name, witness.server)
      const yaml = `
serve: {every: 10s, name: svc${at}, ping: {file: ${file}}, witness: ["${witness.address}", "tcp://127.0.0.1:1"]}
types: {App: {host: false, monitors: [{kind: tcp, name: a, host: 127.0.0.1, port: ${hook.port}}]}}
notify: [{name: am, alertmanager: {urls: ["${alertmanager.url}"]}}]
`
      serves.set(name, await startServe(home, yaml))
    }
  })
  afterAll(async () => {
    for (const timer of timers) clearInterval(timer)
    await wait(600)
    for (const { pid } of serves.values()) process.kill(pid, 'SIGCONT')
    for (const one of serves.values()) await one[Symbol.asyncDispose]()
    for (const witness of witnesses.values()) witness.close()
    for (const home of homes.values()) home.remove()
    await hook?.[Symbol.asyncDispose]()
    await alertmanager?.remove()
  })

  const watchdogs = async (): Promise<readonly string[]> => {
    const alerts = await alertmanager.alerts()
    return names.filter((_, at) =>
      alerts.some(
        ({ labels, endsAt }) =>
          labels['alertname'] === 'SvcWatchdog' && labels['server'] === `svc${at}` && Date.parse(endsAt) > Date.now(),
      ),
    )
  }

  test('W24 ping and watchdog begin after a minute, and end within 3 min of the fault, and only then', async () => {
    await until(
      async () => pings.size === names.length && (await watchdogs()).length === names.length,
      3 * minute,
      1_000,
    )
    const faultAt = performance.now()
    for (const name of names) {
      const [serve, witness] = [serves.get(name), witnesses.get(name)]
      if (serve && witness) faults[name]?.(serve, witness, (timer) => timers.push(timer))
    }
    await wait(3 * minute)
    expect(await watchdogs()).toEqual(['none'])
    await wait(minute + 10_000)
    const late = names.filter((name) => pings.get(name)?.some((at) => at > faultAt + 3 * minute))
    expect(late).toEqual(['none'])
    expect(pings.get('none')?.length).toBeGreaterThanOrEqual(4)
  })
})
