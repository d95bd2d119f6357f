import { isolatedFailsMs } from './policy.ts'

/**
 * The witnesses: peers that show whether this machine reaches anything. `tries` has the last try of each that was tried,
 * with its beginning.
 */
export type NetworkLine = {
  readonly witnesses: readonly string[]
  readonly tries: ReadonlyMap<string, Try>
  /** Since when no witness answers: the beginning of the first try in vain of the last one that went. Undefined on line. */
  readonly isolatedSince?: number | undefined
  /** Whether the isolation has lasted so long that it is an incident. */
  readonly hasFailed: boolean
  /** The latest isolation that is over: up to the beginning of the first try that a witness answered. */
  readonly wasIsolated?: { readonly from: number; readonly until: number } | undefined
}

type Try = {
  readonly at: number
  readonly isUp: boolean
  /** The beginning of the first try in vain since it answered. */
  readonly downSince?: number | undefined
  /** The beginning of the latest try in vain, whenever its result came. */
  readonly silentAt?: number | undefined
}

/** Tries that begin within this time belong together. Milliseconds. */
const togetherMs = 100

export const lineWith = (witnesses: readonly string[]): NetworkLine => ({
  witnesses,
  tries: new Map(),
  hasFailed: false,
})

/** The line after one try of a witness. A try that began before the last one known is late news. */
export function afterTry(line: NetworkLine, witness: string, at: number, isUp: boolean): NetworkLine {
  const next = afterResult(line, witness, at, isUp)
  return isUp ? next : withPastIsolation(next, at)
}

/** All witnesses may have been silent at once, although one has answered a later try by the time at which that is known. */
function withPastIsolation(line: NetworkLine, from: number): NetworkLine {
  const all = line.witnesses.map((one) => line.tries.get(one))
  const until = Math.min(...all.flatMap((one) => (one?.isUp && one.at > from ? one.at : [])))
  const isKnown = line.isolatedSince !== undefined || (line.wasIsolated?.until ?? from) >= until
  if (isKnown || until === Number.POSITIVE_INFINITY) return line
  const isOneUp = all.some((one) => Math.abs((one?.silentAt ?? Number.NEGATIVE_INFINITY) - from) > togetherMs)
  return isOneUp ? line : { ...line, wasIsolated: { from, until } }
}

function afterResult(line: NetworkLine, witness: string, at: number, isUp: boolean): NetworkLine {
  const before = line.tries.get(witness)
  const silentAt = isUp ? before?.silentAt : Math.max(at, before?.silentAt ?? at)
  if (before && at < before.at) return { ...line, tries: new Map([...line.tries, [witness, { ...before, silentAt }]]) }
  const downSince = isUp ? undefined : (before?.downSince ?? at)
  const tries = new Map<string, Try>([...line.tries, [witness, { at, isUp, downSince, silentAt }]])
  const all = line.witnesses.map((one) => tries.get(one))
  const isIsolated = line.witnesses.length > 0 && all.every((one) => one !== undefined && !one.isUp)
  if (!isIsolated) {
    const { isolatedSince: from, wasIsolated } = line
    const latest = from === undefined ? wasIsolated : { from, until: at }
    return { ...line, tries, isolatedSince: undefined, hasFailed: false, wasIsolated: latest }
  }
  // A witness that has been down by itself for long does not make the isolation older.
  const since = Math.max(...all.map((one) => one?.downSince ?? at))
  return { ...line, tries, isolatedSince: line.isolatedSince ?? since }
}

/** The line after all instants have moved. */
export function shiftedLine(line: NetworkLine, move: (at: number) => number): NetworkLine {
  const { tries, isolatedSince, wasIsolated } = line
  return {
    ...line,
    tries: new Map(
      [...tries].map(([witness, { at, isUp, downSince, silentAt }]) => [
        witness,
        {
          at: move(at),
          isUp,
          downSince: downSince === undefined ? undefined : move(downSince),
          silentAt: silentAt === undefined ? undefined : move(silentAt),
        },
      ]),
    ),
    isolatedSince: isolatedSince === undefined ? undefined : move(isolatedSince),
    wasIsolated: wasIsolated && { from: move(wasIsolated.from), until: move(wasIsolated.until) },
  }
}

/** Whether a witness has answered a try that began after this time. Without witnesses nothing can prove the line. */
export const isProvedSince = ({ witnesses, tries }: NetworkLine, since: number): boolean =>
  witnesses.length === 0 || [...tries.values()].some(({ at, isUp }) => isUp && at >= since)

/** Whether the line is away, or was while a run went on that is reported late. */
export const isBlind = (
  { isolatedSince, wasIsolated }: NetworkLine,
  { beganAt, endedAt }: { readonly beganAt: number; readonly endedAt: number },
): boolean =>
  isolatedSince !== undefined ||
  (wasIsolated !== undefined && beganAt < wasIsolated.until && endedAt > wasIsolated.from)

/** Whether the line has just been away for so long that this is an incident of its own. */
export const failsNow = ({ isolatedSince, hasFailed }: NetworkLine, now: number): boolean =>
  isolatedSince !== undefined && !hasFailed && now - isolatedSince >= isolatedFailsMs
