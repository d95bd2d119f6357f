import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { ask, startNode } from '../support/program/serve-node.ts'
import { freePort } from '../support/servers/server.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'
import { always } from '../watch/silences/always.ts'

const waitMs = 180_000

type Alert = { readonly status: string; readonly labels: Readonly<Record<string, string>> }

test('M7 svc serve sends the fault of a silenced monitor only to receivers that ignore silences, and to the others once the silence is over', {
  timeout: 5 * waitMs,
}, async () => {
  const alerts: string[] = []
  await using hook = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      for (const { status, labels } of (JSON.parse(body) as { alerts: readonly Alert[] }).alerts)
        alerts.push(`${request.url} ${status} ${labels['monitor']}`)
      response.writeHead(204).end()
    })
  })
  const yaml = `serve: {confirm: 5s}
notify:
  - {name: chat, webhook: {url: "${hook.origin}/chat"}}
  - {name: all, webhook: {url: "${hook.origin}/all"}, silences: ignore}
types:
  App:
    host: false
    monitors: [{kind: tcp, name: shop, host: 127.0.0.1, port: ${await freePort()}, every: 10s}]
`
  const folder = temporaryFolder()
  const silences = `silences:\n${always('App/*')}`
  await using node = await startNode({ store: join(folder, 'svc.db'), yaml: yaml + silences })
  const metrics = async (): Promise<string> => (await ask(`${node.url}/metrics`)).body

  await until(() => alerts.includes('/all firing tcp shop'), waitMs)
  // What a receiver has to know is pending until it has been sent.
  await until(async () => {
    const text = await metrics()
    return ['chat', 'all'].every((name) => text.includes(`svc_notify_pending{receiver="${name}"} 0\n`))
  }, waitMs)
  expect(alerts).toEqual(['/all firing tcp shop'])
  expect(await metrics()).toMatch(/^svc_incident_info\{[^}]*monitor="tcp shop"/m)

  writeFileSync(node.config, yaml, { mode: 0o600 })
  node.signal('SIGHUP')
  await until(() => alerts.includes('/chat firing tcp shop'), waitMs)
})
