import { type AddressTurn, type CheckContext, type Connection, checksOn, latencySetting } from '../../engine/index.ts'
import { type Chain, caFileSetting, readCaFile } from '../../net/certificates.ts'
import { call } from '../../net/http/call.ts'
import { open, type Route } from '../../net/http/route.ts'
import { createRedactor, quote, type Redact, sanitize } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'

/** What decides how to connect. */
export const connectSettings = {
  url: {
    type: 'url',
    protocols: ['http', 'https'],
    required: true,
    doc: 'The management: http://host:15672 or https://host:15671, without user or password',
  },
  username: { type: 'text', required: true, doc: 'An account with the tag monitoring and a right in each vhost' },
  password: { type: 'secret', required: true, doc: 'Its password; sent from Standard on' },
  insecureHttp: { type: 'flag', default: false, doc: 'Send the password over http:// to another machine too' },
  caFile: caFileSetting,
  latency: latencySetting({ warn: 1_000, limit: 5_000 }, 'How long the management may take to answer'),
} as const satisfies SettingsSpec
type ConnectSettings = Values<typeof connectSettings>

/** Why url and username cannot be used together, or undefined. */
export function validateUrl({ url: written, username }: ConnectSettings): string | undefined {
  const url = new URL(written)
  if (url.username !== '' || url.password !== '') return 'url holds a user or a password: use username and password'
  if (url.search !== '') return 'url has parameters, which are not read'
  if (username.includes(':')) return 'a username of HTTP basic sign-in holds no colon'
  return undefined
}

/** Bytes of one answer: that of /api/nodes has about ten thousand for each node. */
const maxAnswerBytes = 4 * 1024 * 1024

export type ManagementAnswer = {
  readonly status: number
  /** Undefined for what is no JSON. */
  readonly body: unknown
  readonly location: string | undefined
}

/** Requests with the password of the account. */
export type Account = {
  readonly address: string
  readonly username: string
  /** Takes our secrets out of what the server says. */
  readonly redact: Redact
  /** Reads `/api/<path>`. Throws ProbeError, or what a socket throws. */
  readonly get: (path: string) => Promise<ManagementAnswer>
}

/** The HTTP management of RabbitMQ at one address. Every request has a connection of its own; no redirect is followed. */
export type Management = Connection & {
  readonly address: string
  /** What it answered before anybody signed in. */
  readonly greeting: ManagementAnswer
  /** Reveals the password, and sends nothing yet. */
  readonly account: () => Promise<Account>
  /** The chain of the last connection, with https. */
  readonly chain: () => Chain | undefined
}

/** Gives the checks of rabbitmq their types. */
export const onManagement = checksOn<Management>()

/** It asks strangers to sign in; one behind a proxy that signs in for them answers. */
const isManagement = ({ status, body }: ManagementAnswer): boolean =>
  status === 401 || (status === 200 && body !== undefined)

/** Asks the management as a stranger. Throws ProbeError, or what a socket throws. */
export async function openManagement(
  at: AddressTurn,
  { url, username, password, insecureHttp, caFile }: ConnectSettings,
  context: CheckContext,
): Promise<Management> {
  const base = new URL(url)
  const prefix = base.pathname.replace(/(?<!\/)\/+$/, '')
  const common = { Host: base.host, 'User-Agent': 'svc', Accept: 'application/json', Connection: 'close' }
  const ca = await readCaFile(caFile)
  let chain: Chain | undefined
  const getter =
    (own: Readonly<Record<string, string>>, redact: Redact) =>
    async (path: string): Promise<ManagementAnswer> => {
      const signsIn = 'Authorization' in own
      const route: Route = {
        url: base,
        method: 'GET',
        common,
        own,
        signsIn,
        insecureHttp,
        redirects: 0,
        verify: true,
        ca,
        redact,
      }
      const link = await open(at, base, route, context)
      chain = link.chain
      try {
        const request = { method: 'GET', path: `${prefix}/api/${path}`, headers: { ...common, ...own } }
        const head = await call(link.socket, at.address, request, redact)
        const { bytes, more } = await head.read(maxAnswerBytes)
        if (more)
          throw new ProbeError('protocol', `${at.address} answered /api/${sanitize(path, 80)} with more than 4 MiB`)
        return { status: head.status, body: parsed(bytes), location: head.headers.location }
      } finally {
        link.socket.destroy()
      }
    }
  const signIn = async (): Promise<Account> => {
    const word = await password.reveal()
    const packed = Buffer.from(`${username}:${word}`).toString('base64')
    const redact = createRedactor([word, packed])
    return { address: at.address, username, redact, get: getter({ Authorization: `Basic ${packed}` }, redact) }
  }
  let account: Promise<Account> | undefined
  const greeting = await getter({}, createRedactor([]))('overview')
  return {
    address: at.address,
    greeting,
    usable: isManagement(greeting),
    account: () => {
      account ??= signIn()
      return account
    },
    chain: () => chain,
    close: () => {},
  }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown
  } catch {
    return undefined
  }
}

export type ManagementJson = Readonly<Record<string, unknown>>

export const object = (value: unknown): ManagementJson =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ManagementJson) : {}
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as readonly unknown[]) : [])
export const number = (json: ManagementJson, name: string): number | undefined => {
  const value = json[name]
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}
/** A text of the server's, fit to be shown; empty for what is none. */
export const words = (value: unknown, { redact }: Account, max = 80): string =>
  typeof value === 'string' ? sanitize(redact(value), max) : ''

/** The command that lets an account see nodes and their figures. */
export const setTags = (account: string): string => `rabbitmqctl set_user_tags ${account} monitoring`

/** What an answer holds. Throws ProbeError for what is none: a right that is missing, an outage, another server. */
export function content(
  { status, body }: ManagementAnswer,
  what: string,
  { address, username, redact }: Account,
): unknown {
  const { reason } = object(body)
  const why = typeof reason === 'string' ? redact(reason).slice(0, 200) : ''
  if (status === 200 && body !== undefined) return body
  if (status === 200) throw new ProbeError('protocol', `${address} answered 200 to ${what}, but no JSON`)
  if (status === 401 || status === 403) {
    // The password was right: this must not be taken for a refused sign-in, which is not repeated for a while.
    const next = `next: ${setTags(sanitize(username, 64))}, and set_permissions for the vhost`
    throw new ProbeError('data', `${quote(username, 64)} may not see ${what}: ${why || status}`, [next])
  }
  if (status === 404) throw new ProbeError('data', `${address} has no ${what}`)
  throw new ProbeError('data', `${address} answered ${status} to ${what}${why === '' ? '' : `: ${why}`}`)
}

/** As `content`, for the first request that carries the password: here a refusal is one of the sign-in. */
export function signInContent(answer: ManagementAnswer, account: Account): unknown {
  const { reason } = object(answer.body)
  if (answer.status !== 401) return content(answer, 'overview', account)
  const why = typeof reason === 'string' ? account.redact(reason).slice(0, 200) : 'without a reason'
  if (/^not (management|monitor) user/i.test(why)) return content(answer, 'overview', account)
  throw new ProbeError('auth', `${account.address} refused the sign-in of ${quote(account.username, 64)}: ${why}`)
}
