export {
  type Lookup,
  type NoticeItem,
  Outbox,
  type OutboxEffect,
  type OutboxRows,
  type StoredRow,
} from './outbox.ts'
export type { OutboxRow, Present, ReceiverRules } from './row.ts'
