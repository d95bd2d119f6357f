import {
  type Authenticate,
  type AuthenticateResponse,
  type AuthPurpose,
  authPurpose,
  type ChangePasswordResponse,
  operations,
} from '../protocol/index.ts'
import type { Call } from '../protocol/service/service.ts'
import type { HttpAnswer } from './answer.ts'
import { baseUrl, ownOrigin, type RequestContext, type ServerContext, signedRequest } from './context.ts'
import {
  basicCredential,
  cookieNames,
  digestParameters,
  type PresentedCredential,
  presented,
  readCookies,
  setCookie,
} from './credential.ts'
import { html, pagePolicy, trusted } from './html.ts'
import { dtoAnswer } from './response.ts'
import type { RequestTarget, ResponseNegotiation } from './routes.ts'
import { style } from './style.ts'

export type AuthCall = {
  readonly kind: AuthPurpose
  readonly request: Authenticate
  /** Whether the call may change anything. HEAD never does (R4). */
  readonly changes: boolean
  readonly presented: PresentedCredential
  readonly more: Pick<Call, 'verb' | 'continueTo' | 'browser' | 'signed'>
  /** Where a sign-in by redirects sends the browser. Set during the call. */
  readonly redirect: { to: Redirect | undefined }
}
type Redirect = Parameters<NonNullable<Call['browser']>['redirect']>[0]

/** The purpose of a request to /auth and the credential that it presents (A1, A5–A7). */
export function authCall(
  server: ServerContext,
  context: RequestContext,
  dto: unknown,
  target: RequestTarget,
  negotiation: ResponseNegotiation,
): AuthCall {
  const request = withBasic(server, context, dto as Authenticate)
  const { method } = context.logFields
  const asks = method === 'GET' || method === 'HEAD'
  const verb = asks ? 'GET' : method === 'DELETE' ? 'DELETE' : 'POST'
  const kind = authPurpose(verb, request)
  const ambient = negotiation.negotiated.callback === undefined
  const redirect: AuthCall['redirect'] = { to: undefined }
  const signed = signedRequest(server, context)
  const url = target.pairs.find(([name]) => name.toLowerCase() === 'continue')?.[1]
  return {
    kind,
    request,
    changes: method !== 'HEAD' && (kind === 'sign-out' || !asks),
    // A HEAD that looks like a sign-out ends no session (R4).
    presented:
      method === 'HEAD' && kind === 'sign-out'
        ? { credential: undefined, ambient: false }
        : presented(context.request.headers, {
            ambient,
            session: kind === 'sign-in',
            basic: server.options.basic && kind === 'question',
            signed: kind === 'question' ? signed : undefined,
          }),
    more: {
      verb,
      signed: signed && { ...signed, digest: digestParameters(context.request.headers) },
      continueTo: url === undefined ? undefined : { url, origin: ownOrigin(server, context) },
      browser:
        method === 'GET' && kind === 'question' && request.provider && ambient
          ? browserOf(server, context, target, redirect)
          : undefined,
    },
    redirect,
  }
}

/** The state of a browser sign-in. Over TLS, no other site and no plain http can set a cookie with this prefix. */
const stateCookie = (secure: boolean): string => (secure ? '__Host-svc-openid' : 'svc-openid')
/** Seconds: a little longer than the sign-in may take. */
const stateKeptFor = 660

const isSecure = (server: ServerContext, context: RequestContext): boolean =>
  baseUrl(server, context).startsWith('https:')

function browserOf(
  server: ServerContext,
  context: RequestContext,
  { pairs }: RequestTarget,
  redirect: AuthCall['redirect'],
): NonNullable<Call['browser']> {
  const cookies = readCookies(context.request.headers.cookie)
  return {
    origin: ownOrigin(server, context),
    sealed: cookies.get(stateCookie(isSecure(server, context))),
    parameter: (name) => pairs.find(([written]) => written === name)?.[1],
    redirect: (to) => {
      redirect.to = to
    },
  }
}

/** The answer that sends the browser on, with its cookies (A13). */
function redirectAnswer(
  server: ServerContext,
  context: RequestContext,
  { url, sealed }: Redirect,
  response: AuthenticateResponse,
  isPermanent: boolean,
): HttpAnswer {
  const secure = isSecure(server, context)
  const state = setCookie(stateCookie(secure), sealed ?? '', secure, sealed === undefined ? 0 : stateKeptFor)
  const { SessionId: secret } = response
  const session = secret === undefined ? [] : sessionCookies(server, context, secret, isPermanent)
  return { status: 302, headers: ['Location', url, ...state, ...session] }
}

/**
 * For a browser, the refusal of a sign-in as a page, which contains nothing of the request. Other answers stay as they
 * are.
 */
export function refusedPage(context: RequestContext, answer: HttpAnswer): HttpAnswer {
  const text = refusals[answer.status]
  if (text === undefined || !context.request.headers.accept?.includes('text/html')) return answer
  const page = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign-in failed</title><style>${trusted(style)}</style></head>
<body><header class="fail"><h1>Sign-in failed</h1><p>${text}</p>
<p class="muted">Correlation id: ${context.correlationId}</p><p><a href="/">Back to the status page</a></p></header></body>
</html>
`
  return { ...answer, contentType: 'text/html; charset=utf-8', body: page.markup, contentSecurityPolicy: pagePolicy }
}

const refusals: Readonly<Record<number, string>> = {
  401: 'The sign-in was refused. An administrator of this server finds the reason with: svc audit list',
  429: 'Too many sign-ins from this address have failed. Try again later.',
  503: 'The sign-in provider does not answer at the moment. Try again later.',
}

/**
 * A sign-in with the provider `basic`, where HTTP Basic is on: as one with credentials, which are in the body or else in
 * the Authorization header (A9).
 */
function withBasic(
  { options }: ServerContext,
  { request: { headers } }: RequestContext,
  dto: Authenticate,
): Authenticate {
  if (!options.basic || dto.provider?.trim().toLowerCase() !== 'basic') return dto
  const request = { ...dto, provider: 'credentials' }
  if (dto.UserName !== undefined || dto.Password !== undefined) return request
  const header = basicCredential(headers)
  return header === undefined ? request : { ...request, UserName: header.userName, Password: header.password }
}

/** The answer with its cookies. JSONP gets neither cookies nor tokens, because any page may load it (F2). */
export async function authAnswer(
  server: ServerContext,
  context: RequestContext,
  call: AuthCall,
  question: { readonly request: unknown; readonly response: unknown; readonly negotiation: ResponseNegotiation },
): Promise<HttpAnswer> {
  const { negotiated } = question.negotiation
  const response = question.response as AuthenticateResponse
  const row = operations.authenticate
  if (call.redirect.to) {
    return redirectAnswer(server, context, call.redirect.to, response, call.redirect.to.permanent === true)
  }
  if (negotiated.callback !== undefined) return await dtoAnswer(row, withoutTokens(response), negotiated)
  const cookies = cookiesOf(server, context, call, question.request as Authenticate, response)
  return await dtoAnswer(row, response, negotiated, cookies)
}

/** Seconds: 30 days, the idle lifetime of a session with RememberMe. */
const rememberedFor = 2_592_000

/** The Set-Cookie headers of a sign-in or a sign-out, as a flat list (A2, A7). */
function cookiesOf(
  server: ServerContext,
  context: RequestContext,
  { kind, changes }: AuthCall,
  request: Authenticate,
  response: AuthenticateResponse,
): readonly string[] {
  if (!changes || kind === 'question') return []
  if (kind === 'sign-out') return endedCookies(server, context)
  const { SessionId: secret } = response
  return secret === undefined ? [] : sessionCookies(server, context, secret, request.RememberMe === true)
}

/**
 * The cookies of a browser's lasting session once more, so that the browser keeps them for as long as the session is
 * used: a board on a wall signs in once. Empty for any other credential. The caller has checked that the session is valid.
 */
export function lastingCookies(server: ServerContext, context: RequestContext): readonly string[] {
  const { credential, ambient } = presented(context.request.headers, { ambient: true, basic: false, signed: undefined })
  if (!ambient || credential?.kind !== 'session' || credential.permanent !== true) return []
  return sessionCookies(server, context, credential.secret, true)
}

/** The Set-Cookie headers that end the session of a browser, as a flat list. */
export function endedCookies(server: ServerContext, context: RequestContext): readonly string[] {
  const secure = baseUrl(server, context).startsWith('https:')
  const had = readCookies(context.request.headers.cookie)
  const { session, permanent, option, token } = cookieNames
  const gone = [session, permanent, option, ...(had.has(token) ? [token] : [])]
  return gone.flatMap((name) => setCookie(name, '', secure, 0))
}

/** The Set-Cookie headers that give a browser its session, as a flat list. */
export function sessionCookies(
  server: ServerContext,
  context: RequestContext,
  secret: string,
  isPermanent: boolean,
): readonly string[] {
  const secure = baseUrl(server, context).startsWith('https:')
  const had = readCookies(context.request.headers.cookie)
  const { session, permanent, option } = cookieNames
  const maxAge = isPermanent ? rememberedFor : undefined
  // A session has one cookie. An earlier sign-in may have left a stale one under the other name.
  const stale = [isPermanent ? session : permanent].filter((name) => had.has(name))
  return [
    ...setCookie(isPermanent ? permanent : session, secret, secure, maxAge),
    ...setCookie(option, isPermanent ? 'perm' : 'temp', secure, maxAge),
    ...stale.flatMap((name) => setCookie(name, '', secure, 0)),
  ]
}

/**
 * The cookies of the session that replaces that of the request, for a browser that presented a cookie. Other clients
 * take the session and the tokens from the answer.
 */
export function renewedCookies(
  server: ServerContext,
  context: RequestContext,
  { SessionId: secret, RememberMe: isPermanent = false }: ChangePasswordResponse,
): readonly string[] {
  const { credential, ambient } = presented(context.request.headers, {
    ambient: true,
    basic: server.options.basic,
    signed: signedRequest(server, context),
  })
  if (secret === undefined || !ambient || credential?.kind !== 'session') return []
  return sessionCookies(server, context, secret, isPermanent)
}

const secrets = new Set(['SessionId', 'BearerToken', 'RefreshToken'])

const withoutTokens = (response: AuthenticateResponse): AuthenticateResponse =>
  Object.fromEntries(Object.entries(response).filter(([name]) => !secrets.has(name)))
