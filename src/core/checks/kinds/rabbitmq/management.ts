import type { Chain } from '../../../base/net/certificates.ts'
import { callOver, open, type Route } from '../../../base/net/http/route.ts'
import { readJson } from '../../../base/net/json.ts'
import { createRedactor, quote, type Redact, sanitize } from '../../../base/net/text.ts'
import { readTrust, trustSettings, unusedTrust } from '../../../base/net/trust.ts'
import { MissingPrivilegeError, ProbeError, refusedSignIn } from '../../../base/probe-error.ts'
import type { SettingsSpec, Values } from '../../../base/settings/index.ts'
import { limitsOn } from '../../assert/limit-check.ts'
import {
  type AddressTurn,
  type CheckContext,
  type Connection,
  checksOn,
  latencySetting,
  proxySettings,
} from '../../engine/index.ts'

/** The settings of the connection. */
export const connectSettings = {
  url: {
    type: 'url',
    protocols: ['http', 'https'],
    required: true,
    doc: 'URL of the management API: http://host:15672 or https://host:15671, without user and password',
  },
  username: { type: 'text', required: true, doc: 'Account with the tag monitoring and a permission in each vhost' },
  password: { type: 'secret', required: true, doc: 'Password of the account; sent in Standard and Advanced' },
  insecureHttp: { type: 'flag', default: false, doc: 'Send the password over http:// even to another machine' },
  ...trustSettings,
  ...proxySettings,
  latency: latencySetting({ warn: 1_000, limit: 5_000 }, 'Maximum response time of the management API'),
} as const satisfies SettingsSpec
type ConnectSettings = Values<typeof connectSettings>

/** Why url and username cannot be combined, or undefined. */
export function validateUrl({ url: written, username, fingerprint, clientCert }: ConnectSettings): string | undefined {
  const url = new URL(written)
  if (url.username !== '' || url.password !== '') return 'url contains a user or a password: use username and password'
  if (url.search !== '') return 'url has query parameters, which are not supported'
  const unused = url.protocol === 'http:' ? unusedTrust({ fingerprint, clientCert }, 'https') : undefined
  if (unused !== undefined) return unused
  if (username.includes(':')) return 'username contains a colon, which HTTP basic authentication does not allow'
  return undefined
}

/** Maximum bytes of one answer; /api/nodes has about ten thousand per node. */
const maxAnswerBytes = 4 * 1024 * 1024

export type ManagementAnswer = {
  readonly status: number
  /** Undefined if the answer is not JSON. */
  readonly body: unknown
  readonly location: string | undefined
}

/** Requests that carry the account's password. */
export type Account = {
  readonly address: string
  readonly username: string
  /** Redacts svc's own secrets from text of the server. */
  readonly redact: Redact
  /** Reads `/api/<path>`. Throws ProbeError, or a socket's error. */
  readonly get: (path: string) => Promise<ManagementAnswer>
}

/** The HTTP management of RabbitMQ at one address. Every request opens its own connection and follows no redirect. */
export type Management = Connection & {
  readonly address: string
  /** The answer to the anonymous request. */
  readonly greeting: ManagementAnswer
  /** Reads the password; sends nothing yet. */
  readonly account: () => Promise<Account>
  /** The certificate chain of the last connection with https. */
  readonly chain: () => Chain | undefined
}

/** Servers that collect no statistics, and whether svc.yaml gives a setting of their monitor. */
export const uncounted = new WeakMap<Management, CheckContext['isConfigured']>()

/** Gives the checks of rabbitmq their types. */
export const onManagement = checksOn<Management>()
export const limitOnManagement = limitsOn<Management>()

/** The management demands a sign-in from anonymous callers, unless a proxy signs in for them. */
const isManagement = ({ status, body }: ManagementAnswer): boolean =>
  status === 401 || (status === 200 && body !== undefined)

/** Sends an anonymous request to the management. Throws ProbeError, or a socket's error. */
export async function openManagement(
  at: AddressTurn,
  { url, username, password, insecureHttp, ...trustValues }: ConnectSettings,
  context: CheckContext,
): Promise<Management> {
  const base = new URL(url)
  const prefix = base.pathname.replace(/(?<!\/)\/+$/, '')
  const common = { Host: base.host, 'User-Agent': 'svc', Accept: 'application/json', Connection: 'close' }
  const trust = await readTrust(trustValues, context.files)
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
        trust,
        servername: trustValues.servername,
        redact,
      }
      const link = await open(at, base, route, context)
      chain = link.chain
      try {
        const request = { method: 'GET', path: `${prefix}/api/${path}`, headers: { ...common, ...own } }
        const head = await callOver({ socket: link.socket, at, url: base }, request, route, context)
        const { bytes, more } = await head.read(maxAnswerBytes)
        if (more)
          throw new ProbeError('protocol', `${at.address} answered /api/${sanitize(path, 80)} with more than 4 MiB`)
        return { status: head.status, body: parsed(bytes), location: head.headers.location }
      } finally {
        link.socket.destroy()
      }
    }
  const signIn = async (): Promise<Account> => {
    const word = await password.reveal(context.files)
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
  const read = readJson(bytes.toString('utf8'))
  return 'json' in read ? read.json : undefined
}

export type ManagementJson = Readonly<Record<string, unknown>>

export const object = (value: unknown): ManagementJson =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ManagementJson) : {}
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as readonly unknown[]) : [])
export const number = (json: ManagementJson, name: string): number | undefined => {
  const value = json[name]
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}
/** Text of the server, safe to show; empty for any other value. */
export const words = (value: unknown, { redact }: Account, max = 80): string =>
  typeof value === 'string' ? sanitize(redact(value), max) : ''

/** The command that lets an account see nodes and their figures. */
export const setTags = (account: string): string => `rabbitmqctl set_user_tags ${account} monitoring`

/** The command that lets an account see the queues of a vhost without configuring, writing or reading them. */
export const setPermissions = (account: string): string =>
  `rabbitmqctl set_permissions -p <vhost> ${account} "^$" "^$" "^$"`

/** The body of an answer. Throws ProbeError for a missing permission, an outage, or another server. */
export function content(
  { status, body }: ManagementAnswer,
  what: string,
  { address, username, redact }: Account,
): unknown {
  const { reason } = object(body)
  const why = typeof reason === 'string' ? redact(reason).slice(0, 200) : ''
  if (status === 200 && body !== undefined) return body
  if (status === 200) throw new ProbeError('protocol', `${address} answered 200 to ${what}, but not with JSON`)
  if (status === 401 || status === 403) {
    // The password was accepted before, so this must not count as a refused sign-in, which would suspend further
    // sign-ins for a while.
    const account = sanitize(username, 64)
    const grant = /virtual host/i.test(why) ? setPermissions(account) : setTags(account)
    throw new MissingPrivilegeError(`${quote(username, 64)} has no permission to read ${what}: ${why || status}`, [
      grant,
    ])
  }
  if (status === 404) throw new ProbeError('data', `${address} has no ${what}`)
  throw new ProbeError('data', `${address} answered ${status} to ${what}${why === '' ? '' : `: ${why}`}`)
}

/** Like `content`, for the first request with the password: here, a 401 is a refused sign-in. */
export function signInContent(answer: ManagementAnswer, account: Account): unknown {
  const { reason } = object(answer.body)
  if (answer.status !== 401) return content(answer, 'overview', account)
  const why = typeof reason === 'string' ? account.redact(reason).slice(0, 200) : 'without a reason'
  if (/^not (management|monitor) user/i.test(why)) return content(answer, 'overview', account)
  throw refusedSignIn(account.address, quote(account.username, 64), why)
}
