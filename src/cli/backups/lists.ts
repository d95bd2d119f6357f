import { count, showBytes } from '../../core/base/format.ts'
import type { Backup, Restored, RolledBack } from '../../core/store/index.ts'
import { flag, integer, oneOf, orNull, string, strings } from '../render/document.ts'
import { type ListOutput, list } from '../render/list.ts'
import { headline } from '../render/table.ts'

/** A backup that was written: a list with one row. */
export const backups = list<Backup>()({
  around: ['store'],
  rows: 'backups',
  columns: [
    { key: 'file', is: string },
    { key: 'bytes', is: integer },
    { key: 'schemaVersion', is: integer },
    { key: 'users', is: integer },
    { key: 'keys', is: integer },
  ],
})

/** A backup as JSON, as a record in a pipe, and as a sentence on a terminal. */
export function backupText(backup: Backup, store: string, output: ListOutput): string {
  if (output.json || !output.screen.isTTY) return backups.render([backup], { store }, output)
  const { file, users, keys, bytes } = backup
  const contents = `${count(users, 'user')}, ${count(keys, 'key')}, ${showBytes(bytes)}`
  return headline('ok', `${file} is written and verified: ${contents}`, output.screen)
}

const changeWords: Readonly<Record<RolledBack['change'], string>> = {
  lost: 'not in the backup',
  back: 'only in the backup',
  earlier: 'as in the backup',
}

/** The changes that a restore rolled back. */
export const rolledBack = list<RolledBack>()({
  around: ['store'],
  // With `store`, so that the document begins with it.
  documentOnly: {
    store: string,
    file: string,
    keptAs: orNull(string),
    signInsEnded: integer,
    auditEntriesLost: orNull(integer),
    isLater: orNull(flag),
    unreadable: orNull(string),
    hasAdmin: flag,
    foreign: strings,
  },
  beneath: 'store',
  rows: 'changes',
  columns: [
    {
      key: 'what',
      is: oneOf('user', 'role', 'permission', 'key', 'password', 'e-mail', 'identity', 'digest secret'),
      title: 'WHAT',
    },
    { key: 'userName', is: string, title: 'USER', shrink: 2 },
    { key: 'name', is: orNull(string), title: 'NAME', shrink: 1, optional: true },
    {
      key: 'change',
      is: oneOf('lost', 'back', 'earlier'),
      title: 'CHANGE',
      cell: ({ change }) => changeWords[change],
    },
    { key: 'action', is: orNull(oneOf('disabled', 'revoked')), title: 'NOW', optional: true },
  ],
})

/** The effects of a restore beside the changes that it lists, in sentences. */
export function restoreNotes({
  keptAs,
  sessions,
  hasAdmin,
  comparison,
  unreadable,
  foreign,
}: Restored): readonly string[] {
  return [
    ...(keptAs === undefined ? [] : [`The previous store is kept as ${keptAs}`]),
    ...(sessions === 0 ? [] : [`${count(sessions, 'sign-in')} of the backup ended: these users sign in again`]),
    ...(unreadable === undefined
      ? []
      : [`What has changed since the backup is unknown, because the previous store cannot be read: ${unreadable}`]),
    ...(comparison && !comparison.isLater
      ? ['The previous store is not a later state of this backup, so nothing was disabled or revoked']
      : []),
    ...(comparison?.auditEntries
      ? [`Only the previous store has ${count(comparison.auditEntries, 'entry', 'entries')} of the audit log`]
      : []),
    ...(comparison?.changes.some(({ what, action }) => what === 'user' && action === 'disabled')
      ? ['To let a disabled user sign in again:   svc users enable NAME']
      : []),
    ...(foreign.length === 0
      ? []
      : [`Warning: the backup has what svc did not make and does not use: ${inSentence(foreign)}`]),
    ...(hasAdmin ? [] : ['No Admin can sign in: add the role to a user with svc roles assign NAME --role Admin']),
  ]
}

const maxNamed = 3
const inSentence = (labels: readonly string[]): string =>
  [...labels.slice(0, maxNamed), ...(labels.length > maxNamed ? [`${labels.length - maxNamed} more`] : [])].join(', ')
