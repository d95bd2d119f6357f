import { expect, test } from 'vitest'
import { refusalsInSql } from '../../src/core/store/audit-events.ts'
import type { AuditEntry } from '../../src/core/store/rows/audit.ts'
import { migrations } from '../../src/core/store/schema.ts'

test('S10 the events that are deleted are those of the index of released stores, in the same words', () => {
  const schema = migrations.join('\n')
  expect(schema).toContain(`"event" IN ${refusalsInSql}`)
})

test('S10 an event that the table lacks does not compile', () => {
  const entry: AuditEntry = { event: 'user.added', target: 'ann' }
  // @ts-expect-error No row of the table has this name.
  const unknown: AuditEntry = { event: 'user.renamed', target: 'ann' }
  expect(unknown.target).toBe(entry.target)
})
