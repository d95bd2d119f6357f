import { emptyField, Fault, type FieldFault } from '../errors.ts'
import type { ReportHeartbeat, ReportHeartbeatResponse } from '../protocol/index.ts'
import type { Admin, HeartbeatFacts } from '../service.ts'
import type { Actor, Data, HeartbeatRow } from '../store/index.ts'

/** Characters. */
const maxName = 128
const maxMessage = 1_000
const maxOutput = 4_000
/** Milliseconds: the shortest and the longest time between two heartbeats. */
const shortestInterval = 1_000
const maxInterval = 7 * 86_400_000
const maxRun = 100 * 86_400_000
const maxSkew = 10 * 365 * 86_400_000

/** Control characters, invisible ones (which make two names look alike), line breaks and lone surrogates. */
const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

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
}): Promise<ReportHeartbeatResponse> {
  const { data, request, actor, now } = call
  const name = request.Name ?? ''
  refuse(request, name)
  const skewMs = request.SentAt === undefined ? undefined : bounded(request.SentAt.getTime() - now)
  const { StartedAt, Duration, ExitCode, MaxDuration, Output } = request
  await data.heartbeats.report({
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
  })
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
    ...(name.trim() === '' ? [emptyField('Name')] : wrongText('Name', name, maxName, name !== name.trim())),
    ...wrongText('Message', Message, maxMessage),
    ...wrongText('Version', Version, maxName),
    ...(Interval !== undefined && !(Interval >= shortestInterval && Interval <= maxInterval)
      ? [fault('Interval', 'must be 1 second (PT1S) to 7 days (P7D)')]
      : []),
    ...(Backlog !== undefined && !(Number.isSafeInteger(Backlog) && Backlog >= 0)
      ? [fault('Backlog', 'must be a whole number, 0 or more')]
      : []),
    ...(DiskFreePercent !== undefined && !(DiskFreePercent >= 0 && DiskFreePercent <= 100)
      ? [fault('DiskFreePercent', 'must be 0 to 100')]
      : []),
    ...(SentAt !== undefined && Number.isNaN(SentAt.getTime()) ? [fault('SentAt', 'must be a date')] : []),
  ]
  fields.push(...wrongRun(request))
  if (fields.length === 0) return
  throw new Fault('BadRequest', fields.map(({ Message: message }) => message).join('; '), {
    errorCode: 'ValidationException',
    fields,
  })
}

/** The fields of a run: StartedAt alone is its start, and with Duration its end. */
function wrongRun({ StartedAt, Duration, ExitCode, MaxDuration, Output }: ReportHeartbeat): readonly FieldFault[] {
  const isIn = (ms: number, longest: number): boolean => ms >= 0 && ms <= longest
  return [
    ...(StartedAt !== undefined && Number.isNaN(StartedAt.getTime()) ? [fault('StartedAt', 'must be a date')] : []),
    ...(Duration !== undefined && !isIn(Duration, maxRun) ? [fault('Duration', 'must be 0 to 100 days (P100D)')] : []),
    ...(Duration !== undefined && StartedAt === undefined ? [fault('Duration', 'needs StartedAt')] : []),
    ...(ExitCode !== undefined && !(Number.isSafeInteger(ExitCode) && isIn(ExitCode, 255))
      ? [fault('ExitCode', 'must be a whole number, 0 to 255')]
      : []),
    ...(ExitCode !== undefined && Duration === undefined ? [fault('ExitCode', 'needs Duration')] : []),
    ...(MaxDuration !== undefined && !(MaxDuration >= shortestInterval && MaxDuration <= maxRun)
      ? [fault('MaxDuration', 'must be 1 second (PT1S) to 100 days (P100D)')]
      : []),
    ...(Output !== undefined && Output.length > maxOutput
      ? [fault('Output', `may have at most ${maxOutput} characters`)]
      : []),
    ...(Output !== undefined &&
    (!Output.isWellFormed() || invisible.test(Output.slice(0, maxOutput).replace(/[\n\t]/g, ' ')))
      ? [fault('Output', 'may hold no control or invisible characters but tabs and line feeds')]
      : []),
    ...(Output !== undefined && Duration === undefined ? [fault('Output', 'needs Duration')] : []),
  ]
}

function wrongText(field: string, text: string | undefined, longest: number, padded = false): readonly FieldFault[] {
  if (text === undefined) return []
  if (text.length > longest) return [fault(field, `may have at most ${longest} characters`)]
  if (!text.isWellFormed() || invisible.test(text))
    return [fault(field, 'must not contain control or invisible characters')]
  return padded ? [fault(field, 'must not begin or end with whitespace')] : []
}

const fault = (FieldName: string, what: string): FieldFault => ({
  ErrorCode: 'InvalidValue',
  FieldName,
  Message: `'${FieldName}' ${what}`,
})

/** The operations of `svc heartbeats`, on the store that `data` opens. */
export const heartbeatAdmin = (data: () => Promise<Data>): Admin['heartbeats'] => ({
  list: async () => (await (await data()).heartbeats.list()).map(facts),
  near: async (name) => await (await data()).heartbeats.near(name),
  remove: async (name, { who, correlationId, reason }) =>
    await (await data()).heartbeats.remove(name, { who, correlationId, reason }),
})

const facts = (row: HeartbeatRow): HeartbeatFacts => ({
  name: row.name,
  at: new Date(row.at),
  who: row.who,
  status: row.status,
  message: row.message,
  version: row.version,
  intervalMs: row.intervalMs,
  backlog: row.backlog,
  diskFreePercent: row.diskFreePercent,
  skewMs: row.skewMs,
  run: row.run,
})
