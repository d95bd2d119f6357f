import type { ProvidedServices, RefusalStore } from '../../checks/engine/index.ts'
import type { Data } from '../../store/index.ts'

const maxAnswers = 500

/** The answers of registries: in the store, or in the file of the account where there is none that can be used. */
export function rdapAnswers(
  file: RefusalStore | undefined,
  readings: () => Promise<Data['readings'] | undefined>,
): NonNullable<ProvidedServices['rdapAnswers']> {
  /** An answer is a state that holds until the next one. Without `next`, it is only read. */
  const stored = async (key: string, next?: string): Promise<string | undefined> => {
    const states = (await readings())?.exceededSince({
      series: `rdap ${key}`,
      at: Date.now(),
      keys: next === undefined ? [] : [next],
      holds: () => next === undefined,
    })
    return [...((await states) ?? new Map<string, number>()).keys()][0]
  }
  const filed = async (): Promise<readonly (readonly string[])[]> => {
    const json: unknown = JSON.parse((await file?.read()) ?? '[]')
    return Array.isArray(json) ? (json as readonly string[][]).filter(Array.isArray) : []
  }
  return {
    read: async (key) =>
      (await stored(key).catch(() => undefined)) ?? (await filed().catch(() => [])).find(([of]) => of === key)?.[1],
    write: async (key, text) => {
      if ((await stored(key, text).catch(() => undefined)) === text) return
      const others = (await filed().catch(() => [])).filter(([of]) => of !== key)
      await file?.write(`${JSON.stringify([[key, text], ...others].slice(0, maxAnswers))}\n`).catch(() => {})
    },
  }
}
