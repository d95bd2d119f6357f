import { list } from '../render/list.ts'
import type { ServerProfile } from '../settings/profiles.ts'
import type { InstallationFinding } from './doctor.ts'
import type { InForce } from './in-force.ts'

/** A secret in the keychain: its name, and the only place that may get it. */
export type SecretRow = { readonly name: string; readonly for: string }

export const secrets = list<SecretRow>()({
  headline: ['secret', 'secrets'],
  empty: { sentence: 'There are no secrets', next: 'To store one:   svc secrets set NAME --for HOST:PORT' },
  columns: [
    { key: 'name', title: 'NAME', shrink: 3 },
    { key: 'for', title: 'SENT ONLY TO', shrink: 2 },
    {
      key: 'reference',
      value: ({ name }) => `{keychain: ${name}}`,
      title: 'IN svc.yaml',
      shrink: 1,
      field: false,
      json: false,
    },
  ],
})

/** Server profiles. The JSON of one is its entry in the settings file. */
export const serverProfiles = list<ServerProfile & { readonly current: boolean }>()({
  headline: ['profile', 'profiles'],
  columns: [
    {
      key: 'current',
      title: '',
      optional: true,
      cell: ({ current }) => mark(current),
      text: ({ current }) => mark(current),
    },
    { key: 'name', title: 'NAME', shrink: 2 },
    { key: 'server', title: 'SERVER', shrink: 1 },
    { key: 'user', title: 'USER', cell: ({ user }) => user ?? { text: 'not signed in', style: 'dim' }, shrink: 3 },
  ],
  json: (profile) => profile,
})

const mark = (current: boolean): string => (current ? '*' : '')

/** What is in force on this machine. */
export const configuration = list<InForce>()({
  columns: [
    { key: 'key', title: 'SETTING' },
    { key: 'value', title: 'VALUE', cell: ({ value }) => value ?? '-', shrink: 3 },
    { key: 'origin', title: 'FROM', shrink: 1 },
    { key: 'note', title: 'NOTE', shrink: 2, optional: true, absent: 'json' },
  ],
})

const installationStyles = {
  ok: 'good',
  warning: 'caution',
  failed: 'bad',
  skipped: 'dim',
  'not checked': 'caution',
} as const

/** What `svc doctor` found. */
export const installation = list<InstallationFinding>()({
  rows: 'checks',
  headline: (findings) => {
    const of = (status: InstallationFinding['status']): number =>
      findings.filter((finding) => finding.status === status).length
    const [failures, warnings, unchecked] = [of('failed'), of('warning'), of('not checked')]
    const parts = [
      ...(failures > 0 ? [`${failures} failed`] : []),
      ...(warnings > 0 ? [`${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`] : []),
      ...(unchecked > 0 ? [`${unchecked} not checked`] : []),
    ]
    const mark = failures > 0 ? 'fail' : parts.length > 0 ? 'warn' : 'ok'
    return { mark, sentence: parts.join(', ') || 'This installation is in order' }
  },
  columns: [
    { key: 'check', title: 'CHECK' },
    {
      key: 'status',
      title: 'STATUS',
      cell: ({ status }) => ({ text: status, style: installationStyles[status] }),
    },
    {
      key: 'message',
      title: 'FINDING',
      cell: ({ message, next }) => (next === undefined ? message : [message, { text: next, style: 'dim', inset: 2 }]),
      shrink: 1,
      least: 24,
    },
    { key: 'next', absent: 'json' },
    { key: 'exitCode', field: false, absent: 'json' },
  ],
})
