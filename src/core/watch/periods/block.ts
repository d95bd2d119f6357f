import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { ByteReader, ByteWriter } from './bytes.ts'
import { addFailing, type ByDepth, emptyPack, type FigureOfPeriod, type Pack } from './pack.ts'
import { codeOf, valueOfCode } from './significant.ts'

/** Numbers for names, which a block contains instead of the names. */
export type NumberOf = (name: string) => number
/** The name of a number. Undefined for one that is unknown. */
export type NameOf = (number: number) => string | undefined

/**
 * The packs of consecutive periods of one monitor as bytes: when it was up and down, and apart from that, because few
 * readers need it, what was measured.
 */
export type Block = { readonly times: Uint8Array; readonly figures: Uint8Array }

/** The meaning of the bits in the first byte of a period. */
const bits = { present: 1, wholeUp: 2, failing: 4, warned: 3 } as const

/** Encodes periods of `width` milliseconds. Undefined: nothing is known of a period. */
export function encodeBlock(packs: readonly (Pack | undefined)[], width: number, numberOf: NumberOf): Block {
  const times = new ByteWriter()
  let runs = 0
  for (const pack of packs) {
    if (pack === undefined) {
      times.byte(0)
      continue
    }
    const isWholeUp = pack.up.every((ms) => ms === width)
    const failing = [...(pack.failing ?? [])]
    const hasFailing = failing.length > 0
    times.byte(
      bits.present | (isWholeUp ? bits.wholeUp : 0) | (hasFailing ? bits.failing : 0) | (pack.warned << bits.warned),
    )
    times.signed(pack.runs - runs)
    runs = pack.runs
    if (!isWholeUp) for (const ms of [...pack.up, ...pack.down]) times.whole(Math.round(ms))
    if (hasFailing) {
      times.whole(failing.length)
      for (const [name, ms] of failing) {
        times.whole(numberOf(name))
        times.whole(Math.round(ms))
      }
    }
  }
  return { times: times.take(), figures: encodeFigures(packs, numberOf) }
}

/** The packs of a block, without figures if those are not passed. The same number of periods as were encoded. */
export function decodeBlock(
  { times, figures }: { readonly times: Uint8Array; readonly figures?: Uint8Array | undefined },
  width: number,
  nameOf: NameOf,
): readonly (Pack | undefined)[] {
  const reader = new ByteReader(times)
  const packs: (Pack | undefined)[] = []
  let runs = 0
  while (!reader.isAtEnd) {
    const first = reader.byte()
    if (first === 0) {
      packs.push(undefined)
      continue
    }
    const pack = emptyPack()
    pack.warned = first >> bits.warned
    runs += reader.signed()
    pack.runs = runs
    if (first & bits.wholeUp) pack.up.fill(width)
    else for (const list of [pack.up, pack.down]) readDepths(list, reader)
    const failing = first & bits.failing ? reader.whole() : 0
    for (let at = 0; at < failing; at += 1) {
      const name = nameOf(reader.whole())
      const ms = reader.whole()
      if (name !== undefined) addFailing(pack, name, ms)
    }
    packs.push(pack)
  }
  if (figures) decodeFigures(figures, packs, nameOf)
  return packs
}

function readDepths(list: ByDepth, reader: ByteReader): void {
  for (let depth = 0; depth < 3; depth += 1) list[depth] = reader.whole()
}

/** FigureOfPeriod by figure, so that similar values are neighbours: numbers of values, averages, and how far the extremes are. */
function encodeFigures(packs: readonly (Pack | undefined)[], numberOf: NumberOf): Uint8Array {
  const names = new Map<string, number>()
  for (const pack of packs) for (const name of pack?.figures.keys() ?? []) names.set(name, numberOf(name))
  const writer = new ByteWriter()
  let last = 0
  for (const [name, number] of [...names].sort(([, one], [, other]) => one - other)) {
    writer.whole(number - last)
    last = number
    const figures = packs.map((pack) => pack?.figures.get(name))
    let runs = 0
    for (const figure of figures) {
      writer.signed((figure?.count ?? 0) - runs)
      runs = figure?.count ?? 0
    }
    let before: Codes = noCodes
    for (const figure of figures) {
      if (!figure) continue
      const codes = codesOf(figure)
      for (const [at, code] of codes.entries()) writer.signed(code - (before[at] ?? 0))
      before = codes
    }
  }
  const bytes = writer.take()
  return bytes.length === 0 ? bytes : deflateRawSync(bytes)
}

/** The average of a figure, and how far below and above it the extremes are. */
type Codes = readonly [average: number, below: number, above: number]
const noCodes: Codes = [0, 0, 0]

function codesOf({ sum, count, min, max }: FigureOfPeriod): Codes {
  // Rounding of a sum may put the average beyond the extremes.
  const average = codeOf(Math.min(max, Math.max(min, sum / count)))
  return [average, average - codeOf(min), codeOf(max) - average]
}

function decodeFigures(bytes: Uint8Array, packs: readonly (Pack | undefined)[], nameOf: NameOf): void {
  if (bytes.length === 0) return
  const reader = new ByteReader(inflateRawSync(bytes))
  let number = 0
  while (!reader.isAtEnd) {
    number += reader.whole()
    const name = nameOf(number)
    let runs = 0
    const counts = packs.map(() => {
      runs += reader.signed()
      return runs
    })
    let [average, below, above] = noCodes
    for (const [at, count] of counts.entries()) {
      if (count === 0) continue
      average += reader.signed()
      below += reader.signed()
      above += reader.signed()
      const [min, max] = [valueOfCode(average - below), valueOfCode(average + above)]
      const pack = packs[at]
      if (name !== undefined && pack) pack.figures.set(name, { count, sum: valueOfCode(average) * count, min, max })
    }
  }
}
