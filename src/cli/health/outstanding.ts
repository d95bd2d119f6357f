import { sanitizeLine } from '../../core/base/sanitize.ts'
import type { ServerType } from '../../core/protocol/index.ts'
import type { MonitorEnd, RunInProgress } from '../../core/protocol/service/service.ts'
import type { Io } from '../io/io.ts'
import type { ProgressText } from '../io/terminal.ts'
import { cut, width } from '../render/width.ts'

/** Milliseconds of a check before a terminal names what is out: at first, nearly everything is. */
const delayMs = 1_000

/** The monitors or types that a check waits for. */
export type Waiting = {
  /** The names of monitors or, if a server runs them, of types that have not ended, in their order. */
  readonly names: readonly string[]
  readonly total: number
  /** The unit of `total`, if it counts something other than monitors. */
  readonly unit?: 'types' | 'servers'
  /** How many of those that have ended failed. */
  readonly failed?: number
}

/** Whether a monitor counts as failed before the verdict: a check that was cut short or skipped is no failure. */
const isFailure = ({ results }: MonitorEnd): boolean =>
  results.some(({ status, notChecked }) => status === 'failed' && notChecked === undefined)

type OutstandingIo = {
  readonly clock: Pick<Io['clock'], 'elapsed'>
  readonly stderr: Pick<Io['stderr'], 'unicode'>
}

/** Follows one check after another, for the progress on a terminal. */
export class Outstanding {
  readonly #io: OutstandingIo
  #began = 0
  #types: readonly ServerType[] = []
  #ended = new Set<ServerType>()
  #runs = new Map<ServerType, RunInProgress>()
  #failed = new Set<string>()

  constructor(io: OutstandingIo) {
    this.#io = io
  }

  /** For progress: `before` and what the check waits for, or `otherwise` while `waiting` is undefined. */
  textOf(otherwise: string, before = ''): ProgressText {
    const more = this.#io.stderr.unicode ? '…' : '...'
    return (columns) => {
      const { waiting } = this
      return waiting ? before + waitingText(waiting, columns - before.length, more) : otherwise
    }
  }

  begin(types: readonly ServerType[]): void {
    this.#began = this.#io.clock.elapsed()
    this.#types = types
    this.#ended = new Set()
    this.#runs = new Map()
    this.#failed = new Set()
  }

  run(type: ServerType, run: RunInProgress): void {
    this.#runs.set(type, run)
  }

  report(type: ServerType, report: MonitorEnd): void {
    if (isFailure(report)) this.#failed.add(report.host ? '' : `${type} ${report.name}`)
  }

  end(type: ServerType): void {
    this.#ended.add(type)
  }

  /** Undefined within the first second, and if nothing is out or nothing is known of it. */
  get waiting(): Waiting | undefined {
    if (this.#types.length === 0 || this.#io.clock.elapsed() - this.#began < delayMs) return undefined
    const waiting = this.#runs.size > 0 ? this.#monitors() : this.#answers()
    return waiting.names.length === 0 ? undefined : waiting
  }

  /** The host counts once, as in the verdict: every type repeats it. */
  #monitors(): Waiting {
    const runs = [...this.#runs.values()]
    const all = runs.flatMap(({ monitors }) => monitors)
    const pending = runs.flatMap((run) => run.monitors.filter((monitor) => run.pending.has(monitor)))
    const host = pending.find((monitor) => monitor.host)
    const others = pending.filter((monitor) => !monitor.host)
    return {
      names: [...(host ? [host] : []), ...others].map(({ name }) => name),
      total: all.filter((monitor) => !monitor.host).length + (all.some((monitor) => monitor.host) ? 1 : 0),
      ...(this.#failed.size === 0 ? {} : { failed: this.#failed.size }),
    }
  }

  #answers(): Waiting {
    if (this.#types.length === 1) return { names: [], total: 1 }
    return { names: this.#types.filter((type) => !this.#ended.has(type)), total: this.#types.length, unit: 'types' }
  }
}

/** The names that one line of progress has at most. */
const maxNames = 3

/** The columns of a name beside the count. With fewer, the count is left out. */
const leastName = 12

/** `waiting for redis queue (7 of 8 done, 1 failed)` in at most `columns`, with as many names as fit. */
export function waitingText({ names, total, unit, failed }: Waiting, columns: number, more: string): string {
  const failures = failed === undefined ? '' : `, ${failed} failed`
  const done = ` (${total - names.length} of ${total}${unit === undefined ? '' : ` ${unit}`} done${failures})`
  const available = columns - width(`waiting for ${done}`)
  const first = names.slice(0, maxNames).map(sanitizeLine)
  for (let count = first.length; count > 1; count -= 1) {
    const list = first.slice(0, count).join(', ') + rest(names.length - count)
    if (width(list) <= available) return `waiting for ${list}${done}`
  }
  const [name = ''] = first
  const others = rest(names.length - 1)
  const left = available - width(others)
  // The name says more than the count.
  if (left < Math.min(leastName, width(name))) return cut(`waiting for ${name}`, columns, more)
  return `waiting for ${cut(name, left, more)}${others}${done}`
}

const rest = (count: number): string => (count === 0 ? '' : ` and ${count} more`)
