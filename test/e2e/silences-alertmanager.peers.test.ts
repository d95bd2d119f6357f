import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ask, startNode } from '../support/program/serve-node.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import {
  type AlertmanagerServer,
  alertmanagerMissing,
  type ShownAlert,
  startAlertmanager,
} from '../support/servers/alertmanager.ts'
import { freePort } from '../support/servers/server.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const waitMs = 180_000
vi.setConfig({ testTimeout: 5 * waitMs, hookTimeout: waitMs })

const configuration = 'route: {receiver: none}\nreceivers: [{name: none}]\n'

const alertsOf = async (server: AlertmanagerServer, monitor: string): Promise<readonly ShownAlert[]> =>
  (await server.alerts()).filter(({ labels }) => labels['monitor'] === monitor)
const isSilent = async (server: AlertmanagerServer, monitor: string): Promise<boolean> => {
  const alerts = await alertsOf(server, monitor)
  return alerts.length > 0 && alerts.every(({ status }) => status.silencedBy.length > 0)
}

peerSuite(alertmanagerMissing, 'svc silence with a real Alertmanager of two instances', () => {
  test('M10 svc silence silences what fires and what begins later, svc silence end makes both loud, and svc ack silences one fault', async () => {
    const first = await startAlertmanager(configuration)
    const second = await startAlertmanager(configuration, { peers: [first] })
    const folder = temporaryFolder()
    const store = join(folder, 'svc.db')
    const [port, other] = [await freePort(), await freePort()]
    const yaml = `serve: {name: prod, confirm: 5s}
notify: [{name: am, alertmanager: {urls: ["${first.url}", "${second.url}"]}}]
types:
  App:
    host: false
    monitors:
      - {kind: tcp, name: shop, host: 127.0.0.1, port: ${port}, every: 10s}
      - {kind: tcp, name: cart, host: 127.0.0.1, port: ${other}, every: 10s}
`
    const node = await startNode({ store, yaml })
    const home = temporaryHome()
    onTestFinished(async () => {
      await node.stop()
      for (const server of [first, second]) await server.remove()
    })
    const svc = async (...args: readonly string[]) =>
      await home.run([...args, '--store', store, '--config', node.config])
    const idIn = (stdout: string): string =>
      (JSON.parse(stdout) as { silences: readonly [{ id: string }] }).silences[0].id

    await until(async () => (await alertsOf(second, 'tcp shop')).length > 0, waitMs)
    const made = await svc('silence', 'tcp shop', '--for', '1h', '--reason', 'patch night', '--json')
    expect([made.code, made.stderr]).toEqual([0, ''])
    await until(async () => (await isSilent(first, 'tcp shop')) && (await isSilent(second, 'tcp shop')), waitMs)
    await until(async () => (await alertsOf(second, 'tcp cart')).length > 0, waitMs)
    expect(await isSilent(second, 'tcp cart')).toBe(false)

    expect((await svc('silence', 'end', idIn(made.stdout))).code).toBe(0)
    await until(async () => !(await isSilent(first, 'tcp shop')) && !(await isSilent(second, 'tcp shop')), waitMs)

    const ack = await svc('ack', 'tcp cart', '--reason', 'INC-7', '--json')
    expect([ack.code, ack.stderr]).toEqual([0, ''])
    await until(async () => await isSilent(second, 'tcp cart'), waitMs)
    expect(await isSilent(second, 'tcp shop')).toBe(false)
    const isAcknowledged = /^svc_check_silenced\{.*"tcp cart".*source="ack"\} 1$/m
    await until(async () => isAcknowledged.test((await ask(`${node.url}/metrics`)).body), waitMs)
  })

  test('M10 svc silence where an instance does not answer is in force, names it, and exits with 10', async () => {
    const server = await startAlertmanager(configuration)
    const folder = temporaryFolder()
    const store = join(folder, 'svc.db')
    const dead = await freePort()
    const yaml = `notify: [{name: am, alertmanager: {urls: ["${server.url}", "http://127.0.0.1:${dead}"]}}]
types: {App: {host: false, monitors: [{kind: tcp, name: shop, host: 127.0.0.1, port: ${dead}, every: 10s}]}}
`
    const node = await startNode({ store, yaml })
    const home = temporaryHome()
    onTestFinished(async () => {
      await node.stop()
      await server.remove()
    })
    const args = ['silence', 'App/*', '--for', '1h', '--reason', 'x', '--store', store, '--config', node.config]
    const { code, stderr } = await home.run(args)
    expect([code, stderr]).toEqual([10, expect.stringContaining(`receiver am, http://127.0.0.1:${dead}`)])
    const list = await home.run(['silence', 'list', '--store', store, '--config', node.config, '--json'])
    expect(JSON.parse(list.stdout)).toMatchObject({ silences: [{ source: 'hand' }] })
  })
})
