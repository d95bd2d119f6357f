import type { Fault } from '../../core/base/errors.ts'
import { count } from '../../core/base/format.ts'
import type { GrantFacts } from '../../core/protocol/index.ts'
import { dateTime, integer, listOf, objectOf, oneOf, optional, string, strings } from '../render/document.ts'
import { errorShape, renderError } from '../render/errors.ts'
import { type Headline, type ListOutput, list } from '../render/list.ts'
import { aside, type CellText, type FactRows, headline, names, pairs } from '../render/table.ts'
import { isEmpty, type Lists, type RoleChanged } from './role-change.ts'
import { grantText } from './role-end.ts'
import type { FileChange } from './role-file.ts'

const listFacts = (lists: Lists, target: string): FactRows => [
  ['Roles', names(lists.roles)],
  ['Permissions', names(lists.permissions)],
  ['Where', target],
]

/** The facts about each grant, below its name. */
const grantRows = (grants: readonly GrantFacts[] | undefined, now: Date): FactRows =>
  (grants ?? []).flatMap((grant) => {
    const text = grantText(grant, now)
    return text === '' ? [] : [[grant.name, { text, ...(grant.endsAt === undefined ? {} : { style: 'caution' }) }]]
  })

/** The roles and permissions of a user. */
export function renderHoldings(row: Holding, target: string, output: ListOutput, now: Date): string {
  const forMachines = holdings.single(row, { Target: target }, output)
  if (forMachines !== undefined) return forMachines
  const { screen } = output
  const grants = grantRows(row.grants, now)
  const facts = grants.length > 0 ? ['', pairs(grants, screen)] : []
  return [headline('ok', row.userName, screen), pairs(listFacts(row, target), screen), ...facts].join('\n')
}

const inQuotes = (lists: Lists): string => [...lists.roles, ...lists.permissions].map((name) => `"${name}"`).join(', ')

/** The effect of a change, and all roles and permissions of the user afterwards. */
export function renderChange(change: RoleChanged, target: string, output: ListOutput, now: Date): string {
  const forMachines = roleChanges.single(change, { Target: target }, output)
  if (forMachines !== undefined) return forMachines
  const { screen } = output
  const assigned = change.action === 'assign'
  const ends = grantRows(
    change.grants?.filter(({ endsAt }) => endsAt !== undefined),
    now,
  )
  const head = isEmpty(change.changed)
    ? headline('ok', `${change.userName}: unchanged`, screen)
    : headline(
        change.dryRun ? 'warn' : 'ok',
        `${change.userName} ${verbOf(change)} ${inQuotes(change.changed)}`,
        screen,
      )
  const still: FactRows = isEmpty(change.unchanged)
    ? []
    : [[assigned ? 'Unchanged' : 'Not assigned', inQuotes(change.unchanged)]]
  const dry = change.dryRun ? [aside('Dry run: nothing was changed.', screen)] : []
  const below = ends.length > 0 ? ['', pairs(ends, screen)] : []
  return [head, pairs([...still, ...listFacts(change.all, target)], screen), ...below, ...dry].join('\n')
}

const verbs = {
  assign: { did: 'now has', would: 'would get' },
  unassign: { did: 'no longer has', would: 'would lose' },
  extend: { did: 'keeps for longer:', would: 'would keep for longer:' },
} as const
const verbOf = ({ action, dryRun }: RoleChanged): string => verbs[action][dryRun ? 'would' : 'did']

/** The outcome of a change of roles, or of its dry run, as one word for scripts. */
function outcomeOf({ action, changed, dryRun }: RoleChanged): string {
  if (isEmpty(changed)) return 'unchanged'
  return `${dryRun ? 'would ' : ''}${action}${dryRun ? '' : 'ed'}`
}

const wireShape = objectOf({ Roles: strings, Permissions: strings })
const wireLists = ({ roles, permissions }: Lists) => ({ Roles: roles, Permissions: permissions })

const grantShape = objectOf({
  Kind: oneOf('role', 'permission'),
  Name: string,
  EndsAt: optional(dateTime),
  GrantedAt: optional(dateTime),
  GrantedBy: optional(string),
  Reason: optional(string),
})

/** The facts about the grants. Absent in JSON where there are none, and left out of records. */
function grantsColumn<Row extends { readonly grants?: readonly GrantFacts[] | undefined }>() {
  const instant = (at: number | undefined) => (at === undefined ? undefined : new Date(at).toISOString())
  return {
    key: 'Grants',
    value: ({ grants = [] }: Row) => {
      const documented = grants.filter(({ endsAt, grantedBy }) => endsAt !== undefined || grantedBy !== undefined)
      if (documented.length === 0) return undefined
      return documented.map((grant) => ({
        Kind: grant.kind,
        Name: grant.name,
        EndsAt: instant(grant.endsAt),
        GrantedAt: instant(grant.grantedAt),
        GrantedBy: grant.grantedBy,
        Reason: grant.reason,
      }))
    },
    is: listOf(grantShape),
    field: false,
    absent: 'json',
  } as const
}

/** The effect of a role change, and the user's rights afterwards: a list with one row, with the protocol's names. */
export const roleChanges = list<RoleChanged>()({
  around: ['Target'],
  rows: { spread: true },
  columns: [
    { key: 'UserName', value: ({ userName }) => userName, is: string },
    { key: 'Action', value: ({ action }) => action, is: oneOf('assign', 'unassign', 'extend'), field: false },
    { key: 'Outcome', value: outcomeOf, is: string },
    { key: 'Changed', value: ({ changed }) => wireLists(changed), is: wireShape, field: false },
    { key: 'Unchanged', value: ({ unchanged }) => wireLists(unchanged), is: wireShape, field: false },
    { key: 'Roles', value: ({ changed }) => changed.roles, json: false },
    { key: 'Permissions', value: ({ changed }) => changed.permissions, json: false },
    { key: 'AllRoles', value: ({ all }) => all.roles, is: strings },
    { key: 'AllPermissions', value: ({ all }) => all.permissions, is: strings },
    grantsColumn<RoleChanged>(),
  ],
})

export type Holding = Lists & { readonly userName: string; readonly grants?: readonly GrantFacts[] | undefined }

/** The roles and permissions of a user: a list with one row. */
export const holdings = list<Holding>()({
  around: ['Target'],
  rows: { spread: true },
  columns: [
    { key: 'UserName', value: ({ userName }) => userName, is: string },
    { key: 'AllRoles', value: ({ roles }) => roles, is: strings },
    { key: 'AllPermissions', value: ({ permissions }) => permissions, is: strings },
    grantsColumn<Holding>(),
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
    sentence: `${count(rows.length, 'row')}: ${parts.join(', ')}`,
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
  json: {
    of: (row) => ({
      Row: row.change.row,
      ...(row.done
        ? roleChanges.json(row.done)
        : { UserName: row.change.userName, Action: row.change.action, Outcome: rowOutcome(row) }),
      ...(row.fault ? { Error: renderError.json(row.fault).error } : {}),
    }),
    is: objectOf({
      Row: integer,
      UserName: string,
      Action: oneOf('assign', 'unassign'),
      Outcome: string,
      Changed: optional(wireShape),
      Unchanged: optional(wireShape),
      AllRoles: optional(strings),
      AllPermissions: optional(strings),
      Error: optional(errorShape),
    }),
  },
})
