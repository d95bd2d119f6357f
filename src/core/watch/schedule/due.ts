import { type ExecutionMode, resultLifeMs } from '../../protocol/index.ts'

/**
 * When a monitor is due, as pure functions of its row. Times are milliseconds on one time line that never jumps: the
 * monotonic clock, with an origin that is set once, at the start.
 */

/** From the shallowest to the deepest. A run includes what shallower ones do. */
export const depths: readonly ExecutionMode[] = ['Basic', 'Standard', 'Advanced']

const rank: Readonly<Record<ExecutionMode, number>> = { Basic: 0, Standard: 1, Advanced: 2 }
/** Whether a run at `depth` does all that one at `other` does. */
export const covers = (depth: ExecutionMode, other: ExecutionMode): boolean => rank[depth] >= rank[other]

/** Milliseconds from one due time to the next, for each depth that the schedule runs by itself. */
export type Intervals = { readonly [D in ExecutionMode]?: number | undefined }

/** Something that the schedule runs. */
export type Scheduled = {
  /** Unique in a schedule, and the same after a restart. */
  readonly key: string
  readonly every: Intervals
}

/** A run that the schedule asks for. It takes the place of an order for the same monitor that has not begun. */
export type Order = {
  readonly key: string
  readonly depth: ExecutionMode
  /** The earliest due time that it serves. */
  readonly dueAt: number
  /** From when on it could have begun: when it was due, or when the run before it ended. */
  readonly readyAt: number
  /** Whether it repeats, once, a sign-in that was refused. */
  readonly repeatsRefused?: true
}

/** A request for a run besides those that are due: one at this depth, or a deeper one, that begins at this time or later. */
export type RunRequest = { readonly depth: ExecutionMode; readonly at: number; readonly repeatsRefused: boolean }

/** The state of one monitor in the schedule. */
export type MonitorRow = Scheduled & {
  /** When it is due for the first time, at all of its depths. */
  readonly firstAt: number
  /** The beginning of the latest run that did what a run at this depth does; earlier for one that serves no later due time. */
  readonly covered: { readonly [D in ExecutionMode]?: number | undefined }
  readonly order: (Order & { readonly beganAt: number | undefined }) | undefined
  /** How many runs of callers are in progress, by depth. */
  readonly callers: { readonly [D in ExecutionMode]?: number | undefined }
  /** When the latest run ended. */
  readonly freeAt: number
  /** A run to repeat, because its verdict does not count. */
  readonly again: { readonly depth: ExecutionMode; readonly at: number } | undefined
  /** Runs that are needed besides. */
  readonly requests: readonly RunRequest[]
}

/** FNV-1a with a final mix: the same on every node and after every restart, and well spread for similar texts. */
export function hash(...parts: readonly string[]): number {
  let value = 0x811c9dc5
  for (const part of parts) {
    for (let at = 0; at < part.length; at += 1) value = Math.imul(value ^ part.charCodeAt(at), 0x01000193)
    value = Math.imul(value ^ 0x1f, 0x01000193)
  }
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}

const shareOf = (ms: number, ...parts: readonly string[]): number => Math.floor((hash(...parts) / 2 ** 32) * ms)

/** The due times of a monitor at a depth are its phase plus multiples of the interval. */
export const phaseOf = (key: string, depth: ExecutionMode, every: number): number => shareOf(every, key, depth)

/** The longest time over which first runs are spread. */
export const spreadMs = 30_000

/** A monitor that nothing has run yet. `now`: when the schedule begins with it. */
export function watchFrom({ key, every }: Scheduled, now: number, spread = spreadMs): MonitorRow {
  const shortest = Math.min(spread, ...depths.flatMap((depth) => every[depth] ?? []))
  // Not always as long after a start: of a process that is killed every few seconds, the same monitors would never run.
  const untilShare = (shareOf(shortest, key, 'first') - now) % shortest
  const firstAt = now + (untilShare < 0 ? untilShare + shortest : untilShare)
  return {
    key,
    every,
    firstAt,
    covered: {},
    order: undefined,
    callers: {},
    freeAt: now,
    again: undefined,
    requests: [],
  }
}

/** A run that began at most this long before a due time serves it. More would let the gaps between runs grow. */
export const earlyMs = (every: number): number => Math.min(5_000, every / 4)

/** When a depth is due next, whatever is in progress. Infinity for a depth that the schedule does not run. */
export function dueAt({ key, every, firstAt, covered }: MonitorRow, depth: ExecutionMode): number {
  const interval = every[depth]
  if (interval === undefined) return Number.POSITIVE_INFINITY
  const last = covered[depth]
  if (last === undefined) return firstAt
  const phase = phaseOf(key, depth, interval)
  const served = last + earlyMs(interval)
  return phase + (Math.floor((served - phase) / interval) + 1) * interval
}

/** Whether a caller's run that does all of this depth is in progress: it is not doubled. */
const isInProgress = ({ callers }: MonitorRow, depth: ExecutionMode): boolean =>
  depths.some((other) => covers(other, depth) && (callers[other] ?? 0) > 0)

/** When a depth may begin next. */
function readyAt(row: MonitorRow, depth: ExecutionMode): number {
  if (isInProgress(row, depth)) return Number.POSITIVE_INFINITY
  const { again, requests } = row
  const besides = requests.reduce(
    (least, one) => (one.depth === depth ? Math.min(least, one.at) : least),
    Number.POSITIVE_INFINITY,
  )
  return Math.min(dueAt(row, depth), again?.depth === depth ? again.at : Number.POSITIVE_INFINITY, besides)
}

/** At most so many runs are needed besides: more would be a defect. */
const maxRequests = 32

/** The row once a run is needed besides those that are due. One that is waiting already, and begins late enough, serves. */
export function withRequest(row: MonitorRow, one: RunRequest, now: number): MonitorRow {
  const serves = ({ depth, at, repeatsRefused }: RunRequest): boolean =>
    covers(depth, one.depth) &&
    (at === one.at || (at <= now && one.at <= now)) &&
    (repeatsRefused || !one.repeatsRefused)
  if (row.requests.length >= maxRequests || row.requests.some(serves)) return row
  return { ...row, requests: [...row.requests, one] }
}

/**
 * The depths that an order may be for. While one is waiting, a deeper one may take its place: otherwise the runs that are
 * last in the order of the machine would keep the first ones of their monitor waiting.
 */
function open({ order }: MonitorRow): readonly ExecutionMode[] {
  if (!order) return depths
  return order.beganAt === undefined ? depths.filter((depth) => !covers(order.depth, depth)) : []
}

const soonestOf = (row: MonitorRow, among: readonly ExecutionMode[]): number =>
  among.reduce((soonest, depth) => Math.min(soonest, readyAt(row, depth)), Number.POSITIVE_INFINITY)

/** When the schedule has to look at a row next. Infinity while nothing more can be due. */
export const nextAt = (row: MonitorRow): number => soonestOf(row, open(row))

/**
 * The run that is due: the deepest depth that is, which serves the others. It takes the place of an order that is
 * waiting. Undefined if none is due.
 */
export function dueOrder(row: MonitorRow, now: number): Order | undefined {
  const { key, order, freeAt, requests } = row
  const due = open(row).filter((depth) => readyAt(row, depth) <= now)
  const depth = due.at(-1)
  if (depth === undefined) return undefined
  const earliest = soonestOf(row, due)
  const ready = Math.max(earliest, freeAt)
  const repeats = requests.some((one) => one.repeatsRefused && one.at <= now && covers(depth, one.depth))
  return {
    key,
    depth,
    dueAt: Math.min(earliest, order?.dueAt ?? earliest),
    readyAt: Math.min(ready, order?.readyAt ?? ready),
    ...(repeats ? { repeatsRefused: true } : {}),
  }
}

/** The row once its order is with those who run it. */
export const orderFor = (row: MonitorRow, order: Order): MonitorRow => ({
  ...row,
  order: { ...order, beganAt: undefined },
})

/**
 * Whether a caller's run serves no due time that follows: where each result is to last until the next one, one that is early
 * expires as early, so that callers would need a run of their own in each interval from then on.
 */
const servesNoLater = (by: Asker, every: number, depth: ExecutionMode): boolean =>
  by === 'caller' && every <= resultLifeMs[depth]

/** The row once a run at a depth has begun: it serves what it covers. */
function serve(row: MonitorRow, by: Asker, depth: ExecutionMode, at: number, repeats = false): MonitorRow {
  const covered = { ...row.covered }
  for (const one of depths) {
    if (!covers(depth, one)) continue
    const every = row.every[one] ?? 0
    const from = servesNoLater(by, every, one) ? at - earlyMs(every) : at
    covered[one] = Math.max(from, covered[one] ?? from)
  }
  const again = row.again && covers(depth, row.again.depth) ? undefined : row.again
  if (row.requests.length === 0) return { ...row, covered, again }
  const isServed = (one: RunRequest): boolean =>
    one.at <= at && covers(depth, one.depth) && (repeats || !one.repeatsRefused)
  return { ...row, covered, again, requests: row.requests.filter((one) => !isServed(one)) }
}

/** Who asked for a run. */
export type Asker = 'schedule' | 'caller'

/** A run began: it has what it needs, and sends its first byte now. */
export function begin(row: MonitorRow, by: Asker, depth: ExecutionMode, now: number): MonitorRow {
  if (by === 'caller') {
    return { ...serve(row, by, depth, now), callers: { ...row.callers, [depth]: (row.callers[depth] ?? 0) + 1 } }
  }
  if (!row.order || row.order.beganAt !== undefined) return row
  return { ...serve(row, by, row.order.depth, now, row.order.repeatsRefused), order: { ...row.order, beganAt: now } }
}

/**
 * A run ended. `counts`: whether its verdict does; if not, the run is repeated at once. One that ended without having
 * begun, because there was nothing to send, has begun now.
 */
export function end(row: MonitorRow, by: Asker, depth: ExecutionMode, now: number, counts: boolean): MonitorRow {
  const ended = by === 'caller' ? callerLeft(row, depth) : withoutOrder(row, now)
  return { ...ended, freeAt: now, again: counts ? ended.again : repeated(row, depth, now) }
}

/** The run that repeats one: a caller's may be deeper than what the schedule runs. */
function repeated({ every, again }: MonitorRow, depth: ExecutionMode, at: number): MonitorRow['again'] {
  const own = depths.findLast((one) => covers(depth, one) && every[one] !== undefined)
  if (own === undefined) return again
  return { depth: again && covers(again.depth, own) ? again.depth : own, at }
}

function callerLeft(row: MonitorRow, depth: ExecutionMode): MonitorRow {
  const left = (row.callers[depth] ?? 0) - 1
  return { ...row, callers: { ...row.callers, [depth]: Math.max(0, left) } }
}

function withoutOrder(row: MonitorRow, now: number): MonitorRow {
  const { order } = row
  if (!order) return row
  const served = order.beganAt === undefined ? serve(row, 'schedule', order.depth, now, order.repeatsRefused) : row
  return { ...served, order: undefined }
}
