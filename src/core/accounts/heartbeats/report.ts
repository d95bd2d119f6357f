import { emptyField, Fault, type FieldFault, invalidField } from '../../base/errors.ts'
import { isLonger, type Range, ReportHeartbeat, type ReportHeartbeatResponse, type Text } from '../../protocol/index.ts'
import type { Actor, Data } from '../../store/index.ts'

/** New names that a caller may send at once. */
const burst = 100
/** Milliseconds until a caller regains one: all 10,000 names of the store last 16 hours. */
const regainMs = 6_000
/** Callers to remember. */
const maxCallers = 1_000

type Bucket = { readonly left: number; readonly atMs: number }

/**
 * Limits how fast callers add names of heartbeats, so that one lost key does not fill the store. Each process counts for
 * itself. Times are milliseconds of a monotonic clock.
 */
export class NewNames {
  readonly #buckets = new Map<string, Bucket>()

  /**
   * The admission of one report, which the store asks for if the name is new; it counts once, however often the
   * transaction is tried. Throws Fault TooManyRequests when the caller has none left.
   */
  admission(caller: string, nowMs: number): () => void {
    let isCounted = false
    return () => {
      if (isCounted) return
      this.#take(caller, nowMs)
      isCounted = true
    }
  }

  #take(caller: string, nowMs: number): void {
    const { left, atMs } = this.#buckets.get(caller) ?? { left: burst, atMs: nowMs }
    const now = Math.min(burst, left + (nowMs - atMs) / regainMs)
    if (now < 1) {
      throw new Fault('TooManyRequests', 'Too many new names of heartbeats from this caller', {
        retryAfter: Math.ceil(((1 - now) * regainMs) / 1_000),
      })
    }
    // The caller moves to the end, so that the one that has been quiet for longest is forgotten first.
    this.#buckets.delete(caller)
    this.#buckets.set(caller, { left: now - 1, atMs: nowMs })
    const [oldest] = this.#buckets.keys()
    if (this.#buckets.size > maxCallers && oldest !== undefined) this.#buckets.delete(oldest)
  }
}

const maxSkew = 10 * 365 * 86_400_000

const { fields: declared } = ReportHeartbeat

/**
 * Stores the heartbeat of an authorized caller. Its time is `now`, in milliseconds since 1970 by our clock; the agent's
 * clock only determines the skew. Throws one Fault that names every invalid field, and Conflict when the limit of names
 * is reached.
 */
export async function report(call: {
  readonly data: Data
  readonly request: ReportHeartbeat
  readonly actor: Actor
  readonly now: number
  /** Asked if the name is new. Throws a Fault to refuse it. */
  readonly admit?: (() => void) | undefined
}): Promise<ReportHeartbeatResponse> {
  const { data, request, actor, now, admit } = call
  const name = request.Name ?? ''
  refuse(request, name)
  const skewMs = request.SentAt === undefined ? undefined : bounded(request.SentAt.getTime() - now)
  const { StartedAt, Duration, ExitCode, MaxDuration, Output } = request
  const heartbeat = {
    name,
    at: now,
    who: actor.who,
    status: request.Status ?? (ExitCode === undefined || ExitCode === 0 ? 'Ok' : 'Fail'),
    message: request.Message,
    version: request.Version,
    intervalMs: request.Interval === undefined ? undefined : Math.round(request.Interval),
    backlog: request.Backlog,
    diskFreePercent: request.DiskFreePercent,
    skewMs,
    run: StartedAt && {
      id: StartedAt.getTime(),
      durationMs: Duration === undefined ? undefined : Math.round(Duration),
      exitCode: ExitCode,
      maxMs: MaxDuration === undefined ? undefined : Math.round(MaxDuration),
      output: Output === '' ? undefined : Output,
    },
  } as const
  await data.heartbeats.report(heartbeat, admit)
  return {
    Name: name,
    ReceivedAt: new Date(now),
    ...(skewMs === undefined ? {} : { ClockSkew: skewMs }),
  }
}

const bounded = (ms: number): number => Math.max(-maxSkew, Math.min(maxSkew, Math.round(ms)))

function refuse(request: ReportHeartbeat, name: string): void {
  const { Message, Version, Interval, Backlog, DiskFreePercent, SentAt } = request
  const fields = [
    ...(name.trim() === '' ? [emptyField('Name')] : textProblems('Name', name)),
    ...textProblems('Message', Message),
    ...textProblems('Version', Version),
    ...(Interval !== undefined && !isIn(Interval, declared.Interval)
      ? [invalidField('Interval', 'must be 1 second (PT1S) to 7 days (P7D)')]
      : []),
    ...(Backlog !== undefined && !(Number.isSafeInteger(Backlog) && isIn(Backlog, declared.Backlog))
      ? [invalidField('Backlog', 'must be a whole number, 0 or more')]
      : []),
    ...(DiskFreePercent !== undefined && !isIn(DiskFreePercent, declared.DiskFreePercent)
      ? [invalidField('DiskFreePercent', 'must be 0 to 100')]
      : []),
    ...(SentAt !== undefined && Number.isNaN(SentAt.getTime()) ? [invalidField('SentAt', 'must be a date')] : []),
  ]
  fields.push(...runProblems(request))
  if (fields.length === 0) return
  throw new Fault('BadRequest', fields.map(({ Message: message }) => message).join('; '), {
    errorCode: 'ValidationException',
    fields,
  })
}

/** The fields of a run: StartedAt alone is its start, and with Duration its end. */
function runProblems({ StartedAt, Duration, ExitCode, MaxDuration, Output }: ReportHeartbeat): readonly FieldFault[] {
  return [
    ...(StartedAt !== undefined && Number.isNaN(StartedAt.getTime())
      ? [invalidField('StartedAt', 'must be a date')]
      : []),
    ...(Duration !== undefined && !isIn(Duration, declared.Duration)
      ? [invalidField('Duration', 'must be 0 to 100 days (P100D)')]
      : []),
    ...(Duration !== undefined && StartedAt === undefined ? [invalidField('Duration', 'needs StartedAt')] : []),
    ...(ExitCode !== undefined && !(Number.isSafeInteger(ExitCode) && isIn(ExitCode, declared.ExitCode))
      ? [invalidField('ExitCode', 'must be a whole number, 0 to 255')]
      : []),
    ...(ExitCode !== undefined && Duration === undefined ? [invalidField('ExitCode', 'needs Duration')] : []),
    ...(MaxDuration !== undefined && !isIn(MaxDuration, declared.MaxDuration)
      ? [invalidField('MaxDuration', 'must be 1 second (PT1S) to 100 days (P100D)')]
      : []),
    ...textProblems('Output', Output, 'may hold no control or invisible characters but tabs and line feeds'),
    ...(Output !== undefined && Duration === undefined ? [invalidField('Output', 'needs Duration')] : []),
  ]
}

const isIn = (value: number, { min = -Infinity, max = Infinity }: Range): boolean => value >= min && value <= max

type TextField = 'Name' | 'Message' | 'Version' | 'Output'

const matches = ({ pattern }: Text, text: string): boolean => text.isWellFormed() && (pattern?.().test(text) ?? true)

function textProblems(
  field: TextField,
  text: string | undefined,
  hidden = 'must not contain control or invisible characters',
): readonly FieldFault[] {
  if (text === undefined) return []
  const { max = 0 } = declared[field]
  if (isLonger(text, max)) return [invalidField(field, `may have at most ${max} characters`)]
  if (matches(declared[field], text)) return []
  // Only the pattern of a name refuses more than the characters of a message.
  const padded = matches(declared.Message, text)
  return [invalidField(field, padded ? 'must not begin or end with whitespace' : hidden)]
}
