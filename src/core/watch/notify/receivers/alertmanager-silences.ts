import { sanitize } from '../../../base/net/text.ts'
import type { Delivery, Mute, MuteFailure } from '../receiver.ts'
import { type Matcher, matchersFor, serverLabel } from './alertmanager-matchers.ts'
import { digest } from './message.ts'
import type { HttpAsk, HttpReply } from './post.ts'

/** Milliseconds for which svc does not verify silences again. */
const verifyMs = 180_000
/** Milliseconds between two attempts at an instance that fails, unless something changes: failing can take long. */
const retryMs = 25_000
/** Milliseconds by which the end of a silence may differ, because clocks are estimated. */
const toleranceMs = 10_000
/**
 * How many milliseconds ago a silence begins that is to begin now. Alertmanager replaces a past begin with its own
 * time; with a begin in its future, alerts would stay loud until then.
 */
const pastMs = 60_000
/** A mute that ends within these milliseconds gets no new silence: Alertmanager refuses ends in its past. */
const leastMs = 5_000
/** Milliseconds by which an end may differ that no person has changed: marks have whole seconds. */
const movedMs = 1_000
/** Bytes of a list of silences, several thousand of them. */
const maxList = 8 * 1_024 * 1_024
/** The same of a status, which contains the configuration. */
const maxStatus = 8 * 1_024 * 1_024
const maxReceipt = 4 * 1_024
/** How many changes one call makes, and within how many milliseconds. The next call makes the rest. */
const maxChanges = 500
const changesMs = 20_000
const maxReason = 300
const maxBy = 100

/** An instance of Alertmanager, as silences need it. */
export type SilencePeer = {
  /** Scheme and host. */
  readonly origin: string
  /** Milliseconds by which its clock is ahead, from its last answer. */
  readonly skew: () => number
  /** Sends a request to a path below `api/v2/`. Never rejects. */
  readonly call: (path: string, ask: HttpAsk, signal: AbortSignal) => Promise<HttpReply>
  /** The meaning of an answer. `what` follows the address in messages: `refuses the silence`. */
  readonly delivery: (answer: HttpReply, what: string) => Delivery
}

export type SilencesOptions = {
  /** `serve.name`. */
  readonly server: string
  readonly peers: readonly SilencePeer[]
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly warn: (message: string) => void
}

/** A silence that has to exist. */
type Goal = {
  /** Identifies it: a hash of its mute and its matchers. */
  readonly ref: string
  readonly mute: Mute
  readonly matchers: readonly Matcher[]
}

/** A silence that svc has created, as Alertmanager lists it. Times are those of Alertmanager's clock. */
export type OwnSilence = {
  readonly id: string
  readonly state: 'active' | 'pending' | 'expired'
  readonly matchers: readonly Matcher[]
  readonly startsAt: number
  readonly endsAt: number
  readonly createdBy: string
  /** With the mark as this version writes it. */
  readonly comment: string
  readonly ref: string
  /** The end that svc has set; undefined once svc has ended it. */
  readonly setEnd: number | undefined
}

type Member = {
  readonly peer: SilencePeer
  /** The names of its cluster when it last answered; empty without clustering, undefined before its first answer. */
  cluster: ReadonlySet<string> | undefined
  /** The silences that a person has ended there, by their hash. */
  readonly endedByHand: Set<string>
  /** The ends of mutes that its silences follow, by the hash of the silence. */
  readonly followed: Map<string, number>
}

/**
 * Keeps the silences of mutes in Alertmanager: one in each cluster, and one in each instance where clustering is off.
 * svc recognizes its silences by a mark in the comment, with a hash of what the silence covers. It does not touch
 * silences of people or of other servers, nor those that a person has created from one of svc. Changes by people take
 * precedence: svc does not create a silence again for the same mute after a person has expired it, and keeps an end
 * that a person has changed until the mute gets another one.
 */
export class Silences {
  readonly #options: SilencesOptions
  readonly #members: readonly Member[]
  #isStale = false
  #last: { readonly key: string; readonly at: number; readonly failures: readonly MuteFailure[] } | undefined
  #queue: Promise<unknown> = Promise.resolve()

  constructor(options: SilencesOptions) {
    this.#options = options
    this.#members = options.peers.map((peer) => ({
      peer,
      cluster: undefined,
      endedByHand: new Set(),
      followed: new Map(),
    }))
  }

  /** Makes the next call verify everything: an instance has failed or come back. */
  invalidate(): void {
    this.#isStale = true
  }

  /** `mute` of a receiver. Calls that overlap wait for each other. */
  async make(mutes: readonly Mute[], signal: AbortSignal): Promise<readonly MuteFailure[]> {
    const result = this.#queue.then(() => this.#make(mutes, signal))
    this.#queue = result
    return await result
  }

  async #make(mutes: readonly Mute[], signal: AbortSignal): Promise<readonly MuteFailure[]> {
    const { now, server } = this.#options
    const at = now()
    const goals = goalsOf(mutes, server, at)
    const key = JSON.stringify(
      goals.map(({ ref, mute: { from, until, by, reason } }) => [ref, from, until, by, reason]),
    )
    if (this.#last?.key === key && at >= this.#last.at) {
      const { failures } = this.#last
      const lasts = failures.length > 0 ? retryMs : verifyMs
      if (!this.#isStale && at - this.#last.at < lasts) return failures
    }
    this.#isStale = false
    const failures = await this.#synchronize(goals, signal)
    this.#last = signal.aborted ? undefined : { key, at, failures }
    return failures
  }

  async #synchronize(goals: readonly Goal[], signal: AbortSignal): Promise<readonly MuteFailure[]> {
    const answers = await Promise.all(
      this.#members.map(async (member) => ({ member, problem: await learnCluster(member, signal) })),
    )
    const reached = answers.flatMap(({ member, problem }) => (problem === undefined ? [member] : []))
    const groups = groupsOf(reached)
    const results = await Promise.all(groups.map(async (group) => await this.#inGroup(group, goals, signal)))
    const isServed = (member: Member): boolean =>
      groups.some((group, index) => results[index]?.length === 0 && group.some((one) => areOne(one, member)))
    const unreached = answers.flatMap(({ member, problem }) =>
      problem === undefined || isServed(member) ? [] : [{ place: member.peer.origin, message: problem }],
    )
    return [...results.flat(), ...unreached]
  }

  /** In a cluster, one instance is enough: the next one is used only if it fails. */
  async #inGroup(
    group: readonly Member[],
    goals: readonly Goal[],
    signal: AbortSignal,
  ): Promise<readonly MuteFailure[]> {
    const failures: MuteFailure[] = []
    for (const { peer } of group) {
      // A peer that sends impossible times must not prevent the silences of others.
      const problem = await this.#inInstance(peer, group, goals, signal).catch(
        (error: unknown): Unfinished => ({ message: `svc failed unexpectedly: ${sanitize(String(error), 300)}` }),
      )
      if (problem === undefined) return []
      failures.push({ place: peer.origin, message: problem.message })
      // The next instance may not know the changes of this one yet.
      if (problem.goesOn) break
    }
    return failures
  }

  /** Adjusts the silences of one instance to the goals. Resolves with why that failed. */
  async #inInstance(
    peer: SilencePeer,
    group: readonly Member[],
    goals: readonly Goal[],
    signal: AbortSignal,
  ): Promise<Unfinished | undefined> {
    const { server, now } = this.#options
    const filter = encodeURIComponent(`server="${serverLabel(server).replaceAll(/["\\]/g, '\\$&')}"`)
    const answer = await peer.call(`silences?filter=${filter}`, { method: 'GET', maxBody: maxList }, signal)
    const listed = 'what' in answer || answer.body === undefined ? undefined : readSilences(answer.body, server)
    const refusal = problemIn(peer.delivery(answer, 'does not list its silences'))
    if (refusal !== undefined) return { message: refusal }
    if (listed === undefined) return { message: `${peer.origin} sent something else than a list of silences` }

    const byHand = new Set(group.flatMap(({ endedByHand }) => [...endedByHand]))
    const followed = (ref: string): number | undefined =>
      group.flatMap((member) => member.followed.get(ref) ?? []).at(0)
    const at = now()
    const { changes, ended } = changesFor(goals, listed, { at, skew: peer.skew(), byHand, followed, server })
    for (const { ref, mute } of ended) {
      for (const member of group) member.endedByHand.add(ref)
      this.#options.warn(
        `the silence of Alertmanager for the ${mute.what} ${sanitize(mute.id, 128)} was ended by hand at ${peer.origin}: svc does not make it again`,
      )
    }
    let problem: string | undefined
    for (const [index, change] of changes.entries()) {
      if (index >= maxChanges || now() - at > changesMs) {
        this.#isStale = true
        const message = problem ?? `${peer.origin} has too many silences to change at once: the others follow`
        return { message, goesOn: true }
      }
      const outcome = await carryOut(change, peer, signal)
      problem ??= outcome?.message
      if (outcome?.isFinal) break
    }
    if (problem !== undefined) return { message: problem }
    const refs = new Set(goals.map(({ ref }) => ref))
    for (const { followed: ends, endedByHand } of group) {
      for (const ref of ends.keys()) if (!refs.has(ref)) ends.delete(ref)
      for (const ref of endedByHand) if (!refs.has(ref)) endedByHand.delete(ref)
      for (const { ref, mute } of goals) ends.set(ref, mute.until)
    }
    return undefined
  }
}

/** Why the silences of an instance differ from the goals, and whether the next call creates the missing ones. */
type Unfinished = { readonly message: string; readonly goesOn?: boolean }

function goalsOf(mutes: readonly Mute[], server: string, now: number): readonly Goal[] {
  const byRef = new Map<string, Goal>()
  for (const mute of mutes.filter(({ until, from }) => until > now && until > from)) {
    for (const matchers of mute.targets.flatMap((target) => matchersFor(target, server))) {
      const ref = refOf(server, mute.what, idIn(mute), matchers)
      byRef.set(ref, { ref, mute, matchers })
    }
  }
  return [...byRef.values()]
}

/** The id as the comment has it: one word. */
const idIn = ({ id }: Pick<Mute, 'id'>): string => sanitize(id, 128).replaceAll(/[\s,]/g, '_')

const refOf = (server: string, what: string, id: string, matchers: readonly Matcher[]): string =>
  digest(12, server, what, id, ...matchers.map((one) => JSON.stringify(partsOf(one))).toSorted())
const partsOf = ({ name, value, isRegex, isEqual }: Matcher) => [name, value, isRegex, isEqual]

// Clusters.

/** Queries the cluster of an instance. Resolves with why that failed. */
async function learnCluster(member: Member, signal: AbortSignal): Promise<string | undefined> {
  const { peer } = member
  const answer = await peer.call('status', { method: 'GET', maxBody: maxStatus }, signal)
  const refusal = problemIn(peer.delivery(answer, 'is not an Alertmanager at this path: does it need a prefix?'))
  if (refusal !== undefined) return refusal
  const cluster = 'what' in answer ? undefined : clusterIn(answer.body ?? '')
  if (cluster === undefined) return `${peer.origin} does not say how it is clustered: it is not an Alertmanager`
  member.cluster = cluster
  return undefined
}

/** The names of the instances of a cluster; none where clustering is off. Undefined for another document. */
export function clusterIn(body: string): ReadonlySet<string> | undefined {
  const cluster = recordOf(recordOf(parsed(body))?.['cluster'])
  if (cluster === undefined || typeof cluster['status'] !== 'string') return undefined
  if (cluster['status'] === 'disabled') return new Set()
  const peers = Array.isArray(cluster['peers']) ? cluster['peers'].slice(0, 1_000) : []
  const names = [cluster['name'], ...peers.map((one) => recordOf(one)?.['name'])]
  return new Set(names.filter((name): name is string => typeof name === 'string' && name !== ''))
}

/** Whether two instances share silences. */
const areOne = (one: Member, other: Member): boolean =>
  one === other || [...(one.cluster ?? [])].some((name) => other.cluster?.has(name))

/** The instances, grouped by those that share silences. */
function groupsOf(members: readonly Member[]): readonly (readonly Member[])[] {
  let groups: (readonly Member[])[] = []
  for (const member of members) {
    const joined = groups.filter((group) => group.some((one) => areOne(one, member)))
    groups = [...groups.filter((group) => !joined.includes(group)), [...joined.flat(), member]]
  }
  return groups
}

// Differences.

type Body = {
  readonly id?: string
  readonly matchers: readonly Matcher[]
  readonly startsAt: number
  readonly endsAt: number
  readonly createdBy: string
  readonly comment: string
}
/** A silence to create or to change, or one to end: its comment then says that svc has ended it. */
export type Change = { readonly what: 'set' | 'end'; readonly body: Body }

type Conditions = {
  readonly at: number
  readonly skew: number
  readonly byHand: ReadonlySet<string>
  readonly followed: (ref: string) => number | undefined
  readonly server: string
}

/**
 * The changes from the silences of an instance to the goals, and which goals a person has ended since the last call.
 */
function changesFor(
  goals: readonly Goal[],
  listed: readonly OwnSilence[],
  conditions: Conditions,
): { readonly changes: readonly Change[]; readonly ended: readonly Goal[] } {
  const { at, skew, byHand, server } = conditions
  const changes: Change[] = []
  const ended: Goal[] = []
  const matches = new Set<OwnSilence>()
  for (const one of goals) {
    const all = listed.filter(({ ref }) => ref === one.ref)
    const alive = all.filter(({ state }) => state !== 'expired').toSorted((a, b) => a.startsAt - b.startsAt)
    const [silence] = alive
    if (silence !== undefined) {
      matches.add(silence)
      const body = correction(one, silence, conditions)
      if (body !== undefined) changes.push({ what: 'set', body })
      continue
    }
    if (byHand.has(one.ref)) continue
    const latest = all.toSorted((a, b) => b.endsAt - a.endsAt)[0]
    if (latest !== undefined && isMoved(latest)) ended.push(one)
    else if (one.mute.until - at >= leastMs) changes.push({ what: 'set', body: bodyOf(one, server, at, skew) })
  }
  for (const silence of listed) {
    if (silence.state === 'expired' || matches.has(silence)) continue
    // A person has prolonged it beyond the end of svc.
    const isOver = silence.setEnd !== undefined && silence.setEnd <= at + skew
    if (isOver && isMoved(silence)) continue
    changes.push({ what: 'end', body: { ...silence, comment: marked(silence.comment, undefined) } })
  }
  return { changes, ended }
}

/** Whether somebody other than svc has set its end. */
const isMoved = ({ setEnd, endsAt }: OwnSilence): boolean =>
  setEnd !== undefined && Math.abs(endsAt - setEnd) >= movedMs

/** How a silence has to change, or undefined. */
function correction(one: Goal, silence: OwnSilence, { at, skew, followed, server }: Conditions): Body | undefined {
  const fresh = bodyOf(one, server, at, skew)
  const { setEnd, state, id, matchers } = silence
  const { ref, mute } = one
  const isFollowed = (followed(ref) ?? mute.until) === mute.until
  const isEndRight = setEnd !== undefined && isFollowed && Math.abs(setEnd - fresh.endsAt) <= toleranceMs
  const begin = Math.max(mute.from, at) + skew
  const isBeginRight = state === 'active' || Math.abs(silence.startsAt - begin) <= toleranceMs
  const comment = isEndRight ? marked(fresh.comment, setEnd) : fresh.comment
  const endsAt = isEndRight ? silence.endsAt : fresh.endsAt
  const startsAt = isBeginRight ? silence.startsAt : fresh.startsAt
  if (isEndRight && isBeginRight && comment === silence.comment) return undefined
  return { id, matchers, startsAt, endsAt, createdBy: fresh.createdBy, comment }
}

function bodyOf({ ref, mute, matchers }: Goal, server: string, at: number, skew: number): Body {
  const { what, by, reason, from, until } = mute
  const endsAt = Math.ceil((until + skew) / 1_000) * 1_000
  const why = sanitize(reason, maxReason)
  const mark = `(svc ${nameOf(server)}: ${what} ${idIn(mute)}, ${ref}, until ${timeText(endsAt)})`
  return {
    matchers,
    startsAt: Math.round((from > at ? from : at - pastMs) + skew),
    endsAt,
    createdBy: sanitize(by, maxBy) || 'svc',
    comment: why === '' ? mark : `${why} ${mark}`,
  }
}

// The mark in the comment: what, id, hash and end.

const nameOf = (server: string): string => sanitize(server, 128)
const timeText = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
const endText = /, (?:until (\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\dZ)|ended by svc)\)$/

/** The comment with another end; undefined: svc has ended it. */
const marked = (comment: string, end: number | undefined): string =>
  comment.replace(endText, end === undefined ? ', ended by svc)' : `, until ${timeText(end)})`)

/** The mark of this server in a comment, if its hash is that of these matchers, and the comment with its present form. */
function markIn(
  comment: string,
  matchers: readonly Matcher[],
  server: string,
): Pick<OwnSilence, 'ref' | 'setEnd' | 'comment'> | undefined {
  const prefix = `(svc ${nameOf(server)}: `
  const start = comment.lastIndexOf(prefix)
  if (start < 0) return undefined
  const at = start + prefix.length
  const [read = '', written = '', id = '', writtenRef = ''] =
    /^(silence|quiet|ack) ([^\s,]{1,140}), ([0-9a-f]{12}), /.exec(comment.slice(at)) ?? []
  const end = endText.exec(comment)
  if (end === null || writtenRef !== refOf(server, written, id, matchers)) return undefined
  // Earlier versions wrote another word. The next change of the silence writes the present one.
  const what = written === 'quiet' ? 'silence' : written
  const ref = refOf(server, what, id, matchers)
  return {
    ref,
    setEnd: end[1] === undefined ? undefined : Date.parse(end[1]),
    comment: `${comment.slice(0, at)}${what} ${id}, ${ref}, ${comment.slice(at + read.length)}`,
  }
}

// The API.

/** The silences of this server in a list of Alertmanager. Undefined for another document. */
export function readSilences(body: string, server: string): readonly OwnSilence[] | undefined {
  const list = parsed(body)
  if (!Array.isArray(list)) return undefined
  return list.flatMap((one): readonly OwnSilence[] => {
    const { id, status, startsAt, endsAt, createdBy, comment, matchers: written } = recordOf(one) ?? {}
    const state = recordOf(status)?.['state']
    const matchers = Array.isArray(written) ? matchersIn(written) : undefined
    const times = [startsAt, endsAt].map((time) =>
      typeof time === 'string' ? Date.parse(time.slice(0, 64)) : Number.NaN,
    )
    if (typeof id !== 'string' || !/^[\w-]{1,64}$/.test(id) || matchers === undefined) return []
    if (state !== 'active' && state !== 'pending' && state !== 'expired') return []
    if (typeof comment !== 'string' || comment.length > 2_000 || times.some(Number.isNaN)) return []
    const mark = markIn(comment, matchers, server)
    const by = typeof createdBy === 'string' ? createdBy : ''
    const [begin = 0, end = 0] = times
    return mark ? [{ id, state, matchers, startsAt: begin, endsAt: end, createdBy: by, ...mark }] : []
  })
}

function matchersIn(written: readonly unknown[]): readonly Matcher[] | undefined {
  const matchers = written.slice(0, 20).flatMap((one): readonly Matcher[] => {
    const { name, value, isRegex, isEqual = true } = recordOf(one) ?? {}
    const isWhole = typeof name === 'string' && typeof value === 'string'
    return isWhole ? [{ name, value, isRegex: isRegex === true, isEqual: isEqual === true }] : []
  })
  return matchers.length === written.length ? matchers : undefined
}

const parsed = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
const recordOf = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined

/** Why a change failed, and whether the other changes would fail, too. */
type Outcome = { readonly message: string; readonly isFinal: boolean }

/** Carries out a change. Resolves with why it failed. */
async function carryOut(change: Change, peer: SilencePeer, signal: AbortSignal): Promise<Outcome | undefined> {
  const { id, matchers, startsAt, endsAt, createdBy, comment } = change.body
  const time = (ms: number): string => new Date(ms).toISOString()
  const body = {
    ...(id === undefined ? {} : { id }),
    matchers,
    startsAt: time(startsAt),
    endsAt: time(endsAt),
    createdBy,
    comment,
  }
  const headers = { 'Content-Type': 'application/json' }
  const answer = await peer.call(
    'silences',
    { method: 'POST', headers, body: JSON.stringify(body), maxBody: maxReceipt },
    signal,
  )
  if (change.what === 'set') {
    const failure = outcomeOf(peer, answer, 'refuses the silence')
    if (failure !== undefined) return failure
    const receipt = 'what' in answer ? undefined : recordOf(parsed(answer.body ?? ''))?.['silenceID']
    return typeof receipt === 'string'
      ? undefined
      : { message: `${peer.origin} did not confirm the silence`, isFinal: true }
  }
  // The comment is for people, and for svc if the mute comes back. The silence ends even without it.
  const path = `silence/${encodeURIComponent(id ?? '')}`
  return outcomeOf(peer, await peer.call(path, { method: 'DELETE' }, signal), 'does not end the silence')
}

function outcomeOf(peer: SilencePeer, answer: HttpReply, what: string): Outcome | undefined {
  const message = problemIn(peer.delivery(answer, what))
  if (message === undefined) return undefined
  return { message, isFinal: 'what' in answer || ![400, 413, 422].includes(answer.status) }
}

const problemIn = (delivery: Delivery): string | undefined => ('message' in delivery ? delivery.message : undefined)
