import { createHmac } from 'node:crypto'
import { parseExactly } from '../../../base/json.ts'
import { deepestJson, readJson } from '../../../base/net/json.ts'
import { readTrust } from '../../../base/net/trust.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import {
  type Problem,
  Secret,
  type SettingsSpec,
  statusMistake,
  type Template,
  type Values,
} from '../../../base/settings/index.ts'
import { expectedValues, unmetValues } from '../../../checks/assert/document.ts'
import { statusAllowed } from '../../../checks/assert/expectation.ts'
import type { Delivery, Notice, Receiver } from '../receiver.ts'
import type { ReceiverConfig } from '../settings.ts'
import { bodyOf } from './body.ts'
import { OneByOne, type Posted } from './each.ts'
import { type ReceiverContext, readProxy, receiverKind, receiverProxy, receiverTrust, urlTarget } from './kind.ts'
import { messageDigest, withReceipt } from './message.ts'
import {
  clearTextMistake,
  deliveryOf,
  failureOf,
  type HttpReply,
  type PostTarget,
  placeMistake,
  redactorOf,
  secretUrl,
  sendingBy,
  shownPlace,
} from './post.ts'
import { filled, templateMistake } from './template.ts'

const settings = {
  url: {
    type: 'url',
    protocols: ['https', 'http'],
    orSecret: true,
    required: true,
    doc: 'Where to post: a URL, or a secret with one, such as {env: CHAT_URL}. Lists, logs and messages show its scheme and host only',
  },
  secret: {
    type: 'secret',
    doc: 'Secret of the signature by Standard Webhooks: whsec_ and base64 of 24 to 64 bytes. Without it, messages have no signature',
  },
  method: { type: 'choice', values: ['POST', 'PUT', 'PATCH'], default: 'POST', doc: 'Method of the request' },
  headers: {
    type: 'template',
    mistake: templateMistake,
    doc: 'Headers of the request: name to text, with placeholders as in `body`, or to a secret such as {env: CHAT_TOKEN}',
  },
  body: {
    type: 'template',
    mistake: templateMistake,
    doc: 'A body of your own, sent as JSON, instead of that of Alertmanager. Its texts may contain {summary}, {count}, {status}, {severity}, {server}, {type}, {monitor}, {check}, {message}, {since}, {link} and {incident}; a text may be a secret such as {env: CHAT_KEY}',
  },
  form: { type: 'template', mistake: templateMistake, doc: 'Fields of a form, sent instead of a body, as in `body`' },
  each: {
    type: 'choice',
    values: ['message', 'incident'],
    default: 'message',
    doc: 'Whether `body` or `form` is sent for each message, about its worst incident, or for each incident',
  },
  accept: {
    type: 'group',
    hasDefaults: true,
    fields: {
      status: {
        type: 'texts',
        default: ['2xx'],
        mistake: statusMistake,
        doc: 'Statuses that mean accepted: 200, 2xx, 200-299',
      },
      json: {
        ...expectedValues('json'),
        doc: 'Values of the JSON that is answered, as in monitors of kind http: path such as $.ok to text, /pattern/ or comparison, or to {not: …}',
      },
    },
    doc: 'Which answer means that the message was accepted. Any other is a refusal, but for those after which svc tries again',
  },
  ...receiverTrust,
  ...receiverProxy,
} as const satisfies SettingsSpec
type Settings = Values<typeof settings>

/** Bytes of the key of a signature. */
const keyBytes = { min: 24, max: 64 }

export const webhook = receiverKind({
  name: 'webhook',
  doc: 'A URL that gets the body that Alertmanager sends to webhooks, signed by Standard Webhooks',
  settings,
  needsStore: false,
  mistakes,
  to: ({ url }) => (url instanceof Secret ? `the URL of ${url.origin}` : shownPlace(new URL(url))),
  target: ({ url }) => (url instanceof Secret ? undefined : urlTarget(url)),
  open: async (config, values, context) => new Webhook(config, values, context),
})

/** Bytes of an answer that is read for `accept`. */
const maxBody = 64 * 1_024
/** Headers that belong to the connection, or that svc makes. */
const ownHeaders = /^(?:host|connection|content-length|transfer-encoding|webhook-.*)$/i

function mistakes({ url, headers, body, form, each }: Settings): readonly Problem[] {
  const problems: Problem[] = []
  const report = (path: Problem['path'], message: string): void => void problems.push({ path, message })
  const mistake = url instanceof Secret ? undefined : placeMistake(url)
  if (mistake !== undefined) report(['url'], mistake)
  if (headers !== undefined && !isTexts(headers)) report(['headers'], 'must be a map of names to texts or secrets')
  for (const name of isTexts(headers) ? Object.keys(headers) : []) {
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) report(['headers', name], 'is not the name of a header')
    else if (ownHeaders.test(name)) report(['headers', name], 'is a header that svc sets itself: remove it')
  }
  const isSecret = [headers, body, form].some(holdsSecret)
  const clear = isSecret && typeof url === 'string' ? clearTextMistake(url) : undefined
  if (clear !== undefined) report(['url'], clear)
  if (body !== undefined && form !== undefined) report(['form'], 'cannot be used beside body: keep one')
  if (form !== undefined && !isTexts(form)) report(['form'], 'must be a map of names to texts or secrets')
  if (each === 'incident' && body === undefined && form === undefined) report(['each'], 'needs body or form')
  return problems
}

const isTexts = (value: Template | undefined): value is Readonly<Record<string, string | number | boolean | Secret>> =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Secret) &&
  Object.values(value).every((one) => one instanceof Secret || typeof one !== 'object')

const holdsSecret = (value: Template | undefined): boolean =>
  value instanceof Secret || (typeof value === 'object' && value !== null && Object.values(value).some(holdsSecret))

class Webhook implements Receiver {
  readonly sendsEach: boolean
  readonly #oneByOne = new OneByOne()
  readonly #config: ReceiverConfig
  readonly #values: Settings
  readonly #context: ReceiverContext
  /** Scheme and host of a secret URL, once it was read. */
  #origin: string | undefined

  constructor(config: ReceiverConfig, values: Settings, context: ReceiverContext) {
    this.#config = config
    this.#values = values
    this.#context = context
    this.sendsEach = values.each === 'incident'
  }

  describe() {
    return { name: this.#config.name, kind: webhook.name, to: this.#origin ?? webhook.to(this.#values) }
  }

  async send(notices: readonly Notice[], signal: AbortSignal, message?: string): Promise<Delivery> {
    const [first, ...others] = notices
    if (first === undefined) return { what: 'accepted' }
    if (this.sendsEach) {
      return await this.#oneByOne.send(notices, async (notice) => await this.#post([notice], signal, undefined))
    }
    const { delivery, status } = await this.#post([first, ...others], signal, message)
    return withReceipt(notices, delivery, () => `status ${status}`)
  }

  async #post(
    notices: readonly [Notice, ...Notice[]],
    signal: AbortSignal,
    message: string | undefined,
  ): Promise<Posted> {
    const { now, files, show } = this.#context
    const { method, accept } = this.#values
    const id = `svc_${messageDigest(this.#config.name, notices, message)}`
    const timestamp = String(Math.floor(now() / 1_000))
    let place: PostTarget
    let headers: Readonly<Record<string, string>>
    let body: string
    try {
      const secrets: string[] = []
      const fill = async (template: Template): Promise<unknown> =>
        await filled(template, { notices, config: this.#config, context: this.#context }, files, secrets)
      const own = texts(await fill(this.#values.headers ?? {}))
      const form = this.#values.form === undefined ? undefined : texts(await fill(this.#values.form))
      const { body: template } = this.#values
      body =
        form === undefined
          ? JSON.stringify(template === undefined ? bodyOf(notices, this.#config, this.#context) : await fill(template))
          : new URLSearchParams(form).toString()
      place = await this.#place(secrets)
      const secret = await this.#values.secret?.reveal(files)
      headers = {
        'Content-Type': form === undefined ? 'application/json' : 'application/x-www-form-urlencoded',
        ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name, value.replaceAll(/[\r\n]/g, ' ')])),
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        ...(secret === undefined
          ? {}
          : { 'webhook-signature': show ? secret : sign({ id, timestamp, body }, keyOfSecret(secret)) }),
      }
    } catch (error) {
      const { to: origin } = this.describe()
      return {
        delivery: failureOf(error, { origin, isSent: false, stop: signal, signal, ms: 0, redact: redactNothing }),
      }
    }
    const keep = accept.json === undefined ? {} : { maxBody }
    const reply = await sendingBy(this.#context)(place, { method, headers, body, ...keep }, signal, now)
    const status = 'status' in reply ? reply.status : undefined
    return { delivery: this.#deliveryOf(reply, place), status }
  }

  #deliveryOf(reply: HttpReply, { url, redact }: PostTarget): Delivery {
    const { status: statuses, json } = this.#values.accept
    const delivery = deliveryOf(reply, url, this.#context.now)
    if (!('status' in reply) || delivery.what === 'later') return delivery
    const { status, body = '' } = reply
    const isExpected = statusAllowed(status, statuses)
    if (!isExpected && delivery.what === 'refused') return delivery
    const refuses = (why: string): Delivery => ({
      what: 'refused',
      message: `${shownPlace(url)} answered ${status}, but accept is not met: ${why}`,
      fault: 'data',
    })
    if (!isExpected) return refuses(`its status is not ${statuses.join(' or ')}`)
    if (json === undefined) return { what: 'accepted' }
    const read = readJson(body, deepestJson, parseExactly)
    if (!('json' in read)) return refuses('the answer is not JSON')
    const [unmet] = unmetValues({ json: () => ({ value: read.json }), xml: undefined }, json, redact)
    return unmet === undefined ? { what: 'accepted' } : refuses(unmet[1])
  }

  async close(): Promise<void> {}

  /** `secrets`: those of headers and body, which no answer may repeat. */
  async #place(secrets: readonly string[]): Promise<PostTarget> {
    const { files, version } = this.#context
    const { url: setting, servername } = this.#values
    const isSecret = setting instanceof Secret
    const written = isSecret ? (await setting.reveal(files)).trim() : setting
    const url = isSecret ? secretUrl(written, setting.origin) : new URL(written)
    this.#origin = shownPlace(url)
    const account =
      url.username === '' ? undefined : `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
    const basic = account === undefined ? undefined : Buffer.from(account).toString('base64')
    return {
      url,
      headers: {
        Accept: '*/*',
        'User-Agent': `svc/${version}`,
        ...(basic === undefined ? {} : { Authorization: `Basic ${basic}` }),
      },
      isSecret: isSecret || secrets.length > 0,
      trust: await readTrust(this.#values, files),
      servername,
      proxy: this.#context.show === undefined ? await readProxy(this.#values.proxy, url, files) : undefined,
      redact: redactorOf(url, [...secrets, ...(basic === undefined ? [] : [basic])]),
    }
  }
}

/** A filled map as texts. */
const texts = (map: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(map as object).map(([name, value]) => [name, String(value)]))

/** Keeps texts from settings and files as they are: they are ours. */
const redactNothing = (text: string | Uint8Array): string => String(text)

/** The key of a secret of Standard Webhooks. Throws ProbeError, without repeating the secret. */
function keyOfSecret(secret: string): Buffer {
  const text = secret.trim().replace(/^whsec_/, '')
  const key = /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0)
  if (key.length >= keyBytes.min && key.length <= keyBytes.max) return key
  const cure = 'make one with: echo "whsec_$(openssl rand -base64 32)"'
  throw new ProbeError('internal', `the secret of the signature is not base64 of 24 to 64 bytes; ${cure}`)
}

/** The signature of a message, as https://www.standardwebhooks.com specifies it. */
export const sign = (
  { id, timestamp, body }: { readonly id: string; readonly timestamp: string; readonly body: string },
  key: Uint8Array,
): string => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
