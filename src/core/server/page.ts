import { Fault } from '../errors.ts'
import { mapPaced, pace } from '../pace.ts'
import { ExecutionMode, HealthCheckRequest, ServerType } from '../protocol/index.ts'
import { type Call, readsHere } from '../service.ts'
import { merge, type Pair, readBody, requireFields } from '../wire/index.ts'
import type { HttpAnswer } from './answer.ts'
import { callOf } from './call.ts'
import { cardsOf } from './cards.ts'
import { baseUrl, orCancelled, ownOrigin, type RequestContext, type ServerContext } from './context.ts'
import { presented } from './credential.ts'
import { checkedTypes } from './health.ts'
import { formPolicy } from './html.ts'
import { refuseForeignChange } from './origins.ts'
import { pageMarkup, type ReportId, reportTarget } from './page-markup.ts'
import { historyOf, monitorIn, monitorMarkup } from './page-monitor.ts'
import { prepareMonitor } from './page-report.ts'
import { receive } from './receive.ts'
import { faultAnswer, plainJson, visibleFault } from './response.ts'
import type { RequestTarget } from './routes.ts'

/**
 * The status page at `/`. A GET shows the latest runs as far as this caller may see them, and starts none. A POST, by a
 * button of the page, runs one check and redirects to the page with its report; a reload of that page runs nothing.
 */
export async function statusPage(
  server: ServerContext,
  context: RequestContext,
  target: RequestTarget,
): Promise<HttpAnswer> {
  if (context.logFields.method !== 'POST') {
    const first = (key: string): string | undefined => target.pairs.find(([name]) => name === key)?.[1]
    const [victims, find, monitor] = [first('victims'), first('find'), first('monitor')]
    const isStill = first('reload') === 'off'
    return await show(server, context, { report: reportIn(target.pairs), victims, find, monitor, isStill })
  }
  try {
    const report = await runCheck(server, context)
    return { status: 303, headers: ['Location', reportTarget(report)] }
  } catch (error) {
    const { status, headers } = await faultAnswer(server, context, error, plainJson(server))
    const page = await show(server, context, { refusal: visibleFault(error).message })
    return { ...page, status, headers }
  }
}

/** The caller, and what the caller presents. No password or digest: the page would check each at every reload. */
function callerOf(context: RequestContext): Call {
  const { credential } = presented(context.request.headers, { ambient: true, basic: false, signed: undefined })
  return callOf(context, credential, (facts) => {
    context.logFields.runId = facts.runId
  })
}

/**
 * Runs the check that the form names. Throws Forbidden if another site's page sent the form (S12), and BadRequest for a
 * type that the page does not show.
 */
async function runCheck(server: ServerContext, context: RequestContext): Promise<ReportId> {
  const { request } = context
  refuseForeignChange(request, context.caller, ownOrigin(server, context), server.origins)
  const bytes = await orCancelled(context, receive(context, server.options.maxBody))
  const values = merge(await readBody(HealthCheckRequest, request.headers['content-type'], bytes))
  requireFields(HealthCheckRequest, values)
  const { ServerType: type, ExecutionMode: mode } = values as unknown as HealthCheckRequest
  if (!checkedTypes(server.runtime.facts).includes(type)) {
    throw new Fault('BadRequest', `${type} is not configured here`)
  }
  const call = callerOf(context)
  await orCancelled(context, server.service.healthCheck({ ServerType: type, ExecutionMode: mode }, call))
  return { type, mode }
}

/** The report that the query names: `report=Sql-Basic`. Undefined for any other value. */
function reportIn(pairs: readonly Pair[]): ReportId | undefined {
  const [typeName = '', modeName = ''] = pairs.find(([name]) => name === 'report')?.[1].split('-') ?? []
  const type = ServerType.values.find((value) => value === typeName)
  const mode = ExecutionMode.values.find((value) => value === modeName)
  return type && mode && { type, mode }
}

/** What the page shows besides what everybody sees. */
type PageQuery = {
  readonly report?: ReportId | undefined
  readonly refusal?: string | undefined
  /** Whose victims are listed: the type and the name of a monitor. */
  readonly victims?: string | undefined
  /** What the names of the monitors to list contain. */
  readonly find?: string | undefined
  /** Whether the page does not reload itself. */
  readonly isStill?: boolean | undefined
  /** The type and the name of the monitor that the page is about. */
  readonly monitor?: string | undefined
}

async function show(
  server: ServerContext,
  context: RequestContext,
  { report, refusal, victims, find, monitor, isStill }: PageQuery,
): Promise<HttpAnswer> {
  const { facts } = server.runtime
  const [, query] = /\?([^#]+)/.exec(context.request.url ?? '') ?? []
  const base = baseUrl(server, context)
  const call = callerOf(context)
  const views = await server.runtime.viewOf(call)
  const recent = await server.runtime.recent(views)
  // Once for each result. Without a turn for others, the first page of many monitors would keep them waiting.
  const breathe = pace()
  for (const { run } of recent) await mapPaced(run.monitors, breathe, prepareMonitor)
  const incidents = await server.runtime.incidents?.(views)
  const reads = (type?: ServerType): boolean => views(type) === 'full'
  // A type that is not configured has no card: somebody only asked for it.
  const answered = checkedTypes(facts)
  const cards = cardsOf(
    ServerType.values.filter((type) => answered.includes(type)),
    recent,
    base,
  )
  const configuration = (await readsHere(context.caller)) ? (facts.configuration ?? 'none') : undefined
  const pageFacts = {
    base,
    user: call.credential && (await signedInUser(server, call)),
    configuration,
    configured: facts.types,
    answered,
    others: ServerType.values.filter((type) => !facts.types.includes(type)),
    at: new Date(),
    report,
    refusal,
    incidents,
    notKept: ServerType.values.some(reads) ? facts.notKept : undefined,
    victims: victims === undefined ? undefined : encodeURIComponent(victims),
    find,
    reads,
    isStill,
    // A browser that is at a fragment of the page does not load it again unless the URL is named without the fragment.
    reloadAs: query === undefined ? undefined : `/?${query}`,
  }
  const id = monitorIn(monitor)
  const ofMonitor =
    id && reads(id.type) ? monitorMarkup(id, cards, await historyOf(server.service, id, call), pageFacts) : undefined
  const notice = monitor === undefined || ofMonitor ? undefined : 'Nothing that you may read is known of this monitor.'
  const page = ofMonitor ?? pageMarkup(cards, { ...pageFacts, notice })
  return {
    status: notice === undefined ? 200 : 404,
    contentType: 'text/html; charset=utf-8',
    body: page.markup,
    contentSecurityPolicy: formPolicy,
  }
}

/** Who is signed in, and by which provider. Undefined without a valid session, and where sign-in is not offered. */
async function signedInUser({ service }: ServerContext, call: Call): Promise<string | undefined> {
  try {
    const { UserName, Sessions = [] } = await service.getSessions({}, call)
    const provider = Sessions.find(({ Current }) => Current)?.Provider
    if (UserName === undefined || provider === undefined) return undefined
    return `${UserName} by ${provider === 'credentials' ? 'password' : provider}`
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}
