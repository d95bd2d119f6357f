import { hostname } from 'node:os'
import { Fault } from '../../base/errors.ts'
import { lazy } from '../../base/lazy.ts'
import { type History, loadSeries } from '../../checks/engine/index.ts'
import { loadStoredMonitors } from '../../checks/plan/index.ts'
import type { Config } from '../../config/index.ts'
import type { Data } from '../../store/index.ts'
import type { OpenOptions, Part } from '../part.ts'

/**
 * The values that monitors keep from run to run, in the series of a store, by the names that svc.yaml gives to them.
 */
export function historyPart(
  { config }: OpenOptions,
  data: () => Promise<Data>,
): History & Required<Pick<Part, 'start' | 'reload'>> {
  /** The series, after those of renamed monitors have moved to their names in this configuration. */
  const seriesOf = ({ types }: Config) =>
    lazy(async () => {
      const [{ storedMonitors }, { seriesMoves }] = await Promise.all([loadStoredMonitors(), loadSeries()])
      const [{ readings }, monitors] = await Promise.all([data(), storedMonitors(types)])
      await readings.rename((names) => seriesMoves(names, monitors, hostname()))
      return readings
    })
  let series = seriesOf(config)
  return {
    keep: async (reading) => await (await series.get()).keep(reading),
    exceededSince: async (state) => await (await series.get()).exceededSince(state),
    // A store that cannot be written now costs the history of runs, and the first of them tries again.
    start: async () => {
      await series.get().catch(nothingOnFault)
    },
    reload: async (next) => () => {
      series = seriesOf(next)
      // In the background: a store that hangs must not hold up what else follows.
      void series.get().catch(nothingOnFault)
    },
  }
}

function nothingOnFault(error: unknown): undefined {
  if (!(error instanceof Fault)) throw error
  return undefined
}
