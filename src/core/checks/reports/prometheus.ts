import { rehearsalLabels } from '../../protocol/index.ts'
import type { Family, Labels, Sample } from '../../protocol/service/family.ts'
import { expositionTypes, labelSet, renderFamilies } from './exposition.ts'
import { divided, type Figure } from './figure.ts'
import { read } from './read.ts'
import {
  countedLevel,
  type EntryReading,
  isBad,
  isConsequence,
  type Level,
  type Measured,
  type MonitorReading,
  type Reading,
  type Report,
  worstFirst,
} from './reading.ts'

export { exposition, expositionTypes, renderFamilies, withoutNames } from './exposition.ts'

/** The maximum number of items per check that get a series. */
export const maxItems = 50
/** The maximum number of series per scrape: each costs Prometheus memory for as long as it stores it. */
export const defaultMaxSeries = 50_000

/** Prometheus' text format 0.0.4. */
export default {
  name: 'prometheus',
  contentType: expositionTypes.text,
  render: (entries, { withoutMachine = false } = {}) =>
    renderFamilies(healthFamilies(entries.map(read), defaultMaxSeries, withoutMachine), 'text'),
} satisfies Report

/**
 * The metrics of health answers. For duplicate series
 * the worse state and the first figure win, so readings must begin with the newest. Series beyond `maxSeries` are
 * dropped and counted. `withoutMachine` leaves out what the reports of other types have too: node_exporter refuses a
 * sample that two of its text files contain.
 */
export function healthFamilies(
  readings: readonly EntryReading[],
  maxSeries: number,
  withoutMachine = false,
): readonly Family[] {
  const several = new Set(readings.map(({ target }) => target)).size > 1 || readings.some(({ server }) => server !== '')
  const places = readings.map((reading) => placeOf(reading, several))
  const monitors = places.flatMap(monitorsOf).filter(({ monitor }) => !(withoutMachine && monitor.host))
  const checks = monitors.flatMap(checksOf)
  const items = checks.flatMap((check) => check.items)
  const families = [
    ...typeRows.map((row) => gather(row, places)),
    ...monitorRows.map((row) => gather(row, monitors)),
    ...checkRows.map((row) => gather(row, items)),
    gather(droppedItems, checks),
  ]
  const isDrill = readings.some(({ drill }) => drill)
  return bounded(families, maxSeries)
    .filter(({ name }) => !(withoutMachine && isOfMachine(name)))
    .map((family) => (isDrill && family.name === droppedName ? withLabels(family, rehearsalLabels) : family))
}

/** Whether the series of a family have no type: they are equal in the reports of all types. */
const isOfMachine = (name: string): boolean => name === droppedName || name.startsWith('svc_server_')

const withLabels = (family: Family, labels: Labels): Family => ({
  ...family,
  samples: family.samples.map((sample) => ({ ...sample, labels: { ...sample.labels, ...labels } })),
})

/** One family: its samples per thing, and which value wins when two samples have the same labels. */
export type FamilyOf<Thing> = Omit<Family, 'samples'> & {
  readonly keep?: (a: number, b: number) => number
  readonly samples: (thing: Thing) => readonly Sample[]
}

/** `isSame`: whether the samples of two things with the same labels are the same, by what was read of both. */
type RowOf<Thing, Read> = FamilyOf<Thing> & { readonly isSame: (a: Read, b: Read) => boolean }

const gauge = 'gauge' as const
const first = (a: number): number => a

export function gather<Thing>({ samples, keep = first, ...family }: FamilyOf<Thing>, things: readonly Thing[]): Family {
  return { ...family, samples: merged(things.flatMap(samples), keep) }
}

/** Each series once. One that is urgent in any place stays urgent. */
export function merged(samples: readonly Sample[], keep: (a: number, b: number) => number = first): readonly Sample[] {
  if (samples.length < 2) return samples
  const series = new Map<string, Sample>()
  for (const sample of samples) {
    const key = labelSet(sample.labels)
    const existing = series.get(key)
    if (!existing) series.set(key, sample)
    else {
      const urgent = existing.urgent === true || sample.urgent === true
      series.set(key, { ...existing, value: keep(existing.value, sample.value), urgent })
    }
  }
  return [...series.values()]
}

const droppedName = 'svc_series_dropped'
/** How many series a response omits. */
export const droppedFamily = (value: number): Family => ({
  name: droppedName,
  type: gauge,
  help: 'Series omitted from this response because there are too many.',
  samples: [{ value }],
})

/** As many of the series as may be, those of failures and warnings in any case. */
export function bounded(families: readonly Family[], maxSeries: number): readonly Family[] {
  const { lists, dropped } = withinLimit(
    families.map(({ samples }) => samples),
    maxSeries,
  )
  const exported = families.map((family, at) => ({ ...family, samples: lists[at] ?? [] }))
  return [...exported, droppedFamily(dropped)]
}

/** The first series of the lists up to the limit. Urgent ones are kept whatever the limit, and count first. */
function withinLimit(all: readonly (readonly Sample[])[], maxSeries: number) {
  const count = all.reduce((sum, samples) => sum + samples.length, 0)
  if (count <= maxSeries) return { lists: all, dropped: 0 }
  const urgent = all.reduce((sum, samples) => sum + samples.filter(isUrgent).length, 0)
  let left = Math.max(0, maxSeries - urgent)
  const lists = all.map((samples) =>
    samples.filter((sample) => {
      if (isUrgent(sample)) return true
      left -= 1
      return left >= 0
    }),
  )
  return { lists, dropped: count - lists.reduce((sum, samples) => sum + samples.length, 0) }
}

const isUrgent = ({ urgent }: Sample): boolean => urgent === true

/** A reading with the labels of its server and type. */
export type TypePlace = {
  readonly reading: TypeReading
  readonly server: Labels
  readonly type: Labels
  /** False if a monitor of the type has no result. */
  readonly complete: boolean
}
/** The parts of a reading that the rows of types and monitors use. */
export type TypeReading = Pick<
  EntryReading,
  'type' | 'mode' | 'level' | 'monitors' | 'duration' | 'endedAt' | 'state' | 'error'
>

const placeOf = (reading: EntryReading, several: boolean): TypePlace => {
  const server = { ...(several ? { server: reading.target } : {}), ...(reading.drill ? rehearsalLabels : {}) }
  return { reading, server, type: { ...server, type: reading.type, depth: reading.mode }, complete: true }
}

const one = (labels: Labels, value: number | undefined): readonly Sample[] =>
  value === undefined ? [] : [{ labels, value }]
const answered = ({ reading, type }: TypePlace, value: number | undefined): readonly Sample[] =>
  reading.error ? [] : one(type, value)
const round = (value: number, digits: number): number => Number(value.toFixed(digits)) + 0

/** The end of the last run. Shows when runs have stopped. */
export const lastRunName = 'svc_type_last_run_timestamp_seconds'

/** A server that does not answer is unhealthy: a missing answer never counts as healthy. */
export const typeRows: readonly FamilyOf<TypePlace>[] = [
  {
    name: 'svc_type_success',
    type: gauge,
    help: '1 if the last run found the server type healthy, with or without warnings; 0 if unhealthy, not fully checked or without an answer.',
    keep: Math.min,
    samples: ({ reading, type, complete }) =>
      isBad(reading.level) ? one(type, 0) : one(type, complete ? 1 : undefined),
  },
  {
    name: 'svc_type_answered',
    type: gauge,
    help: '1 if there was a health answer, 0 if not.',
    keep: Math.min,
    samples: ({ reading, type }) => one(type, reading.error ? 0 : 1),
  },
  {
    name: 'svc_type_monitors',
    type: gauge,
    help: 'Monitors of the last run, by status: ok, warning, not_checked or failed.',
    keep: Math.max,
    samples: ({ reading, type }) => {
      if (reading.error) return []
      const counts = { ok: 0, warn: 0, 'not checked': 0, fail: 0 } satisfies Record<Level, number>
      for (const monitor of reading.monitors) counts[countedLevel(monitor)] += 1
      return worstFirst
        .toReversed()
        .map((level) => ({ labels: { ...type, status: statuses[level] }, value: counts[level] }))
    },
  },
  {
    name: 'svc_type_duration_seconds',
    type: gauge,
    help: 'Duration of the last run.',
    samples: (place) =>
      answered(place, place.reading.duration === undefined ? undefined : round(place.reading.duration / 1_000, 6)),
  },
  {
    name: lastRunName,
    type: gauge,
    help: 'End of the last finished run, in Unix time.',
    keep: Math.max,
    samples: (place) => answered(place, place.reading.endedAt && place.reading.endedAt.getTime() / 1_000),
  },
  {
    name: 'svc_server_cpu_used_ratio',
    type: gauge,
    help: 'CPU usage of the machine that svc runs on, from 0 to 1.',
    samples: ({ reading, server }) =>
      one(server, reading.state?.cpu === undefined ? undefined : round(reading.state.cpu / 100, 4)),
  },
  {
    name: 'svc_server_memory_available_bytes',
    type: gauge,
    help: 'Available memory of the machine that svc runs on.',
    samples: ({ reading, server }) => one(server, bytesOf(reading.state?.freeMb)),
  },
  {
    name: 'svc_server_memory_total_bytes',
    type: gauge,
    help: 'Total memory of the machine that svc runs on.',
    samples: ({ reading, server }) => one(server, bytesOf(reading.state?.totalMb)),
  },
]

const statuses: Readonly<Record<Level, string>> = {
  ok: 'ok',
  warn: 'warning',
  'not checked': 'not_checked',
  fail: 'failed',
}
const bytesOf = (megabytes: number | undefined): number | undefined =>
  megabytes === undefined ? undefined : round(megabytes * 2 ** 20, 0)

/** A monitor and its labels. Monitors of the machine itself have no type and appear once for all types. */
type Monitor = { readonly monitor: MonitorReading; readonly labels: Labels }

const monitorsOf = ({ reading, server }: TypePlace): readonly Monitor[] =>
  reading.monitors.map((monitor) => monitorOf(monitor, reading.type, server))

export const monitorOf = (monitor: MonitorReading, type: string, server: Labels = {}): Monitor => ({
  monitor,
  labels: { ...server, type: monitor.host ? undefined : type, monitor: monitor.name },
})

export const monitorRows: readonly RowOf<Monitor, MonitorReading>[] = [
  {
    name: 'svc_monitor',
    type: 'info',
    help: 'Describes a monitor; join on type and monitor.',
    isSame: (a, b) => a.kind === b.kind && a.scope === b.scope,
    samples: ({ monitor: { kind, scope }, labels }) =>
      kind === undefined ? [] : [{ labels: { ...labels, kind, scope }, value: 1 }],
  },
  {
    name: 'svc_monitor_duration_seconds',
    type: gauge,
    help: 'Duration of the last run of the monitor.',
    isSame: (a, b) => a.duration === b.duration,
    samples: ({ monitor: { duration }, labels }) =>
      one(labels, duration === undefined ? undefined : round(duration / 1_000, 6)),
  },
]

/** The results of one check; `items` are exported. */
type Check = { readonly labels: Labels; readonly items: readonly Item[]; readonly dropped: number }
type Item = { readonly labels: Labels; readonly result: Reading }

/** Whether the series of two monitors have the same labels, and all results of both have series. */
export const hasSameLabels = (a: MonitorReading, b: MonitorReading): boolean =>
  a.name === b.name &&
  a.host === b.host &&
  a.results.length <= maxItems &&
  a.results.length === b.results.length &&
  a.results.every(({ slug, item }, at) => slug === b.results[at]?.slug && item === b.results[at]?.item)

export const checksOf = ({ monitor, labels: ofMonitor }: Monitor): readonly Check[] =>
  bySlug(monitor.results).map(([check, results]) => {
    const labels = { ...ofMonitor, check }
    const exported =
      results.length <= maxItems
        ? results
        : worstFirst.flatMap((level) => results.filter((result) => result.level === level)).slice(0, maxItems)
    const items = exported.map((result) => ({
      labels: result.item === undefined ? labels : { ...labels, item: result.item },
      result,
    }))
    return { labels, items, dropped: results.length - exported.length }
  })

/** The results of each check. Mostly it is one, which needs no table. */
function bySlug(results: readonly Reading[]): readonly (readonly [check: string, results: readonly Reading[]])[] {
  const slugs = new Set(results.map(({ slug }) => slug))
  return slugs.size === results.length
    ? results.map((result) => [result.slug, [result]] as const)
    : [...Map.groupBy(results, ({ slug }) => slug)]
}

/** A check that has not run, or came to no verdict, is neither up nor down. */
const hasNoVerdict = (result: Reading): boolean => result.notChecked !== undefined || isConsequence(result)

/** One family per unit, keyed by the end of its name. */
const figureFamilies = {
  _seconds: {
    values: 'Measured durations.',
    limits: 'Limits of durations. A value beyond its limit is a warning or a failure, as the severity label says.',
  },
  _bytes: {
    values: 'Measured sizes.',
    limits: 'Limits of sizes. A value beyond its limit is a warning or a failure, as the severity label says.',
  },
  _ratio: {
    values: 'Measured ratios. For shares, 1 is the whole.',
    limits:
      'Limits of shares and ratios. A value beyond its limit is a warning or a failure, as the severity label says.',
  },
  '': {
    values: 'Measured counts.',
    limits: 'Limits of counts. A value beyond its limit is a warning or a failure, as the severity label says.',
  },
} as const

/** A check's unit → its family and the divisor of its figures. Other units have no family. */
const baseUnits: Readonly<Record<string, { readonly family: keyof typeof figureFamilies; readonly by: number }>> = {
  milliseconds: { family: '_seconds', by: 1_000 },
  days: { family: '_seconds', by: 1 / 86_400 },
  bytes: { family: '_bytes', by: 1 },
  percent: { family: '_ratio', by: 100 },
  ratio: { family: '_ratio', by: 1 },
  count: { family: '', by: 1 },
}

const baseOf = ({ unit }: Measured) => (Object.hasOwn(baseUnits, unit) ? baseUnits[unit] : undefined)

function inBase(measurement: Measured, family: string): Figure | undefined {
  const base = baseOf(measurement)
  return base?.family === family ? divided(measurement, base.by) : undefined
}

const hasSameState = (a: Reading, b: Reading): boolean =>
  a.level === b.level && a.fault === b.fault && a.cause === b.cause && a.notChecked === b.notChecked

const hasSameInstant = ({ measurement: a }: Reading, { measurement: b }: Reading): boolean =>
  a?.at?.getTime() === b?.at?.getTime()

const hasSameLimits = ({ measurement: a }: Reading, { measurement: b }: Reading): boolean =>
  a?.unit === b?.unit && a?.warn === b?.warn && a?.limit === b?.limit && a?.bound === b?.bound

const hasSameFigure = (a: Reading, b: Reading): boolean =>
  a.measurement?.value === b.measurement?.value && hasSameLimits(a, b) && hasSameInstant(a, b)

/** Whether neither has a figure of a family. */
const areOthers = (family: string, { measurement: a }: Reading, { measurement: b }: Reading): boolean =>
  (a === undefined || baseOf(a)?.family !== family) && (b === undefined || baseOf(b)?.family !== family)

/** A state that is not ok, which no limit on series omits. */
const urgentIf = (samples: readonly Sample[], { level }: Reading): readonly Sample[] =>
  level === 'ok' ? samples : samples.map((sample) => ({ ...sample, urgent: true }))

const bounds = { atMost: 'upper', atLeast: 'lower' } as const

function thresholdsOf(labels: Labels, figure: Figure | undefined): readonly Sample[] {
  if (figure?.bound === undefined) return []
  const bound = bounds[figure.bound]
  return [
    ...one({ ...labels, severity: 'warning', bound }, figure.warn),
    ...one({ ...labels, severity: 'failure', bound }, figure.limit),
  ]
}

export const checkRows: readonly RowOf<Item, Reading>[] = [
  {
    name: 'svc_check_success',
    type: gauge,
    help: '1 if the last result is ok or a warning, 0 if it failed. Absent when the check came to no verdict.',
    isSame: hasSameState,
    keep: Math.min,
    samples: ({ labels, result }) =>
      hasNoVerdict(result) ? [] : urgentIf(one(labels, result.level === 'fail' ? 0 : 1), result),
  },
  {
    name: 'svc_check_warning',
    type: gauge,
    help: '1 if the last result is a warning, 0 if not. Absent when the check came to no verdict, unless that is a warning.',
    isSame: hasSameState,
    keep: Math.max,
    samples: ({ labels, result }) =>
      hasNoVerdict(result) && result.level !== 'warn'
        ? []
        : urgentIf(one(labels, result.level === 'warn' ? 1 : 0), result),
  },
  {
    name: 'svc_check_fault',
    type: gauge,
    help: '1 for the fault class of a failed result; absent otherwise.',
    isSame: hasSameState,
    samples: ({ labels, result }) =>
      result.level === 'fail' && !hasNoVerdict(result)
        ? [{ labels: { ...labels, fault: result.fault }, value: 1, urgent: true }]
        : [],
  },
  {
    name: 'svc_check_skipped',
    type: gauge,
    help: '1 if the monitor or the check did not run because of another failure; absent otherwise.',
    isSame: hasSameState,
    samples: ({ labels, result }) =>
      isConsequence(result) ? [{ labels: { ...labels, cause: result.cause }, value: 1, urgent: true }] : [],
  },
  {
    name: 'svc_check_not_checked',
    type: gauge,
    help: '1 if the check came to no verdict, by reason: configuration, missing, starved, budget, refused, permission or rehearsal. Absent otherwise.',
    isSame: hasSameState,
    samples: ({ labels, result: { notChecked } }) =>
      notChecked === undefined ? [] : [{ labels: { ...labels, reason: notChecked }, value: 1, urgent: true }],
  },
  ...Object.entries(figureFamilies).flatMap(([unit, { values, limits }]): readonly RowOf<Item, Reading>[] => [
    {
      name: `svc_check_value${unit}`,
      type: gauge,
      help: values,
      isSame: (a, b) => areOthers(unit, a, b) || hasSameFigure(a, b),
      samples: ({ labels, result: { measurement } }) =>
        measurement && measurement.at === undefined ? one(labels, inBase(measurement, unit)?.value) : [],
    },
    {
      name: `svc_check_threshold${unit}`,
      type: gauge,
      help: limits,
      isSame: (a, b) => areOthers(unit, a, b) || hasSameLimits(a, b),
      samples: ({ labels, result: { measurement } }) =>
        measurement ? thresholdsOf(labels, inBase(measurement, unit)) : [],
    },
  ]),
  {
    name: 'svc_check_value_timestamp_seconds',
    type: gauge,
    help: 'Measured instants, in Unix time: an expiry, a backup, a heartbeat. The limits apply to the time since or until the instant.',
    isSame: hasSameInstant,
    samples: ({ labels, result }) =>
      one(labels, result.measurement?.at && round(result.measurement.at.getTime() / 1_000, 3)),
  },
]

export const droppedItems: FamilyOf<Check> = {
  name: 'svc_check_items_dropped',
  type: gauge,
  help: `Items of the check omitted because there are more than ${maxItems}. Failed items are included first.`,
  samples: ({ labels, dropped }) => (dropped === 0 ? [] : [{ labels, value: dropped }]),
}
