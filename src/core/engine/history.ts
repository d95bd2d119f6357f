import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import type { CheckContext, Reading } from './check-context.ts'
import type { AnyKind } from './kind.ts'
import { deadlineSignal, orAborted } from './limits.ts'
import type { Result } from './result.ts'

/** What is kept from run to run. `at` is milliseconds since 1970. */
export type History = {
  readonly keep: (
    reading: Reading & { readonly series: string; readonly everyMs: number },
  ) => Promise<readonly Reading[]>
  /** Since when each of the keys holds; the others of the series are forgotten, unless `hold`. */
  readonly passing: (state: {
    readonly series: string
    readonly at: number
    readonly keys: readonly string[]
    readonly hold: boolean
  }) => Promise<ReadonlyMap<string, number>>
}

/** What is remembered, by whom, and when it is now. */
export type Memory = Pick<CheckContext, 'date'> & {
  /** Keeps what runs saw from run to run; absent: nothing is kept. Rejects when the store is in trouble. */
  readonly history?: History | undefined
  /** The name of this machine: several may share what is kept. Its host name when left out. */
  readonly machine?: string | undefined
}

type Remembered = { readonly kind: AnyKind; readonly settings: unknown }

/** The kind and all that its settings say. Names are unique in one type only; a Secret shows itself nowhere. */
export const wholeName = ({ kind, settings }: Remembered): string => `${kind.name} ${JSON.stringify(settings)}`

/** What a history may cost a run. Milliseconds. */
const historyMs = 1_000

/** A series of a monitor on this machine: another one with the same settings may see something else. */
function seriesOf(monitor: Remembered, { machine = hostname() }: Memory, name: string): string {
  const whole = createHash('sha256').update(wholeName(monitor)).digest('hex').slice(0, 32)
  return `${monitor.kind.name} ${whole} ${machine} ${name}`
}

/** A trouble of the store is told by who looks at the store; here it is a history that is not there. */
async function remembered<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const deadline = deadlineSignal(signal, historyMs)
  try {
    return await orAborted(work, deadline.signal)
  } catch {
    return undefined
  } finally {
    deadline.clear()
  }
}

/** What a monitor may keep of its own. */
export const historyOf =
  (monitor: Remembered, context: Memory, signal: AbortSignal): CheckContext['history'] =>
  async (name, value, everyMs) => {
    const { history, date } = context
    const series = seriesOf(monitor, context, name)
    return history && (await remembered(history.keep({ series, value, at: date().getTime(), everyMs }), signal))
  }

export const loadHoldDuration = () => import('./hold-duration.ts')

/** Findings of a monitor with `for`: see sustained.ts, which is loaded where somebody says so. */
export async function lasting(
  results: readonly Result[],
  forMs: number,
  monitor: Remembered,
  context: Memory,
  signal: AbortSignal,
): Promise<readonly Result[]> {
  const { sustained } = await loadHoldDuration()
  const { history } = context
  const at = context.date().getTime()
  const series = seriesOf(monitor, context, 'for')
  return await sustained(
    results,
    { forMs, at },
    async (keys, hold) => history && (await remembered(history.passing({ series, at, keys, hold }), signal)),
  )
}
