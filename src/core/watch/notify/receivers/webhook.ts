import { createHmac } from 'node:crypto'
import { readTrust } from '../../../base/net/trust.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { type Problem, Secret, type SettingsSpec, type Values } from '../../../base/settings/index.ts'
import type { Delivery, Notice, Receiver } from '../receiver.ts'
import type { ReceiverConfig } from '../settings.ts'
import { bodyOf } from './body.ts'
import { type ReceiverContext, receiverKind, receiverTrust, urlTarget } from './kind.ts'
import { messageDigest, withReceipt } from './message.ts'
import {
  deliveryOf,
  failureOf,
  type PostTarget,
  placeMistake,
  redactorOf,
  request,
  secretUrl,
  shownPlace,
} from './post.ts'

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
  ...receiverTrust,
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

function mistakes({ url }: Settings): readonly Problem[] {
  const mistake = url instanceof Secret ? undefined : placeMistake(url)
  return mistake === undefined ? [] : [{ path: ['url'], message: mistake }]
}

class Webhook implements Receiver {
  readonly #config: ReceiverConfig
  readonly #values: Settings
  readonly #context: ReceiverContext
  /** Scheme and host of a secret URL, once it was read. */
  #origin: string | undefined

  constructor(config: ReceiverConfig, values: Settings, context: ReceiverContext) {
    this.#config = config
    this.#values = values
    this.#context = context
  }

  describe() {
    return { name: this.#config.name, kind: webhook.name, to: this.#origin ?? webhook.to(this.#values) }
  }

  async send(notices: readonly Notice[], signal: AbortSignal, message?: string): Promise<Delivery> {
    const { now, files } = this.#context
    const id = `svc_${messageDigest(this.#config.name, notices, message)}`
    const timestamp = String(Math.floor(now() / 1_000))
    const body = JSON.stringify(bodyOf(notices, this.#config, this.#context))
    let place: PostTarget
    let signature: Readonly<Record<string, string>>
    try {
      place = await this.#place()
      const secret = await this.#values.secret?.reveal(files)
      signature =
        secret === undefined ? {} : { 'webhook-signature': sign({ id, timestamp, body }, keyOfSecret(secret)) }
    } catch (error) {
      const { to: origin } = this.describe()
      return failureOf(error, { origin, isSent: false, stop: signal, signal, ms: 0, redact: redactNothing })
    }
    const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, ...signature }
    const ask = { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body } as const
    const reply = await request(place, ask, signal, now)
    return withReceipt(notices, deliveryOf(reply, place.url, now), () =>
      'status' in reply ? `status ${reply.status}` : '',
    )
  }

  async close(): Promise<void> {}

  async #place(): Promise<PostTarget> {
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
      isSecret,
      trust: await readTrust(this.#values, files),
      servername,
      redact: redactorOf(url, basic === undefined ? [] : [basic]),
    }
  }
}

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
