import { showDuration } from '../../../base/format.ts'
import { readTrust } from '../../../base/net/trust.ts'
import type { Problem, SettingsSpec, Values } from '../../../base/settings/index.ts'
import {
  type Delivery,
  type DrillTrace,
  isOver,
  type Mute,
  type MuteFailure,
  type Notice,
  type NoticeLevel,
  type Receiver,
} from '../receiver.ts'
import type { ReceiverConfig } from '../settings.ts'
import { Silences } from './alertmanager-silences.ts'
import { traceOf } from './alertmanager-trace.ts'
import { type ReceiverContext, receiverKind, receiverTrust, urlTarget } from './kind.ts'
import { annotationsOf, identityOf, isDrill, labelsOf, subjectText, withReceipt } from './message.ts'
import {
  clearTextMistake,
  deliveryOf,
  failureOf,
  type HttpAsk,
  type HttpReply,
  type PostTarget,
  placeMistake,
  redactorOf,
  sendingBy,
  shownPlace,
} from './post.ts'

const settings = {
  urls: {
    type: 'texts',
    required: true,
    mistake: instanceMistake,
    doc: 'Every instance, with the prefix of its paths if it has one: `https://am1:9093`. Each gets all alerts',
  },
  token: { type: 'secret', doc: 'Bearer token' },
  username: { type: 'text', doc: 'User of HTTP Basic, as in basic_auth_users of Alertmanager' },
  password: { type: 'secret', doc: 'Password of the user' },
  ...receiverTrust,
} as const satisfies SettingsSpec
type Settings = Values<typeof settings>

/** Milliseconds after which Alertmanager takes an incident as ended if svc says nothing: longer than any upgrade. */
const incidentMs = 4 * 3_600_000
/** The same for the watchdog and for tests. */
const watchdogMs = 120_000
/** The same for a drill. */
const drillMs = 300_000
/** Milliseconds for which an end is repeated to an instance that has accepted it. */
const repeatEndMs = 300_000
/** Milliseconds of a difference between clocks that is reported. */
const reportedSkew = 30_000
/** Milliseconds of a difference that the date of an answer, which has no fractions, cannot show. */
const leastSkew = 2_000
/**
 * Milliseconds that an end lies in the past. Alertmanager ignores an end that lies in its future while it knows a later one, and its
 * clock is not known better than this.
 */
const endMarginMs = 5_000
/** Alerts in one request. */
const chunkSize = 100
/** Requests in search of the alerts that an instance refuses. */
const maxBisections = 64
/** Refused alerts that an instance is not sent again. */
const maxRefused = 1_000

type Alert = {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly startsAt: number
  readonly endsAt: number
  readonly generatorURL?: string | undefined
  /** The notice that it is made of; undefined for the watchdog and repeated ends. */
  readonly id: string | undefined
  readonly name: string
}

type Instance = {
  readonly url: URL
  readonly origin: string
  /** Milliseconds that its clock is ahead of this machine's; undefined before its first answer. */
  skew: number | undefined
  isSkewReported: boolean
  /** The identities of failures that it was sent. */
  readonly failures: Set<string>
  /** Ends that it is to be told again. `until` is set once it has accepted one. */
  readonly endings: Map<string, { readonly alert: Alert; until: number | undefined }>
  /** Alerts that it refuses, without their ends. */
  readonly refused: Set<string>
  problem: string | undefined
}

export const alertmanager = receiverKind({
  name: 'alertmanager',
  doc: 'Alertmanager, by its API v2: every 30 s to each instance',
  settings,
  needsStore: false,
  silences: true,
  mistakes,
  to: ({ urls }) => urls.map((url) => shownPlace(new URL(url))).join(', '),
  target: ({ urls }) => urlTarget(urls[0] ?? ''),
  open: async (config, values, context) => new Alertmanager(config, values, context),
})

function instanceMistake(written: string): string | undefined {
  const mistake = placeMistake(written)
  const url = URL.parse(written)
  if (mistake !== undefined || url === null) return mistake
  if (url.search !== '') return 'contains a query: write it like https://am1:9093'
  return /\/api(\/|$)/.test(url.pathname)
    ? 'contains /api: write only what precedes it, like https://am1:9093'
    : undefined
}

function mistakes(
  { urls, token, username, password }: Settings,
  { remind }: Pick<ReceiverConfig, 'remind'>,
): readonly Problem[] {
  const problems: Problem[] = []
  const report = (path: Problem['path'], message: string): void => void problems.push({ path, message })
  if (urls.length === 0) report(['urls'], 'is empty: give the URL of each instance')
  for (const [index, url] of urls.entries()) {
    if (urls.indexOf(url) < index) report(['urls', index], 'is there twice: remove one')
    const mistake = token === undefined && username === undefined ? undefined : clearTextMistake(url)
    if (mistake !== undefined) report(['urls', index], mistake)
  }
  if ((username === undefined) !== (password === undefined)) {
    report([username === undefined ? 'password' : 'username'], 'needs username and password together')
  }
  if (token !== undefined && username !== undefined) report(['token'], 'cannot be used beside username: keep one')
  if (remind !== undefined) report([], 'repeats by itself: remove remind, and set repeat_interval in Alertmanager')
  return problems
}

/**
 * Sends to every instance, because instances share notifications and silences, but not alerts. What one has accepted
 * counts as accepted: `renew` tells the others.
 */
class Alertmanager implements Receiver {
  readonly #config: ReceiverConfig
  readonly #values: Settings
  readonly #context: ReceiverContext
  readonly #instances: readonly Instance[]
  #openedAt: number
  readonly #silences: Silences

  constructor(config: ReceiverConfig, values: Settings, context: ReceiverContext) {
    this.#config = config
    this.#values = values
    this.#context = context
    this.#openedAt = context.now()
    this.#instances = values.urls.map((written): Instance => {
      const url = new URL(written)
      const path = url.pathname.endsWith('/') ? url.pathname : `${url.pathname}/`
      return {
        url: new URL(`${path}api/v2/`, url),
        origin: shownPlace(url),
        skew: undefined,
        isSkewReported: false,
        failures: new Set(),
        endings: new Map(),
        refused: new Set(),
        problem: undefined,
      }
    })
    this.#silences = new Silences({
      server: context.server,
      now: context.now,
      warn: context.warn,
      peers: this.#instances.map((instance) => ({
        origin: instance.origin,
        skew: () => instance.skew ?? 0,
        call: async (path, ask, signal) => await this.#call(instance, path, ask, signal),
        delivery: (answer, what) => deliveryOf(answer, instance.url, context.now, what),
      })),
    })
  }

  describe() {
    return { name: this.#config.name, kind: alertmanager.name, to: alertmanager.to(this.#values) }
  }

  async send(notices: readonly Notice[], signal: AbortSignal): Promise<Delivery> {
    // A test and a drill are about each instance.
    const needsAll = this.#context.isTest === true || isDrill(...notices)
    const alertsFor = (instance: Instance) => notices.flatMap((notice) => this.#alertsOf(notice, instance))
    return withReceipt(
      notices,
      await this.#toAll(signal, alertsFor, needsAll),
      () => `accepted by ${this.#instances.map(({ origin }) => origin).join(', ')}`,
    )
  }

  trace(): DrillTrace {
    return traceOf(
      this.#instances.map(({ origin, url }) => ({
        origin,
        get: async (path, keep, signal) => {
          const place = await this.#place(this.#instances.find((one) => one.url === url) as Instance, signal)
          if ('what' in place) return place
          // The metrics are beside the API.
          const at = new URL(path === 'metrics' ? '../../metrics' : path, url)
          return await sendingBy(this.#context)(
            { ...place, url: at },
            { method: 'GET', maxBody: keep },
            signal,
            this.#context.now,
          )
        },
      })),
    )
  }

  async renew(notices: readonly Notice[], isHealthy: boolean, signal: AbortSignal): Promise<Delivery> {
    const now = this.#context.now()
    return await this.#toAll(signal, (instance) => {
      for (const [key, { until }] of instance.endings)
        if (until !== undefined && until < now) instance.endings.delete(key)
      return [
        ...notices.filter((notice) => !isOver(notice)).flatMap((notice) => this.#alertsOf(notice, instance)),
        ...[...instance.endings.values()].map(({ alert }) => alert),
        ...(isHealthy ? [this.#watchdog(now)] : []),
      ]
    })
  }

  async mute(mutes: readonly Mute[], signal: AbortSignal): Promise<readonly MuteFailure[]> {
    return await this.#silences.make(mutes, signal)
  }

  shifted(ms: number): void {
    this.#openedAt += ms
    for (const instance of this.#instances) {
      // By how much it differs from the time of svc is no longer known.
      instance.skew = undefined
      for (const ending of instance.endings.values()) if (ending.until !== undefined) ending.until += ms
    }
  }

  async close(): Promise<void> {}

  /** The alerts of a notice: a failure is a warning, too, which Alertmanager inhibits while the failure stands. */
  #alertsOf(notice: Notice, instance: Instance): readonly Alert[] {
    if (this.#context.isTest) return [this.#test(notice)]
    if (isDrill(notice)) return [this.#drill(notice)]
    const key = JSON.stringify(identityOf(notice.subject))
    const isFailed = notice.level === 'failed' && !isOver(notice)
    const wasFailed = notice.before === 'failed' || notice.level === 'failed' || instance.failures.has(key)
    if (isFailed) instance.failures.add(key)
    else instance.failures.delete(key)
    const failed = this.#alert(notice, 'failed', isFailed)
    const warning = this.#alert(notice, 'warning', !isOver(notice))
    // What begins precedes what ends, so that no change of severity is sent as a recovery.
    const alerts = isFailed ? [failed, warning] : [warning, ...(wasFailed ? [failed] : [])]
    for (const alert of alerts) {
      if (alert.endsAt > this.#context.now()) instance.endings.delete(identity(alert))
      else instance.endings.set(identity(alert), { alert: { ...alert, id: undefined }, until: undefined })
    }
    return alerts
  }

  #alert(notice: Notice, level: NoticeLevel, isFiring: boolean): Alert {
    const now = this.#context.now()
    const endedAt = Math.min(notice.endedAt ?? now, now - endMarginMs)
    const startsAt = Math.min(notice.beganAt, isFiring ? now : endedAt)
    return {
      labels: labelsOf(notice, level),
      annotations: annotationsOf(notice, this.#config.details),
      startsAt,
      endsAt: isFiring ? now + incidentMs : endedAt,
      generatorURL: notice.url,
      id: notice.id,
      name: subjectText(notice.subject),
    }
  }

  #watchdog(now: number): Alert {
    return {
      labels: { alertname: 'SvcWatchdog', severity: 'none', server: this.#context.server },
      annotations: { summary: 'svc serve is watching. This alert always fires: its end is the alarm' },
      startsAt: Math.min(this.#openedAt, now),
      endsAt: now + watchdogMs,
      generatorURL: this.#context.url,
      id: undefined,
      name: 'the watchdog',
    }
  }

  /** Ends by itself after some minutes, also if svc is killed. */
  #drill(notice: Notice): Alert {
    const now = this.#context.now()
    const endedAt = Math.min(notice.endedAt ?? now, now - endMarginMs)
    return {
      labels: labelsOf(notice),
      annotations: annotationsOf(notice, this.#config.details),
      startsAt: Math.min(notice.beganAt, isOver(notice) ? endedAt : now),
      endsAt: isOver(notice) ? endedAt : now + drillMs,
      generatorURL: notice.url,
      id: notice.id,
      name: 'the drill',
    }
  }

  #test(notice: Notice): Alert {
    const now = this.#context.now()
    return {
      labels: { alertname: 'SvcTest', severity: 'none', server: notice.subject.server, test: 'true' },
      annotations: { summary: 'Test message of svc notify test: nothing has failed', description: notice.text },
      startsAt: now,
      endsAt: now + watchdogMs,
      id: notice.id,
      name: 'the test message',
    }
  }

  /** `needsAll`: whether each instance has to accept. */
  async #toAll(
    signal: AbortSignal,
    alertsFor: (instance: Instance) => readonly Alert[],
    needsAll = false,
  ): Promise<Delivery> {
    const outcomes = await Promise.all(
      this.#instances.map(async (instance) => await this.#toOne(instance, alertsFor(instance), signal)),
    )
    for (const [index, outcome] of outcomes.entries()) this.#note(this.#instances[index] as Instance, outcome.problem)
    return deliveryTo(outcomes, needsAll)
  }

  /** Reports an instance that begins to fail, and one that answers again. */
  #note(instance: Instance, problem: Delivery | undefined): void {
    const message = problem !== undefined && 'message' in problem ? problem.message : undefined
    if ((message === undefined) === (instance.problem === undefined)) return
    instance.problem = message
    // It may have lost its silences.
    this.#silences.invalidate()
    if (this.#instances.length > 1 && !this.#context.isTest) {
      this.#context.warn(message ?? `${instance.origin} accepts alerts again`)
    }
  }

  async #toOne(instance: Instance, alerts: readonly Alert[], signal: AbortSignal): Promise<Outcome> {
    const place = await this.#place(instance, signal)
    if ('what' in place) return { bad: [], problem: place }
    if (instance.skew === undefined) {
      // Its clock decides whether an alert has already ended.
      const status = await sendingBy(this.#context)(
        { ...place, url: new URL('status', instance.url) },
        { method: 'GET' },
        signal,
        this.#context.now,
      )
      const delivery = deliveryOf(status, instance.url, this.#context.now, notAlertmanager)
      if (delivery.what !== 'accepted') return { bad: [], problem: delivery }
      this.#compareClocks(instance, status)
    }
    const sendable = alerts.filter((alert) => !instance.refused.has(content(alert)))
    const bad: Bad[] = []
    const budget = { left: maxBisections }
    for (const chunk of chunksOf(sendable, this.#context.now())) {
      const outcome = await this.#post(instance, place, chunk, signal, budget)
      bad.push(...outcome.bad)
      if (outcome.problem !== undefined) return { bad, problem: outcome.problem }
    }
    return { bad, problem: undefined }
  }

  /** Posts alerts; after a 400, for which Alertmanager does not say which of them it refuses, each half by itself. */
  async #post(
    instance: Instance,
    place: PostTarget,
    alerts: readonly Alert[],
    signal: AbortSignal,
    budget: { left: number },
  ): Promise<Outcome> {
    const body = JSON.stringify(alerts.map((alert) => wireOf(alert, instance.skew ?? 0)))
    const ask = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body } as const
    const answer = await sendingBy(this.#context)(
      { ...place, url: new URL('alerts', instance.url) },
      ask,
      signal,
      this.#context.now,
    )
    this.#compareClocks(instance, answer)
    const delivery = deliveryOf(answer, instance.url, this.#context.now, 'refuses the alerts')
    if (delivery.what === 'accepted') {
      for (const alert of alerts) this.#noteEnd(instance, alert)
      return { bad: [], problem: undefined }
    }
    const isContent = 'status' in answer && [400, 413, 422].includes(answer.status)
    if (!isContent || delivery.what !== 'refused') return { bad: [], problem: delivery }
    budget.left -= 1
    if (alerts.length > 1 && budget.left > 0) {
      const middle = Math.ceil(alerts.length / 2)
      const first = await this.#post(instance, place, alerts.slice(0, middle), signal, budget)
      if (first.problem !== undefined) return first
      const second = await this.#post(instance, place, alerts.slice(middle), signal, budget)
      return { bad: [...first.bad, ...second.bad], problem: second.problem }
    }
    for (const alert of alerts) {
      if (instance.refused.size >= maxRefused) instance.refused.clear()
      instance.refused.add(content(alert))
      instance.endings.delete(identity(alert))
      if (!this.#context.isTest) this.#context.warn(`the alert of ${alert.name} is left out: ${delivery.message}`)
    }
    return { bad: alerts.map(({ id }) => ({ id, message: delivery.message })), problem: undefined }
  }

  #noteEnd(instance: Instance, alert: Alert): void {
    const ending = instance.endings.get(identity(alert))
    if (ending && ending.until === undefined) ending.until = this.#context.now() + repeatEndMs
  }

  #compareClocks(instance: Instance, answer: HttpReply): void {
    if ('what' in answer) return
    const date = Date.parse((answer.headers['date'] ?? '').slice(0, 64))
    // The date has no fractions of a second.
    const skew = Number.isNaN(date) ? 0 : date + 500 - (answer.sentAt + answer.receivedAt) / 2
    instance.skew = Math.abs(skew) < leastSkew ? 0 : skew
    const isReported = Math.abs(skew) > reportedSkew
    if (isReported === instance.isSkewReported) return
    instance.isSkewReported = isReported
    const which = skew > 0 ? 'ahead of' : 'behind'
    this.#context.warn(
      isReported
        ? `the clock of ${instance.origin} is ${showDuration(Math.abs(skew))} ${which} that of this machine: alerts get its times; synchronize both`
        : `the clock of ${instance.origin} agrees with that of this machine again`,
    )
  }

  /** Sends a request to a path below `api/v2/`, and compares the clocks. */
  async #call(instance: Instance, path: string, ask: HttpAsk, signal: AbortSignal): Promise<HttpReply> {
    const place = await this.#place(instance, signal)
    if ('what' in place) return place
    const answer = await sendingBy(this.#context)(
      { ...place, url: new URL(path, instance.url) },
      ask,
      signal,
      this.#context.now,
    )
    this.#compareClocks(instance, answer)
    return answer
  }

  /** The instance with its credentials, which are read for each request, so that a rotated secret takes effect. */
  async #place(instance: Instance, signal: AbortSignal): Promise<PostTarget | Extract<Delivery, { what: 'later' }>> {
    const { files } = this.#context
    const { token, username, password } = this.#values
    try {
      const bearer = await token?.reveal(files)
      const secret = await password?.reveal(files)
      const basic = username === undefined ? undefined : Buffer.from(`${username}:${secret}`).toString('base64')
      const authorization =
        bearer !== undefined ? `Bearer ${bearer}` : basic === undefined ? undefined : `Basic ${basic}`
      const secrets = [bearer, secret, basic].flatMap((one) => one ?? [])
      return {
        url: instance.url,
        headers: {
          Accept: 'application/json',
          'User-Agent': `svc/${this.#context.version}`,
          ...(authorization === undefined ? {} : { Authorization: authorization }),
        },
        isSecret: authorization !== undefined,
        trust: await readTrust(this.#values, files),
        servername: this.#values.servername,
        redact: redactorOf(instance.url, secrets),
      }
    } catch (error) {
      const { origin, url } = instance
      return failureOf(error, { origin, isSent: false, stop: signal, signal, ms: 0, redact: redactorOf(url, []) })
    }
  }
}

const notAlertmanager = 'is not an Alertmanager at this path: does it need a prefix?'

type Bad = { readonly id: string | undefined; readonly message: string }
type Outcome = {
  /** The alerts that the instance refuses by themselves. */
  readonly bad: readonly Bad[]
  /** Why the others, or the rest of them, were not accepted. */
  readonly problem: Delivery | undefined
}

/** The delivery that follows from the outcomes at all instances. With `needsAll`, each instance has to accept. */
function deliveryTo(outcomes: readonly Outcome[], needsAll: boolean): Delivery {
  const problems = outcomes.flatMap(({ problem }) =>
    problem === undefined || problem.what === 'accepted' ? [] : [problem],
  )
  const isAccepted = needsAll ? problems.length === 0 : problems.length < outcomes.length
  const bad = outcomes.flatMap((outcome) => outcome.bad)
  if (isAccepted) {
    const ids = [...new Set(bad.flatMap(({ id }) => id ?? []))]
    const message = [...new Set(bad.map((one) => one.message))].join('; ')
    return ids.length === 0 ? { what: 'accepted' } : { what: 'refused', message, ids, fault: 'data' }
  }
  const message = [...new Set(problems.map((problem) => problem.message))].join('; ')
  const [first] = problems
  const waiting = problems.filter((problem) => problem.what === 'later')
  // One that may answer later is worth another attempt.
  if (waiting.length === 0) return { what: 'refused', message, fault: first?.fault }
  const pauses = waiting.map(({ afterMs }) => afterMs ?? 0)
  const isPerhapsReceived = waiting.some((one) => one.isPerhapsReceived)
  const fault = first?.fault
  const afterMs = Math.min(...pauses)
  return { what: 'later', message, isPerhapsReceived, fault, ...(afterMs > 0 ? { afterMs } : {}) }
}

/**
 * The alerts of each request. Failures that fire come first, and by themselves: Alertmanager sends what is older than
 * `group_wait` at once, and a warning in the same request overtakes the failure that inhibits it.
 */
function chunksOf(alerts: readonly Alert[], now: number): readonly (readonly Alert[])[] {
  const isFiringFailure = ({ labels, endsAt }: Alert): boolean => labels['alertname'] === 'SvcFailed' && endsAt > now
  const parts = [alerts.filter(isFiringFailure), alerts.filter((alert) => !isFiringFailure(alert))]
  return parts.flatMap((part) =>
    Array.from({ length: Math.ceil(part.length / chunkSize) }, (_, at) =>
      part.slice(at * chunkSize, (at + 1) * chunkSize),
    ),
  )
}

const identity = ({ labels }: Alert): string => JSON.stringify(labels)
/** The part of an alert that an instance refuses, whenever the alert is sent. */
const content = ({ labels, annotations, startsAt, generatorURL }: Alert): string =>
  JSON.stringify([labels, annotations, startsAt, generatorURL])

/** The alert as Alertmanager reads it, in the time of its own clock. */
function wireOf({ labels, annotations, startsAt, endsAt, generatorURL }: Alert, skew: number): object {
  const time = (ms: number): string => new Date(Math.round(ms + skew)).toISOString()
  const url = generatorURL === undefined ? {} : { generatorURL }
  return { labels, annotations, startsAt: time(startsAt), endsAt: time(endsAt), ...url }
}
