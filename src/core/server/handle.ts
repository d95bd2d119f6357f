import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Fault } from '../base/errors.ts'
import { languageNames } from '../protocol/metadata/index.ts'
import { nodeQuestion, readsHere } from '../protocol/service/service.ts'
import type { HttpAnswer } from './answer.ts'
import { operateBatch } from './batch.ts'
import { baseUrl, createRequestContext, orCancelled, type RequestContext, type ServerContext } from './context.ts'
import type { DocumentName } from './documents.ts'
import { stackOf } from './log.ts'
import { metricsPage } from './metrics-page.ts'
import { operate } from './operate.ts'
import { preflightHeaders } from './origins.ts'
import { badge } from './pages/badge.ts'
import { boardPage } from './pages/board.ts'
import { drillPage } from './pages/drill-page.ts'
import { statusPage } from './pages/page.ts'
import { signInPage } from './pages/sign-in-page.ts'
import { silenceForm } from './pages/silence-forms.ts'
import { isProbe } from './probes.ts'
import { asScripted, notForProduction, recordRequest } from './rehearsal.ts'
import { faultAnswer, plainJson } from './response.ts'
import {
  allowed,
  ownPages,
  type PageName,
  type RequestTarget,
  type RouteMatch,
  requireVerb,
  type TypesPage,
} from './routes.ts'
import { send } from './send.ts'

/**
 * Detects requests that Node's parser accepts although two readers could understand them differently (S2). Returns the
 * fault, or undefined for an unambiguous request. After a fault, the server answers no further request on the
 * connection.
 */
export function gate(request: IncomingMessage, headerCount: number): Fault | undefined {
  const { rawHeaders, url = '' } = request
  if (rawHeaders.length > headerCount * 2) {
    return new Fault('HeadersTooLarge', `A request may have at most ${headerCount} headers`)
  }
  return version(request) ?? headersOf(request) ?? target(url) ?? bodyOf(request)
}

function version({ httpVersion }: IncomingMessage): Fault | undefined {
  if (httpVersion === '1.1' || httpVersion === '1.0') return undefined
  return new Fault('BadRequest', 'This server supports only HTTP/1.1 and HTTP/1.0')
}

/** Headers that determine the target host, the caller or the type of the body, so they must not repeat. */
const single = new Map([
  [4, 'host'],
  [12, 'content-type'],
  [13, 'authorization'],
])

const noHost = (): Fault => new Fault('BadRequest', 'The Host header is missing')

function headersOf({ rawHeaders, headers, httpVersion }: IncomingMessage): Fault | undefined {
  let headersSeen = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    const { length } = name
    // The lengths alone rule out almost all other headers.
    if (length !== 4 && length !== 12 && length !== 13) continue
    if (name.toLowerCase() !== single.get(length)) continue
    const bit = 1 << length
    if (headersSeen & bit) return new Fault('BadRequest', `The header ${name} must not be repeated`)
    headersSeen |= bit
  }
  // HTTP/1.0 has no Host: balancers probe without one. The route decides whether it needs one.
  if (headers.host === '' || (headers.host === undefined && httpVersion !== '1.0')) return noHost()
  const { expect } = headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
    return new Fault('BadRequest', 'The only supported expectation is 100-continue')
  }
  return undefined
}

/** Raw or encoded control characters, spaces, `#`, backslashes and anything outside ASCII. */
const unsafe = /[^\x21\x22\x24-\x5b\x5d-\x7e]|%(?:[01][0-9a-f]|7f)/i

function target(url: string): Fault | undefined {
  if (url.charCodeAt(0) !== 47) {
    return new Fault('BadRequest', 'The request target must be a path that begins with a slash')
  }
  if (url.charCodeAt(1) === 47) {
    return new Fault('BadRequest', 'The request target must not begin with two slashes')
  }
  if (unsafe.test(url)) return new Fault('BadRequest', 'The request target contains a character that is not allowed')
  return undefined
}

/** Refuses bodies whose end two readers could place differently. */
function bodyOf({ headers, httpVersion }: IncomingMessage): Fault | undefined {
  const coding = headers['transfer-encoding']
  if (coding === undefined) return undefined
  if (httpVersion === '1.0') return new Fault('BadRequest', 'Transfer-Encoding is not allowed in HTTP/1.0')
  // Node's parser ignores codings before the last one, and passes their bytes on as the body.
  if (coding.toLowerCase() !== 'chunked') return new Fault('BadRequest', 'Transfer-Encoding must be chunked')
  // The parser refuses both headers together as well. Both are checked here because a request that passes with both
  // could contain another.
  if (headers['content-length'] !== undefined) {
    return new Fault('BadRequest', 'Content-Length and Transfer-Encoding must not be sent together')
  }
  return undefined
}

/**
 * Whether the request has a body that its verb gives no meaning to, such as a GET. The server ignores it, and answers no
 * further request on the connection: a proxy that ignores such bodies too would take this one for a request.
 */
const hasIgnoredBody = ({ method, headers }: IncomingMessage): boolean =>
  method !== 'POST' &&
  method !== 'DELETE' &&
  (headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0')

const plain = (text: string): HttpAnswer => ({ status: 200, contentType: 'text/plain; charset=utf-8', body: text })

/**
 * /livez: the process responds. Runs no monitors and does not query the store, so their failures never cause a
 * restart.
 */
export const live = async (): Promise<HttpAnswer> => plain('alive\n')

/**
 * /readyz: succeeds while the store answers in time and the server is not stopping; otherwise throws Unavailable. Any
 * Host may ask, so only this machine learns the reason, and only under one of its own names.
 */
export async function ready(server: ServerContext, context: RequestContext): Promise<HttpAnswer> {
  const late = new Fault('Unavailable', `the store does not answer within ${server.limits.readyMs} ms`)
  const timer = setTimeout(() => context.cancel(late), server.limits.readyMs)
  try {
    await orCancelled(context, server.runtime.ready(context.signal))
    return plain('ready\n')
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const reason = (await mayReadReason(server, context)) ? error.message : 'sign-in does not work at the moment'
    throw new Fault('Unavailable', `Not ready: ${reason}`, { retryAfter: 5 })
  } finally {
    clearTimeout(timer)
  }
}

async function mayReadReason(server: ServerContext, { caller, request }: RequestContext): Promise<boolean> {
  if (!(await readsHere(caller))) return false
  try {
    server.checkHost(request.headers.host ?? '', request.socket.localAddress)
    return true
  } catch {
    return false
  }
}

/**
 * /nodes/speaker: the answer to another node of the store, whose question proves that it has the key. Without a proof, or
 * without an answer, the body is a constant.
 */
const speaker = async ({ runtime }: ServerContext, { request }: RequestContext): Promise<HttpAnswer> =>
  plain(runtime.answerToNode?.(request.headers[nodeQuestion.header]) ?? 'none\n')

/** Answers one request. Never throws. */
export function handle(
  server: ServerContext,
  request: IncomingMessage,
  response: ServerResponse,
  expects: boolean,
): void {
  // After an ambiguous request, the server ignores everything on the connection.
  const { socket } = request
  if (server.silenced.has(socket)) return
  const forProbe = isProbe(request.url)
  const onlyProbes = server.probes.has(socket)
  // Connections have their own limit. This one bounds the waiting calls of a single connection.
  if ((server.openOn.get(socket) ?? 0) >= server.limits.maxPipelined) {
    server.metrics.refusedConnection()
    refuseConnection(server, socket)
    return
  }
  if (onlyProbes && !forProbe) {
    refuseConnection(server, socket)
    return
  }
  const context = createRequestContext(server, request, response, expects)
  if (server.rehearsal && recordRequest(server, server.rehearsal, context)) return
  const refused = gate(request, server.limits.headerCount)
  if (refused || onlyProbes || hasIgnoredBody(request)) {
    context.last = true
    server.silenced.add(socket)
  }
  server.pipelines.add(socket, () => answerAndSend(server, context, refused), forProbe)
}

function refuseConnection({ silenced }: ServerContext, socket: Socket): void {
  silenced.add(socket)
  socket.destroy()
}

async function answerAndSend(
  server: ServerContext,
  context: RequestContext,
  refused: Fault | undefined,
): Promise<void> {
  try {
    const made = await answer(server, context, refused)
    if (server.hold) await server.hold
    send(server, context, made)
  } catch (error) {
    // Only a defect while writing the answer ends here. The caller must not get a partial one.
    context.response.destroy()
    server.log({ level: 'error', msg: 'could not write a response', stack: stackOf(error) })
  }
}

async function answer(server: ServerContext, context: RequestContext, refused: Fault | undefined): Promise<HttpAnswer> {
  try {
    if (refused) throw refused
    if (server.rehearsal) await asScripted(server.rehearsal, context)
    const { request, logFields } = context
    logFields.method = verbOf(request)
    if (logFields.method === 'TRACE' || logFields.method === 'CONNECT') throw neverAllowed(logFields.method)
    const target = find(server, request)
    const { route } = target
    logFields.path = target.logged
    logFields.label = route.label
    requireVerb(route, logFields.method)
    if (logFields.method === 'OPTIONS') return options(server, request, route)
    if (server.draining && !(route.kind === 'own' && route.page === 'livez')) throw stopping()
    if (server.rehearsal && route.kind === 'own' && ownPages[route.page].anyHost) throw notForProduction()
    if (route.kind === 'own') return await answers[route.page](server, context, target)
    return await (route.batch ? operateBatch : operate)(server, context, route, target)
  } catch (error) {
    return await faultAnswer(server, context, error, plainJson(server))
  }
}

type PageAnswer = (server: ServerContext, context: RequestContext, target: RequestTarget) => Promise<HttpAnswer>

const described =
  (name: DocumentName): PageAnswer =>
  (server, context) =>
    server.described.answer(baseUrl(server, context), name)

const answers: Readonly<Record<PageName, PageAnswer>> = {
  page: statusPage,
  board: boardPage,
  badge,
  signIn: signInPage,
  silenceForm: silenceForm('silenceMonitors'),
  acknowledgeForm: silenceForm('acknowledge'),
  endSilenceForm: silenceForm('endSilence'),
  drillLink: drillPage,
  livez: live,
  readyz: ready,
  speaker,
  metrics: metricsPage,
  metadata: described('metadata'),
  openapi: described('openapi'),
  openapiAll: described('openapiAll'),
  types: described('types'),
  app: described('app'),
  ...(Object.fromEntries(
    languageNames.map((name): readonly [TypesPage, PageAnswer] => [
      `types/${name}`,
      async (server, context, { pairs }) => server.described.types(baseUrl(server, context), name, pairs),
    ]),
  ) as Record<TypesPage, PageAnswer>),
}

/** Checks the peer and the Host first, except for the pages that answer anybody under any Host (S1). */
function find(server: ServerContext, request: IncomingMessage): RequestTarget {
  const { host } = request.headers
  const checkSender = (): void => {
    server.checkPeer(request.socket.remoteAddress)
    if (host === undefined) throw noHost()
    server.checkHost(host, request.socket.localAddress)
  }
  let target: RequestTarget
  try {
    target = server.readTarget(request.url ?? '')
  } catch (error) {
    checkSender()
    throw error
  }
  const { route } = target
  if (!(route.kind === 'own' && ownPages[route.page].anyHost)) checkSender()
  return target
}

/** Only a POST may stand for another verb, because pages can send a GET or HEAD without the user's consent (R4). */
function verbOf({ method = '', headers }: IncomingMessage): string {
  const override = headers['x-http-method-override']
  if (method !== 'POST' || override === undefined) return method
  // An unreadable override must not execute the POST instead.
  if (typeof override !== 'string' || !/^[A-Za-z]{1,10}$/.test(override)) {
    throw new Fault('BadRequest', 'X-Http-Method-Override must name one verb, such as GET')
  }
  return override.toUpperCase()
}

export const neverAllowed = (verb: string): Fault =>
  new Fault('MethodNotAllowed', `The method ${verb} is not allowed`, {
    headers: { Allow: 'GET, HEAD, POST, DELETE, OPTIONS' },
  })

export const stopping = (): Fault => new Fault('Unavailable', 'The server is stopping', { retryAfter: 5 })

/** Answers OPTIONS (R5). */
function options(server: ServerContext, request: IncomingMessage, route: RouteMatch): HttpAnswer {
  const allow = allowed(route.verbs)
  return { status: 200, headers: ['Allow', allow, ...preflightHeaders(request.headers, server.origins)] }
}
