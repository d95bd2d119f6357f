import type { SettingsSpec, Values } from '../../settings/index.ts'

/** What several checks use: whose heartbeats they are, and when the next one is due. */
export const reportSettings = {
  agents: {
    type: 'texts',
    doc: 'Whose heartbeats: names, or patterns in which * stands for any text: agent-*, in quotes when it begins with it; all when left out',
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
} as const satisfies SettingsSpec
export type ReportSettings = Values<typeof reportSettings>
