import type { SettingsSpec, Values } from '../../settings/index.ts'

/** What svc.yaml may say of a heartbeat monitor. */
export const heartbeatSettings = {
  agents: {
    type: 'texts',
    doc: 'Whose heartbeats: names, or patterns in which * stands for any text: agent-*, in quotes when it begins with it; all when left out',
  },
  expected: {
    type: 'integer',
    min: 1,
    doc: 'How many must report; when left out every agent that is named without a pattern',
  },
  interval: {
    type: 'duration',
    doc: 'How often they report; when left out what each says of itself, else 1m. Not with schedule',
  },
  late: {
    type: 'threshold',
    unit: 'ratio',
    default: { warn: 2, limit: 5 },
    doc: 'How many intervals old a heartbeat may be; an agent beyond the limit is silent. Not with schedule',
  },
  schedule: {
    type: 'text',
    doc: 'When they report, in place of interval and late: a cron expression of 5 fields (0 2 * * 1-5), or @hourly, @daily, @weekly, @monthly; no two times further apart than 100 days',
  },
  timezone: {
    type: 'text',
    doc: 'The time zone of schedule, by its IANA name: Europe/Berlin; UTC when left out',
  },
  grace: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 10 * 60_000, limit: 30 * 60_000 },
    doc: 'How long after a time of schedule the heartbeat may come; an agent beyond the limit is silent. At least as long as the job runs that reports at its end',
  },
  version: { type: 'text', doc: 'The version that all must run; when left out, all the same one' },
  disk: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 20, limit: 10 },
    doc: 'How much of its disk must be free, of agents that report it',
  },
  clock: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 2_000, limit: 30_000 },
    doc: 'How far the clock of an agent may be off, of those that report it',
  },
  backlog: { type: 'threshold', unit: 'count', doc: 'How much work may wait at one agent, of those that report it' },
  silent: {
    type: 'threshold',
    unit: 'count',
    default: { limit: 0 },
    doc: 'How many agents that once reported may be silent; one that is gone for good: svc heartbeats remove NAME',
  },
  flapping: {
    type: 'threshold',
    unit: 'count',
    default: { warn: 4, limit: 8 },
    doc: 'How often an agent may have gone from well to unwell or silent, and back, in its last 20 heartbeats',
  },
} as const satisfies SettingsSpec
export type HeartbeatSettings = Values<typeof heartbeatSettings>
