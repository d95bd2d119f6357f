import type { ListOutput } from '../render/list.ts'
import { aside, type FactRows, headline, names, pairs } from '../render/table.ts'
import { type Holding, holdings, roleChanges } from './lists.ts'
import { isEmpty, type Lists, type RoleChanged } from './role-change.ts'

const listFacts = (lists: Lists, target: string): FactRows => [
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
  const still: FactRows = isEmpty(change.unchanged)
    ? []
    : [[assigned ? 'Unchanged' : 'Not assigned', inQuotes(change.unchanged)]]
  const dry = change.dryRun ? [aside('Dry run: nothing was changed.', screen)] : []
  return [head, pairs([...still, ...listFacts(change.all, target)], screen), ...dry].join('\n')
}
