import { quote } from '../../../../base/net/text.ts'
import { readTrust, type TlsTrust } from '../../../../base/net/trust.ts'
import { ProbeError } from '../../../../base/probe-error.ts'
import { type Problem, Secret, type SettingsSpec, type Values } from '../../../../base/settings/index.ts'
import type { Delivery, Notice, Receiver } from '../../receiver.ts'
import type { ReceiverConfig } from '../../settings.ts'
import { OneByOne, type Posted } from '../each.ts'
import {
  type AnyReceiverKind,
  type ReceiverContext,
  readProxy,
  receiverKind,
  receiverProxy,
  receiverTrust,
  urlTarget,
} from '../kind.ts'
import { isDrill, messageDigest, withReceipt } from '../message.ts'
import {
  clearTextMistake,
  deliveryOf,
  failureOf,
  type HttpReply,
  maxPause,
  maxQuoted,
  type PostTarget,
  placeMistake,
  redactorOf,
  secretUrl,
  sendingBy,
  shownPlace,
} from '../post.ts'
import { type AnyService, type ChatService, messageOf, type ServiceMessage, type ServiceRequest } from './service.ts'

/** The values of a receiver, by the names of its settings. */
type Settings = Readonly<Record<string, unknown>> & Values<typeof receiverTrust & typeof receiverProxy>

/** Bytes of an answer that are read. */
const maxBody = 64 * 1_024

const addressName = ({ serverSetting = 'server' }: AnyService): string => serverSetting
/** The address that a receiver states or its service has. */
const addressOf = (row: AnyService, values: Settings): string | undefined =>
  values[addressName(row)] as string | undefined
/** The setting whose secret is the URL to post to. */
const urlSetting = ({ secrets }: AnyService): string | undefined =>
  Object.entries(secrets).find(([, { isUrl }]) => isUrl === true)?.[0]

/** The kind of receiver that a row of the table declares. */
export const serviceKind = (row: AnyService): AnyReceiverKind =>
  receiverKind<SettingsSpec>({
    name: row.name,
    doc: row.doc,
    settings: { ...row.settings, [addressName(row)]: addressSetting(row), ...receiverTrust, ...receiverProxy },
    needsStore: true,
    mistakes: (values, all) => mistakes(row, values as Settings, all),
    drillMistake: (values) => drillMistake(row, values),
    to: (values) => placeText(row, values as Settings),
    target: (values) => urlTarget(addressOf(row, values as Settings) ?? ''),
    open: async (config, values, context) => new ServiceReceiver(row, config, values as Settings, context),
  })

function addressSetting(row: AnyService): SettingsSpec[string] {
  const { server, title } = row
  const common = { type: 'url', protocols: ['https', 'http'] } as const
  if (server !== undefined) return { ...common, default: server, doc: `Address of ${title}, if it is another` }
  const isInUrl = urlSetting(row) !== undefined
  const doc = `Address of ${title}, such as https://${row.name}.example.com`
  return isInUrl
    ? { ...common, doc: `${doc}: the secret URL must then begin with it` }
    : { ...common, required: true, doc }
}

function placeText(row: AnyService, values: Settings): string {
  const address = addressOf(row, values)
  const secret = values[urlSetting(row) ?? '']
  if (address !== undefined) return shownPlace(new URL(address))
  return secret instanceof Secret ? `the URL of ${secret.origin}` : row.title
}

function mistakes(row: AnyService, values: Settings, { remind }: Pick<ReceiverConfig, 'remind'>): readonly Problem[] {
  const problems: Problem[] = []
  const report = (path: Problem['path'], message: string): void => void problems.push({ path, message })
  const written = addressOf(row, values)
  const url = URL.parse(written ?? '')
  const mistake = written === undefined ? undefined : (placeMistake(written) ?? clearTextMistake(written))
  if (mistake !== undefined) report([addressName(row)], mistake)
  else if (url !== null && (url.search !== '' || (row.server !== undefined && url.pathname !== '/'))) {
    const example = row.server ?? `https://${row.name}.example.com`
    report([addressName(row)], `contains a path or a query: write only scheme and host, like ${example}`)
  }
  if (row.alerts !== undefined && remind !== undefined) {
    report([], `repeats by itself: remove remind, and use ${row.alerts.repeatedBy}`)
  }
  return problems
}

const drillMistake = ({ alerts }: AnyService, values: Readonly<Record<string, unknown>>): string | undefined =>
  alerts === undefined || values[alerts.drills] !== undefined
    ? undefined
    : `has no ${alerts.drills}: a drill would page people; set the key of a service for drills`

/** Where messages go, and the settings with their secrets, which are read for each, so that a rotated one takes effect. */
type Place = {
  readonly base: URL
  readonly values: Readonly<Record<string, unknown>>
  readonly secrets: readonly string[]
  readonly trust: TlsTrust
  readonly proxy: URL | undefined
}

class ServiceReceiver implements Receiver {
  readonly sendsEach: boolean
  readonly #row: AnyService
  readonly #config: ReceiverConfig
  readonly #values: Settings
  readonly #context: ReceiverContext
  /** Scheme and host of a secret URL, once it was read. */
  #origin: string | undefined
  readonly #oneByOne = new OneByOne()

  constructor(row: AnyService, config: ReceiverConfig, values: Settings, context: ReceiverContext) {
    this.#row = row
    this.#config = config
    this.#values = values
    this.#context = context
    this.sendsEach = row.alerts !== undefined
  }

  describe() {
    const to = this.#origin ?? placeText(this.#row, this.#values)
    return { name: this.#config.name, kind: this.#row.name, to }
  }

  async send(notices: readonly Notice[], signal: AbortSignal, id?: string): Promise<Delivery> {
    const [first] = notices
    if (first === undefined) return { what: 'accepted' }
    let place: Place
    try {
      place = await this.#place(isDrill(...notices))
    } catch (error) {
      const { to: origin } = this.describe()
      return failureOf(error, { origin, isSent: false, stop: signal, signal, ms: 0, redact: String })
    }
    if (this.sendsEach) {
      return await this.#oneByOne.send(notices, async (notice) => await this.#post([notice], place, signal))
    }
    const { delivery, status } = await this.#post([first, ...notices.slice(1)], place, signal, id)
    return withReceipt(notices, delivery, () => `status ${status}`)
  }

  async close(): Promise<void> {}

  async #post(
    notices: readonly [Notice, ...Notice[]],
    { base, values, secrets, trust, proxy }: Place,
    signal: AbortSignal,
    message?: string,
  ): Promise<Posted> {
    const row = this.#row
    const { version, now } = this.#context
    const about = messageOf(
      notices,
      this.#config,
      row,
      messageDigest(this.#config.name, notices, message),
      this.#context,
    )
    const { method = 'POST', path, headers = {}, json, form } = requestOf(row, about, values)
    const url = path instanceof URL ? path : new URL(`${base.href.replace(/\/$/, '')}${path}`)
    const credentials = Object.values(headers).flatMap((value) => [value, value.replace(/^\S+ /, '')])
    const target: PostTarget = {
      url,
      headers: { Accept: 'application/json', 'User-Agent': `svc/${version}`, ...headers },
      // Whoever knows where messages go could send some.
      isSecret: true,
      trust,
      servername: this.#values.servername,
      proxy,
      redact: redactorOf(url, [...secrets, ...credentials]),
    }
    const contentType = form === undefined ? 'application/json' : 'application/x-www-form-urlencoded'
    const body = form === undefined ? JSON.stringify(json) : formOf(form)
    const reply = await sendingBy(this.#context)(
      target,
      { method, headers: { 'Content-Type': contentType }, body, maxBody },
      signal,
      now,
    )
    const status = 'status' in reply ? reply.status : undefined
    return { delivery: this.#deliveryOf(reply, target), status }
  }

  #deliveryOf(reply: HttpReply, { url, redact }: PostTarget): Delivery {
    const { accepted, slower, leastPauseMs, alerts, title } = this.#row
    const delivery = deliveryOf(reply, url, this.#context.now, `refuses the ${alerts?.each ?? 'message'}`)
    if (!('status' in reply)) return delivery
    const { status, body = '' } = reply
    if (delivery.what === 'accepted') {
      const origin = shownPlace(url)
      if (accepted.status !== undefined && status !== accepted.status) {
        const message = `${origin} answered ${status}, which is not the receipt of ${title} (${accepted.status})`
        return { what: 'later', message, isPerhapsReceived: true, fault: 'protocol' }
      }
      if (isReceipt(accepted, body)) return delivery
      const says = body.trim() === '' ? 'nothing' : quote(redact(body), maxQuoted)
      return {
        what: 'refused',
        message: `${origin} answered ${status}, but not that it accepts: ${says}`,
        fault: 'data',
      }
    }
    if (delivery.what !== 'later' || status !== 429 || delivery.afterMs !== undefined) return delivery
    const { path, unitMs } = slower ?? { path: [], unitMs: 1 }
    const pause = path.reduce<unknown>(memberOf, jsonOf(body))
    const afterMs = typeof pause === 'number' && pause > 0 ? pause * unitMs : leastPauseMs
    return afterMs === undefined ? delivery : { ...delivery, afterMs: Math.min(Math.ceil(afterMs), maxPause) }
  }

  async #place(forDrill: boolean): Promise<Place> {
    const row = this.#row
    const { files, isTest, show } = this.#context
    const values = { ...this.#values } as Record<string, unknown>
    if (row.alerts !== undefined) {
      // A drill uses the key for drills or none.
      const { key, drills } = row.alerts
      if (forDrill || (isTest === true && values[drills] !== undefined)) values[key] = values[drills]
      delete values[drills]
      if (values[key] === undefined) throw new ProbeError('internal', `there is no ${drills}`)
    }
    const revealed: string[] = []
    let base = URL.parse(addressOf(row, this.#values) ?? '')
    for (const [name, { shape, looksLike, isUrl }] of Object.entries(row.secrets)) {
      const secret = values[name]
      if (!(secret instanceof Secret)) continue
      const text = (await secret.reveal(files)).trim()
      values[name] = text
      revealed.push(text)
      const url = isUrl === true ? secretUrl(text, secret.origin) : undefined
      // The secrets of a preview are none.
      if (show === undefined && !shape.test(url === undefined ? text : `${url.pathname}${url.search}`)) {
        throw new ProbeError('internal', `the secret ${secret.origin} has not the form of ${row.title}: ${looksLike}`)
      }
      if (url === undefined) continue
      if (
        show === undefined &&
        base !== null &&
        (url.origin !== base.origin || !url.pathname.startsWith(base.pathname))
      ) {
        const message = `the URL of ${secret.origin} does not begin with ${shownPlace(base)}: set ${addressName(row)} to its address`
        throw new ProbeError('internal', message)
      }
      base = url
    }
    if (base === null) throw new ProbeError('internal', `${addressName(row)} is missing`)
    this.#origin = shownPlace(base)
    const proxy = show === undefined ? await readProxy(this.#values.proxy, base, files) : undefined
    return { base, values, secrets: revealed, trust: await readTrust(this.#values, files), proxy }
  }
}

/** The request of a row for a message. The values are those of its own settings. */
const requestOf = (row: AnyService, message: ServiceMessage, values: Place['values']): ServiceRequest =>
  (row as unknown as ChatService<SettingsSpec>).request(message, values as never, row.words[message.severity])

const formOf = (fields: NonNullable<ServiceRequest['form']>): string =>
  new URLSearchParams(
    Object.entries(fields).filter((pair): pair is [string, string] => pair[1] !== undefined),
  ).toString()

/** Whether the body of a 2xx answer says that the message was accepted. */
function isReceipt({ body: whole, member, is }: AnyService['accepted'], body: string): boolean {
  if (whole !== undefined) return body.trim() === whole
  if (member === undefined) return true
  const value = memberOf(jsonOf(body), member)
  return is === undefined ? value !== undefined && value !== null : value === is
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined

const jsonOf = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
