import { sanitize } from '../../../base/net/text.ts'
import { readTrust } from '../../../base/net/trust.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { Problem, SettingsSpec, Values } from '../../../base/settings/index.ts'
import { type Delivery, isOver, type Notice, type Receiver } from '../receiver.ts'
import type { ReceiverConfig } from '../settings.ts'
import { type ReceiverContext, receiverKind, receiverTrust, urlTarget } from './kind.ts'
import {
  annotationsOf,
  callbackOf,
  identityOf,
  isDrill,
  keyOf,
  monitorIn,
  severityOf,
  summaryOf,
  withReceipt,
} from './message.ts'
import {
  clearTextMistake,
  deliveryOf,
  failureOf,
  type HttpReply,
  type PostTarget,
  placeMistake,
  redactorOf,
  request,
  shownPlace,
} from './post.ts'

const settings = {
  routingKey: {
    type: 'secret',
    required: true,
    doc: 'Integration key of a service, of an integration of the type Events API v2',
  },
  drillRoutingKey: {
    type: 'secret',
    doc: 'Integration key of another service, which gets drills and test messages: without one, drills do not go through this receiver',
  },
  url: {
    type: 'url',
    protocols: ['https', 'http'],
    default: 'https://events.pagerduty.com',
    doc: 'Where events are accepted. For accounts in the EU: https://events.eu.pagerduty.com',
  },
  ...receiverTrust,
} as const satisfies SettingsSpec
type Settings = Values<typeof settings>

/** The maximum length of a summary at PagerDuty, in characters. */
const maxSummary = 1_024
/** The only status that means accepted. */
const receipt = 202
/** How many notices are remembered that PagerDuty accepted before it demanded a pause. */
const maxAccepted = 10_000

export const pagerduty = receiverKind({
  name: 'pagerduty',
  doc: 'PagerDuty, by the Events API v2: an alert for each check',
  settings,
  needsStore: true,
  mistakes,
  drillMistake: ({ drillRoutingKey }) =>
    drillRoutingKey === undefined
      ? 'has no drillRoutingKey: a drill would page people; set the key of a service for drills'
      : undefined,
  to: ({ url }) => shownPlace(new URL(url)),
  target: ({ url }) => urlTarget(url),
  open: async (config, values, context) => new PagerDuty(config, values, context),
})

function mistakes({ url: written }: Settings, { remind }: Pick<ReceiverConfig, 'remind'>): readonly Problem[] {
  const problems: Problem[] = []
  const report = (path: Problem['path'], message: string): void => void problems.push({ path, message })
  const mistake = placeMistake(written) ?? clearTextMistake(written)
  const url = URL.parse(written)
  if (mistake !== undefined) report(['url'], mistake)
  else if (url !== null && (url.search !== '' || url.pathname !== '/')) {
    report(['url'], 'contains a path or a query: write only scheme and host, like https://events.eu.pagerduty.com')
  }
  if (remind !== undefined) report([], 'repeats by itself: remove remind, and use an escalation policy of PagerDuty')
  return problems
}

/** Sends an event for each notice. Events of one check have the same key, so that they belong to one alert. */
class PagerDuty implements Receiver {
  readonly sendsEach = true
  readonly #config: ReceiverConfig
  readonly #values: Settings
  readonly #context: ReceiverContext
  /** The accepted notices of a message that was accepted in part. */
  readonly #accepted = new Set<string>()

  constructor(config: ReceiverConfig, values: Settings, context: ReceiverContext) {
    this.#config = config
    this.#values = values
    this.#context = context
  }

  describe() {
    return { name: this.#config.name, kind: pagerduty.name, to: pagerduty.to(this.#values) }
  }

  async send(notices: readonly Notice[], signal: AbortSignal): Promise<Delivery> {
    const place = await this.#place(isDrill(...notices), signal)
    if ('what' in place) return place
    const refused: { readonly id: string; readonly message: string }[] = []
    for (const notice of notices) {
      // Do not send again what it accepted before a pause: it limits the number of events a minute.
      if (this.#accepted.has(notice.id)) continue
      const reply = await this.#post(notice, place.key, place.target, signal)
      const delivery = this.#deliveryOf(reply)
      if (delivery.what === 'later') {
        const isPerhapsReceived = delivery.isPerhapsReceived || notices.some(({ id }) => this.#accepted.has(id))
        return { ...delivery, isPerhapsReceived }
      }
      if (delivery.what === 'accepted') {
        if (this.#accepted.size < maxAccepted) this.#accepted.add(notice.id)
        continue
      }
      // Only a 400 is about this event: any other refusal would apply to each event.
      if (!('status' in reply) || reply.status !== 400) return delivery
      refused.push({ id: notice.id, message: delivery.message })
    }
    this.#accepted.clear()
    if (refused.length === 0) return withReceipt(notices, { what: 'accepted' }, () => `status ${receipt}`)
    const message = [...new Set(refused.map((one) => one.message))].join('; ')
    return { what: 'refused', message, ids: refused.map(({ id }) => id), fault: 'data' }
  }

  async close(): Promise<void> {}

  async #post(notice: Notice, key: string, target: PostTarget, signal: AbortSignal): Promise<HttpReply> {
    const body = JSON.stringify(this.#eventOf(notice, key))
    const ask = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body } as const
    return await request(target, ask, signal, this.#context.now)
  }

  /** The event of a notice, of at most about 20 kB, because all its texts are bounded: PagerDuty accepts 512 kB. */
  #eventOf(notice: Notice, routingKey: string): object {
    const { subject, observedAt, url } = notice
    const { isTest, url: page } = this.#context
    const { server = '', type = 'host', check = '', node = server } = identityOf(subject)
    const client = { client: `svc ${server}`, ...(page === undefined ? {} : { client_url: page }) }
    const common = { routing_key: routingKey, dedup_key: keyOf(subject, 64), ...client }
    // The end of an alert that does not exist proves the connection and the key, and pages nobody.
    if (isTest || isOver(notice)) return { ...common, event_action: 'resolve' }
    const { runbook_url: runbook, ...annotations } = annotationsOf(notice, this.#config.details)
    const callback = callbackOf(notice)
    const links = [
      ...(callback === undefined ? [] : [{ href: callback, text: 'Confirm that the drill arrived' }]),
      ...(runbook === undefined ? [] : [{ href: runbook, text: 'Runbook' }]),
      ...(url === undefined ? [] : [{ href: sanitize(url, 500), text: 'Status page' }]),
    ]
    return {
      ...common,
      event_action: 'trigger',
      payload: {
        summary: sanitize(`[${server}] ${summaryOf(notice)}`, maxSummary),
        source: node,
        severity: severityOf(notice),
        timestamp: new Date(observedAt).toISOString(),
        component: monitorIn(subject),
        group: type,
        class: check,
        custom_details: { ...identityOf(subject), ...annotations },
      },
      ...(links.length === 0 ? {} : { links }),
    }
  }

  #deliveryOf(reply: HttpReply): Delivery {
    const { url } = this.#values
    if ('status' in reply && reply.status >= 200 && reply.status < 300 && reply.status !== receipt) {
      const message = `${shownPlace(new URL(url))} answered ${reply.status}, which is not the receipt of PagerDuty (${receipt})`
      return { what: 'later', message, isPerhapsReceived: true, fault: 'protocol' }
    }
    return deliveryOf(reply, new URL(url), this.#context.now, 'refuses the event')
  }

  /** Where events go, and the key, which is read for each message, so that a rotated one takes effect. */
  async #place(
    forDrill: boolean,
    signal: AbortSignal,
  ): Promise<{ readonly target: PostTarget; readonly key: string } | Extract<Delivery, { what: 'later' }>> {
    const { files, version, isTest } = this.#context
    const { routingKey, drillRoutingKey, url: written, servername } = this.#values
    const url = new URL('/v2/enqueue', written)
    try {
      // A drill uses the key for drills or none.
      const secret = forDrill ? drillRoutingKey : isTest ? (drillRoutingKey ?? routingKey) : routingKey
      if (secret === undefined) throw new ProbeError('internal', 'there is no drillRoutingKey')
      const key = (await secret.reveal(files)).trim()
      const target: PostTarget = {
        url,
        headers: { Accept: 'application/json', 'User-Agent': `svc/${version}` },
        isSecret: true,
        trust: await readTrust(this.#values, files),
        servername,
        redact: redactorOf(new URL(url.origin), [key]),
      }
      return { target, key }
    } catch (error) {
      const origin = shownPlace(url)
      return failureOf(error, { origin, isSent: false, stop: signal, signal, ms: 0, redact: String })
    }
  }
}
