import { isolatedFailsMs } from './policy.ts'

/**
 * The witnesses: peers that show whether this machine reaches anything. `tries` has the last try of each that was tried,
 * with its beginning.
 */
export type NetworkLine = {
  readonly witnesses: readonly string[]
  readonly tries: ReadonlyMap<string, { readonly at: number; readonly isUp: boolean }>
  /** Since when no witness answers: the beginning of the first try in vain. Undefined on line. */
  readonly isolatedSince?: number | undefined
  /** Whether the isolation has lasted so long that it is an incident. */
  readonly hasFailed: boolean
}

export const lineWith = (witnesses: readonly string[]): NetworkLine => ({
  witnesses,
  tries: new Map(),
  hasFailed: false,
})

/** The line after one try of a witness. A try that began before the last one known is late news. */
export function afterTry(line: NetworkLine, witness: string, at: number, isUp: boolean): NetworkLine {
  if (at < (line.tries.get(witness)?.at ?? Number.NEGATIVE_INFINITY)) return line
  const tries = new Map([...line.tries, [witness, { at, isUp }]])
  const all = line.witnesses.map((one) => tries.get(one))
  const isIsolated = line.witnesses.length > 0 && all.every((one) => one !== undefined && !one.isUp)
  if (!isIsolated) return { ...line, tries, isolatedSince: undefined, hasFailed: false }
  const first = all.reduce((least, one) => Math.min(least, one?.at ?? least), Number.POSITIVE_INFINITY)
  return { ...line, tries, isolatedSince: line.isolatedSince ?? first }
}

/** Whether a witness has answered a try that began after this time. Without witnesses nothing can prove the line. */
export const isProvedSince = ({ witnesses, tries }: NetworkLine, since: number): boolean =>
  witnesses.length === 0 || [...tries.values()].some(({ at, isUp }) => isUp && at >= since)

/** Whether the line has just been away for so long that this is an incident of its own. */
export const failsNow = ({ isolatedSince, hasFailed }: NetworkLine, now: number): boolean =>
  isolatedSince !== undefined && !hasFailed && now - isolatedSince >= isolatedFailsMs
