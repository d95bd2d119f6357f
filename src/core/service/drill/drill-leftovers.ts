import type { KeeperLog } from '../../store/index.ts'
import type { OutboxRows } from '../../watch/outbox/index.ts'
import { NotifyDriver } from '../notify/notify-driver.ts'
import { type DrillReceiver, drillNotice } from './drill-run.ts'

/**
 * Sends the ends of earlier drills that could not end at a receiver, because the receiver was unavailable or svc was
 * killed. Gives up an end that the receiver does not accept after 7 days, like those of incidents.
 */
export function leftovers({
  rows: stored,
  open,
  server,
  now,
  log,
}: {
  /** Absent without a store. */
  readonly rows: (() => Promise<OutboxRows>) | undefined
  /** Opens a receiver. Undefined: drills may no longer go through it. */
  readonly open: (name: string) => Promise<DrillReceiver | undefined>
  readonly server: () => string
  readonly now: () => number
  readonly log: KeeperLog
}) {
  const drivers = new Map<string, NotifyDriver>()

  const begin = async (name: string): Promise<NotifyDriver | undefined> => {
    const one = await open(name)
    if (!one || !stored) return undefined
    const own: OutboxRows = {
      read: async () => (await (await stored()).read()).filter(({ receiver }) => receiver === name),
      write: async (rows) => await (await stored()).write(rows),
    }
    const { receiver } = one
    const driver = new NotifyDriver({
      rows: async () => own,
      // Its fault is over.
      lookup: () => 'removed',
      look: () => {},
      noticeOf: (item) => drillNotice(server(), 'svc', item),
      now,
      isHealthy: () => false,
      log: ({ level, msg }) => log({ level, msg: `drill: ${msg}` }),
    })
    await driver.restore()
    const rules = { name, folds: false, remindMs: Number.POSITIVE_INFINITY, ignoresQuiet: true, wants: () => false }
    const quiet = { describe: () => receiver.describe(), close: () => receiver.close() }
    driver.use([{ receiver: { ...quiet, send: (notices, signal) => receiver.send(notices, signal) }, rules }])
    driver.begin([])
    return driver
  }

  return {
    /** Sends what is left, and forgets rows whose receiver no longer exists. Throws the faults of the store. */
    look: async (): Promise<void> => {
      if (!stored) return
      const rows = await (await stored()).read()
      const names = new Set(rows.map(({ receiver }) => receiver))
      for (const [name, driver] of drivers) {
        if (names.has(name)) continue
        drivers.delete(name)
        await driver.close()
      }
      for (const name of names) {
        if (drivers.has(name)) continue
        const driver = await begin(name)
        if (driver) drivers.set(name, driver)
        else
          await (await stored()).write(
            rows.filter((one) => one.receiver === name).map((one) => ({ ...one, row: undefined })),
          )
      }
    },
    close: async (): Promise<void> => {
      const open = [...drivers.values()]
      drivers.clear()
      for (const driver of open) await driver.close()
    },
  }
}
