import { performance } from 'node:perf_hooks'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ofType } from '../../src/core/checks/plan/index.ts'
import { resultLifeMs } from '../../src/core/protocol/index.ts'
import { healthPart } from '../../src/core/service/health/health.ts'
import { load } from '../config/given.ts'
import { countingPeer } from './scheduled-web.ts'

test('W2 a caller waits for a run that the schedule owes, and makes none', async () => {
  const { port, count } = await countingPeer()
  const config = {
    ...(await load(`types: {App: {host: false, monitors: [{kind: tcp, name: a, host: 127.0.0.1, port: ${port}}]}}`)),
    origin: '/svc.yaml',
  }
  const health = healthPart(
    { version: '1.2.3', config, store: undefined, shared: true } as never,
    {} as never,
    undefined,
  )
  onTestFinished(() => health.cancel?.())
  await health.open?.()
  const work = health.scheduleWork({ log: undefined, config } as never)
  const [monitor] = config.types.App?.monitors.map((one) => ofType('App', one)) ?? []
  const signal = new AbortController().signal
  const runScheduled = async () => await work.run({ monitor } as never, 'Standard', { signal, repeatsRefused: false })
  const ask = async () => await health.shared?.('Standard', 'App', { caller: {}, signal } as never, async () => false)
  const runs = async () => (await health.metrics?.(1_000))?.find(({ name }) => name === 'svc_runs')?.samples

  await runScheduled()
  expect((await ask())?.run.monitors).toHaveLength(1)
  expect(count()).toBe(1)

  // The result expires, and the schedule begins its run in the turn after the one in which the caller asks.
  const ahead = resultLifeMs.Standard + 1
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + ahead)
  let due = true
  work.watchOwed(() => due)
  setImmediate(() => {
    due = false
    void runScheduled()
  })
  expect((await ask())?.run.monitors[0]?.results.every(({ status }) => status === 'ok')).toBe(true)
  expect(count()).toBe(2)
  expect(await runs()).toEqual([
    expect.objectContaining({ labels: { type: 'App', depth: 'Standard', trigger: 'schedule' } }),
  ])

  // What it does not owe is observed at once.
  vi.spyOn(performance, 'now').mockImplementation(() => now() + 2 * ahead)
  await ask()
  expect(count()).toBe(3)
  expect(await runs()).toHaveLength(2)
  vi.restoreAllMocks()
})
