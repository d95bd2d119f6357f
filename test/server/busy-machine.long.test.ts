import { expect, test } from 'vitest'
import { inNamespace, missingNamespace } from '../support/faults/network.ts'
import type { TimeWaitAnswer } from '../support/faults/time-wait-child.ts'
import { suiteWith } from '../support/suite/peer.ts'

suiteWith(missingNamespace(), 'a machine with 30,000 connections in TIME_WAIT', () => {
  test('S8 S11 the page and /metrics answer local callers with details within 1 s beside /livez in a loop', async () => {
    const { timeWait, pages } = (await inNamespace(
      new URL('../support/faults/time-wait-child.ts', import.meta.url),
    )) as TimeWaitAnswer
    expect(timeWait).toBeGreaterThanOrEqual(30_000)
    expect(pages.filter(({ ms, hasDetails }) => ms > 1_000 || !hasDetails)).toEqual([])
  }, 180_000)
})
