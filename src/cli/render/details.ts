/** Answers about one thing: a headline and its facts on a terminal, a record in a pipe, one object under `--json`. */
import type { KindRow, PlanRow, ProfileRow } from '../../core/plan/index.ts'
import type { ReportHeartbeatResponse } from '../../core/protocol/index.ts'
import type { KeyFacts, UserFacts } from '../../core/service.ts'
import { isEmpty, type Lists, type RoleChanged } from '../role-change.ts'
import { painter, useColour } from '../terminal.ts'
import { type List, record } from './list.ts'
import {
  type HeldRow,
  held,
  keyRights,
  kindChecks,
  parameters,
  planChecks,
  profileMonitors,
  type RowOutcome,
  received,
  roleChanges,
  settings,
  users,
} from './lists.ts'
import { aside, type CellText, headline, type Mark, moment, names, pairs, type Screen, showDuration } from './table.ts'

type Facts = readonly (readonly [name: string, value: CellText])[]

/** One user under a sentence about what was done, or under the name. */
export function renderUser(
  user: UserFacts,
  store: string,
  { screen, sentence = user.userName }: { readonly screen: Screen; readonly sentence?: string | undefined },
): string {
  if (!screen.isTTY) return users.record(user, { store })
  const facts: Facts = [
    ['Display name', user.displayName ?? ''],
    ['E-mail', user.email ?? ''],
    ['Roles', names(user.roles)],
    ['Permissions', names(user.permissions)],
    ['State', user.disabled ? { text: 'disabled: cannot sign in', style: 'caution' } : ''],
    ['Password', user.hasPassword ? '' : { text: 'none: signs in with a key only', style: 'caution' }],
    ['Since', moment(user.createdAt)],
    ['Id', user.id],
    ['Store', store],
  ]
  return `${headline('ok', sentence, screen)}\n${pairs(facts, screen)}`
}

/** What stands around a new key on stderr; the key itself is stdout's. */
export function renderNewKey(
  key: KeyFacts,
  store: string,
  screen: Screen,
): { readonly before: string; readonly after: string } {
  const facts: Facts = [
    ['Roles', keyRights(key)],
    [
      'Expires',
      key.expiresAt ? moment(key.expiresAt) : { text: 'never: give --expires 90d to bound it', style: 'caution' },
    ],
    ['Store', store],
  ]
  const before = `${headline('ok', `The key ${key.name} acts as ${key.userName}`, screen)}\n${pairs(facts, screen)}\n`
  const after = [
    '',
    '  It is told this once. Use it as a bearer token:',
    '    SVC_TOKEN=KEY svc … --server URL',
    `  Take it back:   svc keys revoke ${key.name}`,
  ].join('\n')
  return { before, after }
}

/** That something of a store is done: a sentence for people; store, name and one word for scripts. */
export const renderDone = (
  { sentence, name, word }: { readonly sentence: string; readonly name: string; readonly word: string },
  store: string,
  screen: Screen,
): string =>
  screen.isTTY
    ? `${headline('ok', sentence, screen)}\n${pairs([['Store', store]], screen)}`
    : record([store, name, word])

/** A heartbeat that the server has received. */
export function renderReceived(answer: ReportHeartbeatResponse, target: string, screen: Screen): string {
  if (!screen.isTTY) return received.record(answer, { Target: target })
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

/** What a user holds. */
export const renderHeld = (row: HeldRow, target: string, screen: Screen): string =>
  screen.isTTY
    ? `${headline('ok', row.userName, screen)}\n${pairs(listFacts(row, target), screen)}`
    : held.record(row, { Target: target })

const quoted = (lists: Lists): string => [...lists.roles, ...lists.permissions].map((name) => `"${name}"`).join(', ')

/** What a change did, and what the user holds after it. */
export function renderChange(change: RoleChanged, target: string, screen: Screen): string {
  if (!screen.isTTY) return roleChanges.record(change, { Target: target })
  const assigned = change.action === 'assign'
  const did = change.dryRun ? `would ${assigned ? 'get' : 'lose'}` : assigned ? 'now holds' : 'no longer holds'
  const head = isEmpty(change.changed)
    ? headline('ok', `${change.userName}: unchanged`, screen)
    : headline(change.dryRun ? 'warn' : 'ok', `${change.userName} ${did} ${quoted(change.changed)}`, screen)
  const still: Facts = isEmpty(change.unchanged)
    ? []
    : [[assigned ? 'Held before' : 'Not held', quoted(change.unchanged)]]
  const dry = change.dryRun ? [aside('A dry run: nothing was changed.', screen)] : []
  return [head, pairs([...still, ...listFacts(change.all, target)], screen), ...dry].join('\n')
}

/** The headline over the rows of a file: how many there are of each outcome. */
export function rowsHeadline(rows: readonly RowOutcome[]): { readonly mark: Mark; readonly sentence: string } {
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

/** The headline over those who hold a role. */
export function holdersHeadline(role: string, count: number): { readonly mark: Mark; readonly sentence: string } {
  if (count === 0) return { mark: 'warn', sentence: `Nobody holds "${role}"` }
  return { mark: 'ok', sentence: `${count === 1 ? '1 user holds' : `${count} users hold`} "${role}"` }
}

const records = <Row>(list: List<Row, never>, rows: readonly Row[]): string =>
  rows.map((row) => list.record(row, {})).join('\n')

/** What would run for each type at a mode. */
export function renderPlans(
  plans: readonly { readonly type: string; readonly monitors: readonly PlanRow[] }[],
  mode: string,
  screen: Screen,
): string {
  const paint = painter(useColour(screen))
  return plans
    .map(({ type, monitors }) => {
      const rows = monitors.flatMap(({ MonitorName, Checks }) => Checks.map((check) => ({ MonitorName, ...check })))
      return screen.isTTY
        ? `${paint('strong', `${type}, ${mode}`)}\n${planChecks.table(rows, screen)}`
        : rows.map((row) => planChecks.record(row, { Type: type })).join('\n')
    })
    .join(screen.isTTY ? '\n\n' : '\n')
}

/** One kind: its checks, and what svc.yaml may say. */
export const renderKind = (kind: KindRow, screen: Screen): string =>
  screen.isTTY
    ? [
        `${kind.name}: ${kind.title}`,
        kindChecks.table(kind.checks, screen),
        settings.table(kind.settings, screen),
      ].join('\n\n')
    : [records(kindChecks, kind.checks), records(settings, kind.settings)].join('\n')

/** One profile that comes with svc: its monitors, and its parameters. */
export const renderProfile = (profile: ProfileRow, screen: Screen): string =>
  screen.isTTY
    ? [
        `${profile.name}: ${profile.title}\n${profile.doc}`,
        profileMonitors.table(profile.monitors, screen),
        parameters.table(profile.parameters, screen),
      ].join('\n\n')
    : [records(profileMonitors, profile.monitors), records(parameters, profile.parameters)].join('\n')
