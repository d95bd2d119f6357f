import { expect, onTestFinished, test } from 'vitest'
import { type Listener, monitorOf, outage, restarts, startListener, watch } from '../support/program/confirmation.ts'
import { startServeProcess } from '../support/program/serve-process.ts'
import { until } from '../support/suite/until.ts'
import { maxMs } from './scheduled-web.ts'

const second = 1_000
const intervalMs = 5 * second
/** Twice the interval, so that a busy machine makes no outage of a restart. */
const confirmMs = 10 * second
const times = 4

const listeners = async (prefix: string, count: number): Promise<readonly Listener[]> => {
  const all = await Promise.all(Array.from({ length: count }, (_, at) => startListener(`${prefix}${at}`)))
  onTestFinished(async () => {
    for (const one of all) await one.down()
  })
  return all
}
const lines = (all: readonly Listener[]): string =>
  all.map(({ name, host, port }) => `      - {kind: tcp, name: ${name}, host: ${host}, port: ${port}}\n`).join('')
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

test('W18 200 restarts of 50 real listeners are 200 blips and no incident, 50 outages are one incident each, and the seventh restart within an hour is flapping', {
  timeout: 2 * maxMs,
}, async () => {
  const restarted = await listeners('restarted', 50)
  const broken = await listeners('broken', 50)
  const [flapping] = await listeners('flapping', 1)
  if (!flapping) throw new Error('there is no listener')
  await using serve =
    await startServeProcess(`serve: {confirm: ${confirmMs}ms, every: {Basic: ${intervalMs}ms, Standard: off, Advanced: off}}
types:
  App:
    host: false
    flapping: off
    monitors:
${lines([...restarted, ...broken])}  Batch:
    host: false
    monitors:
${lines([flapping])}`)
  const view = watch(serve)
  const all = [...restarted, ...broken, flapping]
  for (const one of all) await until(async () => (await view.isWell(monitorOf(one))) === true, maxMs, 250)

  /** A caller's run counts as one of the schedule does. */
  const look = async (isWell: boolean): Promise<void> => {
    const url = `http://127.0.0.1:${serve.port}/healthcheck?ServerType=Batch&ExecutionMode=Basic`
    await until(
      async () => {
        const answer = await fetch(url, { headers: { 'cache-control': 'no-cache', accept: 'application/json' } })
        await answer.text()
        return (await view.isWell(monitorOf(flapping))) === isWell
      },
      maxMs,
      250,
    )
  }
  const flaps = async (): Promise<void> => {
    for (let nth = 1; nth <= 7; nth += 1) {
      expect((await view.incidents()).get(monitorOf(flapping)) ?? []).toEqual([])
      await flapping.down()
      await look(false)
      await flapping.up()
      await look(true)
    }
    await until(async () => ((await view.incidents()).get(monitorOf(flapping)) ?? []).length > 0, maxMs, 250)
  }
  const [outages] = await Promise.all([
    Promise.all(broken.map((one) => outage(one, view, { ms: intervalMs + confirmMs + 20 * second, maxMs }))),
    Promise.all(restarted.map((one) => restarts(one, view, { times, restMs: () => second, maxMs }))),
    flaps(),
  ])

  const incidents = await view.incidents()
  expect(restarted.flatMap((one) => incidents.get(monitorOf(one)) ?? [])).toEqual([])
  for (const one of restarted) expect(await view.blips(monitorOf(one)), one.name).toBe(times)

  for (const { downAt, upAt, faults } of outages) {
    expect(faults).toMatchObject([{ check: 'connect', fault: 'refused', ending: 'Recovered' }])
    const { from = 0, to = 0 } = faults[0] ?? {}
    expect(from).toBeGreaterThanOrEqual(downAt)
    expect(from).toBeLessThan(upAt)
    expect(to).toBeGreaterThanOrEqual(upAt)
  }
  expect(median(outages.map(({ downAt, faults }) => (faults[0]?.from ?? 0) - downAt))).toBeLessThanOrEqual(intervalMs)
  expect(median(outages.map(({ upAt, faults }) => (faults[0]?.to ?? 0) - upAt))).toBeLessThanOrEqual(intervalMs)

  expect(incidents.get(monitorOf(flapping))).toMatchObject([
    { fault: 'refused', ending: undefined, message: expect.stringMatching(/^7 faults within an hour: .*refused/) },
  ])
})
