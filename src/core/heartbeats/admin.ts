import type { Admin, HeartbeatFacts } from '../service.ts'
import type { Data, HeartbeatRow } from '../store/index.ts'

/** `svc heartbeats`, over the store that `data` opens. */
export const heartbeatAdmin = (data: () => Promise<Data>): Admin['heartbeats'] => ({
  list: async () => (await (await data()).heartbeats.list()).map(facts),
  near: async (name) => await (await data()).heartbeats.near(name),
  remove: async (name, { who, correlationId, reason }) =>
    await (await data()).heartbeats.remove(name, { who, correlationId, reason }),
})

const facts = (row: HeartbeatRow): HeartbeatFacts => ({
  name: row.name,
  at: new Date(row.at),
  who: row.who,
  status: row.status,
  message: row.message,
  version: row.version,
  intervalMs: row.intervalMs,
  backlog: row.backlog,
  diskFreePercent: row.diskFreePercent,
  skewMs: row.skewMs,
})
