import { Fault } from '../../core/base/errors.ts'
import type { ChainHead } from '../../core/store/audit/index.ts'
import { listFormats } from './base.ts'
import { custom, oneOf, repeatable } from './flags.ts'

/** An audit event, by its name. */
export const eventFlag = custom<string>({
  ...repeatable,
  helpValue: '<roles.changed|…>',
  parse: async (input) => {
    const { loadAuditEvents } = await import('../../core/store/index.ts')
    const { auditEventNames, presentEvent } = await loadAuditEvents()
    return oneOf('event', auditEventNames, presentEvent(input), 'Events')
  },
})

/** A head of the audit chain, as `svc audit head` prints it. */
export const headFlag = custom<ChainHead>({
  helpValue: 'N:HASH',
  parse: async (input) => {
    const { readHead } = await import('../../core/store/audit/index.ts')
    const head = readHead(input)
    if (head) return head
    throw new Fault('Usage', `--head "${input}" is not the head of an audit`, {
      hints: ['Write it as svc audit head prints it: the number of the seal, a colon, and 64 hexadecimal digits.'],
    })
  },
})

/** The formats of the audit: those of a list, and two with all matching entries. */
export const auditFormats = [...listFormats, 'csv', 'jsonl'] as const
