import { atMost, type Result } from '../engine/index.ts'
import { ProbeError } from '../probe-error.ts'
import type { Threshold } from '../settings/index.ts'

/** The settings of a round trip in a table whose name the operator may choose. Each kind adds its own text. */
export const roundTripSettings = {
  probeTable: { type: 'text', default: 'svc_probe', pattern: /^\w{1,64}$/ },
  write: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 5_000 },
    doc: 'Maximum time to write, commit, read and delete a row',
  },
} as const

/** The result of a round trip that took `value` milliseconds. */
export const evaluateRoundTrip = (value: number, threshold: Threshold): Result<'write'> =>
  atMost({
    check: 'write',
    what: 'a row was written, committed, read and deleted in',
    value,
    unit: 'duration',
    threshold,
  })

/** The fault for a table of the configured name that svc has not created: emptying it could destroy data. */
export const foreignTable = (name: string): ProbeError =>
  new ProbeError('data', `svc has not created the table ${name}, and does not write to it`, [
    'next: set probeTable to a name that no other program uses',
  ])
