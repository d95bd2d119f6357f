import { afterAll, describe, expect, test } from 'vitest'
import { type KindName, monitors } from '../../src/core/checks/kinds/index.ts'
import { configurableKinds, loadKind } from '../../src/core/checks/plan/index.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { askAndLeave, type Polled, poll, polled, selfChecked } from './leak-polling.ts'
import {
  added,
  describeMeasured,
  emptied,
  forgetCode,
  holds,
  look,
  proveKind,
  proving,
  rested,
  tooMuch,
} from './leak-proof.ts'
import { removeCertificates } from './leak-row.ts'
import { rows } from './leak-rows.ts'
import { startServe } from './leak-serve.ts'

const uncounted = process.platform === 'linux' ? undefined : 'what a process holds is counted in /proc'
/** So many kinds at once: each has a process of its own, and most of the time waits. */
let places = proving ? 2 : 4
const waiting: (() => void)[] = []
async function inTurn<T>(act: () => Promise<T>): Promise<T> {
  if (places > 0) places -= 1
  else await new Promise<void>((resolve) => waiting.push(resolve))
  try {
    return await act()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else places += 1
  }
}

afterAll(() => {
  forgetCode()
  removeCertificates()
})

test('each kind that contacts other systems has its proof', async () => {
  const kinds = await Promise.all((Object.keys(monitors) as KindName[]).map(loadKind))
  // What is internal and has no target looks at this very process; the proof of svc serve runs it.
  const due = kinds.filter((kind) => !kind.internal || kind.target !== undefined).map(({ name }) => name)
  expect(Object.keys(rows).sort()).toEqual(due.sort())
  expect((await configurableKinds()).every(({ name }) => due.includes(name))).toBe(true)
})

describe.concurrent('nothing leaks', () => {
  peerSuite(uncounted, 'svc serve', () => {
    test.each([
      ['svc serve', polled],
      ['svc serve without a svc.yaml', selfChecked],
    ])(
      '%s: after many polls, some by callers that are killed, it holds what it held, and leaves no process behind',
      { timeout: 900_000 },
      (name, started) => inTurn(() => proveServe(name, started)),
    )
  })
  for (const [kind, row] of Object.entries(rows)) {
    const against = row.simulated === undefined ? '' : `, ${row.simulated} being simulated`
    peerSuite(uncounted ?? row.missing, kind, () => {
      test(`after its runs nothing of ${kind} is left, on either side${against}`, { timeout: 900_000 }, async () => {
        const measured = await inTurn(() => proveKind(kind as KindName, row))
        if (proving) process.stderr.write(describeMeasured(measured))
      })
    })
  }
})

/** A server lets go of connections and of what its callers waited for in its own time: it has timers of a second. */
const calmMs = 1_500
/** Milliseconds between two looks at what it keeps. */
const apartMs = proving ? calmMs : 500

async function proveServe(kind: string, started: () => Promise<Polled>): Promise<void> {
  const peers = await started()
  const serve = await startServe(peers.yaml, peers.env)
  const all = proving ? 3_000 : 144
  const pollAll = async (polls: number): Promise<void> => {
    const { unexpected, answered, killed } = await poll(serve.port, peers.types, polls)
    expect(unexpected).toEqual([])
    expect(answered + killed).toBe(polls)
    expect(killed).toBeGreaterThan(polls / 100)
  }
  try {
    // The server keeps the last run of each type in each mode, for anonymous callers and for peers: wait for all of them.
    await pollAll(proving ? 840 : 144)
    const before = await rested(serve, calmMs)
    const start = performance.now()
    await pollAll(all / 2)
    const middle = await look(serve, before, apartMs)
    await pollAll(all / 2)
    const after = await look(serve, before, apartMs)
    const second = added(after, middle)
    const measured = { kind, runs: all, seconds: (performance.now() - start) / 1_000, before, after, second }
    if (proving) process.stderr.write(describeMeasured(measured))
    expect(holds(after)).toEqual(holds(before))
    // After few polls what it keeps for good is still filling up: only the full run is strict.
    expect(tooMuch(measured, all / 2, proving ? 150 + 0.02 * all : 600)).toEqual([])
    expect(await emptied(peers.left)).toEqual([])
    expect(serve.warnings()).toEqual([])
    await askAndLeave(serve.port, peers.types)
    expect(await serve.stop()).toEqual({ code: 0, left: [] })
  } finally {
    await serve.stop()
    await peers.stop()
  }
}
