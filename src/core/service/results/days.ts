import { entryOf } from '../../base/lazy.ts'
import type { DayStatus, DaysOfMonitor, MonitorOfPage } from '../../protocol/service/service.ts'

type History = typeof import('../../watch/periods/index.ts')

const day = 86_400_000
/** How many days, today included. */
export const daysShown = 90
/** For how long an answer is valid, in milliseconds: pages reload themselves, and days change slowly. */
const validMs = 30_000
/** For how many monitors answers are kept. */
const mostAnswers = 2_000

export const dayKey = ({ type, monitor }: MonitorOfPage): string => `${type ?? ''}/${monitor}`

/** The last 90 days of monitors, with a status for each day. Keeps answers for half a minute. */
export class DayHistory {
  readonly #answers = new Map<string, { readonly at: number; readonly days: DaysOfMonitor | undefined }>()

  /** By `dayKey`. Monitors that history does not know are missing. `now`: milliseconds since 1970. */
  async of(
    library: History,
    source: Parameters<History['periodsOf']>[0],
    ids: readonly MonitorOfPage[],
    now: number,
  ): Promise<ReadonlyMap<string, DaysOfMonitor>> {
    const keys = ids.map(dayKey)
    const missing = new Set(keys.filter((key) => !this.#isFresh(key, now)))
    if (missing.size > 0) {
      const byKey = await read(library, source, missing, now)
      if (this.#answers.size + missing.size > mostAnswers) this.#answers.clear()
      for (const key of missing) this.#answers.set(key, { at: now, days: byKey.get(key) })
    }
    return new Map(
      keys.flatMap((key) => {
        const days = this.#answers.get(key)?.days
        return days ? [[key, days] as const] : []
      }),
    )
  }

  #isFresh(key: string, now: number): boolean {
    const entry = this.#answers.get(key)
    return entry !== undefined && now - entry.at < validMs && now >= entry.at
  }
}

async function read(
  library: History,
  source: Parameters<History['periodsOf']>[0],
  keys: ReadonlySet<string>,
  now: number,
): Promise<ReadonlyMap<string, DaysOfMonitor>> {
  const from = (Math.floor(now / day) - daysShown + 1) * day
  // The machine itself belongs to each of its types in the history, and to none on the page.
  const keyOf = ({ type, name }: { readonly type: string; readonly name: string }): string | undefined =>
    [`${type}/${name}`, `/${name}`].find((key) => keys.has(key))
  const includes = (one: { readonly type: string; readonly name: string }): boolean => keyOf(one) !== undefined
  const all = await library.periodsOf(source, { from, to: now, step: day, figures: false, includes }, now)
  const byKey = new Map<string, DaysOfMonitor>()
  for (const monitor of all) {
    const key = keyOf(monitor)
    if (key !== undefined) entryOf(byKey, key, () => daysOf(library, monitor, { from, now }))
  }
  return byKey
}

function daysOf(
  library: History,
  monitor: Parameters<History['timeKnown']>[0],
  { from, now }: { readonly from: number; readonly now: number },
): DaysOfMonitor {
  const days = Array.from({ length: daysShown }, (): DayStatus => 'unobserved')
  for (const { from: start, pack } of library.inSteps(monitor.periods, day)) {
    const at = Math.floor((start - from) / day)
    if (at >= 0 && at < daysShown) days[at] = statusOf(pack)
  }
  const span = library.timeKnown(monitor, { from, now, exists: true })
  const { percent } = library.availability(monitor.periods, 2, span.from, span.to)
  return { days, availabilityPercent: percent }
}

function statusOf({ up, down, warned }: ReturnType<History['emptyPack']>): DayStatus {
  if (down[2] > 0) return 'failed'
  if (warned !== 0) return 'warning'
  return up[2] > 0 ? 'ok' : 'unobserved'
}
