import {
  NoSlot,
  type Slot,
  type SlotCounts,
  type SlotRequest,
  type Slots,
} from '../../../src/core/checks/engine/limits.ts'

type Scope = keyof SlotCounts
const units: Record<Scope, string> = {
  callers: 'at a time',
  schedule: 'of the schedule at a time',
  host: 'at a time per host',
  database: 'at a time per database',
}
const maxDetached: Record<Scope, number> = { callers: 200, schedule: 200, host: 32, database: 32 }

type Key = { readonly key: string; readonly scope: Scope }
type Waiting = { readonly keys: readonly Key[]; readonly priority: number; readonly start: () => void }

/** The model of `Slots`: it sorts all that wait at each arrival, and looks through all of them at each release. */
export function sortedSlots(max: SlotCounts): Pick<Slots, 'take'> {
  const attached = new Map<string, Set<object>>()
  const detached = new Map<string, Set<object>>()
  const names = new Map<object, string>()
  let waiting: readonly Waiting[] = []

  const of = (holders: Map<string, Set<object>>, { key }: Key): Set<object> => {
    const set = holders.get(key) ?? new Set()
    holders.set(key, set)
    return set
  }
  const isFull = (key: Key): boolean => of(attached, key).size >= max[key.scope]
  const isFree = (keys: readonly Key[]): boolean => !keys.some(isFull)
  const taken = (keys: readonly Key[]): string | undefined => {
    const full = keys.findLast(isFull)
    if (!full) return undefined
    const holders = [...of(attached, full)].map((holder) => names.get(holder) ?? '')
    const more = holders.length > 3 ? ` and ${holders.length - 3} more` : ''
    const most = max[full.scope]
    return `${holders.slice(0, 3).join(', ')}${more} (${most} ${most === 1 ? 'monitor' : 'monitors'} ${units[full.scope]})`
  }
  const next = (): void => {
    for (const entry of waiting) {
      if (!isFree(entry.keys)) continue
      waiting = waiting.filter((other) => other !== entry)
      entry.start()
    }
  }
  const occupy = (keys: readonly Key[], name: string, waitedFor?: string): Slot => {
    const holder = {}
    names.set(holder, name)
    for (const key of keys) of(attached, key).add(holder)
    return {
      waitedFor,
      release: () => {
        names.delete(holder)
        for (const key of keys) {
          of(attached, key).delete(holder)
          of(detached, key).delete(holder)
        }
        next()
      },
      detach: ({ keepDatabase }) => {
        const freed = keepDatabase ? keys.filter(({ scope }) => scope !== 'database') : keys
        if (freed.some((key) => of(detached, key).size >= maxDetached[key.scope])) return false
        for (const key of freed) if (of(attached, key).delete(holder)) of(detached, key).add(holder)
        next()
        return true
      },
    }
  }
  return {
    take: ({ target, name, priority = 0, lane = 'callers' }: SlotRequest, signal) => {
      const keys: Key[] = [{ key: lane, scope: lane }]
      if (target.host) keys.push({ key: `host ${target.host.toLowerCase()}`, scope: 'host' })
      if (target.database) keys.push({ key: `database ${target.database}`, scope: 'database' })
      if (signal.aborted) return Promise.reject(new NoSlot('its turn', { cause: signal.reason }))
      if (isFree(keys)) return Promise.resolve(occupy(keys, name))
      return new Promise((resolve, reject) => {
        const waitedFor = taken(keys)
        const abort = (): void => {
          const now = taken(keys) ?? waitedFor
          waiting = waiting.filter((other) => other !== entry)
          reject(new NoSlot(now, { cause: signal.reason }))
        }
        const entry: Waiting = {
          keys,
          priority,
          start: () => {
            signal.removeEventListener('abort', abort)
            resolve(occupy(keys, name, waitedFor))
          },
        }
        waiting = [...waiting, entry].toSorted((a, b) => a.priority - b.priority)
        signal.addEventListener('abort', abort, { once: true })
      })
    },
  }
}
