import { hostname } from 'node:os'
import { type History, loadSeries } from '../engine/index.ts'
import { Fault } from '../errors.ts'
import { lazy } from '../lazy.ts'
import { loadStoredMonitors } from '../plan/index.ts'
import type { Data } from '../store/index.ts'
import type { OpenOptions, Part } from './part.ts'

/** What monitors remember from run to run, in the series of a store, by the names that svc.yaml gives to them. */
export function historyPart(
  { config: { types } }: OpenOptions,
  data: () => Promise<Data>,
): History & Required<Pick<Part, 'start'>> {
  const series = lazy(async () => {
    const [{ storedMonitors }, { seriesMoves }] = await Promise.all([loadStoredMonitors(), loadSeries()])
    const [{ readings }, monitors] = await Promise.all([data(), storedMonitors(types)])
    await readings.rename((names) => seriesMoves(names, monitors, hostname()))
    return readings
  })
  return {
    keep: async (reading) => await (await series.get()).keep(reading),
    exceededSince: async (state) => await (await series.get()).exceededSince(state),
    // A store that cannot be written now costs the history of runs, and the first of them tries again.
    start: async () => {
      await series.get().catch(nothingOnFault)
    },
  }
}

function nothingOnFault(error: unknown): undefined {
  if (!(error instanceof Fault)) throw error
  return undefined
}
