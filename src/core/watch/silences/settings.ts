import type { SettingsSpec } from '../../base/settings/index.ts'
import { usualZone } from '../../base/zone.ts'

/** The settings of every entry of `silences:` in svc.yaml. */
export const silenceSettings = {
  monitors: {
    type: 'texts',
    required: true,
    doc: 'Monitors by name, with or without their type: `postgres orders`, `Sql/postgres orders`, `Sql/orders`, `Sql/*`; `*` matches any characters of the name with its kind',
  },
  when: {
    type: 'text',
    required: true,
    doc: 'When it begins: a cron expression of five fields (minute, hour, day, month, weekday), or a name such as @daily',
  },
  timezone: {
    type: 'text',
    default: usualZone,
    doc: 'Time zone of when, by its IANA name: Europe/Berlin',
  },
  for: {
    type: 'duration',
    required: true,
    min: 60_000,
    max: 30 * 86_400_000,
    doc: 'How long it lasts. It ends before it begins again',
  },
  reason: {
    type: 'text',
    required: true,
    pattern: /^.{1,200}$/,
    doc: 'Why, in up to 200 characters',
  },
} as const satisfies SettingsSpec
