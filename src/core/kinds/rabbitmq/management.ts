import type { CheckContext } from '../../engine/index.ts'
import { readCaFile } from '../../net/ca-file.ts'
import type { Chain } from '../../net/chain.ts'
import { call } from '../../net/http/call.ts'
import { open, type Route } from '../../net/http/route.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { type Hide, hiding, quoted, said } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import type { RabbitmqSettings } from './settings.ts'

/** Bytes of one answer: that of /api/nodes has about ten thousand for each node. */
const largestAnswer = 4 * 1024 * 1024

export type Answer = {
  readonly status: number
  /** Undefined for what is no JSON. */
  readonly body: unknown
  readonly location: string | undefined
}

/** The HTTP management of RabbitMQ at one address. Every request has a connection of its own; no redirect is followed. */
export type Management = {
  readonly address: string
  readonly hide: Hide
  readonly ask: (path: string) => Promise<Answer>
  /** The chain of the last connection, with https. */
  readonly chain: () => Chain | undefined
}

/** `signedIn`: with the account's password. Throws ProbeError, or what a socket throws. */
export async function managementAt(
  given: RabbitmqSettings,
  at: PeerAddress,
  context: CheckContext,
  signedIn: boolean,
): Promise<Management> {
  const base = new URL(given.url)
  const prefix = base.pathname.replace(/(?<!\/)\/+$/, '')
  const password = signedIn ? await given.password.reveal() : ''
  const packed = Buffer.from(`${given.username}:${password}`).toString('base64')
  const hide = hiding(signedIn ? [password, packed] : [])
  const headers = { Host: base.host, 'User-Agent': 'svc', Accept: 'application/json', Connection: 'close' }
  const route: Route = {
    url: base,
    method: 'GET',
    common: headers,
    own: signedIn ? { Authorization: `Basic ${packed}` } : {},
    signsIn: signedIn,
    insecureHttp: given.insecureHttp,
    redirects: 0,
    verify: true,
    ca: await readCaFile(given.caFile),
    hide,
  }
  let chain: Chain | undefined
  const ask = async (path: string): Promise<Answer> => {
    const link = await open(at, base, route, context)
    chain = link.chain
    try {
      const request = { method: 'GET', path: `${prefix}/api/${path}`, headers: { ...route.common, ...route.own } }
      const head = await call(link.socket, at.address, request, hide)
      const { bytes, more } = await head.read(largestAnswer)
      if (more) throw new ProbeError('protocol', `${at.address} answered /api/${said(path, 80)} with more than 4 MiB`)
      return { status: head.status, body: parsed(bytes), location: head.headers.location }
    } finally {
      link.socket.destroy()
    }
  }
  return { address: at.address, hide, ask, chain: () => chain }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown
  } catch {
    return undefined
  }
}

export type Json = Readonly<Record<string, unknown>>

export const object = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as readonly unknown[]) : [])

/** What an answer holds. Throws ProbeError for what is none: a right that is missing, an outage, another server. */
export function content(answer: Answer, what: string, username: string, management: Management): unknown {
  const { status, body } = answer
  const { address, hide } = management
  const reason = object(body).reason
  const told = typeof reason === 'string' ? hide(reason).slice(0, 200) : ''
  if (status === 200 && body !== undefined) return body
  if (status === 200) throw new ProbeError('protocol', `${address} answered 200 to ${what}, but no JSON`)
  if (status === 401 || status === 403) {
    // The password was right: this must not be taken for a refused sign-in, which is not repeated for a while.
    const next = `next: rabbitmqctl set_user_tags ${said(username, 64)} monitoring, and set_permissions for the vhost`
    throw new ProbeError('data', `${quoted(username, 64)} may not see ${what}: ${told || status}`, [next])
  }
  if (status === 404) throw new ProbeError('data', `${address} has no ${what}`)
  throw new ProbeError('data', `${address} answered ${status} to ${what}${told === '' ? '' : `: ${told}`}`)
}

/** As `content`, for the first request that carries the password: here a refusal is one of the sign-in. */
export function signedIn(answer: Answer, username: string, management: Management): unknown {
  const reason = object(answer.body).reason
  if (answer.status !== 401) return content(answer, 'overview', username, management)
  const told = typeof reason === 'string' ? management.hide(reason).slice(0, 200) : 'without a reason'
  if (/^not (management|monitor) user/i.test(told)) return content(answer, 'overview', username, management)
  throw new ProbeError('auth', `${management.address} refused the sign-in of ${quoted(username, 64)}: ${told}`)
}
