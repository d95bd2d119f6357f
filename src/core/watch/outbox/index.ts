export {
  type Lookup,
  type NoticeItem,
  Outbox,
  type OutboxEffect,
  type OutboxRows,
  receiverKey,
  type StoredRow,
} from './outbox.ts'
export { type OutboxRow, type Present, type ReceiverRules, withNews } from './row.ts'
