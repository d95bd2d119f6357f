import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { NameOf } from './block.ts'
import { ByteReader, ByteWriter } from './bytes.ts'
import { codeOf, valueOfCode } from './significant.ts'
import type { ObservedCheck, ObservedRun, Rank } from './timeline.ts'

/** A run of the monitor with this number. */
export type NumberedRun = { readonly monitor: number; readonly run: ObservedRun }

const levels = [undefined, 'ok', 'warning', 'failed'] as const

/**
 * The part that is the same in most runs of a monitor: as a name, it takes a number. It is stored, and read by versions
 * before and after this one, so its words never change: `stands` is the `validMs` of a run.
 */
type Layout = {
  readonly rank: Rank
  readonly stands: ObservedRun['validMs']
  readonly checks: readonly (readonly [check: string, rank: Rank, figure: string | null])[]
}

/** The layout of a run, and its text, which `encodeRuns` needs a number for. */
export type WrittenLayout = { readonly text: string; readonly layout: Layout }

export function layoutOf({ rank, validMs, checks }: ObservedRun): WrittenLayout {
  const layout: Layout = {
    rank,
    stands: validMs,
    checks: checks.map(({ check, rank: own, figure }) => [check, own, figure?.name ?? null] as const),
  }
  return { text: JSON.stringify(layout), layout }
}

/** Whether a run has this layout. */
export const hasLayout = ({ rank, validMs, checks }: ObservedRun, { layout }: WrittenLayout): boolean =>
  rank === layout.rank &&
  (validMs === layout.stands || validMs.every((ms, at) => ms === layout.stands[at])) &&
  checks.length === layout.checks.length &&
  layout.checks.every(([check, own, figure], at) => {
    const one = checks[at]
    return one?.check === check && one.rank === own && (one.figure?.name ?? null) === figure
  })

/**
 * Runs as bytes, with the numbers of their layouts. They ended at `from` or later. Figures are rounded to three significant
 * digits.
 */
export function encodeRuns(runs: readonly (NumberedRun & { readonly layout: number })[], from: number): Uint8Array {
  const writer = new ByteWriter()
  for (const { monitor, run, layout } of runs) {
    writer.whole(monitor)
    writer.whole(Math.max(0, Math.round(run.at - from)))
    writer.whole(layout)
    const isAllOk = run.checks.every(({ level }) => level === 'ok')
    writer.byte(Number(isAllOk))
    if (!isAllOk) for (const { level } of run.checks) writer.byte(levels.indexOf(level))
    for (const { figure } of run.checks) if (figure) writer.short(codeOf(figure.value))
  }
  return deflateRawSync(writer.take())
}

/** The runs of `encodeRuns`, without those whose names are unknown. */
export function decodeRuns(bytes: Uint8Array, from: number, nameOf: NameOf): readonly NumberedRun[] {
  const reader = new ByteReader(inflateRawSync(bytes))
  const layouts = new Map<number, Layout | undefined>()
  const runs: NumberedRun[] = []
  while (!reader.isAtEnd) {
    const monitor = reader.whole()
    const at = from + reader.whole()
    const number = reader.whole()
    if (!layouts.has(number)) layouts.set(number, parsed(nameOf(number)))
    const layout = layouts.get(number)
    // What follows cannot be read without it.
    if (layout === undefined) return runs
    const isAllOk = reader.byte() === 1
    const ownLevels = layout.checks.map(() => (isAllOk ? 'ok' : levels[reader.byte()]))
    const checks = layout.checks.map(([check, rank, name], index): ObservedCheck => {
      const figure = name === null ? undefined : { name, value: valueOfCode(reader.short()) }
      return { check, rank, level: ownLevels[index], figure }
    })
    runs.push({ monitor, run: { at, rank: layout.rank, validMs: layout.stands, checks } })
  }
  return runs
}

/** Undefined for a name that is none, or whose words are others. */
function parsed(text: string | undefined): Layout | undefined {
  const layout = text === undefined ? undefined : (JSON.parse(text) as Partial<Layout>)
  return layout?.stands === undefined ? undefined : (layout as Layout)
}
