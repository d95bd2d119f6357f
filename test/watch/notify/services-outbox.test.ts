import type { RequestListener } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { services } from '../../../src/core/watch/notify/receivers/services/services.ts'
import { drivenReceiver, minute, second } from '../../support/notify/driven.ts'
import { outboxRows } from '../../support/notify/outbox-rows.ts'
import { type ServiceRow, serviceRows, settingsAt } from '../../support/notify/service-rows.ts'
import { isQuick } from '../../support/suite/tier.ts'
import { farMs, until } from '../../support/suite/until.ts'

const end = /RECOVERED|\/close\?|"event_action":"resolve"/
/** One of each way: a body, a member, a path that is the same in each attempt, an alert for each. */
const inQuick = ['slack', 'telegram', 'matrix', 'jsm']
const names = services.map(({ name }) => name).filter((name) => inQuick.includes(name) === isQuick())

/** A driver with a receiver of the service, and what it requests. `answer`: undefined where the service accepts. */
async function driven(name: string, answer: (request: string, at: number) => RequestListener | undefined) {
  const row: ServiceRow = serviceRows[name] ?? expect.fail(`${name} has no row`)
  const requests: { readonly text: string; readonly at: number }[] = []
  const fixture = await drivenReceiver({
    rows: outboxRows(),
    yaml: (origin) => JSON.stringify({ name: 'chat', [name]: settingsAt(name, origin) }),
    ...{ env: row.env, accepts: row.accepts },
    answer: ({ url }, body) => {
      const text = `${url} ${body}`
      requests.push({ text, at: fixture.now() })
      return answer(text, requests.length)
    },
  })
  const driver = await fixture.start()
  return { ...{ fixture, row, requests, driver } }
}
type Driven = Awaited<ReturnType<typeof driven>>

/** Lets time pass until so many attempts have ended. */
const ended = async ({ fixture, driver }: Driven, count: number): Promise<true> =>
  await until(
    () => {
      const { accepted = 0, failed = 0, refused = 0 } = driver.figures()[0]?.results ?? {}
      if (accepted + failed + refused >= count) return true
      fixture.pass(driver, second)
      return false
    },
    farMs,
    2,
  )

/** Lets time pass without a new fault. Returns how many requests it brings. */
async function quiet({ fixture, driver, requests }: Driven, ms: number): Promise<number> {
  const before = requests.length
  for (let at = 0; at < ms; at += 10 * second) {
    fixture.pass(driver, 10 * second)
    await setImmediate()
  }
  return requests.length - before
}

describe.each(names)('simulated %s behind the outbox', (name) => {
  test('W23 it gets a message again whose answer was lost, and once it has accepted that, never again', async () => {
    const one = await driven(name, (_, at) => (at === 1 ? ({ socket }) => void socket.destroy() : undefined))
    one.fixture.fail(one.driver, 'orders')
    await ended(one, 2)
    expect(one.driver.figures()[0]?.results).toMatchObject({ failed: 1, accepted: 1 })
    expect(one.requests.map(({ text }) => text.includes('orders'))).toEqual([true, true])
    expect(await quiet(one, 30 * minute)).toBe(0)
  })

  test('W23 it gets nothing before the end of the pause for which it asks', async () => {
    const slow: RequestListener = (_, response) => void response.writeHead(429, { 'retry-after': '120' }).end()
    const one = await driven(name, (_, at) => (at === 1 ? slow : undefined))
    one.fixture.fail(one.driver, 'orders')
    await ended(one, 2)
    const [first, second] = one.requests.map(({ at }) => at)
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(120_000)
    expect(one.driver.figures()[0]?.results.accepted).toBe(1)
  })

  test('W23 what it refuses is logged, and sent again after five minutes', async () => {
    const one = await driven(name, () => (_, response) => {
      const { status, body } = one.row.refuses
      response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))
    })
    one.fixture.fail(one.driver, 'orders')
    await ended(one, 1)
    expect(await quiet(one, 4 * minute)).toBe(0)
    await ended(one, 2)
    expect(one.driver.figures()[0]?.results.refused).toBe(2)
    expect(one.fixture.logs.filter((line) => line.startsWith('receiver chat: '))).toHaveLength(2)
  })

  test('W23 it gets the end of a fault that it knows after a restart, once', async () => {
    const one = await driven(name, () => undefined)
    one.fixture.fail(one.driver, 'orders')
    await ended(one, 1)
    expect(await quiet(one, minute)).toBe(0)
    expect(one.driver.figures()[0]?.pending).toBe(0)
    await one.driver.close()
    const next = { ...one, driver: await one.fixture.start() }
    one.fixture.recover(next.driver, 'orders')
    await ended(next, 1)
    expect(one.requests.map(({ text }) => end.test(text))).toEqual([false, true])
    expect(await quiet(next, 30 * minute)).toBe(0)
  })
})

test.each(services.filter(({ name, alerts }) => alerts !== undefined && names.includes(name)).map(({ name }) => name))(
  'W23 simulated %s gets again only the fault that it refuses, and not the others of the batch',
  async (name) => {
    const one = await driven(name, (text) =>
      text.includes('billing')
        ? (_, response) => void response.writeHead(one.row.refuses.status).end(JSON.stringify(one.row.refuses.body))
        : undefined,
    )
    one.fixture.fail(one.driver, 'orders')
    one.fixture.fail(one.driver, 'billing')
    await ended(one, 2)
    await quiet(one, 6 * minute)
    const of = (monitor: string): number => one.requests.filter(({ text }) => text.includes(monitor)).length
    expect([of('orders'), of('billing')]).toEqual([1, 2])
  },
)
