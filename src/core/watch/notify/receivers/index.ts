import type { Receiver } from '../receiver.ts'
import type { ReceiverConfig } from '../settings.ts'
import { alertmanager } from './alertmanager.ts'
import { email } from './email.ts'
import { exec } from './exec.ts'
import type { AnyReceiverKind, ReceiverContext } from './kind.ts'
import { serviceKind } from './services/receiver.ts'
import { services } from './services/services.ts'
import { webhook } from './webhook.ts'

/** Every kind of receiver. Services have a row each in `services/services.ts`. */
export const receiverKinds: readonly AnyReceiverKind[] = [
  alertmanager,
  webhook,
  email,
  exec,
  ...services.map(serviceKind),
]

const kindOf = ({ kind }: Pick<ReceiverConfig, 'kind'>): AnyReceiverKind => {
  const match = receiverKinds.find(({ name }) => name === kind)
  if (match === undefined) throw new Error(`there is no kind of receiver ${kind}`)
  return match
}

/** Opens a receiver and loads what it needs to send; it connects to nothing. */
export const openReceiver = async (config: ReceiverConfig, context: ReceiverContext): Promise<Receiver> =>
  await kindOf(config).open(config, config.settings, context)

/** Whether a receiver may send only where svc stores what it sent. */
export const needsStore = (config: ReceiverConfig): boolean => kindOf(config).needsStore && !config.volatile

/** Why no drill may go through a receiver, or undefined: the message continues its name. */
export const drillMistake = (config: ReceiverConfig): string | undefined =>
  kindOf(config).drillMistake?.(config.settings)

/** Where a receiver sends to, for lists: scheme and host, without secrets. */
export const receiverAddress = (config: ReceiverConfig): string => kindOf(config).to(config.settings)
