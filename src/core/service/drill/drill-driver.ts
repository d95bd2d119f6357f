import type { Notice, Receiver } from '../../watch/notify/index.ts'
import type { NoticeItem, OutboxRows } from '../../watch/outbox/index.ts'
import { type DriverOptions, NotifyDriver } from '../notify/notify-driver.ts'

/** The messages of a drill. Each says that it is a drill. */
export function drillNotice(
  server: string,
  by: string,
  { subject, text, ...item }: NoticeItem,
  callback?: string,
): Notice {
  const what = item.endedAt === undefined ? `${by} drills on ${server}` : text
  return {
    ...item,
    subject: { server, monitor: subject.monitor, check: subject.check },
    text: what,
    victims: { count: 0, names: [] },
    tags: [],
    drill: callback === undefined ? {} : { callback },
  }
}

/**
 * Begins to send through one receiver of drills, first what earlier drills left: a driver of incidents, with one receiver, so
 * that a drill through one does not affect that through another. It has no reminders, silences or watchdog.
 */
export async function drillDriver({
  name,
  receiver,
  send,
  folds,
  rows,
  log,
  ...options
}: Pick<DriverOptions, 'lookup' | 'noticeOf' | 'now' | 'log'> & {
  readonly name: string
  readonly receiver: Receiver
  /** In place of that of the receiver. */
  readonly send: Receiver['send']
  /** True: it waits for what may go into the same message. */
  readonly folds: boolean
  /** The rows of all receivers. Absent without a store. */
  readonly rows: OutboxRows | undefined
}): Promise<NotifyDriver> {
  const own: OutboxRows | undefined = rows && {
    read: async () => (await rows.read()).filter((one) => one.receiver === name),
    write: rows.write,
  }
  const driver = new NotifyDriver({
    ...options,
    rows: own && (async () => own),
    // The fault is observed every few seconds anyway.
    look: () => {},
    isHealthy: () => false,
    log: (entry) => log({ ...entry, msg: `drill: ${entry.msg}` }),
  })
  await driver.restore()
  driver.use([
    {
      receiver: {
        sendsEach: receiver.sendsEach,
        describe: () => receiver.describe(),
        send,
        close: () => receiver.close(),
      },
      rules: {
        name,
        folds,
        remindMs: Number.POSITIVE_INFINITY,
        ignoresSilences: true,
        accepts: () => true,
      },
    },
  ])
  driver.begin([])
  return driver
}
