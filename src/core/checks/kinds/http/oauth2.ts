import { isLoopbackHost } from '../../../base/loopback.ts'
import { hostPort } from '../../../base/net/connect.ts'
import { createRedactor, type Redact } from '../../../base/net/text.ts'
import { hostOf, portOf } from '../../../base/net/url.ts'
import { ProbeError, RefusedSignInError } from '../../../base/probe-error.ts'
import { hostAndPort, type SettingsSpec, type Values } from '../../../base/settings/index.ts'
import {
  type CheckContext,
  classify,
  deadlineSignal,
  notChecked,
  orAborted,
  type Result,
  type SignIn,
} from '../../engine/index.ts'

export const oauth2Setting = {
  type: 'group',
  doc: 'Gets a bearer token with the client credentials of OAuth 2.0, from Standard on, and keeps it in memory until it ends; monitors that name the same client share it',
  fields: {
    tokenUrl: {
      type: 'url',
      protocols: ['http', 'https'],
      required: true,
      doc: 'Token endpoint: https, or http on loopback; redirects are not followed',
    },
    clientId: { type: 'text', required: true, doc: 'A client of its own for svc, which may only read' },
    clientSecret: { type: 'secret', required: true, doc: 'Secret of the client, sent only to tokenUrl' },
    scopes: { type: 'texts', doc: 'Scopes to request' },
  },
} as const satisfies SettingsSpec[string]
export type OAuth2 = NonNullable<Values<{ oauth2: typeof oauth2Setting }>['oauth2']>

/** The client as the account of the monitor. Its refusal concerns the token endpoint, whatever the monitor requests. */
export function clientSignIn({ tokenUrl, clientId, clientSecret, scopes = [] }: OAuth2): SignIn {
  const url = new URL(tokenUrl)
  const target = { host: hostOf(url), port: portOf(url) }
  return {
    account: `${clientId} ${url.pathname} ${scopes.join(' ')}`,
    secrets: [clientSecret],
    result: 'connect',
    target,
  }
}

/** Why the settings cannot be used, or undefined. */
export function oauth2Problem({ tokenUrl, clientSecret }: OAuth2, monitorUrl: string): string | undefined {
  const [url, own] = [new URL(tokenUrl), new URL(monitorUrl)]
  if (url.protocol === 'http:' && !isLoopbackHost(hostOf(url))) return 'oauth2.tokenUrl has to be https, or on loopback'
  const [bound, place] = [own, url].map((one) => hostAndPort(hostOf(one), portOf(one)))
  return clientSecret.origin.startsWith('{keychain:') && bound !== place
    ? `oauth2.clientSecret ${clientSecret.origin} is bound to ${bound}, and would be sent to ${place}: use {file: /path}`
    : undefined
}

type Token = { readonly access: string; readonly endsMs: number; readonly madeMs: number }
/** The tokens of a process, which are stored nowhere else, by all that distinguishes them. */
const tokensOf = new WeakMap<object, Map<string, Promise<Token>>>()

/** Milliseconds for which a token counts whose end the provider does not tell, and before which none is renewed. */
const minuteMs = 60_000

/** The token of a client as monitors use it. */
export type ClientToken = {
  readonly access: string
  readonly redact: Redact
  /**
   * Another token after the API has answered 401 to this one: the one that another monitor has got meanwhile, or a new
   * one. Undefined if this one is new itself, so that no answer makes svc request tokens again and again.
   */
  readonly renewed: () => Promise<ClientToken | undefined>
}

/** The token of the client. Throws ProbeError; RefusedSignInError if the provider refuses the client. */
export async function clientToken(
  oauth2: OAuth2,
  caFile: string | undefined,
  context: CheckContext,
): Promise<ClientToken> {
  const secret = await oauth2.clientSecret.reveal(context.files)
  const { tokenUrl, clientId, scopes = [] } = oauth2
  const key = JSON.stringify([tokenUrl, clientId, scopes, secret, caFile])
  const tokens = tokensOf.get(context.services) ?? new Map<string, Promise<Token>>()
  tokensOf.set(context.services, tokens)
  const current = async (isUsable: (token: Token) => boolean): Promise<Token> => {
    const before = tokens.get(key)
    // Another monitor's request may have ended with its deadline, which is not that of this one.
    const token = before && (await orAborted(before, context.signal).catch(() => undefined))
    if (token && isUsable(token) && token.endsMs > context.now()) return token
    const latest = tokens.get(key)
    if (latest !== before && latest !== undefined) return await current(isUsable)
    const request = requestToken(oauth2, caFile, context)
    tokens.set(key, request)
    request.catch(() => tokens.get(key) === request && tokens.delete(key))
    return await request
  }
  const used = ({ access, madeMs }: Token): ClientToken => ({
    access,
    redact: createRedactor([access, secret]),
    renewed: async () => {
      const other = (one: Token): boolean => one.access !== access
      if (context.now() - madeMs < minuteMs) return undefined
      return used(await current(other))
    },
  })
  return used(await current(() => true))
}

/**
 * The result of a monitor that gets no token: nothing reached the server that it checks, so that nothing is said about it.
 * Undefined with a token. Throws RefusedSignInError, and what the signal aborts with.
 */
export async function missingToken(
  oauth2: OAuth2,
  caFile: string | undefined,
  context: CheckContext,
): Promise<Result | undefined> {
  const since = context.now()
  const { signal, clear } = deadlineSignal(context.signal, context.msLeft() / 2)
  try {
    await clientToken(oauth2, caFile, { ...context, signal })
    return undefined
  } catch (error) {
    if (error instanceof RefusedSignInError || context.signal.aborted) throw error
    const { message, details } = classify(error, new URL(oauth2.tokenUrl).host, context.now() - since)
    return notChecked('connect', 'missing', `no token: ${message}`, { details, isLast: true })
  } finally {
    clear()
  }
}

async function requestToken(oauth2: OAuth2, caFile: string | undefined, context: CheckContext): Promise<Token> {
  const { byClient, providerAt } = await import('../oidc/index.ts')
  const url = new URL(oauth2.tokenUrl)
  context.step('connect', url.host)
  const [ip] = await context.resolve(hostOf(url))
  if (ip === undefined) throw new ProbeError('dns', `${hostOf(url)} has no address`)
  const at = { ip, port: portOf(url), address: hostPort(ip, portOf(url)), signal: context.signal, step: context.step }
  const { clientId, clientSecret, scopes } = oauth2
  const latency = { warn: undefined, limit: undefined }
  const settings = {
    issuer: oauth2.tokenUrl,
    clientId,
    clientSecret,
    scope: scopes?.join(' '),
    caFile,
    insecureHttp: false,
    latency,
  }
  const provider = await providerAt(settings, at, context)
  const { access, expiresIn } = await byClient({ provider, settings, document: { token_endpoint: oauth2.tokenUrl } })
  const madeMs = context.now()
  // A little earlier, because the API compares with a clock of its own, later.
  const lifeMs = expiresIn === undefined ? minuteMs : expiresIn * 1_000 - Math.min(30_000, expiresIn * 100)
  return { access, madeMs, endsMs: madeMs + lifeMs }
}
