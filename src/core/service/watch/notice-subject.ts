import { hostname } from 'node:os'
import { nodeOfKey } from '../../watch/nodes/index.ts'
import type { NoticeSubject } from '../../watch/notify/index.ts'
import type { KeyedMonitor, StoredSubject } from '../../watch/states/index.ts'

/**
 * How messages name a subject. Subjects of the machine itself have its name. `as`: the name by which receivers know its
 * monitor.
 */
export function noticeSubject(server: string, subject: StoredSubject, as: KeyedMonitor = subject): NoticeSubject {
  const { type: nowType, monitor: nowMonitor, check, item } = subject
  const { key, type, monitor } = as
  const node = nodeOfKey(key) ?? (type === undefined ? hostname() : undefined)
  const now = key === subject.key ? {} : { now: { type: nowType, monitor: nowMonitor } }
  return { server, type, monitor, check, item, node, ...now }
}
