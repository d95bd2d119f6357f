import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NoSlot, type Slot, type SlotRequest, Slots, scheduleSlots } from '../../../src/core/checks/engine/limits.ts'
import { type SlotLane, WaitingList } from '../../../src/core/checks/engine/waiting-list.ts'
import { sortedSlots } from '../../support/engine/sorted-slots.ts'

const max = { callers: 6, schedule: 5, host: 3, database: 1 }
const never = new AbortController().signal

/** An event that happens to both implementations. `which` selects one of those that wait or hold a slot. */
type Step =
  | { readonly do: 'take'; readonly request: SlotRequest; readonly together: number }
  | { readonly do: 'release' | 'detach' | 'detach, keeping the database' | 'abort'; readonly which: number }

const target = fc.record({
  host: fc.constantFrom(undefined, 'a', 'A', 'b', 'c', 'd'),
  database: fc.constantFrom(undefined, undefined, 'a:1', 'a:2', 'b:1', '/data/file'),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('take' as const),
      request: fc.record({
        target,
        name: fc.constantFrom('one', 'two', 'three', 'four'),
        priority: fc.integer({ min: 0, max: 2 }),
        lane: fc.constantFrom<SlotLane>('callers', 'schedule'),
      }),
      together: fc.integer({ min: 0, max: 5 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'release' as const,
        'release' as const,
        'detach' as const,
        'detach, keeping the database' as const,
        'abort' as const,
      ),
      which: fc.nat(1_000),
    }),
  },
)

/** Carries the steps out, and returns what each arrival got, in the order of time. */
async function happenings(slots: Pick<Slots, 'take'>, steps: readonly Step[]): Promise<readonly string[]> {
  const log: string[] = []
  const leases: { readonly slot: Slot; readonly at: number }[] = []
  // Several arrivals share a signal, as the monitors of a run do.
  const controllers = Array.from({ length: 6 }, () => new AbortController())
  for (const [at, one] of steps.entries()) {
    if (one.do === 'take') {
      const { signal = never } = controllers[one.together] ?? {}
      slots.take({ ...one.request, name: `${one.request.name} ${at}` }, signal).then(
        (slot) => {
          log.push(`${at} starts, waited for ${slot.waitedFor}`)
          leases.push({ slot, at })
        },
        (error: unknown) => log.push(`${at} ${error instanceof NoSlot ? error.message : `throws ${error}`}`),
      )
    } else if (one.do === 'abort') {
      const index = one.which % controllers.length
      controllers[index]?.abort(new Error('over'))
      controllers[index] = new AbortController()
    } else {
      const [holder] = leases.splice(one.which % Math.max(1, leases.length), 1)
      if (holder && one.do === 'release') holder.slot.release()
      else if (holder) {
        const detached = holder.slot.detach({ keepDatabase: one.do !== 'detach' })
        log.push(`${holder.at} detached: ${detached}`)
        leases.push(holder)
      }
    }
    // One turn for the promises of this step.
    await new Promise(setImmediate)
  }
  return log
}

describe('the waiting list', () => {
  test('H9 starts, aborts and names what others wait for in the same order as a list that is sorted at each arrival', async () => {
    let waited = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120 }), async (steps) => {
        const log = await happenings(new Slots(max), steps)
        waited += log.filter((line) => /waited for (?!undefined)/.test(line)).length
        expect(log).toEqual(await happenings(sortedSlots(max), steps))
      }),
      { numRuns: 150 },
    )
    expect(waited).toBeGreaterThan(100)
  })

  test('H9 all that wait with one signal share one listener, which goes with the last of them', async () => {
    const slots = new Slots({ callers: 1 })
    const over = new AbortController()
    const take = (): Promise<Slot> => slots.take({ target: {}, name: 'a' }, over.signal)
    const first = await take()
    const others = Array.from({ length: 3 }, take)
    expect(getEventListeners(over.signal, 'abort')).toHaveLength(1)
    first.release()
    for (const other of others) (await other).release()
    expect(getEventListeners(over.signal, 'abort')).toHaveLength(0)
  })

  test('H9 ten times as many that wait take less than twenty times as many comparisons', () => {
    const hosts = (count: number, at: number): string => `host ${at % (count / 10)}`
    const comparisons = (count: number): number => {
      let reads = 0
      const isFull = (): boolean => full
      let full = true
      const list = new WaitingList(isFull)
      const entries = Array.from({ length: count }, (_, arrival) => {
        // In an order that repeats and resembles none.
        const priority = (arrival * 7_919) % count
        const entry = {
          lane: { scope: 'lane', name: 'callers' },
          host: { scope: 'host', name: hosts(count, arrival) },
          database: { scope: 'database', name: `${hosts(count, arrival)} ${arrival % 3}` },
          arrival,
          get priority() {
            reads += 1
            return priority
          },
        } as const
        list.add(entry)
        return entry
      })
      full = false
      for (const { host, database } of entries) {
        list.changed(database)
        list.changed(host)
      }
      for (const entry of entries.slice(0, count / 2)) list.delete(entry)
      const order: number[] = []
      for (let entry = list.next(); entry; entry = list.next()) {
        list.delete(entry)
        order.push((entry.arrival * 7_919) % count)
      }
      expect(order).toHaveLength(count / 2)
      expect(order).toEqual(order.toSorted((a, b) => a - b))
      return reads
    }
    expect(comparisons(10_000) / comparisons(1_000)).toBeLessThan(20)
  })
})

describe('lanes', () => {
  test('H9 runs of the schedule do not wait for callers that hold all of their slots, and neither the other way round', async () => {
    const slots = new Slots({ callers: 1, schedule: 1 })
    const take = (lane: SlotLane): Promise<Slot> => slots.take({ target: {}, name: lane, lane }, never)
    const caller = await take('callers')
    const scheduled = await take('schedule')
    expect([caller.waitedFor, scheduled.waitedFor]).toEqual([undefined, undefined])
    const next = take('schedule')
    caller.release()
    scheduled.release()
    expect((await next).waitedFor).toBe('schedule (1 monitor of the schedule at a time)')
  })

  test('H9 both lanes together run four monitors of a host at a time', async () => {
    const slots = new Slots()
    const take = (lane: SlotLane): Promise<Slot> => slots.take({ target: { host: 'a' }, name: lane, lane }, never)
    const [first] = await Promise.all([take('callers'), take('callers'), take('schedule'), take('schedule')])
    const fifth = take('schedule')
    first.release()
    expect((await fifth).waitedFor).toBe('callers, callers, schedule and 1 more (4 monitors at a time per host)')
  })

  test.each([
    [{ runsPerMinute: 0, runMs: 0 }, 200],
    [{ runsPerMinute: 60_000, runMs: 50 }, 200],
    [{ runsPerMinute: 60_000, runMs: 1_000 }, 2_000],
    [{ runsPerMinute: 1_001, runMs: 10_000 }, 334],
    [{ runsPerMinute: 1_000_000, runMs: 10_000 }, 4_000],
  ])('a schedule of %j has %i slots: twice the runs in progress, 200 to 4,000', (load, count) => {
    expect(scheduleSlots(load)).toBe(count)
  })
})
