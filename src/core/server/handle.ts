import type { IncomingMessage, ServerResponse } from 'node:http'
import { Fault } from '../errors.ts'
import type { Answer } from './answer.ts'
import { baseUrl } from './base-url.ts'
import { operateBatch } from './batch.ts'
import type { DocumentName } from './documents.ts'
import { begin, type Exchange } from './exchange.ts'
import { faultAnswer, plainJson } from './faults.ts'
import { gate } from './gate.ts'
import { stackOf } from './log.ts'
import { metricsPage } from './metrics-page.ts'
import { operate } from './operate.ts'
import { preflightHeaders } from './origins.ts'
import { ownPages, type PageName } from './own-pages.ts'
import { statusPage } from './page.ts'
import { live, ready } from './probes.ts'
import { allowed, type Found, requireVerb } from './routes.ts'
import { send } from './send.ts'
import type { Site } from './site.ts'
import type { Target } from './target.ts'

/** Answers one request, whatever it is and whatever happens. */
export function handle(site: Site, request: IncomingMessage, response: ServerResponse, expects: boolean): void {
  // After a request that two readers could understand differently, nothing on the connection is believed.
  const { socket } = request
  if (site.silenced.has(socket)) return
  // Connections are counted elsewhere; without this, one of them could make any number of calls wait.
  if ((site.openOn.get(socket) ?? 0) >= site.limits.maxPipelined) {
    site.silenced.add(socket)
    site.metrics.refusedConnection()
    socket.destroy()
    return
  }
  const exchange = begin(site, request, response, expects)
  const refused = gate(request, site.limits.headerCount)
  if (refused) {
    exchange.last = true
    site.silenced.add(socket)
  }
  answer(site, exchange, refused)
    .then((made) => (site.hold ? site.hold.then(() => send(site, exchange, made)) : send(site, exchange, made)))
    // Only a defect in how answers are written ends here: the caller gets no half-made one.
    .catch((error: unknown) => {
      response.destroy()
      site.log({ level: 'error', msg: 'an answer could not be written', stack: stackOf(error) })
    })
}

async function answer(site: Site, exchange: Exchange, refused: Fault | undefined): Promise<Answer> {
  try {
    if (refused) throw refused
    const { request, told } = exchange
    told.method = verbOf(request)
    if (told.method === 'TRACE' || told.method === 'CONNECT') throw neverAllowed(told.method)
    const target = find(site, request)
    const { found } = target
    told.path = target.logged
    told.label = found.label
    requireVerb(found, told.method)
    if (told.method === 'OPTIONS') return options(site, request, found)
    if (site.draining && !(found.kind === 'own' && found.page === 'livez')) throw stopping()
    if (found.kind === 'own') return await answers[found.page](site, exchange)
    return await (found.batch ? operateBatch : operate)(site, exchange, found, target)
  } catch (error) {
    return await faultAnswer(site, exchange, error, plainJson(site))
  }
}

type PageAnswer = (site: Site, exchange: Exchange) => Promise<Answer>

const described =
  (name: DocumentName): PageAnswer =>
  (site, exchange) =>
    site.described.answer(baseUrl(site, exchange), name)

const answers: Readonly<Record<PageName, PageAnswer>> = {
  page: statusPage,
  livez: live,
  readyz: ready,
  metrics: metricsPage,
  metadata: described('metadata'),
  openapi: described('openapi'),
  typescript: described('typescript'),
  types: described('types'),
  app: described('app'),
}

/** S1: the Host is judged first, except for the two probes, which answer any. */
function find(site: Site, request: IncomingMessage): Target {
  const checkHost = (): void => site.checkHost(request.headers.host ?? '', request.socket.localAddress)
  let target: Target
  try {
    target = site.readTarget(request.url ?? '')
  } catch (error) {
    checkHost()
    throw error
  }
  const { found } = target
  if (!(found.kind === 'own' && ownPages[found.page].anyHost)) checkHost()
  return target
}

/** R4: a POST may stand for another verb; nothing else may, because pages can send a GET or HEAD unasked. */
function verbOf({ method = '', headers }: IncomingMessage): string {
  const override = headers['x-http-method-override']
  if (method !== 'POST' || override === undefined) return method
  // Whoever meant another verb must not have the POST done instead.
  if (typeof override !== 'string' || !/^[A-Za-z]{1,10}$/.test(override)) {
    throw new Fault('BadRequest', 'X-Http-Method-Override must name one verb, such as GET')
  }
  return override.toUpperCase()
}

export const neverAllowed = (verb: string): Fault =>
  new Fault('MethodNotAllowed', `${verb} is never allowed`, { headers: { Allow: 'GET, HEAD, POST, DELETE, OPTIONS' } })

export const stopping = (): Fault => new Fault('Unavailable', 'The server is stopping', { retryAfter: 5 })

/** R5 */
function options(site: Site, request: IncomingMessage, found: Found): Answer {
  const allow = allowed(found.verbs)
  return { status: 200, headers: ['Allow', allow, ...preflightHeaders(request.headers, site.origins, allow)] }
}
