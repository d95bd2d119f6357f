import { Fault, type FilePlace } from '../base/errors.ts'
import { type ConfiguredFiles, filesWithin, patienceMs } from '../base/files/index.ts'
import { count } from '../base/format.ts'
import {
  isMap,
  isPlainKey,
  type NamedFile,
  type Problem,
  type Raw,
  readSettings,
  type SettingsContext,
  type SettingsSpec,
  unknownKey,
} from '../base/settings/index.ts'
import { usualZone } from '../base/zone.ts'
import type { Services } from '../checks/engine/index.ts'
import { monitorName, uncheckedMonitor } from '../checks/plan/index.ts'
import { ServerType } from '../protocol/index.ts'
import { type ServeOptions, serveSettings } from '../protocol/service/serve-settings.ts'
import type { DrillConfig } from '../watch/drill/index.ts'
import type { AuthConfig } from './auth.ts'
import { type MonitorProblem, underPath } from './dependencies.ts'
import type { DocumentPlace } from './document.ts'
import { readExec, readExecPart, warningsOfPrograms } from './exec.ts'
import {
  type ConfigCandidate,
  type ConfigTrust,
  candidates,
  configTrust,
  misnamedFile,
  readFile,
  systemConfig,
  type WhereOptions,
} from './find.ts'
import type { IncludedFiles, ReloadedIncludes } from './include.ts'
import { kindIn } from './long-form.ts'
import type { ConfigSource, Merged } from './merge.ts'
import { monitorGrammar } from './monitors.ts'
import type { NotifyConfig } from './notify.ts'
import type { ProfilesRead } from './profiles.ts'
import type { SilenceConfig } from './silences.ts'
import { type InvalidMonitor, readHost, readTypes, type TypeConfig, type Types } from './types.ts'

export type ServeConfig = Omit<ServeOptions, 'debug'>

export type LoadOptions = WhereOptions & {
  /** The account whose files are trusted besides root's. Defaults to that of this process. */
  readonly uid?: number | undefined
  /** Reads the OS keychain, for `{keychain: name}`. */
  readonly keychain?: SettingsContext['keychain']
  /**
   * Accepts mistakes that leave other monitors usable: an entry with mistakes becomes a monitor that reports them and
   * never passes. Mistakes in the syntax and other files are refused all the same, and with `entries` so are those outside of the server
   * types: a server must not start with other settings than those of the file.
   */
  readonly tolerant?: boolean | 'entries' | undefined
  /** Treats a monitor that cannot run here, because running programs is off, as an entry with a mistake. */
  readonly mustRun?: boolean | undefined
  /** Set by a reload: a pattern of `include:` that matches nothing any more is then a mistake. */
  readonly reload?: ReloadedIncludes | undefined
  /** Access to svc.yaml and the files that it includes, for a caller that watches them. */
  readonly files?: ConfiguredFiles | undefined
}

export type Config = {
  /** The file that was read, or undefined when there is none. */
  readonly origin: string | undefined
  readonly types: Types
  readonly serve: ServeConfig
  /** Absent without an `auth:` section: passwords are then the only way to sign in. */
  readonly auth?: AuthConfig | undefined
  /** The receivers of notifications. Absent without a `notify:` section. */
  readonly notify?: NotifyConfig | undefined
  /** When notifications wait. Absent without a `silences:` section. */
  readonly silences?: SilenceConfig | undefined
  /** When svc serve drills, and through which receivers. Absent without a `drill:` section. */
  readonly drill?: DrillConfig | undefined
  /** The programs that the system's svc.yaml allows. Absent when no monitor and no receiver runs a program. */
  readonly exec?: Services['exec'] | undefined
  /** `file:line:column: …`: what will fail at run time, such as a missing secret. */
  readonly warnings: readonly string[]
  /** The patterns of `include:` that match files, as absolute paths. Absent without any. */
  readonly matchedPatterns?: readonly string[] | undefined
}

/** A configuration, and what the search for it and its validation found. */
export type LoadedConfig = Config & {
  /** The files that were looked for, in order. */
  readonly searched: readonly string[]
  /** The files that it includes, in the order of their paths. */
  readonly included: readonly string[]
  /**
   * The warnings that become refusals in the next version: others control what leads to a file. `warnings` has them,
   * too.
   */
  readonly trustWarnings: readonly string[]
  /** The sections that the file has besides `types:`. */
  readonly otherSections: readonly string[]
  /** Monitors and receivers that cannot run here: they run a program, and running programs is off. */
  readonly cannotRun: readonly FilePlace[]
  /** With `tolerant`, the mistakes that belong to no server type. */
  readonly mistakes: readonly FilePlace[]
  /** These mistakes in words, like those of an entry. */
  readonly mistakeLines: readonly string[]
  /** With `tolerant`, the entries with mistakes, each by the name of the monitor that stands for it. */
  readonly invalidEntries: readonly InvalidEntry[]
}

export type InvalidEntry = {
  readonly type: ServerType
  readonly name: string
  readonly mistakes: readonly FilePlace[]
  /** The monitors of other types that the mistakes name. */
  readonly elsewhere: NonNullable<MonitorProblem['elsewhere']>
  /** The mistakes, one line each. When one may cause many others, it is the first, and the last line counts the rest. */
  readonly lines: readonly string[]
}

/**
 * Finds, reads and validates svc.yaml. Without a file the configuration is empty. Throws Fault `Usage` for a flag or
 * variable that is set but empty, else Fault `Local`, which lists every problem with its place, `file:line:column`.
 */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const context = { env: options.env, folder: '.' }
  const places = candidates(options)
  const searched = places.map(({ path }) => path)
  const misnamed: string[] = []
  const { files = filesWithin(patienceMs) } = options
  const trust = configTrust({ platform: options.platform, uid: options.uid ?? process.getuid?.(), files })
  for (const candidate of places) {
    const text = await readFile(candidate, trust)
    if (text !== undefined) {
      const read = await readConfig(text, candidate, options, trust)
      const trustWarnings = [...new Set([...trust.warnings(), ...read.trustWarnings])]
      return { ...read, searched, trustWarnings, warnings: [...misnamed, ...trustWarnings, ...read.warnings] }
    }
    const warning = await misnamedFile(candidate, files)
    if (warning !== undefined) misnamed.push(warning)
  }
  return {
    origin: undefined,
    searched,
    included: [],
    trustWarnings: [],
    types: {},
    serve: readSettings(serveSettings, {}, context).values,
    otherSections: [],
    cannotRun: [],
    warnings: misnamed,
    mistakes: [],
    mistakeLines: [],
    invalidEntries: [],
  }
}

async function readConfig(
  text: string,
  { path }: ConfigCandidate,
  options: LoadOptions,
  trust: ConfigTrust,
): Promise<Omit<LoadedConfig, 'searched'>> {
  const { env, keychain } = options
  const [main, paths] = await Promise.all([parsedSource(path, text), import('node:path')])
  const [mistake] = syntaxMistakes(main, notSvcYaml)
  if (mistake) throw await refusal(path, [mistake], true)
  const folder = paths.dirname(path)
  const merged = await withIncluded(main, { env, folder }, trust, options)
  const elsewhere = systemConfig(options) === path ? undefined : systemConfig(options)
  const sections = await withNamedFiles({ folder, uid: options.uid ?? process.getuid?.() }, (fileWarning) =>
    readSections(merged.value, { env, folder, keychain, fileWarning }, elsewhere),
  )
  const read = await withFormerKeys(
    {
      ...sections,
      problems: [...merged.problems, ...sections.problems],
      warnings: [...merged.warnings, ...sections.warnings],
    },
    merged,
  )
  const placed = (problems: readonly Problem[]): readonly Placed[] =>
    problems.map((problem) => placedIn(merged, problem))
  const { tolerant = false } = options
  const outside = read.problems.filter((problem) => !isOfType(problem, read.invalid))
  const isRefused = tolerant === 'entries' ? outside.length > 0 : !tolerant && read.problems.length > 0
  if (isRefused) throw await refusal(path, placed(read.problems), false)
  const { exec, warnings: execWarnings } = runsPrograms(read)
    ? await readExec(options)
    : { exec: undefined, warnings: [] }
  const all = exec ? programs(merged.value, read.types) : []
  const stopped = exec?.allow.length === 0 ? all : []
  const programWarnings = exec && stopped.length === 0 ? await warningsOfPrograms(all, exec) : []
  const cannotRun: readonly Problem[] = [
    ...stopped,
    ...(exec?.allow.length === 0 ? receiversWithProgram(read.notify) : []),
  ].map((one) => ({
    path: one.path,
    message: `cannot run \`${one.name}\`: running programs is off, because ${exec?.off ?? 'no folder is allowed'}`,
  }))
  const filePlaces = (problems: readonly Problem[]): readonly FilePlace[] => placed(problems).map(filePlace)
  const invalid = tolerant ? { ...read.invalid } : {}
  for (const [index, { type, name }] of (options.mustRun ? stopped : []).entries()) {
    const problems = cannotRun.slice(index, index + 1)
    invalid[type] = [...(invalid[type] ?? []), { name, problems }]
  }
  const invalidEntries = (Object.entries(invalid) as [ServerType, readonly InvalidMonitor[]][]).flatMap(
    ([type, entries]) =>
      entries.map(
        ({ name, problems }): InvalidEntry => ({
          type,
          name,
          ...inWords(placed(problems)),
          elsewhere: problems.flatMap((problem) => problem.elsewhere ?? []),
        }),
      ),
  )
  return {
    origin: path,
    included: merged.included,
    matchedPatterns: merged.matched,
    types: await withInvalid(read.types, invalidEntries),
    serve: read.serve,
    ...(read.auth ? { auth: read.auth } : {}),
    ...(read.notify ? { notify: read.notify } : {}),
    ...(read.silences ? { silences: read.silences } : {}),
    ...(read.drill ? { drill: read.drill } : {}),
    otherSections: read.otherSections,
    ...(exec ? { exec } : {}),
    cannotRun: filePlaces(cannotRun),
    trustWarnings: execWarnings,
    warnings: placed([...read.warnings, ...programWarnings]).map(line),
    mistakes: tolerant ? inWords(placed(outside)).mistakes : [],
    mistakeLines: tolerant ? inWords(placed(outside)).lines : [],
    invalidEntries,
  }
}

/** A file, parsed. */
async function parsedSource(file: string, text: string): Promise<ConfigSource> {
  const { parseDocument } = await import('./document.ts')
  return { file, text, document: await parseDocument(text) }
}

/** The mistakes in the syntax of a file, or that it is another file. */
function syntaxMistakes({ file, text, document }: ConfigSource, notThis: string): readonly Placed[] {
  const { problems, placeOf, value } = document
  const other = problems.length === 0 && !isSvcYaml(value)
  const own = other ? [{ path: [], message: notThis, place: placeOf([]) }] : problems
  return own.map((problem) => ({ ...problem, file, text }))
}

type WithIncluded = Merged &
  Pick<LoadedConfig, 'included'> &
  Pick<IncludedFiles, 'warnings'> &
  Partial<Pick<IncludedFiles, 'matched'>>

/** svc.yaml with the files that it includes, if it does. */
async function withIncluded(
  main: ConfigSource,
  context: SettingsContext,
  trust: ConfigTrust,
  { platform, reload }: LoadOptions,
): Promise<WithIncluded> {
  const { value } = main.document
  const raw = isMap(value) ? value['include'] : undefined
  if (raw === undefined || raw === null) {
    const originOf: Merged['originOf'] = (path) => ({ source: main, path })
    return { value, originOf, problems: [], warnings: [], included: [] }
  }
  const [{ findIncluded, readAll }, { merge }] = await Promise.all([import('./include.ts'), import('./merge.ts')])
  const { paths, problems, ...includes } = await findIncluded(raw, context, {
    main: main.file,
    platform,
    trust,
    reload,
  })
  const texts = await readAll(
    paths,
    main.file,
    async (path) => (await readFile({ path, from: 'include' }, trust)) ?? '',
  )
  const sources = await Promise.all(texts.map(({ file, text }) => parsedSource(file, text)))
  const mistakes = sources.flatMap((source) => syntaxMistakes(source, notPart))
  if (mistakes.length > 0) throw await refusal(main.file, mistakes, true)
  const merged = merge(main, sources, unknownSections)
  return { ...merged, problems: [...problems, ...merged.problems], ...includes, included: paths }
}

/** A problem of the merged value, in the file that has it. */
function placedIn({ originOf }: Merged, { path, message, ...problem }: MonitorProblem): Placed {
  const { source, path: own } = originOf(path)
  const other = problem.other && originOf(problem.other)
  const where =
    other && other.source !== source
      ? `, which is in ${other.source.file}:${other.source.document.placeOf(other.path).line}`
      : ''
  const { file, text, document } = source
  return { ...problem, path: own, message: `${message}${where}`, place: document.placeOf(own), file, text }
}

type InvalidTypes = { [T in ServerType]?: readonly InvalidMonitor[] }

/** Whether a problem belongs to a server type, which reports it. */
const isOfType = ({ path: [section, type] }: Problem, invalid: InvalidTypes): boolean =>
  section === 'types' && typeof type === 'string' && Object.hasOwn(invalid, type)

/** The types, with a monitor for each wrong entry in place of what it would check. */
async function withInvalid(types: Types, invalid: readonly InvalidEntry[]): Promise<Types> {
  const all: { [T in ServerType]?: TypeConfig } = { ...types }
  for (const [type, entries] of Map.groupBy(invalid, (entry) => entry.type)) {
    const unchecked = await Promise.all(
      entries.map(({ name, lines, elsewhere }) => uncheckedMonitor(name, lines, elsewhere)),
    )
    const replaced = new Set(entries.map(({ name }) => name))
    const monitors = (types[type]?.monitors ?? []).filter(({ name }) => !replaced.has(name))
    all[type] = { host: types[type]?.host ?? {}, monitors: [...monitors, ...unchecked] }
  }
  return all
}

/** Loads the checks of `formerly` only for a file that has one. */
async function withFormerKeys(read: Sections, { value, originOf }: Merged): Promise<Sections> {
  const isRenamed = Object.values(read.types).some(({ monitors }) => monitors.some(({ formerly }) => formerly))
  if (!isRenamed) return read
  const { refuseFormerKeys } = await import('./former-keys.ts')
  return refuseFormerKeys(read, {
    pathOf: (type, { name, kind }) => pathOfEntry(value, type, name, kind.name),
    whereIs: (path, from) => {
      const { source, path: own } = originOf(path)
      const { line: number } = source.document.placeOf(own)
      return source === originOf(from).source ? `line ${number}` : `${source.file}:${number}`
    },
  })
}

/** The monitors that run a program, and the places of their entries. */
function programs(
  value: unknown,
  types: Types,
): readonly {
  readonly type: ServerType
  readonly name: string
  readonly path: Problem['path']
  readonly command: string
}[] {
  return (Object.entries(types) as [ServerType, TypeConfig][]).flatMap(([type, { monitors }]) =>
    monitors
      .filter(({ kind }) => kind.runsPrograms)
      .map(({ name, kind, settings }) => ({
        type,
        name,
        path: pathOfEntry(value, type, name, kind.name),
        command: String((settings as { readonly command?: unknown }).command),
      })),
  )
}

/** The place of the entry with that MonitorName, or of the entry with the profile that makes the monitor. */
function pathOfEntry(value: unknown, type: ServerType, name: string, kind: string): Problem['path'] {
  const types = isMap(value) ? value['types'] : undefined
  const section = isMap(types) ? types[type] : undefined
  const [list, path] = isMap(section) ? [section['monitors'], ['types', type, 'monitors']] : [section, ['types', type]]
  const entries: readonly unknown[] = Array.isArray(list) ? list : []
  const index = entries.findIndex(
    (entry) =>
      isMap(entry) && kindIn(entry, monitorGrammar) === kind && monitorName(kind, ownName(entry, kind)) === name,
  )
  if (index >= 0) return [...path, index]
  const use = entries.findIndex(
    (entry) => isMap(entry) && entry['profile'] && name.startsWith(`${kind} ${prefixOf(entry)} `),
  )
  return use < 0 ? ['types', type] : [...path, use]
}

/** The prefix of the names of the monitors of a profile. */
const prefixOf = ({ name, profile }: Raw): string => String(name ?? profile)

/** The name of an entry: the kind when it has none. */
const ownName = ({ name }: Raw, kind: string): string => (typeof name === 'string' ? name : kind)

type Sections = Pick<LoadedConfig, 'types' | 'serve' | 'auth' | 'notify' | 'silences' | 'drill' | 'otherSections'> & {
  /** The entries with mistakes, by type. Paths are those of the file. */
  readonly invalid: InvalidTypes
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
}

/** `elsewhere` is the system's file, if this is another one. */
async function readSections(
  value: unknown,
  context: SettingsContext,
  elsewhere: string | undefined,
): Promise<Sections> {
  const root = value ?? {}
  const {
    types,
    host,
    profiles,
    serve,
    auth,
    notify,
    silences,
    drill,
    exec,
    include: _,
    ...others
  } = isMap(root) ? root : {}
  const problems: Problem[] = isSvcYaml(root)
    ? unknownSections(Object.keys(others))
    : [{ path: [], message: notSvcYaml }]
  const defined = profiles === undefined ? undefined : await profilesOf(profiles, context)
  const usualHost = host === undefined ? undefined : await readHost(host, context)
  const readType = await readTypes(
    types,
    context,
    defined?.profiles,
    usualHost?.problems.length ? {} : usualHost?.value,
  )
  const readServing = readSettings(serveSettings, serve ?? {}, context)
  const readAuth = auth === undefined || auth === null ? undefined : (await import('./auth.ts')).readAuth(auth, context)
  const readReceivers =
    notify === undefined || notify === null
      ? undefined
      : (await import('./notify.ts')).readNotify(notify, context, readType)
  const readEntries =
    silences === undefined || silences === null
      ? undefined
      : (await import('./silences.ts')).readSilences(silences, context, readType)
  const receivers = readReceivers?.problems.length ? undefined : (readReceivers?.values ?? [])
  const readDrills =
    drill === undefined || drill === null
      ? undefined
      : (await import('./drill.ts')).readDrill(drill, context, receivers)
  const below = (step: string, more: readonly Problem[]): void => {
    problems.push(...more.map((problem) => underPath([step], problem)))
  }
  below('types', readType.problems)
  below('host', usualHost?.problems ?? [])
  below('profiles', defined?.problems ?? [])
  below('serve', readServing.problems)
  if (readServing.values.witness.length === 1) {
    const message = 'has one witness, which may be down itself: give two or more'
    problems.push({ path: ['serve', 'witness'], message })
  }
  const { badges } = readServing.values
  if (badges.length > 0) below('serve', (await import('./configured.ts')).badgeProblems(badges, readType))
  below('auth', readAuth?.problems ?? [])
  below('notify', readReceivers?.problems ?? [])
  below('silences', readEntries?.problems ?? [])
  below('drill', readDrills?.problems ?? [])
  if (exec !== undefined) below('exec', await execProblems(exec, context, elsewhere))
  const zoneWarnings = warnAboutZone(readServing.values.timezone, [drill, silences].flat())
  const inSection = (section: string, list: readonly MonitorProblem[]): readonly MonitorProblem[] =>
    list.map((problem) => underPath([section], problem))
  const inTypes = (list: readonly MonitorProblem[]): readonly MonitorProblem[] => inSection('types', list)
  const invalid: InvalidTypes = {}
  for (const [type, entries] of Object.entries(readType.invalid) as [ServerType, readonly InvalidMonitor[]][]) {
    invalid[type] = entries.map((entry) => ({ ...entry, problems: inTypes(entry.problems) }))
  }
  const otherSections = Object.entries({ host, profiles, serve, auth, notify, silences, drill, exec }).flatMap(
    ([name, section]) => (section === undefined || section === null ? [] : [name]),
  )
  return {
    types: readType.types,
    serve: readServing.values,
    ...(readAuth ? { auth: readAuth.values } : {}),
    ...(readReceivers ? { notify: readReceivers.values } : {}),
    ...(readEntries ? { silences: readEntries.values } : {}),
    ...(readDrills?.values ? { drill: readDrills.values } : {}),
    otherSections,
    invalid,
    problems,
    warnings: [
      ...zoneWarnings,
      ...inTypes(readType.warnings),
      ...inSection('auth', readAuth?.warnings ?? []),
      ...inSection('notify', readReceivers?.warnings ?? []),
      ...inSection('silences', readEntries?.warnings ?? []),
      ...inSection('drill', readDrills?.warnings ?? []),
    ],
  }
}

/** A warning where somebody may take `serve.timezone` for the zone of a rule. `entries`: what may have `when:`. */
function warnAboutZone(zone: string | undefined, entries: readonly unknown[]): readonly Problem[] {
  const isMeant = (entry: unknown): boolean => isMap(entry) && 'when' in entry && !('timezone' in entry)
  if (zone === undefined || zone === usualZone || !entries.some(isMeant)) return []
  const message = `is for texts alone: a \`when:\` without \`timezone:\` is in ${usualZone}; write \`timezone: ${zone}\` or \`timezone: ${usualZone}\` there`
  return [{ path: ['serve', 'timezone'], message }]
}

const sections = ['types', 'host', 'profiles', 'serve', 'auth', 'notify', 'silences', 'drill', 'include']
const notPart = 'is not a part of a svc.yaml: it has neither types nor profiles'
const notSvcYaml = 'is not a svc.yaml: it has none of the sections types, profiles, serve, auth and notify'

/** Whether a file is meant as a svc.yaml, or could be: other files are refused without naming what they contain. */
const isSvcYaml = (root: unknown): boolean =>
  root === undefined ||
  root === null ||
  (isMap(root) && (Object.keys(root).some((name) => sections.includes(name)) || Object.keys(root).every(isPlainKey)))

function unknownSections(names: readonly string[]): Problem[] {
  return names.map((name) => {
    const type = ServerType.values.find((candidate) => candidate.toLowerCase() === name.toLowerCase())
    if (type !== undefined) return { path: [name], message: `belongs under \`types:\`: write \`types: {${type}: …}\`` }
    if (name === 'monitors') {
      return {
        path: [name],
        message: 'belongs under a server type: write `types:`, below it `App:`, and this below that',
      }
    }
    return { path: [name], message: unknownKey(name, sections) }
  })
}

/**
 * Reads the sections, and again for the warnings about the files that they name, if there are any.
 */
async function withNamedFiles(
  reading: { readonly folder: string; readonly uid: number | undefined },
  read: (fileWarning: SettingsContext['fileWarning']) => Promise<Sections>,
): Promise<Sections> {
  const byKey = new Map<string, NamedFile>()
  const keyOf = ({ path, content }: NamedFile): string => JSON.stringify([content, path])
  const first = await read((file) => void byKey.set(keyOf(file), file))
  if (byKey.size === 0) return first
  const { warningsOfFiles } = await import('./named-files.ts')
  const warnings = await warningsOfFiles([...byKey.values()], reading)
  if (warnings.size === 0) return first
  return await read((file) => {
    const one = byKey.get(keyOf(file))
    return one && warnings.get(one)
  })
}

/** Few files define profiles, so their reader is loaded on demand. */
async function profilesOf(raw: unknown, context: SettingsContext): Promise<ProfilesRead> {
  const { readProfiles } = await import('./profiles.ts')
  return await readProfiles(raw, context)
}

/** Reports `exec:` in a file where it has no effect, so that nobody relies on it. */
async function execProblems(
  raw: unknown,
  context: SettingsContext,
  elsewhere: string | undefined,
): Promise<readonly Problem[]> {
  if (elsewhere === undefined) return readExecPart(raw, context).problems
  return [{ path: [], message: `has no effect here: move it to ${elsewhere}, a file owned by root` }]
}

/** Whether any monitor or receiver runs a program. Only then is the list of allowed programs read. */
const runsPrograms = ({ types, notify = [] }: Pick<Config, 'types' | 'notify'>): boolean =>
  Object.values(types).some(({ monitors }) => monitors.some(({ kind }) => kind.runsPrograms)) ||
  notify.some((one) => one.runsProgram)

/** The receivers that run a program, with their places in svc.yaml. */
const receiversWithProgram = (
  notify: NotifyConfig = [],
): readonly { readonly name: string; readonly path: Problem['path'] }[] =>
  notify.flatMap((one, index) => (one.runsProgram ? [{ name: `receiver ${one.name}`, path: ['notify', index] }] : []))

export type Placed = Problem & { readonly place: DocumentPlace; readonly file: string; readonly text: string }

/** More problems would scroll the first one off the screen. */
const maxReported = 50
/** A wrong place in the structure and what may follow from it are listed up to this number. */
const maxListed = 5
/** Fewer are listed too: a line with their number would save no space. */
const fewestHidden = 3
/** Excerpts beyond these would scroll the first one off the screen. */
const maxExcerpts = 5

/**
 * Whether a problem lies in the structure around the entries: a key that is misspelt, indented wrongly or in the wrong
 * place. What follows it in the file is then misread.
 */
const isStructural = ({ path }: Problem): boolean =>
  path[0] !== 'serve' &&
  path[0] !== 'auth' &&
  path[0] !== 'notify' &&
  path[0] !== 'silences' &&
  path[0] !== 'drill' &&
  path[0] !== 'exec' &&
  path[0] !== 'host' &&
  path[2] !== 'host' &&
  !path.some((step) => typeof step === 'number')

type Listed<P> = {
  /** All of them in the order of the file, or after the one that may cause those at the end. */
  readonly all: readonly P[]
  /** How many of them to show. */
  readonly count: number
  /** Whether the others may follow from the first. */
  readonly hasRoot: boolean
}

const byText = (a: string, b: string): number => Number(a > b) - Number(a < b)

function listed<P extends Placed>(problems: readonly P[]): Listed<P> {
  const sorted = problems.toSorted(
    (a, b) => byText(a.file, b.file) || a.place.line - b.place.line || a.place.column - b.place.column,
  )
  const at = sorted.findIndex(isStructural)
  const root = sorted[at]
  const mayFollow = (problem: P, index: number): boolean =>
    index > at &&
    root?.file === problem.file &&
    root.path.slice(0, -1).every((step, depth) => problem.path[depth] === step)
  const consequences = sorted.filter(mayFollow)
  const apart = sorted.filter((problem, index) => problem !== root && !mayFollow(problem, index))
  const count = Math.min(maxReported, Math.max(maxListed, apart.length + 1))
  if (!root || 1 + apart.length + consequences.length - count < fewestHidden) {
    return { all: sorted, count: maxReported, hasRoot: false }
  }
  return { all: [root, ...apart, ...consequences], count, hasRoot: true }
}

const others = (left: number, hasRoot: boolean): readonly string[] =>
  left === 0
    ? []
    : [hasRoot ? `and ${count(left, 'more problem')}, which may follow from the first` : `… and ${left} more`]

function inWords(problems: readonly Placed[]): Pick<InvalidEntry, 'mistakes' | 'lines'> {
  const { all: sorted, count, hasRoot } = listed(problems)
  // Otherwise what an entry contains comes before what it lacks.
  const all = hasRoot ? sorted : problems
  const lines = all.slice(0, count).map(line)
  return {
    mistakes: all.map(filePlace),
    lines: [...lines, ...others(all.length - lines.length, hasRoot)],
  }
}

/**
 * A single problem is the message. Several are listed as hints, and the message names their places. `places` has all of
 * them. With `onlyKnown`, excerpts show only the names of settings: the file may be another one, or be misread.
 */
export async function refusal(
  main: string,
  problems: readonly Placed[],
  onlyKnown: boolean,
  {
    next = 'Correct the file, then: svc monitors validate',
    settings = {},
  }: {
    /** The last hint. */
    readonly next?: string
    /** Those of a file that is not a svc.yaml. */
    readonly settings?: SettingsSpec
  } = {},
): Promise<Fault> {
  const { all: sorted, count, hasRoot } = listed(problems)
  const [{ excerpt, knownKeys }, { authSettings }] = await Promise.all([import('./excerpt.ts'), import('./auth.ts')])
  const keys = await knownKeys({ ...serveSettings, ...authSettings, ...settings })
  const source = ({ place, text }: Placed): string => excerpt(text, place, keys, onlyKnown)
  const places = sorted.map(filePlace)
  const [first, second] = sorted
  if (first && !second) {
    return new Fault('Local', line(first), { places, hints: [source(first), next] })
  }
  const visible = sorted.slice(0, count)
  const only = new Set(sorted.map(({ file }) => file)).size === 1
  const left = sorted.length - visible.length
  const where = [
    ...visible.map(({ file, place }) => `${only ? '' : `${file}:`}${place.line}:${place.column}`),
    ...(left > 0 ? [`… and ${left} more`] : []),
  ]
  const hints = visible.map((problem, at) => {
    const before = visible[at - 1]
    const again =
      problem.file === before?.file &&
      problem.place.line === before.place.line &&
      problem.place.column === before.place.column
    return [line(problem), ...(at < maxExcerpts && !again ? [source(problem)] : [])].join('\n')
  })
  const whole = only ? first?.file : `${main} with the files that it includes`
  return new Fault('Local', `${whole} has ${sorted.length} problems, at ${where.join(', ')}`, {
    places,
    hints: [...hints, ...others(left, hasRoot), next],
  })
}

/** A problem in one line: `svc.yaml:3:5: types.App[0].port must be …`. */
export const line = ({ file, place, path, message }: Placed): string =>
  clean(`${file}:${place.line}:${place.column}: ${subject(path)} ${message}`)

const filePlace = ({ file, place, path, message }: Placed): FilePlace => ({
  file: clean(file),
  ...place,
  message: clean(`${subject(path)} ${message}`),
})

const subject = (path: Problem['path']): string => way(path) || 'the file'

/** `types.Sql[0].port` */
const way = (path: Problem['path']): string =>
  path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`)).join('')

/** Keys are shown as written, but without characters that could control a terminal. */
const clean = (text: string): string => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '�')

/** The reason why messages have no link to the status page, and the way out; undefined if they have one or none is sent. */
export const linkMistake = ({ notify = [], serve }: Pick<Config, 'notify' | 'serve'>): string | undefined =>
  notify.length > 0 && serve.url === undefined
    ? 'messages have no link to the status page: set serve.url to its address'
    : undefined
