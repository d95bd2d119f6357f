import { entryOf } from '../../base/lazy.ts'
import { mapPaced, type Pace, pace } from '../../base/pace.ts'
import { ExecutionMode, type RunDocument, type RunMonitor } from '../../protocol/index.ts'
import type { Family, Sample } from '../../protocol/service/family.ts'
import { type ExpositionFormat, labelTexts, lineOf, renderFamilies, renderLines } from './exposition.ts'
import {
  checkRows,
  checksOf,
  droppedItems,
  type FamilyOf,
  gather,
  hasSameLabels,
  lastRunName,
  merged,
  monitorOf,
  monitorRows,
  type TypePlace,
  typeRows,
} from './prometheus.ts'
import { readMonitor, readRun } from './read.ts'
import { isBad, type MonitorReading } from './reading.ts'

/** The latest results of a type at one depth, with what the server knows of them. */
export type LiveResult = {
  readonly type: string
  readonly mode: ExecutionMode
  readonly run: RunDocument
  /** For each monitor of the run: what is the same at every depth, and when it ran, in milliseconds. */
  readonly places: readonly { readonly key: string; readonly beganAt: number }[]
  /** False if a monitor of the type has no result. */
  readonly complete: boolean
}
export type LiveOptions = {
  readonly format: ExpositionFormat
  /** The samples of the metric that remains when the results have expired. */
  readonly lastRuns: readonly Sample[]
  /** How many series a text will probably have at most. */
  readonly maxSeries: number
}

/** Metrics as text. `left`: how many series more there may be. `dropped`: how many it omits. */
export type LiveText = { readonly text: string; readonly left: number; readonly dropped: number }

/** The series of the latest results, before a limit on their number. */
export type LiveSeries = {
  readonly count: number
  /** Their text with at most so many of them. It is made once for the same limit. */
  readonly text: (maxSeries: number) => Promise<LiveText>
}

/**
 * The metrics of the latest results. The text of a monitor is cached while its results are the same, so that a new text
 * joins cached ones. Other work gets its turn meanwhile.
 */
export async function liveSeries(results: readonly LiveResult[], options: LiveOptions): Promise<LiveSeries> {
  let series: Series | undefined = await seriesIn(results, options)
  const count = series.counts.all
  let latest: { readonly maxSeries: number; readonly text: Promise<LiveText> } | undefined
  return {
    count,
    text: async (maxSeries) => {
      if (latest?.maxSeries !== maxSeries) {
        const one = series ?? (await seriesIn(results, options))
        // Of a reader who does not come back, only the text remains.
        series = undefined
        latest = { maxSeries, text: textOf(one, maxSeries) }
      }
      return await latest.text
    },
  }
}

type Series = {
  readonly types: readonly Family[]
  readonly monitors: readonly MonitorLines[]
  readonly counts: Counts
  readonly format: ExpositionFormat
}

async function seriesIn(results: readonly LiveResult[], { format, lastRuns, maxSeries }: LiveOptions): Promise<Series> {
  const breathe = pace()
  const read: Read[] = []
  for (const result of results) {
    const readings = await mapPaced(result.run.monitors, breathe, readMonitor)
    read.push({ ...result, readings })
  }
  const written = await writtenLines(read, maxSeries, breathe)
  const types = typeFamilies(await mapPaced(read, breathe, placeOf), lastRuns)
  await breathe()
  const monitors = await uniqueLines(written, breathe)
  return { types, monitors, counts: await countsIn(types, monitors, breathe), format }
}

async function textOf({ types, monitors, counts, format }: Series, maxSeries: number): Promise<LiveText> {
  const breathe = pace()
  const limit = counts.all > maxSeries ? new SeriesLimit(maxSeries - counts.urgent) : undefined
  const texts = [renderFamilies(limit ? types.map((family) => limit.within(family)) : types, format)]
  const last = limit ? limit.lastRow(counts) : rows.length
  const unusual = monitors.filter(({ urgent }) => urgent.size > 0)
  for (const [at, row] of rows.entries()) {
    // Beyond the limit, only monitors with a state that is not ok have lines.
    const some = at <= last ? monitors : unusual
    if (at > last) limit?.omit(counts.usual[at])
    const lines = await joined(some, breathe, (one) => {
      write(one, last)
      return limit ? limit.linesOf(one, at) : (one.lines[at] ?? '')
    })
    texts.push(renderLines(row, lines, format))
    await breathe()
  }
  const left = limit ? 0 : Math.max(0, maxSeries - counts.all)
  return { text: texts.join(''), left, dropped: limit?.dropped ?? 0 }
}

/** How many series there are, in all and by row. */
type Counts = {
  readonly all: number
  readonly urgent: number
  /** By row, the series of the monitors without urgent ones. */
  readonly usual: readonly number[]
  /** By row, the series of all monitors that are not urgent. */
  readonly others: readonly number[]
}

async function countsIn(types: readonly Family[], monitors: readonly MonitorLines[], breathe: Pace): Promise<Counts> {
  const [usual, others] = [rows.map(() => 0), rows.map(() => 0)]
  const ofTypes = types.flatMap(({ samples }) => samples)
  let [all, urgent] = [ofTypes.length, ofTypes.filter((sample) => sample.urgent === true).length]
  await mapPaced(monitors, breathe, (one) => {
    all += one.count
    for (let at = 0; at < rows.length; at += 1) {
      const count = one.counts[at] ?? 0
      const ofRow = one.urgent.get(at)?.filter(Boolean).length ?? 0
      urgent += ofRow
      others[at] = (others[at] ?? 0) + count - ofRow
      if (one.urgent.size === 0) usual[at] = (usual[at] ?? 0) + count
    }
  })
  return { all, urgent, usual, others }
}

/** The rows of a monitor, in the order of the text. */
const rows: readonly Omit<FamilyOf<never>, 'samples'>[] = [...monitorRows, ...checkRows, droppedItems]

/** Undefined for a row that was not wanted. */
type SamplesByRow = readonly (readonly Sample[] | undefined)[]
type IsWanted = (row: number) => boolean

/**
 * One monitor in `/metrics`. Only its text is kept: the samples would take more memory than everything else that svc
 * keeps of a monitor.
 */
type MonitorLines = {
  /** The labels type and monitor: those of the series of one monitor differ from those of another if these do. */
  readonly name: string
  /** How many series it has. */
  readonly count: number
  /** The same by row. */
  readonly counts: readonly number[]
  /** By row, the lines of its series. Undefined until a text contains them. */
  readonly lines: (string | undefined)[]
  /** The last row of which the text has been made, with that of urgent series in later ones. */
  lastWritten: number
  /** By row, which of its series are never omitted. A row without any is absent. */
  readonly urgent: ReadonlyMap<number, readonly boolean[]>
  /** Makes the samples of these rows again, and none for others. */
  readonly samples: (isWanted: IsWanted) => SamplesByRow
}

/** How many texts are joined in one step, which copies them. */
const textsAtOnce = 100

/** The texts of these monitors as one, with turns for others between them. */
async function joined<T>(all: readonly T[], breathe: Pace, textOf: (one: T) => string): Promise<string> {
  let text = ''
  for (let from = 0; from < all.length; from += textsAtOnce) {
    const some = all.slice(from, from + textsAtOnce)
    text += some.map(textOf).join('')
    const turn = breathe()
    if (turn) await turn
  }
  return text
}

/** Omits series beyond a limit. Urgent ones are kept whatever the limit, and count first. */
class SeriesLimit {
  #left: number
  #dropped = 0

  /** `others`: how many series there may be beside the urgent ones. */
  constructor(others: number) {
    this.#left = Math.max(0, others)
  }

  get dropped(): number {
    return this.#dropped
  }

  within(family: Family): Family {
    return { ...family, samples: family.samples.filter(({ urgent }) => this.#keeps(urgent === true)) }
  }

  /** Omits series that are all beyond the limit. */
  omit(count = 0): void {
    this.#dropped += count
  }

  /** The last row with series that are not urgent and within the limit. The types have been counted. */
  lastRow({ others }: Counts): number {
    let left = this.#left
    return others.findIndex((count) => {
      left -= count
      return left <= 0
    })
  }

  linesOf({ counts, lines, urgent }: MonitorLines, at: number): string {
    const count = counts[at] ?? 0
    const isUrgent = urgent.get(at)
    if (!isUrgent && this.#left === 0) {
      this.#dropped += count
      return ''
    }
    const text = lines[at] ?? ''
    if (!isUrgent && this.#left >= count) {
      this.#left -= count
      return text
    }
    // A value of a label has no line break of its own.
    return text
      .split(/(?<=\n)/)
      .filter((_, index) => this.#keeps(isUrgent?.[index] === true))
      .join('')
  }

  #keeps(isUrgent: boolean): boolean {
    if (isUrgent) return true
    if (this.#left > 0) {
      this.#left -= 1
      return true
    }
    this.#dropped += 1
    return false
  }
}

/** A monitor at one depth. */
type AtDepth = { readonly mode: ExecutionMode; readonly beganAt: number; readonly reading: MonitorReading }

type Read = LiveResult & { readonly readings: readonly MonitorReading[] }

/** The lines of the monitors of each type, with the results of each at all depths, the one that began last first. */
async function writtenLines(read: readonly Read[], maxSeries: number, breathe: Pace): Promise<readonly MonitorLines[]> {
  const written: MonitorLines[] = []
  // Once the series so far exceed the limit, text waits until it is known which of them are within it.
  let sum = 0
  const add = (type: string, at: readonly AtDepth[]): void => {
    const one = linesOf(type, at, sum <= maxSeries ? rows.length : -1)
    sum += one.count
    written.push(one)
  }
  for (const [type, ofType] of Map.groupBy(read, (result) => result.type)) {
    const [{ mode, readings } = { mode: 'Basic' as const, readings: [] }, ...deeper] = ofType
    if (deeper.length === 0) {
      await mapPaced(readings, breathe, (reading) => add(type, [{ mode, beganAt: 0, reading }]))
      continue
    }
    const byKey = new Map<string, AtDepth[]>()
    for (const { mode, readings, places } of ofType) {
      let index = 0
      await mapPaced(readings, breathe, (reading) => {
        const { key, beganAt } = places[index] ?? { key: String(index), beganAt: 0 }
        index += 1
        entryOf(byKey, key, () => []).push({ mode, beganAt, reading })
      })
    }
    await mapPaced(byKey.values(), breathe, (at) => add(type, at.sort(latestFirst)))
  }
  return written
}

const depthOf = (mode: ExecutionMode): number => ExecutionMode.values.indexOf(mode)
const latestFirst = (a: AtDepth, b: AtDepth): number => b.beganAt - a.beganAt || depthOf(b.mode) - depthOf(a.mode)

type WrittenLines = {
  readonly type: string
  readonly at: readonly AtDepth[]
  /** Without superseded results. */
  readonly readings: readonly MonitorReading[]
  readonly lines: MonitorLines
}
const linesByReading = new WeakMap<MonitorReading, WrittenLines>()

/** The lines of a monitor, made once for the same results. `last`: the last row whose text is made at once. -1: none. */
function linesOf(type: string, at: readonly AtDepth[], last: number, former?: WrittenLines): MonitorLines {
  const latest = at[0]?.reading
  const before = latest && linesByReading.get(latest)
  const isSame =
    before?.type === type &&
    before.at.length === at.length &&
    before.at.every(({ mode, reading }, index) => mode === at[index]?.mode && reading === at[index]?.reading)
  if (before && isSame) return before.lines
  const readings = withoutSuperseded(at)
  const lines = countLines(type, readings, last, former)
  if (latest) linesByReading.set(latest, { type, at, readings, lines })
  return lines
}

/**
 * Makes the lines of a monitor that take the place of those of `former`, if these have been made: the next text finds them.
 * `atDepth`: its new results. Text is made of what there was text of.
 */
export function prepareLines(
  former: RunMonitor,
  atDepth: (mode: ExecutionMode) => { readonly monitor: RunMonitor; readonly beganAt: number } | undefined,
): void {
  const before = linesByReading.get(readMonitor(former))
  if (!before) return
  const at = before.at.flatMap(({ mode }): AtDepth[] => {
    const { monitor, beganAt } = atDepth(mode) ?? {}
    return monitor && beganAt !== undefined ? [{ mode, beganAt, reading: readMonitor(monitor) }] : []
  })
  const { lastWritten } = before.lines
  write(linesOf(before.type, at.sort(latestFirst), lastWritten, before), lastWritten)
}

function countLines(
  type: string,
  readings: readonly MonitorReading[],
  last: number,
  former: WrittenLines | undefined,
): MonitorLines {
  const samples = (isWanted: IsWanted): SamplesByRow => samplesOf(type, readings, isWanted)
  const stable = former && stableRows(former, readings)
  if (stable) return asLines(stable.lines.name, samples, last, stable)
  const [latest] = readings
  const { type: typeLabel = '', monitor = '' } = latest ? monitorOf(latest, type).labels : {}
  return asLines(`${typeLabel}\n${monitor}`, samples, last)
}

/** The lines of an earlier result, and the rows that are the same in them. */
type StableRows = { readonly lines: MonitorLines; readonly isStable: IsWanted }

/** The rows of an earlier result that stay as they are. Undefined if its series have other labels. */
function stableRows({ readings: before, lines }: WrittenLines, now: readonly MonitorReading[]): StableRows | undefined {
  const both = (isSame: (a: MonitorReading, b: MonitorReading) => boolean): boolean =>
    before.every((one, at) => now[at] !== undefined && isSame(one, now[at]))
  if (before.length !== now.length || !both(hasSameLabels)) return undefined
  const stable = [
    ...monitorRows.map(({ isSame }) => both(isSame)),
    ...checkRows.map(({ isSame }) =>
      both((a, b) => a.results.every((one, at) => b.results[at] !== undefined && isSame(one, b.results[at]))),
    ),
    // All results have series.
    true,
  ]
  return { lines, isStable: (row) => stable[row] === true }
}

/** The samples of a monitor, by row. None for a row that is not wanted. */
function samplesOf(type: string, readings: readonly MonitorReading[], isWanted: IsWanted): SamplesByRow {
  const monitors = readings.map((reading) => monitorOf(reading, type))
  const checks = monitors.flatMap(checksOf)
  const items = checks.flatMap((check) => check.items)
  // To compare the labels of all samples takes longer than to make them.
  const areUnique = readings.length < 2 && checks.every(hasUniqueItems)
  let at = 0
  const of = <Thing>(row: FamilyOf<Thing>, things: readonly Thing[]): readonly Sample[] | undefined => {
    if (!isWanted(at++)) return undefined
    return areUnique ? things.flatMap(row.samples) : gather(row, things).samples
  }
  return [
    ...monitorRows.map((row) => of(row, monitors)),
    ...checkRows.map((row) => of(row, items)),
    of(droppedItems, checks),
  ]
}

const hasUniqueItems = ({ items }: ReturnType<typeof checksOf>[number]): boolean =>
  items.length < 2 || new Set(items.map(({ result }) => result.item)).size === items.length

/** Counts the series of a monitor, and makes their text up to the row `last`. -1: none. */
function asLines(name: string, samples: MonitorLines['samples'], last: number, stable?: StableRows): MonitorLines {
  const byRow = samples(stable ? (at) => !stable.isStable(at) : everyRow)
  const former = stable?.lines
  const counts = byRow.map((some, at) => some?.length ?? former?.counts[at] ?? 0)
  const urgent = byRow.flatMap((some, at) => {
    const ofRow = some ? urgentIn(some) : former?.urgent.get(at)
    return ofRow ? [[at, ofRow] as const] : []
  })
  const lines = {
    name,
    counts: former?.counts.every((count, at) => count === counts[at]) ? former.counts : counts,
    lines: counts.map((count, at) => (count === 0 ? '' : byRow[at] ? undefined : former?.lines[at])),
    lastWritten: -1,
    urgent: urgent.length === 0 ? noneUrgent : new Map(urgent),
    samples,
    count: counts.reduce((sum, one) => sum + one, 0),
  }
  write(lines, last, byRow)
  return lines
}

const urgentIn = (samples: readonly Sample[]): readonly boolean[] | undefined =>
  samples.some(({ urgent }) => urgent) ? samples.map(({ urgent }) => urgent === true) : undefined

const everyRow: IsWanted = () => true

/** Makes the text of the rows up to the last one of a monitor, and of urgent series beyond it, unless it is kept. */
function write(one: MonitorLines, last: number, samples?: SamplesByRow): void {
  if (one.lastWritten >= last) return
  const isWanted = (at: number): boolean => at <= last || one.urgent.has(at)
  one.lastWritten = last
  let made: SamplesByRow | undefined
  let labelText: ReturnType<typeof labelTexts> | undefined
  for (let at = 0; at < rows.length; at += 1) {
    const row = rows[at]
    if (!row || one.lines[at] !== undefined || !isWanted(at)) continue
    if (!samples?.[at]) made ??= one.samples(isWanted)
    labelText ??= labelTexts()
    one.lines[at] = (samples?.[at] ?? made?.[at] ?? []).map(lineOf(row, labelText)).join('')
  }
}

const noneUrgent: MonitorLines['urgent'] = new Map()

/** The lines of monitors, those with the same labels together. */
async function uniqueLines(all: readonly MonitorLines[], breathe: Pace): Promise<readonly MonitorLines[]> {
  const byName = new Map<string, MonitorLines>()
  const several = new Map<string, MonitorLines[]>()
  await mapPaced(all, breathe, (one) => {
    const first = byName.get(one.name)
    if (first) entryOf(several, one.name, () => [first]).push(one)
    else byName.set(one.name, one)
  })
  for (const [name, alike] of several) byName.set(name, mergedLines(alike))
  return [...byName.values()]
}

/** Monitors with the same labels, as those of the host of several types and those that a reader sees without names. */
function mergedLines(alike: readonly MonitorLines[]): MonitorLines {
  return asLines(
    alike[0]?.name ?? '',
    (isWanted) => {
      const samples = alike.map((one) => one.samples(isWanted))
      return rows.map((row, at) =>
        merged(
          samples.flatMap((byRow) => byRow[at] ?? []),
          row.keep,
        ),
      )
    },
    -1,
  )
}

/**
 * The readings of a monitor without superseded results. A later one repeats all checks up to its depth. Results of deeper
 * checks remain, unless the monitor failed later or was not checked: their state is then unknown.
 */
function withoutSuperseded(at: readonly AtDepth[]): readonly MonitorReading[] {
  const [latest, ...earlier] = at
  if (!latest) return []
  let failing = isBad(latest.reading.level)
  let covered = depthOf(latest.mode)
  const remaining = [latest.reading]
  for (const { mode, reading } of earlier) {
    const results = reading.results.filter(({ depth = reading.depth ?? 'Basic' }) => depthOf(depth) > covered)
    if (!failing && results.length > 0) remaining.push({ ...reading, results })
    failing ||= isBad(reading.level)
    covered = Math.max(covered, depthOf(mode))
  }
  return remaining
}

/** The families of the types, the freshest first where several tell of the same machine. */
function typeFamilies(places: readonly TypePlace[], lastRuns: readonly Sample[]): readonly Family[] {
  return typeRows.map((row) => {
    const family = gather(row, places)
    return row.name === lastRunName ? { ...family, samples: lastRuns } : family
  })
}

const placeOf = ({ type, mode, run, readings, complete }: Read): TypePlace => ({
  reading: { type, mode, error: undefined, ...readRun(run, readings) },
  server: {},
  type: { type, depth: mode },
  complete,
})
