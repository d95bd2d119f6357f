import type { SettingsSpec, Values } from '../../base/settings/index.ts'
import { usualZone } from '../../base/zone.ts'

/** The `drill:` section of svc.yaml: when `svc serve` drills by itself, and through which receivers. */
export const drillSettings = {
  every: {
    type: 'duration',
    min: 3_600_000,
    max: 90 * 86_400_000,
    doc: 'How often: 7d, at least 1h. Either this or `when`, or neither: then only `svc drill` drills',
  },
  when: {
    type: 'text',
    doc: 'When: a cron expression of five fields (minute, hour, day, month, weekday), or a name such as @weekly',
  },
  timezone: {
    type: 'text',
    default: usualZone,
    doc: 'Time zone of when, by its IANA name: Europe/Berlin',
  },
  through: {
    type: 'texts',
    required: true,
    doc: 'Receivers of `notify:` by name. Others get nothing of a drill',
  },
} as const satisfies SettingsSpec

export type DrillConfig = Values<typeof drillSettings>
