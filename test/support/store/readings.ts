import type { History, HistoryReading } from '../../../src/core/checks/engine/index.ts'

/** A history in memory, with the time of the last reading at `now()`. */
export function memory(now: () => number = Date.now): { readonly history: History; readonly date: () => Date } {
  const stored = new Map<string, HistoryReading[]>()
  const keep: History['keep'] = async ({ series, value, everyMs }) => {
    const readings = stored.get(series) ?? []
    stored.set(series, readings)
    const reading = { at: now(), value }
    const last = readings.at(-1)
    if (!last || reading.at - last.at >= everyMs) readings.push(reading)
    return readings.at(-1) === reading ? [...readings] : [...readings, reading]
  }
  return { history: { keep, exceededSince: async () => new Map() }, date: () => new Date(now()) }
}
