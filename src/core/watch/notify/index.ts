/** Notifications: what receivers are told of incidents, and how each kind of receiver says it. */
export { ping } from './ping.ts'
export * from './receiver.ts'
export { drillMistake, needsStore, openReceiver, receiverAddress, receiverKinds } from './receivers/index.ts'
export type { AnyReceiverKind, ReceiverContext } from './receivers/kind.ts'
export { worstFirst } from './receivers/message.ts'
export * from './settings.ts'
