export {
  type Lookup,
  type NoticeItem,
  Outbox,
  type OutboxEffect,
  type OutboxRows,
  receiverKey,
  type StoredRow,
} from './outbox.ts'
export type { OutboxRow, Present, ReceiverRules } from './row.ts'
