import { text as textOf } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { Fault } from '../../src/core/errors.ts'
import { drillPart } from '../../src/core/parts/drill.ts'
import { load } from '../config/given.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { storeOfTest } from '../support/store/embedded.ts'
import { until } from '../support/suite/until.ts'

test('M14 W16 a drill that began while its store failed is stored once it answers, and the link in its message works', async () => {
  await using own = await storeOfTest()
  const tokens: string[] = []
  await using hook = await httpPeer((message, response) => {
    void textOf(message).then((body) => {
      tokens.push(/\/drills\/opened\/([\w-]{32})/.exec(body)?.[1] ?? '')
      response.writeHead(204).end()
    })
  })
  const yaml = `serve: {url: "https://svc.example.com"}
notify: [{name: chat, webhook: {url: "${hook.origin}/"}}]
`
  let hasStore = false
  const part = drillPart({
    config: await load(yaml),
    version: '1',
    store: async () => {
      if (!hasStore) throw new Fault('Unavailable', 'The store does not answer')
      return own.data.drills
    },
    spans: { confirmMs: 1_000, faultMs: 60_000, endMs: 60_000 },
  })
  await using stack = new AsyncDisposableStack()
  stack.defer(async () => await part.close?.())
  const { id } = await part.begin(['chat'], 'ann')
  await new Promise((resolve) => setTimeout(resolve, 15_000))
  // A message leaves only once it is stored, so nobody gets a link that nothing knows.
  expect(tokens).toEqual([])
  expect(await own.data.drills.find(id)).toBeUndefined()
  hasStore = true
  await until(async () => tokens.length > 0, 60_000, 50)
  await until(async () => (await own.data.drills.find(id)) !== undefined, 30_000, 50)
  const confirmed = await part.links.confirm(tokens[0] ?? '')
  expect(confirmed).toMatchObject({ receiver: 'chat', confirmedAt: expect.any(Number) })
  expect((await own.data.drills.find(id))?.opened).toEqual({ chat: confirmed?.confirmedAt })
  const opened = async () => (await part.show(id))?.hops.find(({ hop }) => hop === 'opened')
  await until(async () => (await opened())?.result === 'proven', 30_000, 100)
}, 120_000)
