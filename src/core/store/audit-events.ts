export type AuditEventRow = {
  /** The event as a sentence, for the reference. */
  readonly sentence: string
  /** Anonymous callers can cause it: the entry is deleted after 90 days, and a comparison of two stores ignores it. */
  readonly isRefusal?: true
  /** The name in the entries of earlier versions, which keep it. */
  readonly formerly?: string
}

/** Every event of the audit log: its name in the store and in `svc audit list`, and what it records (S10). */
export const auditEvents = {
  'signin.ok': { sentence: 'A user signed in' },
  'signin.failed': { sentence: 'A sign-in was refused; the reason says why', isRefusal: true },
  'signin.locked': { sentence: 'A sign-in was refused, and locked the name for the address', isRefusal: true },
  signout: { sentence: 'A user signed out' },
  'session.ended': { sentence: 'Sessions of a user were ended, by the user or an Admin' },
  'refresh.reused': { sentence: 'A refresh token was used a second time, which ended its session' },
  'password.changed': { sentence: 'A password was changed or reset' },
  'digest.removed': { sentence: 'The secret for sign-in by digest was removed' },
  'roles.changed': { sentence: 'Roles or permissions of a user were assigned or removed' },
  'roles.ended': { sentence: 'A role or permission of a user ended by itself' },
  'user.added': { sentence: 'A user was added' },
  'user.removed': { sentence: 'A user was removed' },
  'user.disabled': { sentence: 'A user was disabled' },
  'user.enabled': { sentence: 'A user was enabled' },
  'user.unlocked': { sentence: 'The locks of a user by failed sign-ins were removed' },
  'user.linked': { sentence: 'An account of an OpenID provider was linked to a user' },
  'user.unlinked': { sentence: 'An account of an OpenID provider was unlinked from a user' },
  'key.added': { sentence: 'A key was created' },
  'key.revoked': { sentence: 'A key was revoked' },
  'heartbeat.removed': { sentence: 'The heartbeat of an agent was removed' },
  'silence.added': {
    sentence: 'Notifications about monitors were silenced; the entry lists the monitors and the end',
    formerly: 'quiet.added',
  },
  'silence.ended': { sentence: 'A silence was ended before its time', formerly: 'quiet.ended' },
  'ack.added': { sentence: 'A fault was acknowledged' },
  'ack.ended': { sentence: 'An acknowledgement was ended, or its fault ended, became worse or became another one' },
  'audit.read': { sentence: 'An Admin read the audit of a server, for the first time in a session' },
  'node.forgotten': { sentence: 'A node that does not return was removed, with what was stored of its machine' },
  'store.restored': { sentence: 'The store was restored from a backup' },
} as const satisfies Readonly<Record<string, AuditEventRow>>

export type AuditEvent = keyof typeof auditEvents
export const auditEventNames = Object.keys(auditEvents) as readonly AuditEvent[]

const rows = Object.entries<AuditEventRow>(auditEvents)
/** The present name of an event by a former one; every other name as it is. */
export const presentEvent = (name: string): string => rows.find(([, { formerly }]) => formerly === name)?.[0] ?? name
/** The names under which the audit log has an event, by any of them. Empty for an unknown event. */
export const storedEvents = (name: string): readonly string[] =>
  rows.flatMap(([present, { formerly }]) =>
    present === name || formerly === name ? [present, ...(formerly === undefined ? [] : [formerly])] : [],
  )

/**
 * Milliseconds for which refusals are kept: they could fill the disk, and without room for the audit no role could change.
 * A seal of which all are older loses them together.
 */
export const refusalsKeptMs = 90 * 86_400_000

/** The SQL list of the events that are refusals, written as in the index of released stores (schema.ts). */
export const refusalsInSql = `(${rows
  .filter(([, { isRefusal }]) => isRefusal)
  .map(([name]) => `'${name}'`)
  .join(', ')})`

/** The events that say who held which role (O9), with that of a grant that ended by itself. */
export const roleEvents = [
  'user.added',
  'user.removed',
  'user.disabled',
  'user.enabled',
  'roles.changed',
  'roles.ended',
  'store.restored',
]
