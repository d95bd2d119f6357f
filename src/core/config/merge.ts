import { isMap, type Problem, type Raw } from '../base/settings/index.ts'
import type { ParsedDocument } from './document.ts'

/** A file of the configuration. */
export type ConfigSource = {
  readonly file: string
  readonly text: string
  readonly document: ParsedDocument
}

/** A path of the merged value, in the file that has it. */
export type SourcePath = { readonly source: ConfigSource; readonly path: Problem['path'] }

/** The value of several files. */
export type Merged = {
  /** As if everything were in one file. */
  readonly value: unknown
  /** Where a path of the value, or of `problems`, comes from. */
  readonly originOf: (path: Problem['path']) => SourcePath
  readonly problems: readonly Problem[]
}

type Report = (source: ConfigSource, path: Problem['path'], message: string) => void
type Entry = { readonly source: ConfigSource; readonly path: Problem['path']; readonly raw: unknown }

/** A type that is in several files. */
type MergedType = {
  readonly value: unknown
  readonly first: ConfigSource
  readonly isMapForm: boolean
  /** Who has each setting of the type. */
  readonly settings: ReadonlyMap<string, ConfigSource>
  readonly entries: readonly Entry[]
}

/** The sections that an included file may have. */
const partSections = ['types', 'profiles']
/** The sections that svc.yaml may have besides. */
const mainSections = ['host', 'serve', 'auth', 'notify', 'silences', 'drill', 'exec', 'include']
/** The first step of the path of a problem in a certain file. No section has this name. */
const inFile = 'included'

/**
 * Merges svc.yaml with the files that it includes, which have only `types` and `profiles`. The monitors of a type are those
 * of all files. What two files set (a profile, a setting of a type) is a mistake that names both places, so that their
 * order decides nothing. `unknownSections` describes sections that no svc.yaml has.
 */
export function merge(
  main: ConfigSource,
  included: readonly ConfigSource[],
  unknownSections: (names: readonly string[]) => readonly Problem[],
): Merged {
  const sources = [main, ...included]
  const problems: Problem[] = []
  const report: Report = (source, path, message) => {
    problems.push({ path: [inFile, sources.indexOf(source), ...path], message })
  }
  for (const source of included) reportSections(source, unknownSections, report)
  const profileSources = namesIn(sources, 'profiles', profilesForm, report)
  const typeSources = namesIn(sources, 'types', typesForm, report)
  const mergedTypes = new Map(
    [...typeSources].flatMap(([type, all]) => (all.length > 1 ? [[type, mergeType(type, all, report)] as const] : [])),
  )
  for (const [name, [first, ...more]] of profileSources) {
    const path = ['profiles', name]
    for (const source of more)
      report(source, path, `is also defined in ${placeIn(first, path)}: give one of them another name`)
  }
  const profiles = [...profileSources].map(([name, [first]]) => [name, rawIn(first, 'profiles', name)])
  const types = [...typeSources].map(([type, [first]]) => {
    const merged = mergedTypes.get(type)
    return [type, merged ? merged.value : rawIn(first, 'types', type)]
  })
  const { include: _, types: __, profiles: ___, ...others } = sectionsOf(main)
  return {
    value: {
      ...others,
      ...(types.length > 0 ? { types: Object.fromEntries(types) } : {}),
      ...(profiles.length > 0 ? { profiles: Object.fromEntries(profiles) } : {}),
    },
    problems,
    originOf: (path) => {
      const [section, step] = path
      const name = String(step)
      if (section === inFile) return { source: sources[Number(step)] ?? main, path: path.slice(2) }
      const merged = section === 'types' ? mergedTypes.get(name) : undefined
      if (merged) return originInType(merged, path)
      const owners = section === 'types' ? typeSources : section === 'profiles' ? profileSources : undefined
      return { source: owners?.get(name)?.[0] ?? main, path }
    },
  }
}

const typesForm = 'must map server types to their monitors: write `Sql:` and a list under it'
const profilesForm = 'must map names to profiles: write `name:` and its monitors under it'
const listForm = 'must be a list of monitors: write "- kind: …" under it'

const sectionsOf = ({ document: { value } }: ConfigSource): Raw => (isMap(value) ? value : {})
const rawIn = (source: ConfigSource, section: string, name: string): unknown =>
  (sectionsOf(source)[section] as Raw)[name]
/** `conf.d/shop.yaml:3` */
const placeIn = ({ file, document }: ConfigSource, path: Problem['path']): string =>
  `${file}:${document.placeOf(path).line}`

/** Reports the sections that an included file may not have. */
function reportSections(
  source: ConfigSource,
  unknownSections: (names: readonly string[]) => readonly Problem[],
  report: Report,
): void {
  const names = Object.keys(sectionsOf(source)).filter((name) => !partSections.includes(name))
  const [ofMain, unknown] = [true, false].map((is) => names.filter((name) => mainSections.includes(name) === is))
  for (const name of ofMain ?? [])
    report(source, [name], 'belongs in svc.yaml itself: an included file has only types and profiles')
  for (const { path, message } of unknownSections(unknown ?? [])) report(source, path, message)
}

type Sources = readonly [first: ConfigSource, ...more: ConfigSource[]]

/** The names in a section, and the files that have each. */
function namesIn(
  sources: readonly ConfigSource[],
  section: string,
  form: string,
  report: Report,
): ReadonlyMap<string, Sources> {
  const byName = new Map<string, [ConfigSource, ...ConfigSource[]]>()
  for (const source of sources) {
    const raw = sectionsOf(source)[section] ?? {}
    if (!isMap(raw)) report(source, [section], form)
    for (const name of Object.keys(isMap(raw) ? raw : {})) {
      const others = byName.get(name)
      if (others) others.push(source)
      else byName.set(name, [source])
    }
  }
  return byName
}

/** Merges a type that is in several files, in either of its forms. */
function mergeType(type: string, sources: Sources, report: Report): MergedType {
  const path = ['types', type]
  const settings = new Map<string, ConfigSource>()
  const values: Record<string, unknown> = {}
  const entries: Entry[] = []
  let isMapForm = false
  for (const source of sources) {
    const raw = rawIn(source, 'types', type)
    const map = isMap(raw) ? raw : undefined
    const [list, at] = map ? [map['monitors'], [...path, 'monitors']] : [raw, path]
    if (Array.isArray(list)) {
      entries.push(...list.map((one: unknown, index) => ({ source, path: [...at, index], raw: one })))
    } else if (list !== undefined && list !== null) report(source, at, listForm)
    if (!map) continue
    isMapForm = true
    for (const [key, value] of Object.entries(map)) {
      if (key === 'monitors') continue
      const other = settings.get(key)
      if (other) report(source, [...path, key], `is also set in ${placeIn(other, [...path, key])}: keep one of them`)
      else settings.set(key, source)
      values[key] ??= value
    }
  }
  const monitors = entries.map(({ raw }) => raw)
  return { value: isMapForm ? { ...values, monitors } : monitors, first: sources[0], isMapForm, settings, entries }
}

/** The origin of a path within a type that is in several files. */
function originInType({ first, isMapForm, settings, entries }: MergedType, path: Problem['path']): SourcePath {
  const inList = isMapForm && path[2] === 'monitors' ? path.slice(3) : path.slice(2)
  const [index, ...below] = inList
  const entry = typeof index === 'number' ? entries[index] : undefined
  if (entry) return { source: entry.source, path: [...entry.path, ...below] }
  const source = settings.get(String(path[2]))
  return source ? { source, path } : { source: first, path: path.slice(0, 2) }
}
