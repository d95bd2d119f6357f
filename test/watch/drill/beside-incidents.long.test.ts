import { text as textOf } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { load } from '../../config/given.ts'
import { testCore } from '../../support/engine/core.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'
import { until } from '../../support/suite/until.ts'

// A receiver that refuses a message gets the next one 5 min later.
test('M14 an incident neither waits for a drill that its receiver refuses, nor shares a message or a figure with it', {
  timeout: 240_000,
}, async () => {
  const [drills, alarms]: [string[], string[]] = [[], []]
  let isDown = false
  await using hook = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      if (request.url === '/shop') response.writeHead(isDown ? 500 : 200).end('shop')
      else {
        if (body.includes('SvcDrill')) drills.push(body)
        if (body.includes('SvcFailed')) alarms.push(body)
        response.writeHead(body.includes('SvcDrill') ? 400 : 204).end()
      }
    })
  })
  const config = await load(`
serve: {name: prod, confirm: 5s, every: 10s}
notify: [{name: chat, webhook: {url: "${hook.origin}/hook"}}]
types:
  App: {host: false, monitors: [{kind: http, name: shop, url: "${hook.origin}/shop"}]}
`)
  const { service, runtime } = await testCore({ version: '1', config, requireConfig: true, log: () => {} })
  onTestFinished(async () => await runtime.close())
  runtime.answersAt?.('http://127.0.0.1:1')
  const signal = AbortSignal.timeout(200_000)
  const caller = { kind: 'local', account: 'ann' } as const
  await service.startDrill({ Through: ['chat'] }, { caller, correlationId: 'c', signal })
  await until(() => drills.length > 0, 60_000, 100)
  isDown = true
  await until(() => alarms.length > 0, 120_000, 100)
  expect(alarms.filter((body) => body.includes('SvcDrill'))).toEqual([])
  expect(alarms[0]).toContain('"status":"firing"')
  const count = async (result: string): Promise<number | undefined> =>
    (await runtime.metrics?.(1_000))
      ?.find(({ name }) => name === 'svc_notifications')
      ?.samples.find(({ labels }) => labels?.['result'] === result)?.value
  await until(async () => (await count('accepted')) === 1, 10_000, 50)
  expect(await count('refused')).toBe(0)
})
