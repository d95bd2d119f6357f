import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { DrillRun } from '../../../src/core/service/drill/drill-run.ts'
import type { Receiver } from '../../../src/core/watch/notify/index.ts'
import type { OutboxRows } from '../../../src/core/watch/outbox/index.ts'
import { mostEnds } from '../../../src/core/watch/outbox/policy.ts'
import { storeOfTest } from '../../support/store/embedded.ts'

const second = 1_000
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout', 'Date'] })
})
afterEach(() => vi.useRealTimers())

/** Accepts the begin of each drill and never its end: what it is to learn stays in the store. */
const forgetful = (name: string): Receiver => ({
  sendsEach: true,
  describe: () => ({ name, kind: 'webhook', to: 'http://127.0.0.1:1' }),
  send: async (notices) =>
    notices.some(({ endedAt }) => endedAt !== undefined)
      ? { what: 'later', message: 'no answer', isPerhapsReceived: false }
      : { what: 'accepted' },
  close: async () => {},
})

/** A drill from its begin to its end, on a simulated clock. */
async function drilled(outbox: OutboxRows, names: readonly string[]): Promise<void> {
  const run = new DrillRun({
    server: 'here',
    by: 'ann',
    receivers: names.map((name) => ({
      name,
      receiver: forgetful(name),
      callback: undefined,
      openedAt: () => undefined,
    })),
    spans: { confirmMs: second, faultMs: second, endMs: 20 * second },
    rows: outbox,
    now: () => Date.now(),
    log: () => {},
    signal: new AbortController().signal,
  })
  let isOver = false
  const over = run.run().then(() => {
    isOver = true
  })
  while (!isOver) {
    await vi.advanceTimersByTimeAsync(second)
    // The store answers in turns of the event loop.
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  }
  await over
}

test('M14 the store has one row for each receiver with the latest 100 ends, however many drills could not end there', async () => {
  await using own = await storeOfTest()
  const { outbox } = own.data.drills
  const names = ['chat', 'pager']
  const endsOf = async (): Promise<readonly (readonly [string, number])[]> => {
    const rows = (await outbox.read()).map(({ receiver, row }) => [receiver, row?.ends.length ?? 0] as const)
    return rows.toSorted(([one], [other]) => one.localeCompare(other))
  }
  for (let count = 1; count <= 3; count += 1) {
    await drilled(outbox, names)
    expect(await endsOf()).toEqual(names.map((name) => [name, count]))
  }
  // As after months without an answer.
  const full = (await outbox.read()).map(({ row, ...one }) => {
    const [first] = row?.ends ?? []
    if (!first) throw new Error('it has no end')
    const ends = Array.from({ length: mostEnds }, (_, at) => ({ ...first, incident: `old ${at}` }))
    return { ...one, row: { ends } }
  })
  await outbox.write(full)
  expect(await endsOf()).toEqual(names.map((name) => [name, mostEnds]))
  await drilled(outbox, names)
  expect(await endsOf()).toEqual(names.map((name) => [name, mostEnds]))
})
