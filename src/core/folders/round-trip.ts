import { atLeast, type CheckContext, fail, ok, type Result, warn } from '../engine/index.ts'
import { showBytes, showDuration } from '../format.ts'
import { count } from '../net/text.ts'
import { ProbeError } from '../probe-error.ts'
import type { Threshold } from '../settings/index.ts'
import { isLeftover, probeFile, sha256 } from './probe-file.ts'

/** A signed-in session in the folder where our own file may be written. */
export type Files = {
  readonly write: (name: string, bytes: Uint8Array) => Promise<void>
  /** At most `max` bytes are read. */
  readonly read: (name: string, max: number) => Promise<Uint8Array>
  readonly rename: (from: string, to: string) => Promise<void>
  readonly remove: (name: string) => Promise<void>
  readonly names: () => Promise<readonly string[]>
  /** False when the session has ended. */
  readonly usable: () => boolean
}

export type TripSeen =
  | {
      readonly see: 'round trip'
      readonly upMs: number
      readonly downMs: number
      readonly bytes: number
      /** How many bytes came back, and whether they were the same. */
      readonly back: number
      readonly same: boolean
    }
  | { readonly see: 'renamed'; readonly ms: number }
  | { readonly see: 'deleted'; readonly ms: number }
  | { readonly see: 'stuck'; readonly check: TripCheck; readonly cause: unknown; readonly afterMs: number }
  | { readonly see: 'swept'; readonly found: number; readonly removed: number; readonly kept: string | undefined }
type TripCheck = 'round trip' | 'rename' | 'delete' | 'sweep'

/** Leftovers deleted in one run: the rest is the next run's. */
const mostSwept = 20

/** Writes our own file, reads it back, renames and deletes it, and sweeps what earlier runs left behind. */
export async function* roundTrip(
  files: Files,
  size: number,
  context: Pick<CheckContext, 'now' | 'date'>,
  step: (check: TripCheck) => void,
): AsyncGenerator<TripSeen> {
  const { name, renamed, bytes } = probeFile(size, context.date())
  let there: string | undefined
  const timed = async (act: Promise<void>): Promise<number> => {
    const since = context.now()
    await act
    return context.now() - since
  }
  let check: TripCheck = 'round trip'
  let since = context.now()
  const next = (to: TripCheck): void => {
    check = to
    since = context.now()
    step(to)
  }
  // One check that could not be done ends none of the others, as long as the session lasts.
  const stuck = (cause: unknown): TripSeen => {
    if (!files.usable()) throw cause
    return { see: 'stuck', check, cause, afterMs: context.now() - since }
  }
  let compared = false
  next('round trip')
  try {
    // Part of it may be there, also where writing failed.
    there = name
    const upMs = await timed(files.write(name, bytes))
    const asked = context.now()
    const back = await files.read(name, bytes.length + 1)
    const downMs = context.now() - asked
    const same = sha256(back) === sha256(bytes)
    yield { see: 'round trip', upMs, downMs, bytes: bytes.length, back: back.length, same }
    compared = true
    next('rename')
    const ms = await timed(files.rename(name, renamed))
    there = renamed
    yield { see: 'renamed', ms }
  } catch (cause) {
    yield stuck(cause)
    if (!compared) {
      // Whether there is anything to delete is not known: no further trouble to tell.
      await files.remove(there ?? name).catch(() => {})
      there = undefined
    }
  }
  if (there !== undefined) {
    next('delete')
    try {
      yield { see: 'deleted', ms: await timed(files.remove(there)) }
    } catch (cause) {
      yield stuck(cause)
    }
  }
  next('sweep')
  try {
    yield await sweep(files, context.date())
  } catch (cause) {
    yield stuck(cause)
  }
}

async function sweep(files: Files, now: Date): Promise<TripSeen> {
  const left = (await files.names()).filter((name) => isLeftover(name, now))
  let removed = 0
  let kept: string | undefined
  for (const name of left.slice(0, mostSwept)) {
    try {
      await files.remove(name)
      removed += 1
    } catch (cause) {
      if (!files.usable()) throw cause
      kept ??= cause instanceof ProbeError ? cause.message : String(cause)
    }
  }
  return { see: 'swept', found: left.length, removed, kept }
}

export function evaluateTrip(
  seen: Exclude<TripSeen, { see: 'stuck' }>,
  throughput: Threshold | undefined,
): readonly Result[] {
  if (seen.see === 'renamed') return [ok('rename', `our own file was renamed in ${showDuration(seen.ms)}`)]
  if (seen.see === 'deleted') return [ok('delete', `our own file was deleted in ${showDuration(seen.ms)}`)]
  if (seen.see === 'swept') return [evaluateSweep(seen)]
  const size = showBytes(seen.bytes)
  const told = `${size} written in ${showDuration(seen.upMs)} and read back in ${showDuration(seen.downMs)}`
  if (!seen.same) {
    const how = seen.back === seen.bytes ? 'with another SHA-256' : `as ${seen.back} of ${seen.bytes} bytes`
    const cause =
      seen.back === seen.bytes ? 'something rewrites what is stored' : 'transfers are cut, or the disk is full'
    return [fail('round trip', 'data', `${size} written came back ${how}: ${cause}`)]
  }
  // A clock that has not moved would make it infinite.
  const rate = (2 * seen.bytes * 1_000) / Math.max(seen.upMs + seen.downMs, 0.1)
  const trip = ok('round trip', `${told}, same SHA-256`, {
    measurement: { value: seen.upMs + seen.downMs, unit: 'milliseconds' },
  })
  if (throughput === undefined) return [trip]
  return [
    trip,
    atLeast({
      check: 'throughput',
      what: 'bytes a second, both ways:',
      value: rate,
      unit: 'bytes',
      threshold: throughput,
    }),
  ]
}

function evaluateSweep({ found, removed, kept }: Extract<TripSeen, { see: 'swept' }>): Result {
  if (found === 0) return ok('sweep', 'no earlier round trip left anything behind')
  const told = `${removed} of ${count(found, 'leftover')} of earlier round trips deleted`
  return kept === undefined ? ok('sweep', told) : warn('sweep', told, { details: [kept] })
}
