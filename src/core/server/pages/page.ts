import { Fault } from '../../base/errors.ts'
import { ExecutionMode, HealthCheckRequest, ServerType } from '../../protocol/index.ts'
import { readsHere } from '../../protocol/service/service.ts'
import { merge, type Pair, readBody, requireFields } from '../../protocol/wire/index.ts'
import type { HttpAnswer } from '../answer.ts'
import { baseUrl, orCancelled, ownOrigin, type RequestContext, type ServerContext } from '../context.ts'
import { checkedTypes } from '../health.ts'
import { formPolicy, type Markup } from '../html.ts'
import { refuseForeignChange } from '../origins.ts'
import { receive } from '../receive.ts'
import { faultAnswer, plainJson, visibleFault } from '../response.ts'
import type { RequestTarget } from '../routes.ts'
import { lastingCookies } from '../sign-in.ts'
import { callerOf, daysOf, pageData } from './page-data.ts'
import { type Frame, framed, type Page, type PageReader } from './page-frame.ts'
import { idsOfPage, pageMarkup, reportTarget } from './page-markup.ts'
import { historyOf, monitorIn, monitorMarkup } from './page-monitor.ts'
import type { ReportId } from './page-report.ts'
import { type Search, stateIn, typeIn } from './page-search.ts'

/**
 * The status page at `/`. A GET shows the latest runs as far as this caller may see them, and starts none. A POST, by a
 * button of the page, runs one check and redirects to the page with its report; a reload of that page runs nothing.
 */
export async function statusPage(
  server: ServerContext,
  context: RequestContext,
  target: RequestTarget,
): Promise<HttpAnswer> {
  if (context.logFields.method !== 'POST') return await show(server, context, queryOf(target.pairs))
  try {
    const report = await runCheck(server, context)
    return { status: 303, headers: ['Location', reportTarget(report)] }
  } catch (error) {
    const { status, headers = [] } = await faultAnswer(server, context, error, plainJson(server))
    const page = await show(server, context, { refusal: visibleFault(error).message })
    return { ...page, status, headers: [...headers, ...(page.headers ?? [])] }
  }
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

/** The parts of the page besides the view that everybody sees. */
type PageQuery = {
  readonly report?: ReportId | undefined
  readonly refusal?: string | undefined
  /** Whose victims are listed: the type and the name of a monitor. */
  readonly victims?: string | undefined
  readonly search?: Search | undefined
  readonly opened?: readonly string[] | undefined
  /** Whether the page does not reload itself. */
  readonly isStill?: boolean | undefined
  /** The type and the name of the monitor that the page is about. */
  readonly monitor?: string | undefined
}

function queryOf(pairs: readonly Pair[]): PageQuery {
  const first = (key: string): string | undefined => pairs.find(([name]) => name === key)?.[1]
  const skip = Number(first('skip') ?? 0)
  return {
    report: reportIn(first('report')),
    victims: first('victims'),
    search: {
      find: first('find'),
      state: stateIn(first('state')),
      type: typeIn(first('type')),
      skip: Number.isSafeInteger(skip) && skip > 0 ? skip : 0,
    },
    opened: pairs.flatMap(([name, value]) => (name === 'open' ? value.split(',') : [])),
    monitor: first('monitor'),
    isStill: first('reload') === 'off',
  }
}

/** The report that the query names: `report=Sql-Basic`. Undefined for any other value. */
function reportIn(text: string | undefined): ReportId | undefined {
  const [typeName = '', modeName = ''] = text?.split('-') ?? []
  const type = ServerType.values.find((value) => value === typeName)
  const mode = ExecutionMode.values.find((value) => value === modeName)
  return type && mode && { type, mode }
}

async function show(server: ServerContext, context: RequestContext, query: PageQuery): Promise<HttpAnswer> {
  const { facts } = server.runtime
  const { refusal, victims, monitor } = query
  const [, written] = /\?([^#]+)/.exec(context.request.url ?? '') ?? []
  const data = await pageData(server, context)
  const { cards, reads, call } = data
  const pageFacts = {
    ...query,
    ...data,
    configuration: (await readsHere(context.caller)) ? (facts.configuration ?? 'none') : undefined,
    configured: facts.types,
    answered: checkedTypes(facts),
    others: ServerType.values.filter((type) => !facts.types.includes(type)),
    report: query.report,
    refusal,
    notKept: ServerType.values.some(reads) ? facts.notKept : undefined,
    victims: victims === undefined ? undefined : encodeURIComponent(victims),
    // A browser that is at a fragment of the page does not load it again unless the URL is named without the fragment.
    reloadAs: written === undefined ? undefined : `/?${written}`,
  }
  const names = cards.flatMap(({ type, monitors }) =>
    type && reads(type) ? monitors.map(({ name }) => ({ type, name })) : [],
  )
  const id = monitorIn(monitor, names)
  const ofMonitor =
    id && reads(id.type) ? monitorMarkup(id, cards, await historyOf(server.service, id, call), pageFacts) : undefined
  const notice = monitor === undefined || ofMonitor ? undefined : 'Nothing that you may read is known of this monitor.'
  const whole = async (): Promise<Page> => {
    const days = await daysOf(server, idsOfPage(cards, pageFacts))
    return pageMarkup(cards, { ...pageFacts, days, notice })
  }
  const page = ofMonitor ?? (await whole())
  return { ...pageAnswer(page, notice === undefined ? 200 : 404), headers: headersOf(server, context, page, data.user) }
}

/** The answer that shows a page. */
export const pageAnswer = ({ markup }: Pick<Page, 'markup'>, status = 200): HttpAnswer => ({
  status,
  contentType: 'text/html; charset=utf-8',
  body: markup,
  contentSecurityPolicy: formPolicy,
})

/** The answer that shows a page without a state, which does not reload itself. */
export const plainAnswer = (
  server: ServerContext,
  context: RequestContext,
  main: Markup,
  frame: Pick<Frame, 'title' | 'notice' | 'place'> & Partial<PageReader>,
): HttpAnswer => {
  const still = { user: undefined, base: baseUrl(server, context), level: undefined, reloadEvery: undefined }
  return pageAnswer(
    framed(main, {
      ...still,
      ...frame,
      at: new Date(server.runtime.now?.() ?? Date.now()),
      zone: server.runtime.facts.timezone,
    }),
  )
}

/** When the page reloads, and the cookies of a session that lasts, as a flat list. */
export const headersOf = (
  server: ServerContext,
  context: RequestContext,
  { refresh }: Page,
  user: string | undefined,
): readonly string[] => [
  ...(refresh === undefined ? [] : ['Refresh', refresh]),
  ...(user === undefined ? [] : lastingCookies(server, context)),
]
