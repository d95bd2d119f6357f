import { type ConfiguredFiles, filesWithin } from '../../base/files/index.ts'
import type { Config } from '../../config/index.ts'
import type { KeeperLog } from '../../store/index.ts'
import type { Receiver, ReceiverConfig } from '../../watch/notify/index.ts'

/** Milliseconds for files of secrets and of CAs. */
const maxFileMs = 5_000

/** The process that opens receivers, and keeps them open. */
export type ReceiverHost = {
  /** `serve.name`, or that of the machine. */
  readonly server: string
  readonly url: string | undefined
  readonly version: string
  /** The programs that the system's svc.yaml allows. */
  readonly programs: Config['exec']
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Gets the warnings of receivers. */
  readonly log: KeeperLog
}

/** Opens a receiver of `notify:`. The code of its kind is loaded with the first one. */
export async function openFor({ log, ...host }: ReceiverHost, config: ReceiverConfig): Promise<Receiver> {
  const { openReceiver } = await import('../../watch/notify/index.ts')
  // A limit for each use: one for all of them would be over after the first.
  const files: ConfiguredFiles = (task, input) => filesWithin(maxFileMs)(task, input)
  const warn = (message: string): void => log({ level: 'warn', msg: `receiver ${config.name}: ${message}` })
  return await openReceiver(config, { ...host, files, warn })
}

/** True for receivers that get one message about everything that is confirmed together. */
export const isFolding = (receiver: Receiver): boolean => receiver.renew === undefined && receiver.sendsEach !== true
