import {
  type ExpositionFormat,
  type LiveOptions,
  type LiveSeries,
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
  const reader = [format, ...ServerType.values.map((type) => views(type))].join(' ')
  const { maxSeries } = options.metrics
  const results = await seriesOfResults(server, runs, { format, reader, maxSeries })
  const confirmed = await confirmedSeries({
    ...(runtime.confirmed?.(views) ?? { checks: [], isIsolated: undefined }),
    mostOthers: Math.max(0, maxSeries - results.count),
  })
  const health = await results.text(maxSeries - confirmed.urgent)
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

/** The series of the latest results. They are kept until one of the results changes or expires. */
async function seriesOfResults(
  { keptSeries, runtime }: ServerContext,
  runs: readonly RecentRun[],
  { reader, ...options }: Pick<LiveOptions, 'format' | 'maxSeries'> & { readonly reader: string },
): Promise<LiveSeries> {
  const { liveSeries } = await loadLive()
  const counting = runs.filter(({ expired }) => !expired).toSorted(freshestFirst)
  const facts = counting.flatMap(({ run, complete }) => [run, complete])
  return await keptSeries.of(
    reader,
    [...facts, 'of', ...runs.map(({ run }) => run)],
    async () => await liveSeries(counting, { ...options, lastRuns: lastRuns(runs, runtime.facts.types) }),
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
