import {
  type ExpositionFormat,
  type LiveOptions,
  type LiveText,
  loadConfirmed,
  loadLive,
  loadPrometheus,
} from '../checks/reports/index.ts'
import { ExecutionMode, ServerType } from '../protocol/index.ts'
import type { Family, Sample } from '../protocol/service/family.ts'
import type { RecentRun, Runtime } from '../protocol/service/service.ts'
import type { HttpAnswer } from './answer.ts'
import { callOf } from './call.ts'
import { type RequestContext, type ServerContext, signedRequest } from './context.ts'
import { presented } from './credential.ts'
import { checkedTypes, depthOf } from './health.ts'

/** /metrics: the latest results as far as this caller may see them, the store, requests and the process. Starts no run. */
export async function metricsPage(server: ServerContext, context: RequestContext): Promise<HttpAnswer> {
  const { runtime, options } = server
  const { headers } = context.request
  const { credential } = presented(headers, {
    ambient: true,
    basic: options.basic,
    signed: signedRequest(server, context),
  })
  const views = await runtime.viewOf(callOf(context, credential, () => {}))
  const exported = checkedTypes(runtime.facts)
  const runs = (await runtime.recent(views, 'own')).filter(({ type }) => exported.includes(type))
  const format = formatFor(headers.accept)
  const { droppedFamily, exposition, expositionTypes, renderFamilies, withoutNames } = await loadPrometheus()
  const { confirmedSeries } = await loadConfirmed()
  const confirmed = await confirmedSeries(runtime.confirmed?.(views) ?? { checks: [], isIsolated: undefined })
  const reader = [format, ...ServerType.values.map((type) => views(type))].join(' ')
  const health = await healthText(server, runs, {
    format,
    reader,
    maxSeries: options.metrics.maxSeries - confirmed.urgent,
  })
  const states = await confirmed.text(format, health.left)
  const parts = (await runtime.metrics?.(server.limits.readyMs)) ?? []
  const others = [
    droppedFamily(health.dropped + states.dropped),
    ...(views() === 'full' ? parts : withoutNames(parts)),
    ...(await server.metrics.families(server.open.size)),
    ...(views() === 'full' ? [buildFamily(runtime)] : []),
  ]
  const body = exposition([health.text, states.text, renderFamilies(others, format)], format)
  return { status: 200, contentType: expositionTypes[format], body }
}

/** The metrics of the latest results. The text is kept until one of them changes or expires. */
async function healthText(
  { keptTexts, runtime }: ServerContext,
  runs: readonly RecentRun[],
  { format, reader, maxSeries }: Pick<LiveOptions, 'format' | 'maxSeries'> & { readonly reader: string },
): Promise<LiveText> {
  const { liveText } = await loadLive()
  const counting = runs.filter(({ expired }) => !expired).toSorted(freshestFirst)
  const facts = counting.flatMap(({ run, complete }) => [run, complete])
  return await keptTexts.of(reader, [maxSeries, ...facts, 'of', ...runs.map(({ run }) => run)], () =>
    liveText(counting, {
      format,
      maxSeries,
      lastRuns: lastRuns(runs, runtime.facts.types),
    }),
  )
}

const freshestFirst = (a: RecentRun, b: RecentRun): number =>
  a.ageSeconds - b.ageSeconds || depthOf(b.mode) - depthOf(a.mode)

/** OpenMetrics if the caller accepts it, otherwise the text format. Prometheus reads both. */
export const formatFor = (accept = ''): ExpositionFormat =>
  /(?:^|,)\s*application\/openmetrics-text\s*(?:;|,|$)/i.test(accept.slice(0, 1_000)) ? 'openmetrics' : 'text'

/**
 * The end time of the last run of every configured type and mode, 0 before the first one. Unlike all other metrics,
 * this one never disappears: an alert on stopped runs must not resolve because the metric is missing.
 */
function lastRuns(runs: readonly RecentRun[], configured: readonly ServerType[]): readonly Sample[] {
  const ends = runs.map(({ type, mode, run }) => ({ type, mode, at: run.endedAt }))
  const types = new Set([...configured, ...runs.map(({ type }) => type)])
  return [...types].flatMap((type) =>
    ExecutionMode.values.map((mode) => {
      const at = ends.find((end) => end.type === type && end.mode === mode)?.at
      return { labels: { type, depth: mode }, value: at === undefined ? 0 : at.getTime() / 1_000 }
    }),
  )
}

const buildFamily = ({ version }: Runtime): Family => ({
  name: 'svc_build',
  type: 'info',
  help: 'The versions of svc and of Node.js.',
  samples: [{ labels: { version, node_version: process.versions.node }, value: 1 }],
})
