import { text as textOf } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { notifyPart } from '../../src/core/parts/notify.ts'
import { QuietKeeper } from '../../src/core/parts/quiet-keeper.ts'
import { type StatesPart, statesPart } from '../../src/core/parts/states.ts'
import type { SubjectState } from '../../src/core/states/index.ts'
import { load } from '../config/given.ts'
import { neverWatching } from '../support/notify/notice.ts'
import { outboxRows } from '../support/notify/outbox-rows.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { until } from '../support/suite/until.ts'

test('W23 an incident that stands under another name after a reload is sent under that name', async () => {
  const posted: string[] = []
  await using peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      if (request.url?.endsWith('/alerts') === true) posted.push(body)
      response.writeHead(200, { 'content-type': 'application/json' }).end('[]')
    })
  })
  const config = await load(`notify: [{name: am, alertmanager: {urls: ["${peer.origin}"]}}]`)
  const now = Date.now()
  const facts = { level: 'failed', message: 'it is down', isFlapping: false, isUnobserved: false } as const
  const state = {
    level: 'failed',
    message: 'it is down',
    depth: 'Basic',
    latest: { level: 'failed', at: now, since: now },
    incident: { id: 'i-1', beganAt: now - 60_000, confirmedAt: now - 40_000, ...facts },
  } as unknown as SubjectState
  let name = 'old'
  const states = {
    ...statesPart(),
    views: () => [{ key: `Sql/tcp/${name}`, type: 'Sql', monitor: `tcp ${name}`, check: 'connect', state }],
    stateOf: ({ key }: { readonly key: string }) => (key === `Sql/tcp/${name}` ? state : 'removed'),
  } as unknown as StatesPart
  const quiet = new QuietKeeper({ config, store: undefined, now: Date.now })
  const part = notifyPart({
    config,
    version: '0',
    rows: async () => outboxRows(),
    states,
    quiet,
    watching: neverWatching,
  })
  onTestFinished(async () => await part.close?.())
  await part.open?.()
  await part.start?.()
  part.answers?.()
  const isPosted = (monitor: string): boolean => posted.some((body) => body.includes(`"monitor":"${monitor}"`))
  await until(() => isPosted('tcp old'))
  expect(isPosted('tcp new')).toBe(false)
  const commit = await part.reload?.(config)
  name = 'new'
  commit?.()
  await until(() => isPosted('tcp new'))
})
