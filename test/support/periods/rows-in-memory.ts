import type { BlockRow, HistoryRows, StoredRuns } from '../../../src/core/watch/periods/index.ts'

/** The rows of a history as a database has them, simulated in memory: for tests of months. */
export function rowsInMemory(): HistoryRows & {
  readonly size: () => { readonly runs: number; readonly blocks: readonly number[] }
} {
  const names: string[] = []
  const monitors: { key: string; type: string; name: string; firstAt: number; number: number }[] = []
  let runs: StoredRuns[] = []
  const blocks = new Map<string, BlockRow>()
  const all = () => ({ names: names.map((text, at) => ({ text, number: at + 1 })), monitors: [...monitors] })
  return {
    open: async () => {},
    numbered: async () => all(),
    number: async (unnumbered) => {
      for (const text of unnumbered.names) if (!names.includes(text)) names.push(text)
      for (const one of unnumbered.monitors) {
        if (!monitors.some(({ key }) => key === one.key)) monitors.push({ ...one, number: monitors.length + 1 })
      }
      return all()
    },
    rename: async (moves) => {
      for (const { from, to } of moves) Object.assign(monitors.find(({ key }) => key === from) ?? {}, to)
    },
    write: async ({ runs: row, blocks: more, deleteRunsBefore, deleteBlocksBefore = [] }) => {
      if (row) runs.push({ ...row, writer: 1 })
      runs = runs.filter(({ at }) => at >= deleteRunsBefore)
      for (const block of more) {
        const key = `${block.tier} ${block.at} ${block.monitor}`
        if (block.runs > (blocks.get(key)?.runs ?? -1)) blocks.set(key, block)
      }
      for (const [key, { tier, at }] of blocks) if (at < (deleteBlocksBefore[tier] ?? -1)) blocks.delete(key)
    },
    runs: async (skip, most) => runs.slice(skip, skip + most),
    // It has one writer.
    othersSince: async () => [],
    runsOf: async () => [],
    blocks: async ({ tier, ats, monitors: numbers }) =>
      ats.flatMap((at) => numbers.flatMap((monitor) => blocks.get(`${tier} ${at} ${monitor}`) ?? [])),
    unpacked: async (tier, from, to) => {
      const below = [...blocks.values()].filter((block) => block.tier === tier - 1 && block.at >= from && block.at < to)
      return [...new Set(below.map(({ monitor }) => monitor))].filter(
        (monitor) => !blocks.has(`${tier} ${from} ${monitor}`),
      )
    },
    size: () => ({
      runs: runs.length,
      blocks: [0, 1, 2].map((tier) => [...blocks.values()].filter((block) => block.tier === tier).length),
    }),
  }
}
