import { showDuration } from '../../base/format.ts'
import { ProbeError } from '../../base/probe-error.ts'
import type { Setting } from '../../base/settings/index.ts'
import type { AddressTurn } from './addresses.ts'
import { classify, withoutVerdict } from './classify.ts'
import type { CheckContext } from './kind.ts'
import { deadlineSignal } from './limits.ts'
import { fail, isSignInRefusal, notChecked, ok, type Result, reallyFailed } from './result.ts'

/** The setting `samples` of every kind that connects to a host. */
export const samplesSetting = {
  type: 'integer',
  min: 2,
  max: 10,
  doc: 'From Standard on: open so many connections at the same time, run the checks of Standard on each, and fail if one of them is not served, as by a balanced pool with a broken member; in the schedule only in Advanced, unless `every` of this monitor gives Standard an interval',
} as const satisfies Setting

export const samplesResult = { samples: 'Each of `samples` connections is served' } as const

/** Why `samples` cannot be combined with other settings, or undefined. */
export const samplesProblem = (settings: object): string | undefined => {
  const { samples, addresses } = settings as { readonly samples?: number; readonly addresses?: string }
  return samples !== undefined && addresses === 'all'
    ? 'samples tests what is behind one address, and addresses: all tests each of them: use one of the two'
    : undefined
}

/** Milliseconds that a sample may take, as long as a run in Standard. */
const sampleMs = 10_000

/** A sample after its connection was opened. */
type Sample = {
  readonly results: AsyncIterable<readonly Result[]>
  readonly close: () => Promise<void>
}

/**
 * Opens connections at the same time, keeps them open until each has its results, and returns the failure of each, or
 * undefined for one that was served. A refused sign-in ends the others, which are then left out.
 */
export async function takeSamples(
  { count, at, context }: { readonly count: number; readonly at: AddressTurn; readonly context: CheckContext },
  open: (turn: AddressTurn) => Promise<Sample>,
): Promise<readonly (Result | undefined)[]> {
  const ms = Math.min(sampleMs, context.msLeft() / 2)
  const { signal: atDeadline, clear } = deadlineSignal(at.signal, ms)
  const refused = new AbortController()
  const signal = AbortSignal.any([atDeadline, refused.signal])
  const opened: Sample[] = []
  const one = async (): Promise<readonly (Result | undefined)[]> => {
    const since = context.now()
    try {
      const sample = await open({ ...at, signal, step: () => {}, commit: () => {} })
      opened.push(sample)
      for await (const results of sample.results) {
        const failure = results.find((result) => reallyFailed(result) && result.fault !== 'threshold')
        if (failure === undefined) continue
        if (isSignInRefusal(failure)) refused.abort(failure)
        return [failure]
      }
      return [undefined]
    } catch (error) {
      if (at.signal.aborted) throw error
      if (refused.signal.aborted) return []
      const unchecked = withoutVerdict('samples', error, { address: at.address })
      if (unchecked) return [unchecked]
      const late = new ProbeError('timeout', `${at.address} did not answer within ${showDuration(ms)}`)
      const { fault, refusal, ...text } = classify(atDeadline.aborted ? late : error, at.address, context.now() - since)
      const failure: Result = { check: 'samples', status: 'failed', ...text, fault, refusal, address: at.address }
      if (isSignInRefusal(failure)) refused.abort(failure)
      return [failure]
    }
  }
  try {
    return (await Promise.all(Array.from({ length: count }, one))).flat()
  } finally {
    clear()
    await Promise.allSettled(opened.map((sample) => sample.close()))
  }
}

/** The result of all connections of a run. `first` are the results of Standard on the first of them. */
export function oneOfSamples(
  address: string,
  first: readonly Result[],
  others: readonly (Result | undefined)[],
): Result<'samples'> {
  const starved = others.find((failure) => failure?.notChecked !== undefined)
  if (starved?.notChecked !== undefined) return notChecked('samples', starved.notChecked, starved.message, { address })
  const ofFirst = first.find((result) => reallyFailed(result) && result.fault !== 'threshold')
  const failures = [ofFirst, ...others].filter((failure) => failure !== undefined)
  const count = others.length + 1
  const [failure] = failures
  if (failure === undefined) return ok('samples', `${address} served ${count} of ${count} connections`, { address })
  const isSilent = failures.every(({ fault }) => fault === 'timeout')
  const message = `${failures.length} of ${count} ${isSilent ? 'silent' : 'refused'}: ${failure.message}`
  const messages = [...new Set(failures.map(({ message }) => message))]
  const details = [...messages.filter((text) => text !== failure.message), ...(failure.details ?? [])]
  return fail('samples', failure.fault ?? 'refused', message, { details, address })
}
