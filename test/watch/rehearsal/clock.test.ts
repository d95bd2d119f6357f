import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Rehearsal, rehearse } from '../../../src/cli/serve/rehearse.ts'
import type { LogEntry } from '../../../src/core/server/index.ts'
import { maxScriptMs, overMs } from '../../../src/core/watch/rehearsal/index.ts'
import { load } from '../../config/given.ts'

const [minute, hour] = [60_000, 3_600_000]
const fault = { from: 10_000, to: 30_000, line: 3, subject: { http: '503' } } as const
let clocks: { monotonic: number; wall: number }
let log: LogEntry[]

async function startScript(endsMs = 10 * minute): Promise<Rehearsal> {
  const config = await load('types: {Sql: [{kind: tcp, name: queue, host: 127.0.0.1, port: 1}]}\n')
  const rehearsal = await rehearse({ endsMs, faults: [fault] }, config, {
    monotonic: () => clocks.monotonic,
    wall: () => clocks.wall,
  })
  rehearsal.begin((entry) => void log.push(entry))
  return rehearsal
}
/** Time passes by both clocks, or by one of them. */
function pass(monotonic: number, wall = monotonic): void {
  clocks.monotonic += monotonic
  clocks.wall += wall
  vi.advanceTimersByTime(1_000)
}
beforeEach(() => {
  clocks = { monotonic: 5_000, wall: 1_795_000_000_000 }
  log = []
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
})
afterEach(() => vi.useRealTimers())

describe('Y1 the time of a rehearsal', () => {
  test('counts from the start of the server', async () => {
    const rehearsal = await startScript()
    expect(rehearsal.server.fault()).toBeUndefined()
    pass(10_000)
    expect(rehearsal.server.fault()).toBe('503')
    pass(20_000)
    expect(rehearsal.server.fault()).toBeUndefined()
    rehearsal.finish()
  })

  test.each([
    ['the machine sleeps', 0, 5 * hour],
    ['the wall clock is set back', 10 * minute + overMs, -5 * hour],
    ['the wall clock is set ahead', 0, 5 * hour],
  ])('the process ends although %s', async (_, monotonic, wall) => {
    const rehearsal = await startScript()
    pass(monotonic, wall)
    expect(rehearsal.server.fault()).toBe('over')
    expect(rehearsal.ends.aborted).toBe(true)
    expect(rehearsal.finish()).toBe(10)
  })

  test('the longest script ends within 4 h, with the time that a server takes to stop', async () => {
    expect(maxScriptMs + overMs + minute).toBeLessThanOrEqual(4 * hour)
    const rehearsal = await startScript(maxScriptMs)
    pass(maxScriptMs + overMs)
    expect(rehearsal.ends.aborted).toBe(true)
    rehearsal.finish()
  })

  test('a fault that was polled makes it complete, one that was not says so once', async () => {
    const rehearsal = await startScript()
    pass(15_000)
    rehearsal.server.noteRequest({ address: '10.0.0.9', agent: 'gate/1', method: 'GET', path: '/healthcheck' })
    pass(20_000)
    expect(rehearsal.finish()).toBe(0)
    const other = await startScript()
    pass(40_000)
    pass(1_000)
    expect(other.finish()).toBe(10)
    expect(
      log.filter(({ msg }) => msg.startsWith('DRILL: nobody asked while http: 503 was active (line 3)')),
    ).toHaveLength(1)
  })
})
