import { quote } from '../base/net/text.ts'
import { ProbeError } from '../base/probe-error.ts'
import {
  type Every,
  isMap,
  type Problem,
  type Raw,
  readSettings,
  type SettingsContext,
  type SettingsRead,
  type SettingsSpec,
  type Target,
  writeDuration,
} from '../base/settings/index.ts'
import { didYouMean, unknownName } from '../base/suggest.ts'
import {
  type AnyKind,
  type DeclaredResult,
  deadlines,
  type PlannedMonitor,
  settingsProblem,
} from '../checks/engine/index.ts'
import { configurableKinds, depthOf, hostKind, isKindName, loadKind, monitorName } from '../checks/plan/index.ts'
import { ExecutionMode } from '../protocol/index.ts'
import {
  commonFor,
  commonSettings,
  type Inherited,
  latencyOf,
  latencySetting,
  maxFor,
  maxTimeout,
  shorthands,
  unitedTags,
} from './common.ts'
import type { GroupsRead, WrittenGroup } from './dependency-groups.ts'
import { asWritten, type Grammar, kindIn, type LongForm, longForm, sectionOf } from './long-form.ts'

export type MonitorRead = {
  /** The MonitorName, if the entry states it, even when the rest is invalid. */
  readonly name: string | undefined
  /** Whether no kind has the name that it states. */
  readonly isUnknownKind?: boolean
  /** As written: own names or MonitorNames. */
  readonly dependsOn: readonly string[]
  /** The groups of `dependsOn`, with names as written. Absent: none. */
  readonly dependsOnGroups?: readonly WrittenGroup[] | undefined
  /** Its own and the inherited ones, even if other settings are invalid. */
  readonly tags: readonly string[]
  /** Absent when there are problems. */
  readonly monitor: PlannedMonitor | undefined
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
}

/** The entries of a list of monitors. `host` is a setting of many kinds, and a block of a type. */
export const monitorGrammar: Grammar = {
  thing: 'monitor',
  isKind: (name) => isKindName(name) && name !== hostKind,
  common: commonSettings,
}

/** The long form of a monitor, and its kind. `more` are settings that its list adds to the common ones. */
export async function longMonitor(
  raw: Raw,
  more: SettingsSpec = {},
): Promise<(LongForm & { readonly kind: AnyKind }) | undefined> {
  const grammar = { ...monitorGrammar, common: { ...commonSettings, ...more } }
  const name = kindIn(raw, grammar)
  const kind = typeof name === 'string' && name !== hostKind && isKindName(name) ? await loadKind(name) : undefined
  return kind && !kind.internal ? { kind, ...longForm(raw, kind, grammar) } : undefined
}

/**
 * Reads one monitor, in either form. Paths of problems are relative to it. `kindProblem` explains why a kind cannot be configured, and
 * `inherited` is what its type and its profile add.
 */
export async function readMonitor(
  raw: unknown,
  context: SettingsContext,
  kindProblem: (name: string) => Promise<string>,
  inherited: Inherited = { tags: [] },
): Promise<MonitorRead> {
  const refused = (problem: Problem | readonly Problem[], names: Partial<MonitorRead> = {}): MonitorRead => ({
    name: undefined,
    dependsOn: [],
    tags: inherited.tags,
    ...names,
    monitor: undefined,
    problems: [problem].flat(),
    warnings: [],
  })
  if (!isMap(raw)) return refused({ path: [], message: 'must be settings that begin with `kind:`' })
  const section = sectionOf(raw, monitorGrammar)
  const { kind: kindName = section, name = kindName } = raw
  if (kindName === undefined || kindName === null) {
    const misplacedKey = ['type', 'check'].find((key) => typeof raw[key] === 'string' && isKindName(raw[key]))
    if (misplacedKey !== undefined)
      return refused({ path: [misplacedKey], message: 'is not a setting here: write `kind`' })
    return refused({ path: ['kind'], message: `is missing: add \`kind:\` (${commonSettings.kind.doc})` })
  }
  if (typeof kindName !== 'string')
    return refused({ path: ['kind'], message: 'must be text: the name of a monitor kind' })
  const plainName = typeof name === 'string' ? name : undefined
  const names = { name: plainName === undefined ? undefined : monitorName(kindName, plainName) }
  const long = await longMonitor(raw)
  if (!long) {
    const problem = { path: [section ?? 'kind'], message: await kindProblem(kindName) }
    return refused(problem, { ...names, isUnknownKind: true })
  }
  const { kind, entry, written } = long
  if (!entry) return refused(long.problems, names)
  const read = await readKnown(entry, kind, plainName ?? kindName, { context, inherited })
  const problems = [...long.problems, ...asWritten(read.problems, written)]
  const all = {
    ...names,
    ...read,
    monitor: problems.length === 0 ? read.monitor : undefined,
    problems,
    warnings: asWritten(read.warnings, written),
  }
  const patterns = patternsIn(entry, [])
  if (patterns.length === 0) return all
  const { patternWarning } = await import('../checks/assert/expectation.ts')
  const warnings = patterns.flatMap(({ path, pattern }) => {
    const message = patternWarning(pattern)
    return message === undefined ? [] : [{ path, message }]
  })
  return { ...all, warnings: [...all.warnings, ...asWritten(warnings, written)] }
}

type PatternAt = { readonly path: Problem['path']; readonly pattern: string }

/** The regular expressions among the settings of a monitor: texts written as `/…/flags`, and `matches` in any form. */
function patternsIn(value: unknown, path: Problem['path']): readonly PatternAt[] {
  if (typeof value === 'string') {
    return path.findLast((step) => step !== 'not') === 'matches' || /^\/.*\/[imsu]*$/s.test(value)
      ? [{ path, pattern: value }]
      : []
  }
  if (Array.isArray(value)) return value.flatMap((item, index) => patternsIn(item, [...path, index]))
  return isMap(value) ? Object.entries(value).flatMap(([key, item]) => patternsIn(item, [...path, key])) : []
}

async function readKnown(
  raw: Raw,
  kind: AnyKind,
  name: string,
  { context, inherited }: { readonly context: SettingsContext; readonly inherited: Inherited },
): Promise<Pick<MonitorRead, 'dependsOn' | 'dependsOnGroups' | 'tags' | 'monitor' | 'problems' | 'warnings'>> {
  const grouped = await readGroups(raw)
  const short = readShorthands(grouped.rest, kind.settings, context)
  const spec: SettingsSpec = { ...kind.settings, ...commonFor(kind.settings) }
  // A keychain secret is bound to its monitor's target, which is known when all settings have been read.
  let target: Target | undefined
  const listing = `svc monitors kinds ${kind.name}`
  const read = readSettings(spec, short.rest, { ...context, listing, target: () => target })
  const common = read.values as SettingsRead<typeof commonSettings>['values']
  const former = common.formerly && (await formerKeys(common.formerly, kind.name))
  const problems = [
    ...read.problems,
    ...short.problems,
    ...grouped.problems,
    ...timeoutProblems(common.timeout),
    ...forProblems(common.for),
    ...everyProblems(common.every, common.timeout),
    ...(former?.problems ?? []),
  ]
  const { without = [] } = common
  if (without.length > 0) problems.push(...leftOutProblems(without, kind, read.configured))
  const settings: Record<string, unknown> = Object.fromEntries(
    Object.keys(kind.settings).flatMap((key) => (key in read.values ? [[key, read.values[key]]] : [])),
  )
  if (short.latency !== undefined) settings[latencySetting] = short.latency
  if (problems.length === 0) target = kind.target?.(settings as never)
  const signIn = problems.length === 0 ? kind.signsIn?.(settings as never, 'Advanced')?.result : undefined
  if (signIn !== undefined && without.includes(signIn)) {
    problems.push({ path: ['without'], message: `names ${quote(signIn, 60)}, which proves the sign-in: remove it` })
  }
  if (problems.length === 0) problems.push(...(await refusedByKind(kind, settings)))
  const tags = unitedTags(inherited.tags, common.tags)
  const monitor: PlannedMonitor = {
    name: monitorName(kind.name, name),
    kind,
    settings,
    configured: short.latency === undefined ? read.configured : new Set([...read.configured, latencySetting]),
    ...(without.length > 0 ? { without } : {}),
    depth: depthOf(kind, common.depth),
    host: false,
    dependsOn: [],
    timeoutMs: common.timeout,
    retries: common.retries,
    deployment: common.deployment,
    forMs: common.for,
    formerly: former?.keys,
    ...(tags ? { tags } : {}),
    every: common.every,
    confirmMs: common.confirm,
    flapping: Object.hasOwn(kind.settings, 'flapping') ? undefined : common.flapping,
    scheduleWrites: common.scheduleWrites ? true : undefined,
  }
  return {
    // An empty text has already been reported as a problem.
    dependsOn: (common.dependsOn ?? []).filter((name) => name !== ''),
    ...(grouped.groups.length === 0 ? {} : { dependsOnGroups: grouped.groups }),
    tags: tags ?? [],
    monitor: problems.length === 0 ? monitor : undefined,
    problems,
    warnings: read.warnings,
  }
}

/** The mistakes that only the kind finds, in settings that are valid by themselves. */
async function refusedByKind(kind: AnyKind, settings: Readonly<Record<string, unknown>>): Promise<readonly Problem[]> {
  const problem = await settingsProblem(kind, settings)
  if (problem !== undefined) return [placedMessage(problem)]
  try {
    await kind.parse?.(settings as never)
    return []
  } catch (error) {
    if (error instanceof ProbeError) return [placedMessage(error.message)]
    throw error
  }
}

/** A message that begins with the name of a setting belongs to its place. */
function placedMessage(message: string): Problem {
  const [, setting, rest] = /^the setting (\w+) (.*)$/s.exec(message) ?? []
  return setting === undefined || rest === undefined ? { path: [], message } : { path: [setting], message: rest }
}

/** The mistakes in a list of checks to leave out. */
function leftOutProblems(
  without: readonly string[],
  kind: AnyKind,
  configured: ReadonlySet<string>,
): readonly Problem[] {
  const names = kind.checks.flatMap(({ name, canBeLeftOut }) => (canBeLeftOut ? [name] : []))
  const isEnabled = ({ when }: DeclaredResult): boolean => when?.some((setting) => configured.has(setting)) ?? true
  if (kind.checks.filter(isEnabled).every(({ name }) => without.includes(name))) {
    return [{ path: ['without'], message: 'leaves nothing to check: remove a name' }]
  }
  return without.flatMap((name, index): readonly Problem[] => {
    const check = kind.checks.find((one) => one.name === name)
    const refuse = (message: string): readonly Problem[] => [{ path: ['without', index], message }]
    if (!check) return refuse(unknownName(name, names, `check of ${kind.name} that can be left out`))
    if (!check.canBeLeftOut) {
      return refuse(`names ${quote(name, 60)}, which proves that the server answers or accepts the sign-in: remove it`)
    }
    const isForOthers = (setting: string): boolean =>
      kind.checks.some((one) => !without.includes(one.name) && one.settings?.includes(setting))
    const demand = check.when?.find((setting) => configured.has(setting) && !isForOthers(setting))
    return demand === undefined ? [] : refuse(`leaves out ${quote(name, 60)}, which \`${demand}:\` demands: remove one`)
  })
}

/** Takes the groups out of `dependsOn`. */
async function readGroups(raw: Raw): Promise<GroupsRead> {
  const { dependsOn } = raw
  const hasGroups = isMap(dependsOn) || (Array.isArray(dependsOn) && dependsOn.some(isMap))
  if (!hasGroups) return { rest: raw, groups: [], problems: [] }
  const { groupsIn } = await import('./dependency-groups.ts')
  return groupsIn(raw)
}

type FormerKeys = { readonly keys: readonly string[]; readonly problems: readonly Problem[] }

async function formerKeys(written: readonly string[], kind: string): Promise<FormerKeys> {
  const { formerKey, formerKeyMistake } = await import('./former-keys.ts')
  const problems = written.flatMap((text, index) => {
    // An empty text has already been reported as a problem.
    const message = text === '' ? undefined : formerKeyMistake(text, kind)
    return message === undefined ? [] : [{ path: ['formerly', index], message }]
  })
  return { keys: written.map(formerKey), problems }
}

/** Takes `warn:` and `limit:` out of a monitor and reads them as halves of its kind's latency threshold. */
function readShorthands(
  raw: Raw,
  settings: SettingsSpec,
  context: SettingsContext,
): { readonly rest: Raw; readonly latency: unknown; readonly problems: readonly Problem[] } {
  const used = shorthands.filter((name) => Object.hasOwn(raw, name) && !Object.hasOwn(settings, name))
  const rest = Object.fromEntries(Object.entries(raw).filter(([key]) => !used.some((name) => name === key)))
  const refuse = (message: string): readonly Problem[] => used.map((name) => ({ path: [name], message }))
  if (used.length === 0) return { rest, latency: undefined, problems: [] }
  const latency = latencyOf(settings)
  if (!latency) {
    return {
      rest,
      latency: undefined,
      problems: refuse(`is not known here: this kind has no ${latencySetting}, remove it`),
    }
  }
  if (Object.hasOwn(raw, latencySetting)) {
    return { rest, latency: undefined, problems: refuse(`conflicts with \`${latencySetting}:\`: keep one of them`) }
  }
  const empty = used.filter((name) => raw[name] === null)
  if (empty.length > 0) {
    const message = 'has no value: give it one, or remove the line'
    return { rest, latency: undefined, problems: empty.map((name) => ({ path: [name], message })) }
  }
  const written = Object.fromEntries(used.map((name) => [name, raw[name]]))
  const read = readSettings({ latency }, { latency: written }, context)
  const problems = read.problems.map(({ path, message }) => ({
    path: path.length > 1 ? path.slice(1) : used.slice(0, 1),
    message,
  }))
  return { rest, latency: read.values.latency, problems }
}

function timeoutProblems(timeout: number | undefined): readonly Problem[] {
  if (timeout === undefined || (timeout >= 1 && timeout <= maxTimeout)) return []
  return [{ path: ['timeout'], message: 'must be 1ms to 10m' }]
}

/** An interval that is shorter than what a run may take: the runs could not keep to it. */
function everyProblems(every: Every | undefined, timeout: number | undefined): readonly Problem[] {
  if (every === undefined || every === 'off') return []
  return ExecutionMode.values.flatMap((mode) => {
    const interval = every[mode]
    const takes = timeout ?? deadlines[mode].monitor
    if (interval === undefined || interval === 'off' || interval >= takes) return []
    const way = timeout === undefined ? `add \`timeout: ${writeDuration(interval)}\`` : 'give a shorter `timeout:`'
    const message = `${mode} is every ${writeDuration(interval)}, and a run may take ${writeDuration(takes)}: give ${writeDuration(takes)} or more, or ${way}`
    return [{ path: ['every'], message }]
  })
}

function forProblems(passed: number | undefined): readonly Problem[] {
  if (passed === undefined || (passed >= 1 && passed <= maxFor)) return []
  return [{ path: ['for'], message: 'must be 1ms to 7d: svc keeps no older values' }]
}

/** Words of other programs for a kind. */
const synonyms: Readonly<Record<string, string>> = {
  amqp: 'rabbitmq',
  certificate: 'tls',
  command: 'exec',
  https: 'http',
  icmp: 'ping',
  mariadb: 'mysql',
  mongodb: 'mongo',
  mssql: 'sqlserver',
  port: 'tcp',
  postgresql: 'postgres',
  script: 'exec',
  ssl: 'tls',
  systemd: 'service',
}

/** Why the named kind cannot be configured. */
export async function kindProblem(name: string): Promise<string> {
  if (name === hostKind) return 'runs automatically for every type: configure it under `host:`, beside `monitors:`'
  const names = (await configurableKinds()).map((kind) => kind.name)
  const synonym = Object.hasOwn(synonyms, name.toLowerCase()) ? synonyms[name.toLowerCase()] : undefined
  const meant = synonym ?? didYouMean(name, names)
  return `is not a monitor kind: ${meant === undefined ? `use one of ${names.join(', ')}` : `did you mean \`${meant}\`?`}`
}
