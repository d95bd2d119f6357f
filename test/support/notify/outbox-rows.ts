import type { OutboxRows, StoredRow } from '../../../src/core/watch/outbox/index.ts'

/** Rows of an outbox, simulated in memory. While `isFailing`, writes reject. */
export function outboxRows(): OutboxRows & { isFailing: boolean; readonly all: () => readonly StoredRow[] } {
  const rows = new Map<string, StoredRow>()
  const own = {
    isFailing: false,
    all: () => [...rows.values()],
    read: async () => structuredClone([...rows.values()]),
    write: async (changes: readonly StoredRow[]) => {
      await Promise.resolve()
      if (own.isFailing) throw new Error('the disk is full')
      for (const one of changes) {
        const id = JSON.stringify([one.receiver, one.subject])
        if (one.row) rows.set(id, structuredClone(one))
        else rows.delete(id)
      }
    },
  }
  return own
}
