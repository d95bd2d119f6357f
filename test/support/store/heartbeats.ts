import type { Heartbeat } from '../../../src/core/protocol/index.ts'

/** A heartbeat that came then, milliseconds since 1970, of an agent that is well. */
export const beatAt = (name: string, at: number, more: Partial<Heartbeat> = {}): Heartbeat => ({
  name,
  at,
  who: 'agent',
  status: 'Ok',
  message: undefined,
  version: undefined,
  intervalMs: undefined,
  backlog: undefined,
  diskFreePercent: undefined,
  skewMs: undefined,
  history: [],
  ...more,
})
