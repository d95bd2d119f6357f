import type { KeeperLog } from '../../store/index.ts'
import type { OutboxRows } from '../../watch/outbox/index.ts'
import type { NotifyDriver } from '../notify/notify-driver.ts'
import { drillDriver, drillNotice } from './drill-driver.ts'
import type { DrillReceiver } from './drill-run.ts'

/**
 * Sends the ends of earlier drills that could not end at a receiver, because the receiver was unavailable or svc was
 * killed. Gives up an end that the receiver does not accept after 7 days, like those of incidents.
 */
export function leftovers({
  rows,
  open,
  server,
  now,
  log,
}: {
  /** Absent without a store. */
  readonly rows: OutboxRows | undefined
  /** Opens a receiver. Undefined: drills may no longer go through it. */
  readonly open: (name: string) => Promise<DrillReceiver | undefined>
  readonly server: () => string
  readonly now: () => number
  readonly log: KeeperLog
}) {
  const drivers = new Map<string, NotifyDriver>()

  const begin = async (name: string): Promise<NotifyDriver | undefined> => {
    const one = await open(name)
    if (!one) return undefined
    const { receiver } = one
    return await drillDriver({
      name,
      receiver,
      send: (notices, signal) => receiver.send(notices, signal),
      folds: false,
      rows,
      // Its fault is over.
      lookup: () => 'removed',
      noticeOf: (item) => drillNotice(server(), 'svc', item),
      now,
      log,
    })
  }

  return {
    /** Sends what is left, and forgets rows whose receiver no longer exists. Throws the faults of the store. */
    look: async (): Promise<void> => {
      if (!rows) return
      const stored = await rows.read()
      const names = new Set(stored.map(({ receiver }) => receiver))
      for (const [name, driver] of drivers) {
        if (names.has(name)) continue
        drivers.delete(name)
        await driver.close()
      }
      for (const name of names) {
        if (drivers.has(name)) continue
        const driver = await begin(name)
        if (driver) drivers.set(name, driver)
        else await rows.write(stored.filter((one) => one.receiver === name).map((one) => ({ ...one, row: undefined })))
      }
    },
    close: async (): Promise<void> => {
      const open = [...drivers.values()]
      drivers.clear()
      for (const driver of open) await driver.close()
    },
  }
}
