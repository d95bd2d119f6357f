/**
 * Compares what all monitors of the test run found before and after a change that must not change it. The tests run
 * with an engine that writes each run of a monitor to a file:
 *
 *     SVC_RECORDING=/tmp/1.jsonl npx vitest run --config tools/recording/vitest.config.ts test/checks/kinds test/checks/profiles test/checks/engine
 *     node tools/recording/recording.ts merge /tmp/1.jsonl /tmp/2.jsonl > /tmp/before.jsonl
 *     node tools/recording/recording.ts compare /tmp/before.jsonl /tmp/after.jsonl [KIND...]
 *
 * `merge` masks ports, temporary paths, dates and the like, and keeps each run once. Of several recordings of the same
 * code it keeps the figures on which all agree, to be compared too, and masks the others. Results that measure the
 * machine (the host, a latency near its threshold) may differ under load. What tests run in a child process (bin/run.js
 * above all), or without the engine (the judge of a kind by itself), is in no recording.
 */
import { readFileSync } from 'node:fs'
import { coarse, masked, withoutFigures } from './mask.ts'
import { type RawLine, type Result, resultOf } from './shape.ts'

/** A run of a monitor. Runs that differ only in figures belong together: they have one group. */
type Entry = {
  readonly kind: string
  readonly mode: string
  readonly settings: unknown
  readonly results: readonly Result[]
  /** Places in `results` whose figures differ between recordings of the same code: they are masked. */
  readonly noise: readonly number[]
  /** One of several recordings of the same code lacks it: a later one may lack it too. */
  readonly rare: boolean
  /** Names of tests that run it; not compared. */
  readonly tests: readonly string[]
}

const keyOf = ({ kind, mode, settings, results }: Entry): string => JSON.stringify([kind, mode, settings, results])
const groupOf = (entry: Entry): string => keyOf(withNoise(entry, [...entry.results.keys()]))

const withNoise = (entry: Entry, noise: readonly number[]): Entry => ({
  ...entry,
  results: entry.results.map((result, place) => (noise.includes(place) ? withoutFigures(result) : result)),
  noise,
})

/** Each entry once, with all of its tests. */
function distinct(entries: readonly Entry[]): readonly Entry[] {
  const byKey = new Map<string, Entry>()
  for (const entry of entries) {
    const key = keyOf(entry)
    const { tests = [], rare = true } = byKey.get(key) ?? {}
    byKey.set(key, { ...entry, tests: [...new Set([...tests, ...entry.tests])].sort(), rare: rare && entry.rare })
  }
  return [...byKey.values()]
}

/** JSON writes the keys of an object in their order, and settings are a set. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]))
}

const entryOf = ({ kind, mode, settings, results, test }: RawLine): Entry => ({
  ...masked({ kind, mode, settings: sorted(settings), results: results.map(resultOf).map(coarse) }),
  noise: [],
  rare: false,
  tests: [test],
})

/** The different runs of a raw recording, or of one that `merge` wrote. */
const read = (file: string): readonly Entry[] =>
  distinct(
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as RawLine | Entry)
      .map((line) => ('tests' in line ? line : entryOf(line))),
  )

/** The entries of one group, for each recording, with the same noise masked in all of them. */
type Group = readonly (readonly Entry[])[]

function groupsOf(recordings: readonly (readonly Entry[])[]): readonly Group[] {
  const grouped = recordings.map((entries) => Map.groupBy(entries, groupOf))
  const names = new Set(grouped.flatMap((groups) => [...groups.keys()]))
  return [...names].map((name) => {
    const group = grouped.map((groups) => groups.get(name) ?? [])
    const noise = [...new Set(group.flat().flatMap((entry) => entry.noise))].sort((a, b) => a - b)
    return group.map((entries) => distinct(entries.map((entry) => withNoise(entry, noise))))
  })
}

/** Recordings of the same code as one. Nothing is left out: what only one of them holds is kept. */
const merge = (recordings: readonly (readonly Entry[])[]): readonly Entry[] =>
  groupsOf(recordings).flatMap((group) => {
    const entries = group.flat()
    const figures = (runs: readonly Entry[], place: number): string =>
      [...new Set(runs.map(({ results }) => JSON.stringify(results[place])))].sort().join()
    const places = [...(entries[0]?.results.keys() ?? [])]
    // What one recording alone holds has figures that no other confirms.
    const noise = places.filter(
      (place) => entries[0]?.noise.includes(place) || new Set(group.map((runs) => figures(runs, place))).size > 1,
    )
    const keys = group.map((runs) => new Set(runs.map((entry) => keyOf(withNoise(entry, noise)))))
    return distinct(entries.map((entry) => withNoise(entry, noise))).map((entry) => ({
      ...entry,
      rare: entry.rare || keys.some((others) => !others.has(keyOf(entry))),
    }))
  })

type Difference = { readonly side: '-' | '+'; readonly entry: Entry }

function differencesOf(before: readonly Entry[], after: readonly Entry[]): readonly Difference[] {
  return groupsOf([before, after]).flatMap(([old = [], now = []]) => {
    const only = (
      entries: readonly Entry[],
      others: readonly Entry[],
      side: Difference['side'],
    ): readonly Difference[] => {
      const keys = new Set(others.map(keyOf))
      return entries.filter((entry) => !keys.has(keyOf(entry))).map((entry) => ({ side, entry }))
    }
    return [...only(old, now, '-').filter(({ entry }) => !entry.rare), ...only(now, old, '+')]
  })
}

/** The differences of two recordings: a summary of each kind, then the runs, with `!` at what differs. */
function compare(before: readonly Entry[], after: readonly Entry[]): string {
  const differences = differencesOf(before, after)
  const kinds = [...new Set([...before, ...after].map(({ kind }) => kind))].sort()
  const summary = kinds.map((kind) => {
    const runs = [before, after].map((entries) => entries.filter((entry) => entry.kind === kind).length)
    const only = (side: Difference['side']): number =>
      differences.filter((one) => one.side === side && one.entry.kind === kind).length
    return `${kind}: ${runs.join(' runs before, ')} after; ${only('-')} only before, ${only('+')} only after`
  })
  const monitors = Map.groupBy(differences, ({ entry: { kind, mode, settings } }) =>
    [kind, mode, JSON.stringify(settings)].join(' '),
  )
  const runs = [...monitors].flatMap(([monitor, alike]) => {
    const results = Map.groupBy(alike, ({ side }) => side)
    const other = (side: Difference['side']): ReadonlySet<string> =>
      new Set(
        results.get(side === '-' ? '+' : '-')?.flatMap(({ entry }) => entry.results.map((one) => JSON.stringify(one))),
      )
    return [
      '',
      monitor,
      ...alike.flatMap(({ side, entry }) => [
        `${side} ${entry.tests.join(' | ')}`,
        ...entry.results
          .map((result) => JSON.stringify(result))
          .map((result) => `${side} ${other(side).has(result) ? ' ' : '!'} ${result}`),
      ]),
    ]
  })
  return [...summary, ...runs].join('\n')
}

const [command, ...rest] = process.argv.slice(2)
if (command === 'merge' && rest.length > 0) {
  const lines = merge(rest.map(read)).map((entry) => JSON.stringify(entry))
  process.stdout.write(`${lines.sort().join('\n')}\n`)
} else if (command === 'compare' && rest.length >= 2) {
  const [before = '', after = '', ...kinds] = rest
  const only = (file: string): readonly Entry[] =>
    read(file).filter(({ kind }) => kinds.length === 0 || kinds.includes(kind))
  process.stdout.write(`${compare(only(before), only(after))}\n`)
} else {
  process.stderr.write('Usage: node tools/recording/recording.ts merge RAW... | compare BEFORE AFTER [KIND...]\n')
  process.exitCode = 2
}
