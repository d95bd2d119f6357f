/** The lists of the command line. The command that prints a list explains it. */
import type { Fault } from '../../core/errors.ts'
import { showDuration } from '../../core/format.ts'
import type { KindRow, PlanRow, ProfileRow } from '../../core/plan/index.ts'
import type { ReportHeartbeatResponse, UserSession } from '../../core/protocol/index.ts'
import { stateWord, stateWords } from '../../core/reports/index.ts'
import type { AuditFacts, HeartbeatFacts, KeyFacts, Trial, UserFacts } from '../../core/service.ts'
import { auditChange } from '../audit-change.ts'
import type { InstallationFinding } from '../doctor.ts'
import type { InForce } from '../in-force.ts'
import type { ServerProfile } from '../profiles.ts'
import { isEmpty, type Lists, type RoleChanged } from '../role-change.ts'
import type { FileChange } from '../role-file.ts'
import { renderError } from './errors.ts'
import { type Headline, list, type RecordList } from './list.ts'
import { type CellText, day, jsvNames, type Mark, moment, names, styles } from './table.ts'

const stateOf = ({ disabled }: UserFacts): string => (disabled ? 'disabled' : 'active')
const stateCell = (user: UserFacts): CellText => ({
  text: stateOf(user),
  style: user.disabled ? 'caution' : undefined,
})

export const users = list<UserFacts>()({
  around: ['store'],
  beneath: 'store',
  rows: 'users',
  headline: ['user', 'users'],
  empty: { sentence: 'There are no users yet', next: 'To add the first:   svc users add NAME --role Admin' },
  columns: [
    { key: 'id', field: false },
    { key: 'userName', title: 'NAME', shrink: 4 },
    { key: 'state', value: stateOf, json: false, title: 'STATE', cell: stateCell },
    { key: 'roles', title: 'ROLES', shrink: 3 },
    { key: 'permissions', title: 'PERMISSIONS', shrink: 2, optional: true },
    { key: 'email', title: 'E-MAIL', shrink: 1, optional: true },
    { key: 'displayName' },
    { key: 'disabled', field: false },
    { key: 'hasPassword', field: false },
    { key: 'digest', field: false },
    { key: 'createdAt', title: 'SINCE' },
  ],
  members: [
    'id',
    'userName',
    'email',
    'displayName',
    'roles',
    'permissions',
    'disabled',
    'hasPassword',
    'digest',
    'createdAt',
  ],
})

/** The users with a role. */
export const holders = list<UserFacts>()({
  around: ['store', 'role'],
  beneath: 'store',
  rows: 'users',
  headline: (rows, { role }) =>
    rows.length === 0
      ? { mark: 'warn', sentence: `No user has "${role}"` }
      : { mark: 'ok', sentence: `${rows.length === 1 ? '1 user has' : `${rows.length} users have`} "${role}"` },
  json: users.json,
  columns: [
    { key: 'userName', title: 'NAME', shrink: 2 },
    { key: 'email', title: 'E-MAIL', shrink: 1 },
    { key: 'state', value: stateOf, title: 'STATE', cell: stateCell },
  ],
})

export type ListedKey = KeyFacts & { readonly state: 'active' | 'expired' | 'revoked' }

export function keyRow(key: KeyFacts, now: Date): ListedKey {
  if (key.revokedAt !== undefined) return { ...key, state: 'revoked' }
  return { ...key, state: key.expiresAt !== undefined && key.expiresAt <= now ? 'expired' : 'active' }
}

/** What a key may do, in words. */
export function keyRights({ userName, roles, permissions }: KeyFacts): string {
  if (roles === undefined) return `all rights of ${userName}`
  return [
    ...(roles.length > 0 || !permissions ? [names(roles)] : []),
    ...(permissions?.length ? [`permissions ${names(permissions)}`] : []),
  ].join('; ')
}

const keyStyles = { active: undefined, expired: 'caution', revoked: 'dim' } as const

/** API keys, without their secrets. `roles` is null, and `*` in a pipe, when the key has all rights of its user. */
export const keys = list<ListedKey>()({
  around: ['store'],
  beneath: 'store',
  rows: 'keys',
  headline: ['key', 'keys'],
  empty: {
    sentence: 'There are no keys',
    next: 'To create one:   svc keys create NAME --user USER --expires 90d',
  },
  columns: [
    { key: 'name', title: 'NAME', shrink: 3 },
    { key: 'userName', title: 'USER', shrink: 2 },
    { key: 'state', title: 'STATE', cell: ({ state }) => ({ text: state, style: keyStyles[state] }) },
    {
      key: 'roles',
      title: 'ROLES',
      cell: keyRights,
      text: ({ roles }) => (roles === undefined ? '*' : jsvNames(roles)),
      shrink: 1,
    },
    {
      key: 'expiresAt',
      title: 'EXPIRES',
      cell: ({ expiresAt }) => (expiresAt === undefined ? 'never' : day(expiresAt)),
    },
    { key: 'createdAt', title: 'MADE' },
    { key: 'revokedAt', field: false },
    { key: 'permissions', absent: 'anywhere' },
  ],
  members: ['name', 'userName', 'roles', 'permissions', 'state', 'createdAt', 'expiresAt', 'revokedAt'],
})

/** The sessions of a user. A table shows the beginning of the id, which is enough to end the session. */
export const sessions = list<UserSession>()({
  around: ['Target', 'UserName'],
  beneath: 'Target',
  rows: 'Sessions',
  headline: (rows, { UserName }) => ({
    mark: 'ok',
    sentence: `${UserName} has ${rows.length === 1 ? '1 session' : `${rows.length || 'no'} sessions`}`,
  }),
  columns: [
    { key: 'Id', title: 'ID', cell: ({ Id = '' }) => Id.slice(0, 8) },
    { key: 'Current', title: 'CURRENT', cell: ({ Current }) => (Current ? 'yes' : ''), optional: true },
    { key: 'CreatedAt', title: 'SINCE (UTC)', cell: ({ CreatedAt }) => minute(CreatedAt) },
    { key: 'LastUsedAt', title: 'LAST USED (UTC)', cell: ({ LastUsedAt }) => minute(LastUsedAt) },
    { key: 'ExpiresAt', title: 'EXPIRES', cell: ({ ExpiresAt }) => (ExpiresAt ? day(ExpiresAt) : '') },
    { key: 'RememberMe', title: 'REMEMBERED', cell: ({ RememberMe }) => (RememberMe ? 'yes' : ''), optional: true },
    { key: 'Provider', title: 'PROVIDER', shrink: 1 },
  ],
})

const minute = (time: Date | undefined): string => (time ? moment(time).replace(' UTC', '') : 'unknown')

export type ListedHeartbeat = HeartbeatFacts & { readonly ageMs: number }

export const heartbeatRow = (heartbeat: HeartbeatFacts, now: Date): ListedHeartbeat => ({
  ...heartbeat,
  ageMs: Math.max(0, now.getTime() - heartbeat.at.getTime()),
})

/** `running for 5 min`, or how long the last run took: the message says how it ended. Empty for agents without a job. */
const runText = ({ run, ageMs, at }: ListedHeartbeat): string => {
  if (run === undefined) return ''
  if (run.endedAt === undefined) return `running for ${showDuration(ageMs + at.getTime() - run.startedAt)}`
  return `took ${showDuration(run.durationMs ?? 0)}`
}

const heartbeatLevels: Readonly<Record<HeartbeatFacts['status'], Mark>> = { Ok: 'ok', Warn: 'warn', Fail: 'fail' }

export const heartbeats = list<ListedHeartbeat>()({
  around: ['store'],
  beneath: 'store',
  rows: 'heartbeats',
  headline: ['agent', 'agents'],
  empty: { sentence: 'No agent has reported yet', next: 'To report:   svc heartbeat NAME' },
  columns: [
    { key: 'name', title: 'AGENT', shrink: 2 },
    {
      key: 'status',
      title: 'STATUS',
      cell: ({ status }) => ({
        text: stateWords[heartbeatLevels[status]],
        style: status === 'Ok' ? undefined : styles[heartbeatLevels[status]],
      }),
    },
    { key: 'at' },
    {
      key: 'ageSeconds',
      value: ({ ageMs }) => Math.floor(ageMs / 1_000),
      title: 'AGE',
      cell: ({ ageMs }) => showDuration(ageMs),
    },
    { key: 'version', title: 'VERSION', shrink: 3 },
    { key: 'backlog', title: 'BACKLOG', align: 'right' },
    { key: 'by', value: ({ who }) => who },
    { key: 'lastRun', value: runText, title: 'LAST RUN', shrink: 4, optional: true, field: false, json: false },
    { key: 'message', title: 'MESSAGE', shrink: 1 },
    { key: 'startedAt', value: ({ run }) => run && new Date(run.startedAt), absent: 'json' },
    { key: 'durationMs', value: ({ run }) => run?.durationMs, absent: 'json' },
    { key: 'exitCode', value: ({ run }) => run?.exitCode, absent: 'json' },
    { key: 'output', value: ({ run }) => run?.output, field: false, absent: 'json' },
    {
      key: 'intervalSeconds',
      value: ({ intervalMs }) => (intervalMs === undefined ? undefined : intervalMs / 1_000),
      field: false,
    },
    { key: 'diskFreePercent', field: false },
    { key: 'clockSkewMs', value: ({ skewMs }) => skewMs, field: false },
  ],
  members: [
    'name',
    'status',
    'message',
    'version',
    'at',
    'ageSeconds',
    'intervalSeconds',
    'backlog',
    'diskFreePercent',
    'clockSkewMs',
    'by',
    'startedAt',
    'durationMs',
    'exitCode',
    'output',
  ],
})

/** A heartbeat as the server received it: a list with one row. */
export const receipts = list<ReportHeartbeatResponse>()({
  around: ['Target'],
  columns: [
    { key: 'Name', absent: 'json' },
    { key: 'ReceivedAt', absent: 'json' },
    { key: 'ClockSkewMs', value: ({ ClockSkew }) => ClockSkew, field: false, absent: 'json' },
  ],
})

export const audit = list<AuditFacts>()({
  around: ['store'],
  beneath: 'store',
  rows: 'entries',
  headline: ['entry, newest first', 'entries, newest first'],
  empty: { sentence: 'No matching audit entries' },
  columns: [
    { key: 'id', title: 'ID', align: 'right' },
    { key: 'at', title: 'AT (UTC)', cell: ({ at }) => moment(at).replace(' UTC', '') },
    { key: 'event', title: 'EVENT' },
    { key: 'who', title: 'WHO', shrink: 3 },
    { key: 'address', title: 'FROM', optional: true },
    { key: 'target', title: 'TARGET', shrink: 2 },
    { key: 'before' },
    { key: 'after' },
    { key: 'reason' },
    { key: 'change', value: auditChange, title: 'CHANGE', shrink: 1, field: false, json: false },
    { key: 'correlationId' },
  ],
})

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

/** The outcome of a change of roles, or of its dry run, as one word for scripts. */
function outcomeOf({ action, changed, dryRun }: RoleChanged): string {
  if (isEmpty(changed)) return 'unchanged'
  return `${dryRun ? 'would ' : ''}${action}${dryRun ? '' : 'ed'}`
}

const wireLists = ({ roles, permissions }: Lists) => ({ Roles: roles, Permissions: permissions })

/** The effect of a role change, and the user's rights afterwards: a list with one row, with the protocol's names. */
export const roleChanges = list<RoleChanged>()({
  around: ['Target'],
  columns: [
    { key: 'UserName', value: ({ userName }) => userName },
    { key: 'Action', value: ({ action }) => action, field: false },
    { key: 'Outcome', value: outcomeOf },
    { key: 'Changed', value: ({ changed }) => wireLists(changed), field: false },
    { key: 'Unchanged', value: ({ unchanged }) => wireLists(unchanged), field: false },
    { key: 'Roles', value: ({ changed }) => changed.roles, json: false },
    { key: 'Permissions', value: ({ changed }) => changed.permissions, json: false },
    { key: 'AllRoles', value: ({ all }) => all.roles },
    { key: 'AllPermissions', value: ({ all }) => all.permissions },
  ],
})

export type Holding = Lists & { readonly userName: string }

/** The roles and permissions of a user: a list with one row. */
export const holdings = list<Holding>()({
  around: ['Target'],
  columns: [
    { key: 'UserName', value: ({ userName }) => userName },
    { key: 'AllRoles', value: ({ roles }) => roles },
    { key: 'AllPermissions', value: ({ permissions }) => permissions },
  ],
})

/** The outcome of one row of a file: done, rejected, or not tried. */
export type RowOutcome = { readonly change: FileChange } & (
  | { readonly done: RoleChanged; readonly fault?: undefined }
  | { readonly fault: Fault; readonly done?: undefined }
  | { readonly done?: undefined; readonly fault?: undefined }
)

const rowOutcome = ({ done, fault }: RowOutcome): string => (done ? outcomeOf(done) : fault ? 'failed' : 'not tried')

function outcomeCell(outcome: RowOutcome): CellText {
  const { done, fault } = outcome
  if (fault) return { text: fault.message, style: 'bad' }
  const text = rowOutcome(outcome)
  if (!done) return { text, style: 'caution' }
  if (isEmpty(done.changed)) return { text, style: 'dim' }
  return `${text} ${names([...done.changed.roles, ...done.changed.permissions])}`
}

/** Counts the rows of a file by outcome. */
function rowsHeadline(rows: readonly RowOutcome[]): Headline {
  const dry = rows.some(({ done }) => done?.dryRun)
  const counts = [
    [rows.filter(({ done }) => done && !isEmpty(done.changed)).length, dry ? 'would change' : 'changed'],
    [rows.filter(({ done }) => done && isEmpty(done.changed)).length, 'unchanged'],
    [rows.filter(({ fault }) => fault).length, 'failed'],
    [rows.filter(({ done, fault }) => !done && !fault).length, 'not tried'],
  ] as const
  const parts = counts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`)
  return {
    mark: rows.some(({ done }) => !done) ? 'fail' : 'ok',
    sentence: `${rows.length} row${rows.length === 1 ? '' : 's'}: ${parts.join(', ')}`,
  }
}

/** The rows of a file of changes. A row's JSON is that of its change. */
export const fileRows = list<RowOutcome>()({
  around: ['Target'],
  beneath: 'Target',
  rows: 'Results',
  headline: rowsHeadline,
  columns: [
    { key: 'Row', value: ({ change }) => change.row, title: 'ROW', align: 'right' },
    { key: 'UserName', value: ({ change }) => change.userName, title: 'USER', shrink: 2 },
    { key: 'Action', value: ({ change }) => change.action, title: 'ACTION' },
    { key: 'Outcome', value: rowOutcome, title: 'OUTCOME', cell: outcomeCell, shrink: 1 },
    { key: 'Roles', value: ({ done }) => done?.changed.roles ?? [] },
    { key: 'Permissions', value: ({ done }) => done?.changed.permissions ?? [] },
    { key: 'Error', value: ({ fault }) => fault?.message },
  ],
  json: (row) => ({
    Row: row.change.row,
    ...(row.done
      ? roleChanges.json(row.done)
      : { UserName: row.change.userName, Action: row.change.action, Outcome: rowOutcome(row) }),
    ...(row.fault ? { Error: renderError.json(row.fault).error } : {}),
  }),
})

export type Finding = Trial['results'][number]

/** The results of a single monitor's run. */
export const findings = list<Finding>()({
  around: ['Type', 'Monitor'],
  columns: [
    { key: 'MonitoringName', value: ({ check }) => check, field: 'Check', title: 'CHECK', shrink: 2 },
    {
      key: 'Level',
      value: ({ level }) => level,
      title: 'RESULT',
      cell: (finding) => {
        const text = stateWord({ ...finding, fault: finding.fault })
        return { text, style: text === 'skipped' ? 'dim' : styles[finding.level] }
      },
    },
    { key: 'Fault', value: ({ fault }) => fault, title: 'FAULT' },
    {
      key: 'Message',
      value: ({ message }) => message,
      title: 'SAW',
      cell: ({ message, details = [] }) => [message, ...details.map((text) => ({ text, style: 'dim' }) as const)],
      shrink: 1,
    },
    { key: 'Details', value: ({ details = [] }) => details, field: false },
    { key: 'Observed', value: ({ observed }) => observed, field: false },
    { key: 'Unit', value: ({ unit }) => unit, field: false },
    { key: 'Limit', value: ({ limit }) => limit, field: false },
    { key: 'Address', value: ({ address }) => address, field: false },
  ],
  members: ['MonitoringName', 'Level', 'Message', 'Details', 'Fault', 'Observed', 'Unit', 'Limit', 'Address'],
})

/** One check of a plan. The JSON document is the plan itself. */
export type PlanCheckRow = PlanRow['Checks'][number] & Pick<PlanRow, 'MonitorName'>

export const planChecks = list<PlanCheckRow>()({
  around: ['Type'],
  columns: [
    { key: 'MonitorName', title: 'MONITOR', shrink: 2, once: true },
    { key: 'Name', field: 'Check', title: 'CHECK', shrink: 2 },
    { key: 'Depth', title: 'FROM' },
    { key: 'Doc', title: 'LOOKS AT', shrink: 1, least: 24 },
  ],
  json: (row) => row,
})

/** Every kind available in svc.yaml. */
export const kinds = list<KindRow>()({
  columns: [
    { key: 'name', title: 'KIND' },
    { key: 'title', title: 'WHAT IT CHECKS', shrink: 1, least: 24 },
  ],
  json: (kind) => kind,
})

export const kindChecks = list<KindRow['checks'][number]>()({
  columns: [
    { key: 'name', title: 'CHECK', shrink: 2 },
    { key: 'depth', title: 'FROM' },
    { key: 'doc', title: 'LOOKS AT', shrink: 1, least: 24 },
  ],
  json: (check) => check,
})

type SettingRow = ProfileRow['parameters'][number]

const settingList = (title: string): RecordList<SettingRow, never> =>
  list<SettingRow>()({
    columns: [
      { key: 'name', title, shrink: 2 },
      { key: 'type', title: 'TYPE', shrink: 2 },
      {
        key: 'default',
        value: (setting) => (setting.required ? 'required' : setting.default),
        title: 'DEFAULT',
        shrink: 2,
      },
      { key: 'doc', title: 'MEANING', shrink: 1, least: 24 },
    ],
    json: (setting) => setting,
  })

/** The settings of a kind, and the parameters of a built-in profile. */
export const settings = settingList('SETTING')
export const parameters = settingList('PARAMETER')

/** Every built-in profile. */
export const monitorProfiles = list<ProfileRow>()({
  columns: [
    { key: 'name', title: 'PROFILE' },
    {
      key: 'types',
      title: 'FOR',
      cell: ({ types }) => types.join(', '),
      text: ({ types }) => types.join(', '),
      shrink: 2,
    },
    { key: 'title', title: 'WHAT IT CHECKS', shrink: 1, least: 24 },
  ],
  json: (profile) => profile,
})

export const profileMonitors = list<ProfileRow['monitors'][number]>()({
  columns: [
    { key: 'name', title: 'MONITOR', shrink: 1 },
    { key: 'kind', title: 'KIND', shrink: 2 },
    { key: 'depth', title: 'FROM' },
  ],
  json: (monitor) => monitor,
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

/** The fields of each command's records in a pipe, in order. */
export const recordFields: Readonly<Record<string, readonly string[]>> = {
  'users list': users.fields,
  'roles show': holdings.fields,
  'roles holders': holders.fields,
  'roles assign': roleChanges.fields,
  'roles assign --from-file': fileRows.fields,
  'sessions list': sessions.fields,
  'keys list': keys.fields,
  'audit list': audit.fields,
  heartbeat: receipts.fields,
  'heartbeats list': heartbeats.fields,
  'secrets list': secrets.fields,
  'monitors list': planChecks.fields,
  'monitors test': findings.fields,
  'monitors kinds': kinds.fields,
  'monitors profiles': monitorProfiles.fields,
  'profile list': serverProfiles.fields,
  'config list': configuration.fields,
  doctor: installation.fields,
}
