import type { CheckContext } from '../../engine/index.ts'

/** The period in which an increase counts, in milliseconds. A burst is reported for that long, and not for weeks. */
const periodMs = 3_600_000
/** Milliseconds between two stored readings. */
const everyMs = 300_000

/** By how much counters have increased since an earlier run, all over the same period. */
export type Increase<Name extends string> = {
  readonly by: Readonly<Record<Name, number>>
  readonly overMs: number
}

/**
 * The increase of counters that a server counts since its start: over the last hour, or since the last run before that.
 * `upMs` is the time since the start of the server. Undefined in the first run, or without a store, unless the server
 * started within the last hour. Never rejects.
 */
export async function increaseOf<Name extends string>(
  counters: Readonly<Record<Name, number>>,
  upMs: number,
  { history, date }: Pick<CheckContext, 'history' | 'date'>,
): Promise<Increase<Name> | undefined> {
  const now = date().getTime()
  const entries = Object.entries<number>(counters)
  const readings = await Promise.all(entries.map(([name, value]) => history(`counter ${name}`, value, everyMs)))
  const startedAt = now - upMs
  const bases = entries.map(([, value], index) =>
    baseOf(readings[index]?.slice(0, -1) ?? [], { now, value, startedAt }),
  )
  const [first] = bases
  if (first === undefined || bases.includes(undefined)) return undefined
  const by = entries.map(([name, value], index) => [name, value - (bases[index]?.value ?? 0)] as const)
  return { by: Object.fromEntries(by) as Record<Name, number>, overMs: now - first.at }
}

type Reading = { readonly at: number; readonly value: number }

/** The reading to compare with. Readings from before the counter began anew do not count. */
function baseOf(
  earlier: readonly Reading[],
  { now, value, startedAt }: { readonly now: number; readonly value: number; readonly startedAt: number },
): Reading | undefined {
  const last = earlier.at(-1)
  const base = earlier.findLast(({ at }) => now - at >= periodMs) ?? earlier[0]
  // The server itself began to count within the period, or after the reading.
  if (startedAt > (base?.at ?? now - periodMs)) return { at: startedAt, value: 0 }
  if (last === undefined || base === undefined) return undefined
  const isReset = last.value > value || base.value > value
  return isReset ? { at: last.at, value: 0 } : base
}
