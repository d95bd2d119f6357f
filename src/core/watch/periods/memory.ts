import type { HistorySource } from './reader.ts'
import { Recorder } from './recorder.ts'
import type { BlockRow, HistoryRows } from './rows.ts'

/** How long a process without a store remembers. Milliseconds. */
export const memoryMs = 24 * 3_600_000

/** A history that ends with the process. It keeps the finest periods, encoded, for a day. */
export function memorySource(): HistorySource {
  const names = new Map<number, string>()
  const monitors: { readonly key: string; readonly number: number }[] = []
  let blocks: BlockRow[] = []
  const rows: HistoryRows = {
    open: async () => {},
    numbered: async () => ({ names: [], monitors: [] }),
    number: async (unnumbered) => ({
      names: unnumbered.names.map((text, at) => ({ text, number: names.size + 1 + at })),
      monitors: unnumbered.monitors.map((monitor) => {
        const numbered = { ...monitor, number: monitors.length + 1 }
        monitors.push(numbered)
        return numbered
      }),
    }),
    rename: async () => {},
    write: async ({ blocks: more }) => {
      const newest = more.reduce((latest, { at }) => Math.max(latest, at), Number.NEGATIVE_INFINITY)
      if (newest === Number.NEGATIVE_INFINITY) return
      blocks.push(...more)
      blocks = blocks.filter(({ at }) => at >= newest - memoryMs)
    },
    runs: async () => [],
    othersSince: async () => [],
    runsOf: async () => [],
    blocks: async ({ tier, ats, monitors: ofMonitors }) => {
      const [times, numbers] = [new Set(ats), new Set(ofMonitors)]
      return blocks.filter((block) => block.tier === tier && times.has(block.at) && numbers.has(block.monitor))
    },
    unpacked: async () => [],
  }
  return { rows, recorder: new Recorder(), names }
}
