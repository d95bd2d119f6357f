import { showDuration } from '../../core/format.ts'
/**
 * Answers about a single object: a headline and its facts on a terminal, a record in a pipe, one object under `--json`.
 */
import type { KindRow, PlanRow, ProfileRow } from '../../core/plan/index.ts'
import type { ReportHeartbeatResponse } from '../../core/protocol/index.ts'
import type { KeyFacts, UserFacts } from '../../core/service.ts'
import { repeatTargetFlags } from '../hints.ts'
import type { Screen } from '../io/io.ts'
import { painter } from '../io/terminal.ts'
import { isEmpty, type Lists, type RoleChanged } from '../role-change.ts'
import { type ListOutput, type RecordList, record } from './list.ts'
import {
  type Holding,
  holdings,
  keyRights,
  kindChecks,
  parameters,
  planChecks,
  profileMonitors,
  receipts,
  roleChanges,
  settings,
  users,
} from './lists.ts'
import { aside, type CellText, headline, moment, names, pairs } from './table.ts'

type Facts = readonly (readonly [name: string, value: CellText])[]

/**
 * One user, with the name or a sentence about the change as the headline. In JSON it is `member`, with whether the
 * command changed it.
 */
export function renderUser(
  user: UserFacts,
  store: string,
  as: ListOutput & {
    readonly sentence?: string
    readonly changed?: boolean
    readonly member?: 'user' | 'removed'
  },
): string {
  const { json, screen, sentence = user.userName, changed, member = 'user' } = as
  if (json) return JSON.stringify({ store, changed, [member]: users.json(user) })
  if (!screen.isTTY) return users.record(user, { store })
  const facts: Facts = [
    ['Display name', user.displayName ?? ''],
    ['E-mail', user.email ?? ''],
    ['Roles', names(user.roles)],
    ['Permissions', names(user.permissions)],
    ['State', user.disabled ? { text: 'disabled: cannot sign in', style: 'caution' } : ''],
    ['Password', user.hasPassword ? '' : { text: 'none: signs in with a key, or at a provider', style: 'caution' }],
    ['Digest', user.digest === undefined ? '' : digestTexts[user.digest]],
    ['Since', moment(user.createdAt)],
    ['Id', user.id],
    ['Store', store],
  ]
  return `${headline('ok', sentence, screen)}\n${pairs(facts, screen)}`
}

/** Whether the user can sign in by HTTP Digest. Almost nobody does, so that its absence is not worth a line. */
const digestTexts: Readonly<Record<NonNullable<UserFacts['digest']>, CellText>> = {
  none: '',
  valid: 'can also sign in by HTTP Digest, where svc.yaml turns it on',
  'not for Admin': { text: 'not while the user is Admin (--digest-for-admin)', style: 'caution' },
}

/** The text around a new key on stderr. The key itself goes to stdout. */
export function renderNewKey(
  key: KeyFacts,
  store: string,
  screen: Screen,
  argv: readonly string[] = [],
): { readonly before: string; readonly after: string } {
  const facts: Facts = [
    ['Roles', keyRights(key)],
    [
      'Expires',
      key.expiresAt ? moment(key.expiresAt) : { text: 'never; limit it with --expires 90d', style: 'caution' },
    ],
    ['Store', store],
  ]
  const before = `${headline('ok', `The key ${key.name} acts as ${key.userName}`, screen)}\n${pairs(facts, screen)}\n`
  const after = [
    '',
    '  Copy the key now: it will not be shown again. Use it as a bearer token:',
    '    SVC_TOKEN=KEY svc … --server URL',
    `  To revoke it:   ${repeatTargetFlags(`svc keys revoke ${key.name}`, argv)}`,
  ].join('\n')
  return { before, after }
}

/** The outcome of a change to a named object of the store. */
export function renderDone(
  name: string,
  store: string,
  as: ListOutput & { readonly sentence: string; readonly word: 'removed' | 'revoked' },
): string {
  const { json, screen, sentence, word } = as
  if (json) return JSON.stringify({ store, name, [word]: true })
  if (!screen.isTTY) return record([store, name, word])
  return `${headline('ok', sentence, screen)}\n${pairs([['Store', store]], screen)}`
}

/** A heartbeat as the server received it. */
export function renderReceipt(answer: ReportHeartbeatResponse, target: string, output: ListOutput): string {
  const forMachines = receipts.single(answer, { Target: target }, output)
  if (forMachines !== undefined) return forMachines
  const { screen } = output
  const { Name = '', ReceivedAt, ClockSkew = 0 } = answer
  const facts: Facts = [
    ['Target', target],
    ['Received', ReceivedAt === undefined ? '' : moment(ReceivedAt)],
    ['Clock', Math.abs(ClockSkew) < 2_000 ? '' : { text: skewOf(ClockSkew), style: 'caution' }],
  ]
  return `${headline('ok', `The heartbeat of ${Name} is received`, screen)}\n${pairs(facts, screen)}`
}

const skewOf = (ms: number): string => `${showDuration(Math.abs(ms))} ${ms > 0 ? 'ahead of' : 'behind'} the server's`

const listFacts = (lists: Lists, target: string): Facts => [
  ['Roles', names(lists.roles)],
  ['Permissions', names(lists.permissions)],
  ['Where', target],
]

/** The roles and permissions of a user. */
export const renderHoldings = (row: Holding, target: string, output: ListOutput): string =>
  holdings.single(row, { Target: target }, output) ??
  `${headline('ok', row.userName, output.screen)}\n${pairs(listFacts(row, target), output.screen)}`

const inQuotes = (lists: Lists): string => [...lists.roles, ...lists.permissions].map((name) => `"${name}"`).join(', ')

/** The effect of a change, and all roles and permissions of the user afterwards. */
export function renderChange(change: RoleChanged, target: string, output: ListOutput): string {
  const forMachines = roleChanges.single(change, { Target: target }, output)
  if (forMachines !== undefined) return forMachines
  const { screen } = output
  const assigned = change.action === 'assign'
  const did = change.dryRun ? `would ${assigned ? 'get' : 'lose'}` : assigned ? 'now has' : 'no longer has'
  const head = isEmpty(change.changed)
    ? headline('ok', `${change.userName}: unchanged`, screen)
    : headline(change.dryRun ? 'warn' : 'ok', `${change.userName} ${did} ${inQuotes(change.changed)}`, screen)
  const still: Facts = isEmpty(change.unchanged)
    ? []
    : [[assigned ? 'Unchanged' : 'Not assigned', inQuotes(change.unchanged)]]
  const dry = change.dryRun ? [aside('Dry run: nothing was changed.', screen)] : []
  return [head, pairs([...still, ...listFacts(change.all, target)], screen), ...dry].join('\n')
}

const records = <Row>(list: RecordList<Row, never>, rows: readonly Row[]): string =>
  rows.map((row) => list.record(row, {})).join('\n')

/** The checks that would run for each type in a mode. */
export function renderPlans(
  plans: readonly { readonly type: string; readonly monitors: readonly PlanRow[] }[],
  mode: string,
  screen: Screen,
): string {
  const paint = painter(screen.colour)
  return plans
    .map(({ type, monitors }) => {
      const rows = monitors.flatMap(({ MonitorName, Checks }) => Checks.map((check) => ({ MonitorName, ...check })))
      return screen.isTTY
        ? `${paint('strong', `${type}, ${mode}`)}\n${planChecks.table(rows, screen)}`
        : rows.map((row) => planChecks.record(row, { Type: type })).join('\n')
    })
    .join(screen.isTTY ? '\n\n' : '\n')
}

/** One kind: its checks and its settings for svc.yaml. */
export function renderKind(kind: KindRow, { json, screen }: ListOutput): string {
  if (json) return JSON.stringify(kind)
  if (!screen.isTTY) return [records(kindChecks, kind.checks), records(settings, kind.settings)].join('\n')
  const tables = [kindChecks.table(kind.checks, screen), settings.table(kind.settings, screen)]
  return [`${kind.name}: ${kind.title}`, ...tables].join('\n\n')
}

/** One built-in profile: its monitors and its parameters. */
export function renderProfile(profile: ProfileRow, { json, screen }: ListOutput): string {
  const { name, title, doc, monitors } = profile
  if (json) return JSON.stringify(profile)
  if (!screen.isTTY) return [records(profileMonitors, monitors), records(parameters, profile.parameters)].join('\n')
  const tables = [profileMonitors.table(monitors, screen), parameters.table(profile.parameters, screen)]
  return [`${name}: ${title}\n${doc}`, ...tables].join('\n\n')
}
