import { uptime } from 'node:os'
import { performance } from 'node:perf_hooks'
import type { Data, KeeperLog } from '../store/index.ts'
import { type Clocks, ProcessLine, type Shift } from '../watch/schedule/index.ts'
import type { Part } from './part.ts'

/** How often the clocks are compared. Milliseconds. */
const lookEveryMs = 1_000

/** The time of this process, one for all parts. */
export type ProcessTime = Pick<ProcessLine, 'now' | 'steady' | 'steadyAt' | 'civilAt'> & {
  /** Calls this whenever the line that people read shifts, in the order in which it was given. */
  readonly onShift: (shifted: (shift: Shift) => void) => void
  readonly part: Part & { readonly firstUse: (store: Pick<Data, 'clock'>) => Promise<void> }
}

const clocksOfMachine: Clocks = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  uptime: () => uptime() * 1_000,
}

/**
 * The time that messages, rows and pages show. It follows the clock of a PostgreSQL store once that is known, and otherwise the
 * wall clock. Only `svc serve` compares clocks: a command is over before it matters.
 */
export function processTime({
  log = () => {},
  clocks = clocksOfMachine,
}: {
  readonly log?: KeeperLog | undefined
  readonly clocks?: Clocks | undefined
} = {}): ProcessTime {
  const line = new ProcessLine(clocks)
  const listeners: ((shift: Shift) => void)[] = []
  let clock = 'the clock of this machine'
  let timer: NodeJS.Timeout | undefined
  const look = (): void => {
    const shift = line.look()
    if (!shift) return
    for (const shifted of listeners) shifted(shift)
    const seconds = Math.round(Math.abs(shift.ms) / 1_000)
    const way = shift.ms > 0 ? 'forward' : 'back'
    log({ level: 'warn', msg: `the times of svc shift ${way} by ${seconds} s: they follow ${clock}` })
  }
  return {
    now: line.now,
    steady: line.steady,
    steadyAt: line.steadyAt,
    civilAt: line.civilAt,
    onShift: (shifted) => void listeners.push(shifted),
    part: {
      start: async () => {
        timer ??= setInterval(look, lookEveryMs)
        timer.unref()
      },
      firstUse: async (store) => {
        if (!store.clock.isRemote) return
        clock = 'the clock of the store'
        line.follow(store.clock.now)
        look()
      },
      cancel: () => clearInterval(timer),
    },
  }
}
