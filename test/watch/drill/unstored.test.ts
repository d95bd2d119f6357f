import { performance } from 'node:perf_hooks'
import { text as textOf } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import { drillPart } from '../../../src/core/service/drill/drill.ts'
import { load } from '../../config/given.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'
import { storeOfTest } from '../../support/store/embedded.ts'

const minute = 60_000
const start = Date.UTC(2026, 10, 24, 12)
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'], now: start })
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now() - start)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** A drill on a simulated clock, in a store that fails from the beginning. */
async function drilled() {
  const stack = new AsyncDisposableStack()
  const own = stack.use(await storeOfTest())
  const tokens: string[] = []
  const hook = stack.use(
    await httpPeer((message, response) => {
      void textOf(message).then((body) => {
        tokens.push(/\/drills\/opened\/([\w-]{32})/.exec(body)?.[1] ?? '')
        response.writeHead(204).end()
      })
    }),
  )
  const yaml = `serve: {url: "https://svc.example.com", confirm: 20s}
notify: [{name: chat, webhook: {url: "${hook.origin}/"}}]
`
  const state = { fails: true }
  const part = drillPart({
    config: await load(yaml),
    version: '1',
    store: async () => {
      if (state.fails) throw new Fault('Unavailable', 'The store does not answer')
      return own.data.drills
    },
  })
  stack.defer(async () => await part.close?.())
  const { id } = await part.begin(['chat'], 'ann')
  part.answers?.()
  const { drills } = own.data
  return {
    ...{ state, tokens, links: part.links, stored: async () => await drills.find(id) },
    show: async () => await part.show(id),
    pass: async (ms: number) => {
      for (let left = ms; left > 0; left -= 1_000) {
        await vi.advanceTimersByTimeAsync(1_000)
        // The receiver and the store answer in turns of the event loop.
        for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      }
    },
    [Symbol.asyncDispose]: async () => await stack.disposeAsync(),
  }
}

test('M14 W16 a drill that began while its store failed is stored once it answers, and its link works then', async () => {
  await using drill = await drilled()
  // After a minute it would leave without the store.
  await drill.pass(50_000)
  expect([drill.tokens, await drill.stored()]).toEqual([[], undefined])
  drill.state.fails = false
  await drill.pass(20_000)
  const [token = ''] = drill.tokens
  const confirmed = await drill.links.confirm(token)
  expect(confirmed).toMatchObject({ receiver: 'chat', confirmedAt: Date.now() })
  await drill.pass(10_000)
  const hops = (await drill.show())?.hops
  expect(hops?.find(({ hop }) => hop === 'opened')).toMatchObject({ result: 'proven' })
  expect((await drill.stored())?.opened).toEqual({ chat: confirmed?.confirmedAt })
})

test('M14 W16 so is one that was over by then, whose message left without the store', async () => {
  await using drill = await drilled()
  await drill.pass(4 * minute)
  const [token = ''] = drill.tokens
  expect(token).toMatch(/^[\w-]{32}$/)
  expect((await drill.show())?.endedAt).toEqual(expect.any(Number))
  await expect(drill.links.read(token)).rejects.toThrow('The store does not answer')
  drill.state.fails = false
  await drill.pass(2 * minute)
  expect(await drill.links.confirm(token)).toMatchObject({ receiver: 'chat', confirmedAt: Date.now() })
  expect(await drill.stored()).toMatchObject({ endedAt: expect.any(Number), opened: { chat: Date.now() } })
})

test('M14 W16 a stored drill whose end could not be stored is not one that was killed', async () => {
  await using drill = await drilled()
  drill.state.fails = false
  await drill.pass(minute)
  expect((await drill.stored())?.endedAt).toBeUndefined()
  drill.state.fails = true
  await drill.pass(4 * minute)
  drill.state.fails = false
  await drill.pass(2 * minute)
  expect(await drill.stored()).toMatchObject({ endedAt: expect.any(Number) })
})
