import { insteadOf, isMap, type Problem, type Raw, type SettingsSpec, unknownKey } from '../base/settings/index.ts'
import { didYouMean } from '../base/suggest.ts'

/** A list of svc.yaml whose entries have a kind: `kind: tcp` in the long form, `tcp: {…}` in the short one. */
export type Grammar = {
  /** An entry, for messages: `monitor`. */
  readonly thing: string
  readonly isKind: (name: string) => boolean
  /** The settings of every entry: in the long form beside those of its kind, in the short form beside their section. */
  readonly common: SettingsSpec
}

/** The key of the section that makes an entry one in the short form. */
export function sectionOf(raw: Raw, { isKind, common }: Grammar): string | undefined {
  if (Object.hasOwn(raw, 'kind')) return undefined
  const keys = Object.keys(raw)
  // A common setting with the name of a kind, like the flag `deployment`, is never a map.
  const section = keys.find((key) => isKind(key) && isMap(raw[key]))
  // A single other key is meant as a section too: its name may be misspelt, or its settings be missing.
  const [only = '', another] = keys.filter((key) => !Object.hasOwn(common, key))
  return section ?? (another === undefined && (isKind(only) || isMap(raw[only])) ? only : undefined)
}

/** The kind of an entry in either form, as written. */
export const kindIn = (raw: Raw, grammar: Grammar): unknown => sectionOf(raw, grammar) ?? raw['kind']

export type LongForm = {
  /** Without misplaced settings. Absent when the section is not a map. */
  readonly entry?: Raw
  /** Mistakes in the form. Their paths are those of the entry as written. */
  readonly problems: readonly Problem[]
  /** The path in the entry as written of one in the long form. */
  readonly written: (path: Problem['path']) => Problem['path']
}

/**
 * The long form of an entry of a known kind, which may be in either form: `{name: orders, tcp: {port: 1}}` is
 * `{name: orders, kind: tcp, port: 1}`.
 */
export function longForm(
  raw: Raw,
  { name, settings }: { readonly name: string; readonly settings: SettingsSpec },
  grammar: Grammar,
): LongForm {
  const { thing, isKind } = grammar
  const isCommon = (key: string): boolean => Object.hasOwn(grammar.common, key) && !Object.hasOwn(settings, key)
  const section = sectionOf(raw, grammar)
  const inside = section === undefined ? {} : raw[section]
  const written = (path: Problem['path']): Problem['path'] => {
    const [top = 'kind'] = path
    if (section === undefined) return path
    return top === 'kind' ? [section] : isCommon(String(top)) ? path : [section, ...path]
  }
  if (!isMap(inside)) {
    const problem = inside === null ? 'has no value' : `must be the settings of the ${thing}`
    return { problems: [{ path: written([]), message: `${problem}: write \`name: value\` under it` }], written }
  }
  const another = `make it a ${thing} of its own`
  /** Why a setting may not be beside `kind:`, or beside the section. */
  const besideMistake = (key: string): string | undefined => {
    const isSection = isKind(key) && !isCommon(key) && !Object.hasOwn(settings, key)
    if (section === undefined) {
      if (isSection && key === name)
        return `is there beside \`kind: ${name}\`: write its settings beside \`kind:\`, or remove \`kind:\``
      return isSection && isMap(raw[key]) ? `is there beside \`kind: ${name}\`: ${another}` : undefined
    }
    if (key === section || isCommon(key)) return undefined
    if (isSection) return `is there beside ${section}: ${another}`
    const names = Object.hasOwn(settings, key) ? [] : Object.keys(grammar.common)
    return didYouMean(key, names) === undefined && insteadOf(key, names) === undefined
      ? `is not a setting of every ${thing}: write it under \`${section}:\`, or remove it`
      : unknownKey(key, names)
  }
  const mistakes = [
    ...Object.keys(raw).map((key) => ({ path: [key], message: besideMistake(key) })),
    ...Object.keys(inside)
      .filter(isCommon)
      .map((key) => ({
        path: [section ?? '', key],
        message: `is a setting of every ${thing}: write it beside \`${section}:\``,
      })),
  ]
  const problems = mistakes.flatMap(({ path, message }) => (message === undefined ? [] : [{ path, message }]))
  const misplaced = new Set(problems.filter(({ path }) => path.length === 1).map(({ path: [key] }) => key))
  const beside = Object.entries(raw).filter(([key]) => key !== section && !misplaced.has(key))
  const own = Object.entries(inside).filter(([key]) => !isCommon(key))
  return { entry: Object.fromEntries([...beside, ['kind', name], ...own]), problems, written }
}

/** Problems of the long form, in the entry as written. */
export const asWritten = (problems: readonly Problem[], written: LongForm['written']): readonly Problem[] =>
  problems.map(({ path, message }) => ({ path: written(path), message }))
