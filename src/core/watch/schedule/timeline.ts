/**
 * Milliseconds of clocks: that of the wall, which people set; one that only ever moves on; and the time since the machine
 * started, which unlike that one includes the time that the machine slept. Without it, no sleep is known.
 */
export type Clocks = {
  readonly wall: () => number
  readonly monotonic: () => number
  readonly uptime?: (() => number) | undefined
}

/**
 * The time line of a schedule: milliseconds since 1970 as the wall clock says at the start, and from then on by the
 * monotonic clock. So the due times are the same after a restart, and a wall clock that is set changes none of them.
 *
 * @example
 * ```ts
 * let [wall, monotonic] = [1_700_000_000_000, 5_000]
 * const now = timelineOf({ wall: () => wall, monotonic: () => monotonic })
 * wall += 3_600_000
 * monotonic += 1_000
 * now() // 1_700_000_001_000
 * ```
 */
export function timelineOf({ wall, monotonic }: Clocks): () => number {
  const origin = wall() - monotonic()
  return () => origin + monotonic()
}

/** The line that people read shifts when it is further than this from the wall clock. Milliseconds. */
export const shiftsAboveMs = 10_000

/** How far two instants of the present move when the line that people read shifts. */
export type Shift = {
  /** Milliseconds by which now moves, and by which it was wrong before: the rest is the time that the machine slept. */
  readonly ms: number
  readonly errorMs: number
  /**
   * Of an instant that svc decides by: as far from now as before. So a shift begins, ends and delays nothing.
   */
  readonly move: (at: number) => number
  /**
   * Of an instant that people have read or will read. Those from before this process stay as they are: another clock
   * showed them. So do all of them if the machine slept, because its clock was right. None lies in the future.
   */
  readonly correct: (at: number) => number
}

/** Two differences of clocks to the monotonic one, in milliseconds. */
export type ClocksApart = {
  /** Of the wall clock. */
  readonly wall: number
  /** Of the time since the machine started. */
  readonly uptime: number
}

/**
 * Whether the line that people read shifts, by how much, and how much of that was wrong before: the rest is the time that the
 * machine slept. `line`: what the line rests on; `clocks`: how they are now. Small steps and a slow drift add up, and
 * summer time changes neither clock.
 */
export function shiftDue(
  line: ClocksApart,
  clocks: ClocksApart,
): { readonly ms: number; readonly errorMs: number } | undefined {
  const ms = clocks.wall - line.wall
  if (Math.abs(ms) <= shiftsAboveMs) return undefined
  const sleptMs = Math.min(Math.max(0, clocks.uptime - line.uptime), Math.max(0, ms))
  const errorMs = ms - sleptMs
  return { ms, errorMs: Math.abs(errorMs) > Math.min(shiftsAboveMs, sleptMs) ? errorMs : 0 }
}

/** Both clocks are read in less than this, unless the process stood still in between. Milliseconds. */
const readMs = 1_000

/** The time of a process: a line that nothing shifts, and the one that people read, which follows the wall clock. */
export class ProcessLine {
  readonly #monotonic: () => number
  readonly #uptime: () => number
  #wall: () => number
  readonly #origin: number
  #rests: ClocksApart
  /** When this process started, by the line that people read. */
  #startedAt: number

  constructor(clocks: Clocks) {
    const { wall, monotonic, uptime = monotonic } = clocks
    this.#wall = wall
    this.#monotonic = monotonic
    this.#uptime = uptime
    const at = monotonic()
    this.#origin = wall() - at
    this.#rests = { wall: this.#origin, uptime: uptime() - at }
    this.#startedAt = this.#origin + at
  }

  /** Nothing shifts this one: for due times and for everything that lasts. */
  readonly steady = (): number => this.#origin + this.#monotonic()

  /** The time that people read, in messages, rows and pages. */
  readonly now = (): number => this.civilAt(this.steady())

  /** An instant of the steady line as people read it. */
  readonly civilAt = (steadyAt: number): number => steadyAt + this.#rests.wall - this.#origin

  /** An instant that people read, by the steady line. */
  readonly steadyAt = (at: number): number => at - this.#rests.wall + this.#origin

  /** Follows another clock: that of the store. */
  follow(wall: () => number): void {
    this.#wall = wall
  }

  /** Compares the clocks. To be called once a second. */
  look(): Shift | undefined {
    const before = this.#monotonic()
    const clocks = { wall: this.#wall() - before, uptime: this.#uptime() - before }
    if (this.#monotonic() - before > readMs) return undefined
    const due = shiftDue(this.#rests, clocks)
    if (!due) return undefined
    const startedAt = this.#startedAt
    const now = this.now()
    this.#rests = clocks
    this.#startedAt += due.errorMs
    const latest = this.now()
    return {
      ...due,
      move: (at) => at + due.ms,
      correct: (at) => Math.min(at >= startedAt && at <= now ? at + due.errorMs : at, latest),
    }
  }
}
