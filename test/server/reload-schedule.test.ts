import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { IsOwed } from '../../src/core/checks/engine/index.ts'
import { ExecutionMode } from '../../src/core/protocol/index.ts'
import { schedulePart } from '../../src/core/service/watch/schedule.ts'
import { statesPart } from '../../src/core/service/watch/states.ts'
import { load } from '../config/given.ts'

const beganAt = Date.UTC(2026, 10, 24)
beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate', 'Date'],
    now: beganAt,
  })
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now() - beganAt)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const tcp = (name: string, more = ''): string => `{kind: tcp, name: ${name}, host: a, port: 1, every: 10s${more}}`
const config = async (...monitors: readonly string[]) => ({
  ...(await load(`types: {App: {host: false, monitors: [${monitors.join(', ')}]}}`)),
  origin: '/svc.yaml',
})
type Config = Awaited<ReturnType<typeof config>>

/** A schedule on a clock of the test. Lists the seconds at which each monitor began. */
async function scheduled(first: Config, run: () => Promise<undefined> = async () => undefined) {
  const began = new Map<string, number[]>()
  const aborted: string[] = []
  const states = statesPart()
  let isOwed: IsOwed = () => false
  const part = schedulePart(
    {
      config: first,
      watchObservations: () => {},
      watchOwed: (owed) => {
        isOwed = owed
      },
      watchReports: () => {},
      expect: () => {},
      run: async ({ monitor: { name } }, _, { signal }) => {
        began.set(name, [...(began.get(name) ?? []), Date.now() - beganAt])
        signal.addEventListener('abort', () => aborted.push(name))
        return await run()
      },
      look: async () => undefined,
      latest: () => undefined,
      onError: (_, error) => {
        throw error
      },
    },
    states,
  )
  await part.open?.()
  part.answers?.()
  return {
    pass: async (ms: number) => void (await vi.advanceTimersByTimeAsync(ms)),
    reload: async (next: Config) => (await part.reload?.(next))?.(),
    of: (name: string) => began.get(name) ?? [],
    aborted,
    owes: (name: string, mode: ExecutionMode) =>
      part.monitors().some(({ monitor }) => monitor.name === name && isOwed(monitor, mode)),
    load: part.load,
    end: () => {
      part.cancel?.()
      states.cancel?.()
    },
  }
}

test('W2 the schedule owes a run from the moment at which it is due until it begins, at its depth and above', async () => {
  const schedule = await scheduled(await config(tcp('a')))
  await schedule.pass(60_000)
  const due = (schedule.of('tcp a').at(-1) ?? 0) + 10_000
  const owed = () => ExecutionMode.values.filter((mode) => schedule.owes('tcp a', mode))
  // Time passes, and no timer has its turn.
  vi.setSystemTime(beganAt + due - 1)
  expect(owed()).toEqual([])
  vi.setSystemTime(beganAt + due)
  expect(owed()).toEqual(['Basic', 'Standard'])
  await schedule.pass(due - 60_000)
  expect(schedule.of('tcp a').at(-1)).toBeGreaterThanOrEqual(due)
  expect(owed()).toEqual([])
  schedule.end()
})

const before = () => config(tcp('a'), tcp('b'), tcp('c'))

test('W9 a reload keeps the times of each monitor that did not change, on a simulated clock', async () => {
  const undisturbed = await scheduled(await before())
  await undisturbed.pass(300_000)
  undisturbed.end()
  vi.setSystemTime(beganAt)
  const reloaded = await scheduled(await before())
  await reloaded.pass(123_456)
  await reloaded.reload(await config(tcp('d'), tcp('c', ', timeout: 3s'), tcp('a')))
  const ofRemoved = reloaded.of('tcp b').length
  await reloaded.pass(300_000 - 123_456)
  reloaded.end()
  expect(reloaded.of('tcp a').length).toBeGreaterThan(28)
  expect(reloaded.of('tcp a')).toEqual(undisturbed.of('tcp a'))
  expect(reloaded.of('tcp b')).toHaveLength(ofRemoved)
  expect(reloaded.of('tcp d').length).toBeGreaterThan(15)
  // One that changed begins anew, and then runs at the times that it had.
  const times = (of: readonly number[]): ReadonlySet<number> => new Set(of.slice(-5).map((ms) => ms % 10_000))
  expect(times(reloaded.of('tcp c'))).toEqual(times(undisturbed.of('tcp c')))
})

test('W9 a reload ends the scheduled runs of monitors that changed or are gone, and no others', async () => {
  const schedule = await scheduled(await before(), async () => await new Promise(() => {}))
  await schedule.pass(15_000)
  await schedule.reload(await config(tcp('a'), tcp('c', ', timeout: 3s')))
  expect(schedule.aborted.toSorted()).toEqual(['tcp b', 'tcp c'])
  schedule.end()
})

test('W9 a reload turns the schedule off and on again, and says what it costs', async () => {
  const schedule = await scheduled(await config(tcp('a')))
  expect(schedule.load()).toMatch(/^1 monitor, /)
  await schedule.reload({ ...(await config(tcp('a'))), serve: { ...(await before()).serve, every: 'off' } })
  expect(schedule.load()).toBeUndefined()
  await schedule.pass(60_000)
  expect(schedule.of('tcp a')).toEqual([])
  await schedule.reload(await before())
  expect(schedule.load()).toMatch(/^3 monitors, /)
  await schedule.pass(60_000)
  expect(schedule.of('tcp a').length).toBeGreaterThan(4)
  schedule.end()
})
