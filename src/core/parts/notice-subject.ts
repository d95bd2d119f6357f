import { hostname } from 'node:os'
import type { NoticeSubject } from '../notify/index.ts'
import type { StoredSubject } from '../states/index.ts'

/** How messages name a subject. Subjects of the machine itself have its name. */
export const noticeSubject = (server: string, { type, monitor, check, item }: StoredSubject): NoticeSubject => ({
  server,
  type,
  monitor,
  check,
  item,
  node: type === undefined ? hostname() : undefined,
})
