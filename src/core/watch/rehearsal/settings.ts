import { faultClasses } from '../../base/probe-error.ts'
import type { SettingsSpec, Values } from '../../base/settings/index.ts'

const [second, minute, hour] = [1_000, 60_000, 3_600_000]

/** A monitor runs every 10 s in a rehearsal, so that a shorter fault may not show. Milliseconds. */
export const minStepMs = 10 * second
/** How long a rehearsal that is over still answers, for pollers to notice. Milliseconds. */
export const overMs = 5 * minute
/** With the time after its end and that of stopping, a process lives at most 4 h. Milliseconds. */
export const maxScriptMs = 3 * hour + 50 * minute

/** The faults that a script may give a monitor. `dependency` follows from the fault of another monitor. */
export const scriptedFaults = faultClasses.filter((one) => one !== 'dependency')
export const httpFaults = ['503', 'hang', 'reset'] as const
export type HttpFault = (typeof httpFaults)[number]

const stepSettings = {
  at: {
    type: 'duration',
    required: true,
    max: maxScriptMs,
    doc: 'When it begins, counted from the start of the server: 30s',
  },
  for: {
    type: 'duration',
    min: minStepMs,
    max: maxScriptMs,
    doc: 'How long it lasts. Default: until a later step of the same monitor and check, or of http, or the end',
  },
  monitor: {
    type: 'text',
    doc: 'Monitor of svc.yaml that fails: Sql/postgres orders, or just orders where only one has this name',
  },
  fault: {
    type: 'choice',
    values: [...scriptedFaults, 'none'],
    doc: 'Class of its fault, or `none`, which ends its faults',
  },
  check: { type: 'text', doc: 'Check of the monitor that fails. Default: its first one' },
  message: {
    type: 'text',
    mistake: (text: string) => (text.length > 500 ? 'has more than 500 characters: shorten it' : undefined),
    doc: 'What the result says after `DRILL: `. Default: a sentence about the fault class',
  },
  http: {
    type: 'choice',
    values: [...httpFaults, 'ok'],
    doc: 'What every request gets: 503, no answer (hang) or a reset connection; `ok` ends it',
  },
} as const satisfies SettingsSpec

/** The file that `svc serve --rehearse` reads. */
export const rehearsalSettings = {
  ends: {
    type: 'duration',
    required: true,
    min: minStepMs,
    max: maxScriptMs,
    doc: 'When the rehearsal is over, counted from the start of the server: 10m, at most 3h 50m',
  },
  steps: { type: 'groups', fields: stepSettings, required: true, doc: 'The faults, in the order of time' },
} as const satisfies SettingsSpec

export type RehearsalValues = Values<typeof rehearsalSettings>
