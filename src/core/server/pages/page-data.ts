import { Fault } from '../../base/errors.ts'
import { mapPaced, pace } from '../../base/pace.ts'
import { ServerType } from '../../protocol/index.ts'
import type { Call, DaysOfMonitor, Incidents } from '../../protocol/service/service.ts'
import { callOf } from '../call.ts'
import { baseUrl, type RequestContext, type ServerContext } from '../context.ts'
import { presented } from '../credential.ts'
import { checkedTypes } from '../health.ts'
import { type Card, cardsOf, type ElsewhereFacts } from './cards.ts'
import type { FrameOfRequest } from './page-frame.ts'
import { prepareMonitor } from './page-report.ts'
import { type SilenceFacts, silenceFacts } from './page-silences.ts'
import { soon } from './page-soon.ts'
import type { MonitorId } from './page-words.ts'

/** The data of the status page and the board, as far as this caller may see it. */
export type PageData = FrameOfRequest & {
  readonly call: Call
  readonly cards: readonly Card[]
  readonly incidents: Incidents | undefined
  /** Whether the caller may read the details of a type. */
  readonly reads: (type?: ServerType) => boolean
  readonly silences: SilenceFacts
}

/** The caller with its credentials. No password or digest: svc would verify it at every reload of the page. */
export function callerOf(context: RequestContext): Call {
  const { credential } = presented(context.request.headers, { ambient: true, basic: false, signed: undefined })
  return callOf(context, credential, (facts) => {
    context.logFields.runId = facts.runId
  })
}

export async function pageData(server: ServerContext, context: RequestContext): Promise<PageData> {
  const { runtime } = server
  const base = baseUrl(server, context)
  const call = callerOf(context)
  const views = await runtime.viewOf(call)
  const recent = await runtime.recent(views)
  // Once for each result. Yields in between: the first page with many monitors would delay other requests.
  const breathe = pace()
  for (const { run } of recent) await mapPaced(run.monitors, breathe, prepareMonitor)
  const incidents = await runtime.incidents?.(views)
  // A type that is not configured has no card: a caller has merely requested it.
  const answered = checkedTypes(runtime.facts)
  const reads = (type?: ServerType): boolean => views(type) === 'full'
  const byType: ElsewhereFacts['byType'] = (await runtime.elsewhere?.()) ?? new Map()
  const cards = cardsOf(
    ServerType.values.filter((type) => answered.includes(type)),
    recent,
    base,
    { byType, reads },
  )
  const [holder] = [...byType].flatMap(([type, some]) => (reads(type) ? some : []))
  const user = call.credential && (await signedInUser(server, call))
  return {
    call,
    base,
    holder: byType.size === 0 ? undefined : { node: holder?.node, url: holder?.url },
    cards,
    incidents,
    reads,
    user,
    signInHref: runtime.facts.store === undefined ? undefined : signInHref(context.request.url),
    at: new Date(runtime.now?.() ?? Date.now()),
    zone: runtime.facts.timezone,
    silences: await silenceFacts(server, { call, views, isSignedIn: user !== undefined }),
  }
}

/** The link to the sign-in form, which returns to this target. */
export const signInHref = (target = '/'): string => `/sign-in?continue=${encodeURIComponent(target)}`

/** The days of monitors, or undefined if history does not answer soon. */
export const daysOf = async (
  { runtime }: ServerContext,
  ids: readonly MonitorId[],
): Promise<ReadonlyMap<string, DaysOfMonitor> | undefined> =>
  runtime.days && ids.length > 0 ? await soon(runtime.days(ids)) : undefined

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
