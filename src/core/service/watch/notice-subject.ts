import { hostname } from 'node:os'
import { nodeOfKey } from '../../watch/nodes/index.ts'
import type { NoticeSubject } from '../../watch/notify/index.ts'
import type { StoredSubject } from '../../watch/states/index.ts'

/** How messages name a subject. Subjects of the machine itself have its name. */
export const noticeSubject = (server: string, { key, type, monitor, check, item }: StoredSubject): NoticeSubject => ({
  server,
  type,
  monitor,
  check,
  item,
  node: nodeOfKey(key) ?? (type === undefined ? hostname() : undefined),
})
