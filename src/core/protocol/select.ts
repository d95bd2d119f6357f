import { Fault } from '../base/errors.ts'
import type { HealthCheckResponse, MonitoringResult, MonitorSummary } from './dtos.ts'
import { isMarked, markText } from './rehearsal-marks.ts'

/** Selects monitors and checks by patterns over their names. */
export type Selection = { readonly only: readonly string[]; readonly skip: readonly string[] }

/**
 * Reduces an answer to the selected monitors and checks, and recomputes its Status, FailedMonitorCount and
 * StatusMessage. A pattern matches a MonitorName, its first word (the kind), a MonitoringName, or both as
 * `monitor/check`, in any letter case: as a substring, or as a whole if the pattern contains `*`. A pattern that
 * matches a monitor selects all its checks. Returns the same object when it removes nothing. Throws `Fault` Usage when
 * nothing is left: a typing error must not pass as healthy.
 */
export function select(response: HealthCheckResponse, selection: Selection): HealthCheckResponse {
  const summaries = response.MonitorSummaries ?? []
  const selected = selectMonitors(summaries, selection, { namesOf, reduce })
  if (!selected) return response
  const failed = selected.filter((summary) => !passed(summary))
  // A failure that no monitor explains is the server's own and remains.
  const unclaimed = !passed(response) && summaries.every(passed)
  const headline = selectedHeadline(failed.map(causesOf), selected.length, summaries.length)
  const isDrill = isMarked(response.StatusMessage ?? '')
  return {
    ...response,
    Status: failed.length > 0 || unclaimed ? 'Failure' : 'Success',
    StatusMessage: unclaimed ? response.StatusMessage : isDrill ? markText(headline) : headline,
    FailedMonitorCount: failed.length,
    MonitorSummaries: selected,
  }
}

/**
 * The selected monitors, each reduced to its selected checks. Undefined when the selection removes nothing. Throws
 * `Fault` Usage when nothing is left.
 */
export function selectMonitors<Monitor>(
  monitors: readonly Monitor[],
  selection: Selection,
  {
    namesOf,
    reduce,
  }: {
    readonly namesOf: (monitor: Monitor) => NamedChecks
    /** The monitor with the checks at these indexes only, fewer than it has. */
    readonly reduce: (monitor: Monitor, checks: readonly number[]) => Monitor
  },
): readonly Monitor[] | undefined {
  const names = monitors.map(namesOf)
  const checks = selectedIn(names, selection)
  const selected = monitors.flatMap((monitor, at) => {
    const indexes = checks[at]
    if (indexes === undefined) return []
    return [indexes.length === names[at]?.checks.length ? monitor : reduce(monitor, indexes)]
  })
  if (selected.length === 0 && (monitors.length > 0 || selection.only.length > 0))
    throw nothingSelected(names, selection)
  const isWhole = selected.length === monitors.length && selected.every((monitor, at) => monitor === monitors[at])
  return isWhole ? undefined : selected
}

/** Any status other than Success is a failure. */
const passed = (judged: { readonly Status?: string | undefined }): boolean => judged.Status === 'Success'

/** The names of a monitor and its checks. */
type NamedChecks = { readonly name: string; readonly checks: readonly string[] }

const namesOf = ({ MonitorName, Results }: MonitorSummary): NamedChecks => ({
  name: MonitorName ?? '',
  checks: (Results ?? []).map(({ MonitoringName }) => MonitoringName ?? ''),
})

/** For each monitor the indexes of its selected checks. Undefined for a monitor that is not selected. */
const selectedIn = (
  monitors: readonly NamedChecks[],
  { only, skip }: Selection,
): readonly (readonly number[] | undefined)[] =>
  monitors.map(({ name, checks }) => {
    const own = [name, name.split(' ', 1)[0] ?? '']
    if (fitsAny(skip, own)) return undefined
    const all = only.length === 0 || fitsAny(only, own)
    const indexes = checks.flatMap((check, at) => {
      const names = [check, `${name}/${check}`]
      return (all || fitsAny(only, names)) && !fitsAny(skip, names) ? [at] : []
    })
    // A monitor without checks is selected by its name alone.
    return indexes.length > 0 || (all && checks.length === 0) ? indexes : undefined
  })

/** The monitor with its selected checks. */
function reduce(summary: MonitorSummary, checks: readonly number[]): MonitorSummary {
  const results = summary.Results ?? []
  const selectedResults = results.filter((_, at) => checks.includes(at))
  const gone = results.filter((_, at) => !checks.includes(at))
  // A failure that no check explains is the monitor's own and remains.
  const unclaimed = !passed(summary) && results.every(passed)
  return {
    ...summary,
    Status: selectedResults.every(passed) && !unclaimed ? 'Success' : 'Failure',
    Results: selectedResults,
    ...(summary.ErrorMessages ? { ErrorMessages: summary.ErrorMessages.filter((line) => !isAbout(gone, line)) } : {}),
  }
}

/** Messages of a monitor begin with the name of their check. */
const isAbout = (results: readonly MonitoringResult[], line: string): boolean =>
  results.some(({ MonitoringName: name }) => name !== undefined && line.startsWith(`${name}:`))

function causesOf(summary: MonitorSummary): readonly string[] {
  const lines = (summary.Results ?? []).flatMap((result) =>
    passed(result) ? [] : [`${summary.MonitorName} ${result.MonitoringName}: ${result.StatusMessage ?? 'failed'}`],
  )
  return lines.length > 0 ? lines : [`${summary.MonitorName}: ${summary.ErrorMessages?.[0] ?? 'failed'}`]
}

/**
 * The headline of a selection. `causes` has the messages of each failed monitor; `of` is the number of all monitors.
 */
export function selectedHeadline(
  causes: readonly (readonly string[])[],
  selectedCount: number,
  of: number,
  unchecked = 0,
): string {
  if (causes.length === 0) return `healthy: ${selectedCount} of ${of} monitors selected, all passed`
  const failed = causes.length - unchecked
  const why = causes.flat().join('; ')
  if (failed === 0) return `not fully checked: ${unchecked} of ${selectedCount} selected monitors not checked: ${why}`
  const more = unchecked === 0 ? '' : `, ${unchecked} not checked`
  return `unhealthy: ${failed} of ${selectedCount} selected monitors failed${more}: ${why}`
}

const selectedPattern =
  /^(?:healthy: \d{1,9} of \d{1,9} monitors selected|(?:unhealthy|not fully checked): \d{1,9} of \d{1,9} selected monitors)\b/

/** Whether a message is `selectedHeadline`, whose facts the monitors of the answer repeat. */
export const isSelectedHeadline = (message: string): boolean => selectedPattern.test(message)

const fitsAny = (patterns: readonly string[], names: readonly string[]): boolean =>
  patterns.some((pattern) => names.some((name) => fits(pattern.toLowerCase(), name.toLowerCase())))

/** Avoids regular expressions: patterns full of `*` must not take exponential time. */
function fits(pattern: string, name: string): boolean {
  if (pattern.trim() === '') return false
  const parts = pattern.split('*')
  return parts.length === 1 ? name.includes(pattern) : fitsParts(parts, name)
}

/** Whether a name consists of these parts, with any characters between them. */
function fitsParts([head = '', ...others]: readonly string[], name: string): boolean {
  const rest = others.slice(0, -1)
  const tail = others.at(-1) ?? ''
  if (!name.startsWith(head) || !name.endsWith(tail) || name.length < head.length + tail.length) return false
  let from = head.length
  for (const part of rest) {
    const at = name.indexOf(part, from)
    if (at === -1) return false
    from = at + part.length
  }
  return from <= name.length - tail.length
}

/**
 * Whether a pattern is a name, in any letter case. `*` matches any characters.
 *
 * @example
 * ```ts
 * fitsWhole('Sql/*', 'Sql/postgres orders') // true
 * fitsWhole('postgres', 'postgres orders') // false
 * ```
 */
export const fitsWhole = (pattern: string, name: string): boolean =>
  pattern.includes('*') ? fits(pattern.toLowerCase(), name.toLowerCase()) : pattern.toLowerCase() === name.toLowerCase()

/**
 * `fitsWhole` of a pattern that is compared with many names. The names must be in lower case.
 *
 * @example
 * ```ts
 * nameMatcher('Sql/*')('sql/postgres orders') // true
 * ```
 */
export function nameMatcher(pattern: string): (name: string) => boolean {
  const parts = pattern.toLowerCase().split(/\*+/)
  return parts.length === 1 ? (name) => name === parts[0] : (name) => fitsParts(parts, name)
}

/** The number of names in a message; more would not help. */
const maxNames = 40

/** The fault of a selection that matches nothing or skips everything. Lists the names to choose from. */
function nothingSelected(monitors: readonly NamedChecks[], { only, skip }: Selection): Fault {
  const quoted = (patterns: readonly string[]): string => patterns.map((pattern) => `"${pattern}"`).join(', ')
  const requested = [
    ...(only.length > 0 ? [`--only ${quoted(only)}`] : []),
    ...(skip.length > 0 ? [`--skip ${quoted(skip)}`] : []),
  ].join(' and ')
  const left = skip.length > 0 && selectedIn(monitors, { only, skip: [] }).some((checks) => checks !== undefined)
  const names = monitors.map(
    ({ name, checks }) =>
      `${name || '?'}: ${checks.length > 0 ? checks.map((check) => check || '?').join(', ') : 'no checks'}`,
  )
  const listed = names.length > maxNames ? [...names.slice(0, maxNames), `and ${names.length - maxNames} more`] : names
  if (left) {
    return new Fault('Usage', `${requested} ${only.length > 0 ? 'leave' : 'leaves'} nothing to check`, {
      nothingSelected: true,
      hints: [...listed, 'Skip fewer of these monitors and checks, or omit --skip.'],
    })
  }
  return new Fault('Usage', `${requested} matches no monitor and no check`, {
    nothingSelected: true,
    hints:
      names.length > 0
        ? [...listed, 'These monitors and checks are available; * matches any characters.']
        : ['The answer names no monitors: omit --only and --skip.'],
  })
}

/** A monitor by its names. `type`: absent for the monitors of the machine, which belong to none. */
type MonitorNames = { readonly type?: string | undefined; readonly name: string }

/** The own name in a MonitorName: what follows the kind. A monitor that has none is called like its kind. */
export const ownNameIn = (name: string): string => name.slice(name.indexOf(' ') + 1)

/** A name as svc writes it: the MonitorName, after the type if the monitor has one. */
export const writeNamed = ({ type, name }: MonitorNames): string => (type === undefined ? name : `${type}/${name}`)

/** The monitors of a list with this MonitorName, else those with this own name. */
export function namedIn<M extends MonitorNames>(written: string, all: readonly M[]): readonly M[] {
  const full = all.filter(({ name }) => name === written)
  return full.length > 0 ? full : all.filter(({ name }) => ownNameIn(name) === written)
}

/**
 * The monitors that a person means: by the MonitorName or by the own name, each also after the type. A name without a type
 * comes first, because names may contain slashes. `all` may have any letter case; `written` is compared as it is.
 *
 * @example
 * ```ts
 * const all = [{ type: 'Ftp', name: 'tcp t13' }]
 * monitorsNamed('t13', all) // [{ type: 'Ftp', name: 'tcp t13' }]
 * monitorsNamed('Ftp/t13', all) // [{ type: 'Ftp', name: 'tcp t13' }]
 * monitorsNamed('Sql/t13', all) // []
 * ```
 */
export function monitorsNamed<M extends MonitorNames>(written: string, all: readonly M[]): readonly M[] {
  const slash = written.indexOf('/')
  const plain = namedIn(written, all)
  if (plain.length > 0 || slash < 0) return plain
  const type = written.slice(0, slash)
  return namedIn(
    written.slice(slash + 1),
    all.filter((one) => one.type === type),
  )
}
