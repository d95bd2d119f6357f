import { isMap, type Problem, type Raw } from '../base/settings/index.ts'

/** A group of `dependsOn`, with names and tags as written. */
export type WrittenGroup = {
  readonly atLeast: number
  readonly of: readonly string[]
  /** Where the group is in the entry of the monitor. */
  readonly path: Problem['path']
}

export type GroupsRead = {
  /** The settings of the monitor, with only names left in `dependsOn`. */
  readonly rest: Raw
  readonly groups: readonly WrittenGroup[]
  readonly problems: readonly Problem[]
}

const form = 'write {any: [NAME, …]} or {atLeast: 2, of: [NAME, …]}'

/** Reads the groups of `dependsOn`, which has at least one: `{any: […]}` or `{atLeast: 2, of: […]}`. */
export function groupsIn(raw: Raw): GroupsRead {
  const { dependsOn, ...others } = raw
  const items: readonly unknown[] = Array.isArray(dependsOn) ? dependsOn : [dependsOn]
  const names = items.filter((item) => !isMap(item))
  const read = items.flatMap((item, at) =>
    isMap(item) ? [groupOf(item, Array.isArray(dependsOn) ? ['dependsOn', at] : ['dependsOn'])] : [],
  )
  return {
    rest: names.length === 0 ? others : { ...others, dependsOn: names },
    groups: read.flatMap((one) => ('group' in one ? [one.group] : [])),
    problems: read.flatMap((one) => ('problem' in one ? [one.problem] : [])),
  }
}

function groupOf(item: Raw, path: Problem['path']): { readonly group: WrittenGroup } | { readonly problem: Problem } {
  const refused = (message: string, ...at: Problem['path']) => ({ problem: { path: [...path, ...at], message } })
  const isAny = Object.hasOwn(item, 'any')
  const unknown = Object.keys(item).find((key) => (isAny ? key !== 'any' : key !== 'atLeast' && key !== 'of'))
  if (unknown !== undefined) return refused(`is not a setting of a group: ${form}`, unknown)
  const list = isAny ? 'any' : 'of'
  const members = typeof item[list] === 'string' ? [item[list]] : item[list]
  if (members === undefined) return refused(`is incomplete: ${form}`)
  if (!Array.isArray(members)) return refused('must be a list of monitors', list)
  if (members.length === 0) return refused('lists no monitor: name those of the group, or remove it', list)
  const invalid = members.findIndex((one) => typeof one !== 'string' || one.trim() === '')
  if (invalid >= 0) return refused('must be text: the name of a monitor, or tag:NAME', list, invalid)
  const atLeast = isAny ? 1 : item['atLeast']
  if (typeof atLeast !== 'number' || !Number.isInteger(atLeast) || atLeast < 1) {
    return refused(
      atLeast === undefined ? `is incomplete: ${form}` : 'must be a whole number, 1 or more',
      ...(atLeast === undefined ? [] : ['atLeast']),
    )
  }
  return { group: { atLeast, of: members as readonly string[], path: [...path, list] } }
}
