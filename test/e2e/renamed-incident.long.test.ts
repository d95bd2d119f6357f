import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { type ServeNode, startNode } from '../support/program/serve-node.ts'
import { freePort } from '../support/servers/server.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const waitMs = 120_000

type Labels = Readonly<Record<string, string>>
type Alert = { readonly labels: Labels; readonly startsAt: string; readonly endsAt: string }
type Event = { readonly event_action: string; readonly dedup_key: string }

test('W18 a real svc serve renames a monitor during its fault by a reload and by the start after kill -9: Alertmanager and PagerDuty get one alert from begin to end, under the first name', {
  timeout: 5 * waitMs,
}, async () => {
  const alerts: Alert[] = []
  const events: Event[] = []
  await using peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      if (request.url?.endsWith('/alerts') === true) alerts.push(...(JSON.parse(body) as Alert[]))
      if (request.url?.endsWith('/enqueue') === true) events.push(JSON.parse(body) as Event)
      response.writeHead(request.url?.endsWith('/enqueue') === true ? 202 : 200).end('[]')
    })
  })
  const port = await freePort()
  const folder = temporaryFolder()
  const yamlOf = (monitor: string): string => `serve: {confirm: 5s, name: prod}
notify:
  - {name: am, alertmanager: {urls: ["${peer.origin}"]}}
  - {name: pd, pagerduty: {routingKey: {env: PD_KEY}, url: "${peer.origin}"}}
types:
  App:
    host: false
    monitors: [{kind: tcp, host: 127.0.0.1, every: 10s, ${monitor}}]
`
  const begin = async (yaml: string): Promise<ServeNode> => {
    const node = await startNode({ store: join(folder, 'svc.db'), yaml, env: { PD_KEY: 'a'.repeat(32) } })
    onTestFinished(async () => await node[Symbol.asyncDispose]())
    return node
  }
  const reload = async (node: ServeNode, yaml: string, what: string): Promise<void> => {
    writeFileSync(node.config, yaml)
    node.signal('SIGHUP')
    await until(() => node.log().includes(what), waitMs)
  }
  const ofPeer = (): readonly Alert[] => alerts.filter(({ labels }) => labels.check !== undefined)
  const ended = (): readonly Alert[] => ofPeer().filter(({ endsAt }) => Date.parse(endsAt) < Date.now())

  const first = await begin(yamlOf(`name: a, port: ${port}`))
  await until(() => ofPeer().length > 0 && events.length > 0, waitMs)
  await reload(first, yamlOf(`name: b, formerly: App/tcp/a, port: ${port}`), '"reloaded: ')
  first.signal('SIGKILL')
  await first.ended

  const before = ofPeer().length
  const next = await begin(yamlOf(`name: c, formerly: [App/tcp/b, App/tcp/a], port: ${port}`))
  // It repeats what stands.
  await until(() => ofPeer().length > before, waitMs)
  expect(ended()).toEqual([])
  await reload(next, yamlOf(`name: other, port: ${new URL(peer.origin).port}`), '"reloaded: ')
  await until(() => ended().length > 1 && events.length > 1, waitMs)
  expect(await next.stop()).toBe(0)

  expect(new Set(ofPeer().map(({ labels }) => `${labels.monitor} ${labels.check}`)).size).toBe(1)
  expect(ofPeer()[0]?.labels).toMatchObject({ server: 'prod', type: 'App', monitor: 'tcp a' })
  expect(new Set(ended().map(({ labels }) => labels.alertname))).toEqual(new Set(['SvcFailed', 'SvcWarning']))
  expect(events.map(({ event_action: action }) => action)).toEqual(['trigger', 'resolve'])
  expect(new Set(events.map(({ dedup_key: key }) => key)).size).toBe(1)
})
