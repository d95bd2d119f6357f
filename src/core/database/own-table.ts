import { ProbeError } from '../probe-error.ts'

/** The fault for a table of the configured name that svc has not created: emptying it could destroy data. */
export const foreignTable = (name: string): ProbeError =>
  new ProbeError('data', `svc has not created the table ${name}, and does not write to it`, [
    'next: set probeTable to a name that no other program uses',
  ])
