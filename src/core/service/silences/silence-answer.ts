import { randomBytes } from 'node:crypto'
import { Fault, invalidField } from '../../base/errors.ts'
import { mapPaced, pace } from '../../base/pace.ts'
import { didYouMean } from '../../base/suggest.ts'
import { writeMonitorOfType } from '../../checks/engine/index.ts'
import { plannedNames } from '../../checks/plan/index.ts'
import type { Config } from '../../config/index.ts'
import {
  coversNothingCode,
  type NotSilenced,
  type Request,
  ServerType,
  type SilencedMonitor,
  type SilenceEntry,
} from '../../protocol/index.ts'
import { isMonitor, patternFor } from '../../watch/notify/index.ts'
import type { Acknowledgement, HandSilence, StoredSilence } from '../../watch/silences/index.ts'
import type { Incident, StoredSubject, SubjectState } from '../../watch/states/index.ts'
import type { SilenceOperations, SilenceReader } from '../local.ts'
import type { SilenceKeeper } from './silence-keeper.ts'

/** A subject whose state is known. */
export type KnownSubject = {
  readonly subject: StoredSubject
  readonly state: Pick<SubjectState, 'level' | 'fault' | 'incident'>
}

export type SilenceWork = {
  readonly keeper: SilenceKeeper
  readonly config: () => Config
  /** All subjects, from the states or from the store. */
  readonly subjects: () => Promise<readonly KnownSubject[]>
  /** Updates the silences of receivers. Resolves with the places where that failed. */
  readonly mute: () => Promise<readonly NotSilenced[]>
}

const minMs = 1_000
const maxMs = 30 * 86_400_000
/** How many patterns one request may have. */
const maxPatterns = 100
/** Of an id: with 10,000 entries, two have the same one with a probability of 3 in 10^12. Before, there were 4 bytes. */
const idBytes = 8
/** How many characters a reason may have. */
const maxReason = 200
/** How many names of monitors an answer lists. */
const maxCovered = 1_000

export function silenceOperations({ keeper, config, subjects, mute }: SilenceWork): SilenceOperations {
  const wish = (request: { readonly For?: number | undefined; readonly Until?: Date | undefined }, usual?: number) => {
    const { now } = keeper
    return { id: randomBytes(idBytes).toString('hex'), from: now, until: untilOf(request, now, usual) }
  }
  return {
    silenceMonitors: async (request, actor) => {
      const written = [...new Set(request.Monitors ?? [])]
      if (written.length === 0) throw invalid('Monitors', 'names no monitor')
      if (written.length > maxPatterns) throw invalid('Monitors', `has more than ${maxPatterns} entries`)
      const reason = reasonIn(request)
      const all = monitorsIn(config())
      const monitors = [...new Set(written.map((one) => patternIn(one, all)))]
      const entry: HandSilence = { what: 'silence', ...wish(request), monitors, by: actor.who, reason }
      await keeper.add([entry], { ...actor, reason })
      const covered = all.filter((one) => monitors.some((pattern) => isMonitor(pattern, one)))
      return {
        Silence: ownEntry(entry),
        Covers: covered
          .slice(0, maxCovered)
          .map(({ type, monitor }): SilencedMonitor => ({ ServerType: type, MonitorName: monitor })),
        MoreMonitors: countOf(Math.max(0, covered.length - maxCovered)),
        NotSilenced: await mute(),
      }
    },
    getSilences: async (reader) => {
      await keeper.read()
      const entries = keeper.inForce
      const patternsOf = patternsFor(reader, monitorsIn(config()))
      const readable = (
        await mapPaced(entries, pace(), (entry) => readableEntry(entry, reader, patternsOf) ?? [])
      ).flat()
      let hidden = entries.length - readable.length
      const byClock = keeper.rules.clock.flatMap((windows): readonly SilenceEntry[] => {
        const window = windows.at(keeper.now)
        const { monitors: own, reason } = windows.rule
        const patterns = [...new Set(own.flatMap(patternsOf))]
        if (!window) return []
        if (patterns.length === 0) {
          hidden += 1
          return []
        }
        const { beganAt, until } = window
        return [
          {
            Source: 'Clock',
            Monitors: patterns,
            From: new Date(beganAt),
            Until: new Date(until),
            Reason: reader.readsAll ? reason : undefined,
          },
        ]
      })
      const all = [...readable, ...byClock]
      return {
        Silences: all.toSorted((one, other) => Number(one.Until) - Number(other.Until)),
        HiddenSilences: countOf(hidden),
      }
    },
    endSilence: async ({ Id: id = '' }, actor) => {
      const ended = await keeper.end(id, actor.who, actor)
      if (!ended) throw await noSuch(id, keeper)
      return { Silence: ownEntry(ended), NotSilenced: await mute() }
    },
    acknowledge: async (request, actor) => {
      const { Monitor: written = '' } = request
      const reason = reasonIn(request)
      const incidents = openIncidents(written, request, config(), await subjects())
      const entries = incidents.map(
        ({ subject, state: { fault }, incident: { id: incident, level } }): Acknowledgement => ({
          what: 'ack',
          ...wish(request, maxMs),
          subject,
          incident,
          level,
          fault,
          by: actor.who,
          reason,
        }),
      )
      await keeper.add(entries, { ...actor, reason })
      return { Silences: entries.map((entry) => ownEntry(entry)), NotSilenced: await mute() }
    },
  }
}

/** An entry for the caller who has just made or ended it. */
function ownEntry(entry: StoredSilence): SilenceEntry {
  const own = readableEntry(entry, { reads: () => true, readsAll: true }, (pattern) => [pattern])
  if (!own) throw new Error('who reads everything reads each entry')
  return own
}

/** Throws Fault BadRequest for a reason that does not fit into a line. In process, nothing else validates it. */
function reasonIn({ Reason: reason = '' }: { readonly Reason?: string | undefined }): string {
  if (reason.trim() !== '' && reason.length <= maxReason && !/\p{Cc}/u.test(reason)) return reason.trim()
  throw invalid('Reason', `must be one line of 1 to ${maxReason} characters`)
}

const countOf = (count: number): number | undefined => (count === 0 ? undefined : count)

/** When the requested silence ends. Throws Fault BadRequest unless that is between a second and 30 days ahead. */
function untilOf(
  { For: forMs, Until }: { readonly For?: number | undefined; readonly Until?: Date | undefined },
  now: number,
  usual?: number,
): number {
  if (forMs !== undefined && Until !== undefined) throw invalid('Until', 'cannot be used beside For')
  const until = Until === undefined ? now + (forMs ?? usual ?? Number.NaN) : Until.getTime()
  if (Number.isNaN(until)) throw invalid('For', 'is missing: say for how long, or until when')
  const field = Until === undefined ? 'For' : 'Until'
  if (until - now < minMs) throw invalid(field, 'is over')
  // A caller that adds 30 days to its own clock means 30 days.
  if (until - now > maxMs + 60_000) throw invalid(field, 'is more than 30 days ahead')
  return until
}

type MonitorName = { readonly type?: ServerType | undefined; readonly monitor: string }

/** Every monitor that svc.yaml configures, and those of the machine. */
const monitorsIn = ({ types }: Config): readonly MonitorName[] => [
  ...ServerType.values.flatMap((type) =>
    (types[type]?.monitors ?? []).map(({ name }): MonitorName => ({ type, monitor: name })),
  ),
  ...plannedNames.map((monitor): MonitorName => ({ monitor })),
]

const namesOf = ({ type, monitor }: MonitorName): readonly string[] =>
  type === undefined ? [monitor] : [monitor, writeMonitorOfType({ type, name: monitor })]

/** The pattern for what is written. Throws a Fault if that covers no monitor or is ambiguous. */
function patternIn(written: string, all: readonly MonitorName[]): string {
  const match = patternFor(written, all)
  if (match && 'pattern' in match) return match.pattern
  const meant = didYouMean(written, all.flatMap(namesOf))
  const message = match
    ? severalText(written, match.ambiguous)
    : `No monitor matches "${written}"${meant === undefined ? '' : `: did you mean "${meant}"?`}`
  throw new Fault('BadRequest', message, {
    errorCode: coversNothingCode,
    fields: [{ ErrorCode: coversNothingCode, FieldName: 'Monitors', Message: message }],
    hints: ['svc health -v shows the names; * matches any characters.'],
  })
}

const severalText = (written: string, names: readonly string[]): string =>
  `"${written}" names several monitors: ${names.join(', ')}`

/** The open incidents that a request means. Throws a Fault if there are none. */
function openIncidents(
  written: string,
  { MonitoringName: check, Item: item }: Request<'acknowledge'>,
  config: Config,
  subjects: readonly KnownSubject[],
): readonly (KnownSubject & { readonly incident: Incident })[] {
  const all = monitorsIn(config)
  // Somebody works on one fault. A pattern would also silence faults that nobody has seen.
  if (written.includes('*') && !all.flatMap(namesOf).includes(written))
    throw invalid('Monitor', 'must name one monitor: only svc silence takes patterns with *')
  const match = patternFor(written, [...subjects.map(({ subject }) => subject), ...all])
  if (!match) {
    const meant = didYouMean(written, all.flatMap(namesOf))
    const advice = meant === undefined ? '' : `: did you mean "${meant}"?`
    throw new Fault('NotFound', `No monitor is called "${written}"${advice}`, {
      hints: ['svc health -v shows the names.'],
    })
  }
  if ('ambiguous' in match) throw invalid('Monitor', `must name one monitor: ${severalText(written, match.ambiguous)}`)
  const own = subjects.filter(({ subject }) => isMonitor(match.pattern, subject))
  const open = own.flatMap((one) => (one.state.incident ? [{ ...one, incident: one.state.incident }] : []))
  const meant = open.filter(
    ({ subject }) => (check === undefined || subject.check === check) && (item === undefined || subject.item === item),
  )
  if (meant.length > 0) return meant
  const of = [check, item === undefined ? undefined : `(${item})`].filter((part) => part !== undefined).join(' ')
  const what = of === '' ? written : `${written}: ${of}`
  const hints =
    open.length === 0
      ? ['svc silence silences monitors whatever their state, also before a fault.']
      : open.map(({ subject: { check: name, item: one } }) => `open: ${name}${one === undefined ? '' : ` (${one})`}`)
  throw new Fault('NotFound', `No confirmed fault of ${what} is open`, { hints })
}

async function noSuch(id: string, keeper: SilenceKeeper): Promise<Fault> {
  await keeper.read()
  const meant = didYouMean(
    id,
    keeper.inForce.map((one) => one.id),
  )
  return new Fault(
    'NotFound',
    `Nothing silent has the id "${id}"${meant === undefined ? '' : `: did you mean ${meant}?`}`,
    {
      hints: ['svc silence list shows what is silenced now. Those by the clock are in the svc.yaml of svc serve.'],
    },
  )
}

/** With how many monitors the patterns of one answer are compared. What is left then counts as hidden. */
const mostComparisons = 200_000

/**
 * Gives a pattern as a reader may see it: as it is, if it names a type that the reader may read. One that matches monitors of
 * several types (`*`) becomes one for each readable type of which it matches a monitor (`Sql/*`): names that it has for others
 * stay unknown.
 */
function patternsFor({ reads, readsAll }: SilenceReader, all: readonly MonitorName[]): PatternsOf {
  if (readsAll) return (pattern) => [pattern]
  const readable = ServerType.values.filter(reads).map((type) => ({
    type,
    monitors: all.filter((one) => one.type === type),
  }))
  let left = mostComparisons
  return (pattern) => {
    const slash = pattern.indexOf('/')
    const prefix = pattern.slice(0, Math.max(0, slash)).toLowerCase()
    const ownType = ServerType.values.find((one) => one.toLowerCase() === prefix)
    if (ownType !== undefined) return reads(ownType) ? [pattern] : []
    return readable.flatMap(({ type, monitors }) => {
      const match = monitors.find((one) => left-- > 0 && isMonitor(pattern, one))
      if (!match) return []
      // What is before the slash, or what a star stands for, may be the type.
      const rests = [pattern, pattern.slice(slash + 1), pattern.slice(Math.max(0, pattern.indexOf('*')))]
      const own = rests.map((rest) => `${type}/${rest}`).find((one) => isMonitor(one, match))
      return own === undefined ? [] : [own]
    })
  }
}

type PatternsOf = (pattern: string) => readonly string[]

/** An entry as a reader may see it. Undefined: nothing of it. */
function readableEntry(entry: StoredSilence, reader: SilenceReader, patternsOf: PatternsOf): SilenceEntry | undefined {
  const { id, from, until, by, reason, ended } = entry
  const people = reader.readsAll ? { By: by, Reason: reason } : {}
  const times = { From: new Date(from), Until: new Date(ended?.at ?? until) }
  if (entry.what === 'silence') {
    const patterns = [...new Set(entry.monitors.flatMap(patternsOf))]
    return patterns.length === 0 ? undefined : { Id: id, Source: 'Hand', Monitors: patterns, ...times, ...people }
  }
  const { type, monitor, check, item } = entry.subject
  if (!reader.readsAll && (type === undefined || !reader.reads(type))) return undefined
  const name = type === undefined ? monitor : writeMonitorOfType({ type, name: monitor })
  return { Id: id, Source: 'Ack', Monitors: [name], MonitoringName: check, Item: item, ...times, ...people }
}

const invalid = (field: string, what: string): Fault => {
  const fault = invalidField(field, what)
  return new Fault('BadRequest', fault.Message, { errorCode: 'ValidationException', fields: [fault] })
}
