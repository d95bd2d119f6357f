import { count } from '../../core/base/format.ts'
import type { Proposal } from '../../core/checks/discover/index.ts'
import type { ImportedEntry } from '../../core/config/import/index.ts'
import { ServerType } from '../../core/protocol/index.ts'
import { thisMachine } from '../io/process.ts'
import {
  anyObject,
  document,
  documentShape,
  flag,
  integer,
  listOf,
  objectOf,
  oneOf,
  optional,
  orNull,
  string,
  strings,
} from '../render/document.ts'
import { list } from '../render/list.ts'
import type { ServerProfile } from '../settings/profiles.ts'
import type { InstallationFinding } from './doctor.ts'
import type { InForce } from './in-force.ts'

/** A secret in the keychain: its name, and the only place that may get it. */
export type SecretRow = { readonly name: string; readonly for: string }

export const secrets = list<SecretRow>()({
  documentOnly: { target: string },
  rows: 'secrets',
  headline: ['secret', 'secrets'],
  empty: { sentence: 'There are no secrets', next: 'To store one:   svc secrets set NAME --for HOST:PORT' },
  columns: [
    { key: 'name', is: string, title: 'NAME', shrink: 3 },
    { key: 'for', is: string, title: 'SENT ONLY TO', shrink: 2 },
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
  documentOnly: { target: string },
  rows: 'profiles',
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
  json: {
    of: (profile) => profile,
    is: objectOf({
      name: string,
      server: string,
      user: optional(string),
      storage: optional(oneOf('keychain', 'file')),
      roles: optional(strings),
      permissions: optional(strings),
      provider: optional(string),
      openId: optional(objectOf({ issuer: string, clientId: string })),
      caFile: optional(string),
      insecureHttp: optional(flag),
      roleChangesInOneRequest: optional(flag),
      credentials: optional(oneOf('always', 'when-asked')),
      current: flag,
    }),
  },
})

const mark = (current: boolean): string => (current ? '*' : '')

/** The settings in force on this machine. */
export const configuration = list<InForce>()({
  documentOnly: { target: string },
  rows: 'settings',
  columns: [
    { key: 'key', is: string, title: 'SETTING' },
    { key: 'value', is: orNull(string), title: 'VALUE', cell: ({ value }) => value ?? '-', shrink: 3 },
    { key: 'origin', is: string, title: 'FROM', shrink: 1 },
    { key: 'note', is: string, title: 'NOTE', shrink: 2, optional: true, absent: 'json' },
  ],
})

/** A setting after `config set` or `config unset`. */
export const changedSettings = document<{ readonly key: string; readonly value: string | null }>()({
  around: { target: string },
  rows: 'settings',
  members: { key: string, value: orNull(string) },
})

/** A profile after a command: its entry in the settings file. */
export const profiles = {
  schema: () => documentShape({ target: string }, 'profiles', serverProfiles.rowShape()),
  text: (profile: ServerProfile & { readonly current: boolean }) =>
    serverProfiles.document([profile], { target: thisMachine }),
}

const proposal = {
  type: oneOf(...ServerType.values),
  entry: anyObject,
  problem: optional(string),
  note: optional(string),
  deeper: optional(anyObject),
}

/** The proposed file, and what it is made of. */
export const discoveries = document<Proposal>()({
  around: { target: string, yaml: string, others: listOf(anyObject) },
  rows: 'proposals',
  members: proposal,
})

/** The file that `svc init` wrote. */
export const firstConfigs = document<Proposal>()({
  around: { target: string, file: string, monitors: integer, starter: flag, others: listOf(anyObject) },
  rows: 'proposals',
  members: proposal,
})

/** The outcome of svc import. */
export const imports = document<ImportedEntry>()({
  around: { target: string, file: string, secrets: strings },
  rows: 'entries',
  members: { entry: string, monitors: strings, problem: optional(string), notes: strings },
})

const installationStyles = {
  ok: 'good',
  warning: 'caution',
  failed: 'bad',
  skipped: 'dim',
  'not checked': 'caution',
} as const

/** The findings of `svc doctor`. */
export const installation = list<InstallationFinding>()({
  documentOnly: { target: string },
  rows: 'checks',
  headline: (findings) => {
    const of = (status: InstallationFinding['status']): number =>
      findings.filter((finding) => finding.status === status).length
    const [failures, warnings, unchecked] = [of('failed'), of('warning'), of('not checked')]
    const parts = [
      ...(failures > 0 ? [`${failures} failed`] : []),
      ...(warnings > 0 ? [`${count(warnings, 'warning')}`] : []),
      ...(unchecked > 0 ? [`${unchecked} not checked`] : []),
    ]
    const mark = failures > 0 ? 'fail' : parts.length > 0 ? 'warn' : 'ok'
    return { mark, sentence: parts.join(', ') || 'This installation is in order' }
  },
  columns: [
    { key: 'check', is: string, title: 'CHECK' },
    {
      key: 'status',
      is: oneOf('ok', 'warning', 'failed', 'skipped', 'not checked'),
      title: 'STATUS',
      cell: ({ status }) => ({ text: status, style: installationStyles[status] }),
    },
    {
      key: 'message',
      is: string,
      title: 'FINDING',
      cell: ({ message, next }) => (next === undefined ? message : [message, { text: next, style: 'dim', inset: 2 }]),
      shrink: 1,
      least: 24,
    },
    { key: 'next', is: string, absent: 'json' },
    { key: 'exitCode', is: integer, field: false, absent: 'json' },
  ],
})
