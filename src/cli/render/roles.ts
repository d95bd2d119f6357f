import type { Fault } from '../../core/errors.ts'
import type { UserFacts } from '../../core/service.ts'
import { isEmpty, type Lists, type RoleChanged } from '../role-change.ts'
import type { FileChange } from '../role-file.ts'
import { renderError } from './errors.ts'
import { aside, headline, jsvNames, listing, names, pairs, type Screen, type Shown, tabbed } from './listing.ts'

/** What became of one row of a file. */
export type RowOutcome = { readonly change: FileChange } & (
  | { readonly done: RoleChanged; readonly fault?: undefined }
  | { readonly fault: Fault; readonly done?: undefined }
  | { readonly done?: undefined; readonly fault?: undefined }
)

const pipeLists = (lists: Lists): readonly string[] => [jsvNames(lists.roles), jsvNames(lists.permissions)]
const sentence = (lists: Lists): string => [...lists.roles, ...lists.permissions].map((name) => `"${name}"`).join(', ')

/** One word for scripts: what happened, or would. */
export const outcomeOf = (changed: RoleChanged): string => {
  if (isEmpty(changed.changed)) return 'unchanged'
  if (changed.dryRun) return changed.action === 'assign' ? 'would assign' : 'would unassign'
  return changed.action === 'assign' ? 'assigned' : 'unassigned'
}

const wireLists = ({ roles, permissions }: Lists) => ({ Roles: roles, Permissions: permissions })

/** The protocol's names for the lists after the change, and what it changed. */
export const changeJson = (changed: RoleChanged) => ({
  UserName: changed.userName,
  Action: changed.action,
  Outcome: outcomeOf(changed),
  Changed: wireLists(changed.changed),
  Unchanged: wireLists(changed.unchanged),
  AllRoles: changed.all.roles,
  AllPermissions: changed.all.permissions,
})

export const heldJson = (userName: string, lists: Lists) => ({
  UserName: userName,
  AllRoles: lists.roles,
  AllPermissions: lists.permissions,
})

/** A row of a file as `--json` shows it. */
export const rowJson = ({ change, done, fault }: RowOutcome) => ({
  Row: change.row,
  ...(done
    ? changeJson(done)
    : { UserName: change.userName, Action: change.action, Outcome: fault ? 'failed' : 'not tried' }),
  ...(fault ? { Error: renderError.json(fault).error } : {}),
})

const listPairs = (lists: Lists, place: string): readonly (readonly [string, Shown])[] => [
  ['Roles', names(lists.roles)],
  ['Permissions', names(lists.permissions)],
  ['Where', place],
]

/** What a user holds. */
export function renderHeld(userName: string, lists: Lists, place: string, screen: Screen): string {
  if (!screen.isTTY) return tabbed([place, userName, ...pipeLists(lists)])
  return `${headline('ok', userName, screen)}\n${pairs(listPairs(lists, place), screen)}`
}

/** What a change did, and what the user holds after it. */
export function renderChange(changed: RoleChanged, place: string, screen: Screen): string {
  if (!screen.isTTY) {
    return tabbed([
      place,
      changed.userName,
      outcomeOf(changed),
      ...pipeLists(changed.changed),
      ...pipeLists(changed.all),
    ])
  }
  const assigned = changed.action === 'assign'
  const did = changed.dryRun ? `would ${assigned ? 'get' : 'lose'}` : assigned ? 'now holds' : 'no longer holds'
  const head = isEmpty(changed.changed)
    ? headline('ok', `${changed.userName}: unchanged`, screen)
    : headline(changed.dryRun ? 'warn' : 'ok', `${changed.userName} ${did} ${sentence(changed.changed)}`, screen)
  const still = isEmpty(changed.unchanged)
    ? []
    : [[assigned ? 'Held before' : 'Not held', sentence(changed.unchanged)] as const]
  const dry = changed.dryRun ? [aside('A dry run: nothing was changed.', screen)] : []
  return [head, pairs([...still, ...listPairs(changed.all, place)], screen), ...dry].join('\n')
}

/** Every row of a file with what became of it. */
export function renderRows(outcomes: readonly RowOutcome[], place: string, screen: Screen): string {
  if (!screen.isTTY) {
    return outcomes
      .map(({ change, done, fault }) => {
        const changed = done?.changed ?? { roles: [], permissions: [] }
        const said = done ? outcomeOf(done) : fault ? 'failed' : 'not tried'
        const row = [place, String(change.row), change.userName, change.action, said]
        return tabbed([...row, ...pipeLists(changed), fault?.message ?? ''])
      })
      .join('\n')
  }
  const rows = outcomes.map(({ change, done, fault }) => {
    const said: Shown = fault
      ? { text: fault.message, style: 'bad' }
      : done
        ? isEmpty(done.changed)
          ? { text: 'unchanged', style: 'dim' }
          : `${outcomeOf(done)} ${names([...done.changed.roles, ...done.changed.permissions])}`
        : { text: 'not tried', style: 'caution' }
    return [String(change.row), change.userName, change.action, said]
  })
  const tally = count(outcomes)
  const bad = outcomes.some(({ done }) => !done)
  return [
    headline(bad ? 'fail' : 'ok', tally, screen),
    aside(place, screen),
    '',
    listing({ titles: ['ROW', 'USER', 'ACTION', 'OUTCOME'], yielding: [3, 1] }, rows, screen),
  ].join('\n')
}

function count(outcomes: readonly RowOutcome[]): string {
  const dry = outcomes.some(({ done }) => done?.dryRun)
  const of = (test: (outcome: RowOutcome) => boolean): number => outcomes.filter(test).length
  const parts = [
    [of(({ done }) => done !== undefined && !isEmpty(done.changed)), dry ? 'would change' : 'changed'],
    [of(({ done }) => done !== undefined && isEmpty(done.changed)), 'unchanged'],
    [of(({ fault }) => fault !== undefined), 'failed'],
    [of(({ done, fault }) => !done && !fault), 'not tried'],
  ] as const
  const said = parts.filter(([number]) => number > 0).map(([number, word]) => `${number} ${word}`)
  return `${outcomes.length} row${outcomes.length === 1 ? '' : 's'}: ${said.join(', ')}`
}

/** Who holds a role. */
export function renderHolders(role: string, users: readonly UserFacts[], store: string, screen: Screen): string {
  if (!screen.isTTY) {
    return users
      .map((user) => tabbed([store, role, user.userName, user.email ?? '', user.disabled ? 'disabled' : 'active']))
      .join('\n')
  }
  const head =
    users.length === 0
      ? `Nobody holds "${role}"`
      : `${users.length === 1 ? '1 user holds' : `${users.length} users hold`} "${role}"`
  const rows = users.map((user): Shown[] => [
    user.userName,
    user.email ?? '',
    user.disabled ? { text: 'disabled', style: 'caution' } : 'active',
  ])
  return [
    headline(users.length === 0 ? 'warn' : 'ok', head, screen),
    aside(store, screen),
    ...(users.length === 0
      ? []
      : ['', listing({ titles: ['NAME', 'E-MAIL', 'STATE'], yielding: [1, 0] }, rows, screen)]),
  ].join('\n')
}
