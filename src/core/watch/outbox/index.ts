export {
  isOfReceiver,
  type Lookup,
  type NoticeItem,
  Outbox,
  type OutboxEffect,
  type OutboxRows,
  receiverKey,
  type StoredRow,
} from './outbox.ts'
export {
  isEmpty,
  type OutboxRow,
  type Present,
  type ReceiverRules,
  withHandedOver,
  withNews,
  withoutSentEnds,
} from './row.ts'
export { headOf, linesOf, mostBytes, mostLines, rowsOfSent } from './sent-without-store.ts'
