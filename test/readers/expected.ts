import type { Entry } from '../../src/core/checks/reports/index.ts'
import type { RunDocument } from '../../src/core/protocol/index.ts'

type Monitor = RunDocument['monitors'][number]
type Result = Monitor['results'][number]
type CheckPlace = Pick<Result, 'check' | 'subject'>
type Measurement = NonNullable<Result['measurement']>

/** The facts that a reader takes from the output of a run. */
export type Summary = {
  /** Results in JUnit, monitors elsewhere. Null where the reader does not count. */
  readonly tests: number | null
  readonly failed: number | null
  /** Without a verdict. */
  readonly skipped: number | null
  /** The names that it shows as failed or as a warning, in alphabetical order. */
  readonly alerts: readonly string[]
  readonly figures: Readonly<Record<string, number>>
  /** Of a plugin: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. */
  readonly state?: number
  /** Of a plugin: the line that stands in lists. */
  readonly line?: string
}

/** The formats with readers, and what the run document says in terms of each. */
export const expectations = { junit, nagios, prometheus, interface: ofInterface } as const satisfies Readonly<
  Record<string, (entries: readonly Entry[]) => Summary>
>
export type Format = keyof typeof expectations

/** The digits that count: svc writes 15 of what is not an integer. */
export const rounded = (value: number): number => Number(value.toPrecision(15))
/** Above that a measurement is an error of the program that sends it. */
const maxFigure = 1e100

const monitorsOf = ({ Run }: Entry): readonly Monitor[] => Run?.monitors ?? []
const count = <Item>(items: readonly Item[], belongs: (item: Item) => boolean): number => items.filter(belongs).length
/** A result that did not run, or could not measure. */
const hasVerdict = ({ notChecked, fault }: Result): boolean => notChecked === undefined && fault !== 'dependency'
const isFailure = (result: Result): boolean => result.status === 'failed' && hasVerdict(result)

function junit(entries: readonly Entry[]): Summary {
  const cases = entries.flatMap((entry) => {
    const place = `${entry.ServerType} ${entry.ExecutionMode}`
    if (entry.Run === undefined) return [{ name: `${place} › health`, state: 'failed' as const }]
    const monitors = monitorsOf(entry)
    const hasFailure = monitors.some(({ results }) => results.some(isFailure))
    return monitors.flatMap((monitor) => {
      // A dot would begin a name within a package.
      const name = (one: CheckPlace): string => `${place}.${nameOf(monitor).replaceAll('.', '_')} › ${nameIn(one)}`
      const ran = monitor.results.map((result) => ({ name: name(result), state: stateIn(result, hasFailure) }))
      return [...ran, ...(monitor.notRun ?? []).map((one) => ({ name: name(one), state: 'skipped' as const }))]
    })
  })
  return {
    tests: cases.length,
    failed: count(cases, ({ state }) => state === 'failed'),
    skipped: count(cases, ({ state }) => state === 'skipped'),
    alerts: cases.flatMap(({ name, state }) => (state === 'failed' ? [name] : [])).toSorted(),
    figures: {},
  }
}

/** Skipped without a verdict, but failed where a report would otherwise be green, and for a mistake in svc.yaml. */
function stateIn(result: Result, hasFailure: boolean): 'passed' | 'failed' | 'skipped' {
  if (result.status === 'ok') return 'passed'
  if (hasVerdict(result)) return result.status === 'failed' ? 'failed' : 'passed'
  const isMistake = result.notChecked === 'configuration'
  return !isMistake && (hasFailure || result.status === 'warning') ? 'skipped' : 'failed'
}

/** Every output is of single lines, whose blanks are single too. */
const nameOf = ({ name = '' }: Monitor): string => name.trim().replace(/\s+/g, ' ')
const nameIn = ({ check, subject }: CheckPlace): string =>
  subject === undefined || check.endsWith(subject) ? check : `${check} ${subject}`

/**
 * Monitors by their state, as the formats of monitoring count them: what did not run because of a failure has failed, and
 * what nobody could check has not.
 */
function counts(entries: readonly Entry[]): Pick<Summary, 'tests' | 'failed' | 'skipped'> {
  const monitors = entries.flatMap(monitorsOf)
  const isChecked = ({ results }: Monitor): boolean =>
    results.some(({ status, notChecked }) => status === 'failed' && notChecked === undefined)
  return {
    tests: monitors.length,
    failed: count(monitors, isChecked),
    skipped: count(monitors, (monitor) => monitor.status === 'failed' && !isChecked(monitor)),
  }
}

type Figure = { readonly monitor: Monitor; readonly result: Result; readonly measurement: Measurement }
const figuresOf = (entry: Entry): readonly Figure[] =>
  monitorsOf(entry).flatMap((monitor) =>
    monitor.results.flatMap((result) => {
      const { measurement } = result
      return measurement && Math.abs(measurement.value) <= maxFigure ? [{ monitor, result, measurement }] : []
    }),
  )

const nagiosUnits: Readonly<Record<string, number>> = { milliseconds: 1_000 }

/** `|`, `'` and `=` would end a label, so others stand in their place; a label that is taken gets a number. */
function nagios(entries: readonly Entry[]): Summary {
  const figures: Record<string, number> = {}
  const alerts: string[] = []
  const answered = entries.filter(({ Run }) => Run !== undefined)
  for (const entry of answered) {
    const prefix = entries.length > 1 ? `${entry.ServerType} ` : ''
    const own = counts([entry])
    // The load of the machine counts for nothing (M15).
    const warnings = count(
      monitorsOf(entry).flatMap(({ host, results }) =>
        results.filter(({ check }) => !host || !['load', 'cpu', 'memory', 'swap'].includes(check)),
      ),
      ({ status }) => status === 'warning',
    )
    Object.assign(figures, {
      [`${prefix}failed`]: own.failed,
      [`${prefix}not_checked`]: own.skipped,
      [`${prefix}warnings`]: warnings,
      [`${prefix}duration`]: Math.round(entry.Run?.durationMs ?? 0) / 1_000,
    })
    if (own.failed !== 0) alerts.push(`${prefix}failed`)
    if (warnings !== 0) alerts.push(`${prefix}warnings`)
  }
  for (const entry of answered) {
    const prefix = entries.length > 1 ? `${entry.ServerType} ` : ''
    for (const { monitor, result, measurement } of figuresOf(entry)) {
      const plain = `${prefix}${nameOf(monitor)} ${nameIn(result)}`
      const safe = plain.replaceAll('|', '¦').replaceAll("'", '’').replaceAll('=', '-')
      let label = safe
      for (let n = 2; Object.hasOwn(figures, label); n += 1) label = `${safe} ${n}`
      figures[label] = rounded(measurement.value / (nagiosUnits[measurement.unit] ?? 1))
      if (result.status !== 'ok') alerts.push(label)
    }
  }
  const isCounted = answered.length > 0
  const none = { tests: 0, failed: 0, skipped: 0 }
  return {
    ...(isCounted ? counts(answered) : none),
    ...{ alerts: alerts.toSorted(), figures, state: worstState(entries) },
  }
}

/** OK, WARNING, UNKNOWN and CRITICAL, from the best to the worst. */
const states = [0, 1, 3, 2] as const
const worstState = (entries: readonly Entry[]): number =>
  states.findLast((state) => entries.some((entry) => stateOf(entry) === state)) ?? 3
/** A server that does not answer is critical; a configuration that does not have the type says nothing of it. */
function stateOf(entry: Entry): (typeof states)[number] {
  if (entry.Run === undefined) return entry.Error?.code === 'NotConfigured' ? 3 : 2
  const { failed, skipped } = counts([entry])
  if (failed !== 0) return 2
  if (skipped !== 0) return 3
  return monitorsOf(entry).some(({ status }) => status === 'warning') ? 1 : 0
}

const baseUnits: Readonly<Record<string, number>> = { milliseconds: 1_000, percent: 100, days: 1 / 86_400 }

/** A series is known by its labels: the name of a check without its item, and the item. */
function prometheus(entries: readonly Entry[]): Summary {
  const figures: Record<string, number> = {}
  const alerts = new Set<string>()
  for (const entry of entries) {
    for (const monitor of monitorsOf(entry)) {
      for (const result of monitor.results) if (isAlert(result)) alerts.add(series(monitor, result))
    }
    for (const { monitor, result, measurement } of figuresOf(entry))
      figures[series(monitor, result)] = rounded(measurement.value / (baseUnits[measurement.unit] ?? 1))
  }
  return { ...counts(entries), alerts: [...alerts].toSorted(), figures }
}

/** A result that did not run has a series of its own, and a check without a verdict has one only for a warning. */
const isAlert = ({ status, notChecked, fault }: Result): boolean =>
  status === 'warning' || (status === 'failed' && notChecked === undefined && fault !== 'dependency')
const slugged = (text: string): string => text.replace(/[^a-z0-9]+/g, '_').replace(/^_|_$/g, '')
const series = (monitor: Monitor, { check, slug, subject }: Result): string =>
  [nameOf(monitor), slug ?? slugged(check), subject].filter((part) => part !== undefined).join('/')

/** The document of the interface: two states, the duration, and when the run began and ended. */
function ofInterface([entry]: readonly Entry[]): Summary {
  const monitors = entry === undefined ? [] : monitorsOf(entry)
  const failed = monitors.filter(({ status }) => status === 'failed')
  return {
    tests: monitors.length,
    failed: failed.length,
    skipped: null,
    alerts: failed.map(({ name = '' }) => name).toSorted(),
    figures:
      entry?.Run === undefined
        ? {}
        : {
            seconds: entry.Run.durationMs / 1_000,
            start: entry.Run.startedAt.getTime(),
            end: entry.Run.endedAt.getTime(),
          },
  }
}
