import { ExecutionMode, type ServerType } from '../protocol/index.ts'
import {
  type EntryReading,
  type ExpositionFormat,
  type Family,
  isBad,
  loadPrometheus,
  type MonitorReading,
  read,
  type Sample,
} from '../reports/index.ts'
import type { RecentRun, Runtime } from '../service.ts'
import type { HttpAnswer } from './answer.ts'
import { callOf } from './call.ts'
import { baseUrl, type RequestContext, type ServerContext, signedRequest } from './context.ts'
import { presented } from './credential.ts'
import { checkedTypes, depthOf, entryOf } from './health.ts'

/** Seconds after which the results of a run are no longer shown: an old success proves nothing. */
const maxAgeSeconds: Readonly<Record<ExecutionMode, number>> = { Basic: 900, Standard: 900, Advanced: 10_800 }

/** /metrics: the latest runs as far as this caller may see them, the store, requests and the process. Starts no run. */
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
  const runs = runtime.recent(views).filter(({ type }) => exported.includes(type))
  const format = formatFor(headers.accept)
  const { exposition, expositionTypes, renderFamilies } = await loadPrometheus()
  const health = await healthText(server, { runs, format, target: baseUrl(server, context) })
  const others = [
    ...((await runtime.metrics?.(server.limits.readyMs)) ?? []),
    ...(await server.metrics.families(server.open.size)),
    ...(views() === 'full' ? [buildFamily(runtime)] : []),
  ]
  const body = exposition([health, renderFamilies(others, format)], format)
  return { status: 200, contentType: expositionTypes[format], body }
}

type HealthTextInput = {
  readonly runs: readonly RecentRun[]
  readonly format: ExpositionFormat
  readonly target: string
}

/**
 * The families of the latest runs. The text of a thousand monitors takes longer to write than all other answers of a
 * minute, so it is kept until another run ends or one becomes too old.
 */
async function healthText(
  { keptTexts, options, runtime }: ServerContext,
  { runs, format, target }: HealthTextInput,
): Promise<string> {
  const latest = freshest(runs)
  const documents = (some: readonly RecentRun[]): readonly object[] => some.map(({ response }) => response)
  const { healthFamilies, lastRunName, renderFamilies } = await loadPrometheus()
  return keptTexts.of([format, target, ...documents(latest), 'of', ...documents(runs)], () => {
    const readings = latest.map((run) => read(entryOf(run, target)))
    const families = healthFamilies(readings, options.metrics.maxSeries, withoutSuperseded(readings))
    const withLastRuns = families.map((family) =>
      family.name === lastRunName ? { ...family, samples: lastRuns(runs, runtime.facts.types) } : family,
    )
    return renderFamilies(withLastRuns, format)
  })
}

/** OpenMetrics if the caller accepts it, otherwise the text format. Prometheus reads both. */
export const formatFor = (accept = ''): ExpositionFormat =>
  /(?:^|,)\s*application\/openmetrics-text\s*(?:;|,|$)/i.test(accept.slice(0, 1_000)) ? 'openmetrics' : 'text'

const freshest = (runs: readonly RecentRun[]): readonly RecentRun[] =>
  runs
    .filter(({ mode, ageSeconds }) => ageSeconds <= maxAgeSeconds[mode])
    .toSorted((a, b) => a.ageSeconds - b.ageSeconds || depthOf(b.mode) - depthOf(a.mode))

/**
 * The readings, newest first, without superseded results. A newer run of the same type repeats all checks up to its
 * depth. Deeper results remain, unless their monitor failed or was not checked in the newer run: their state is then
 * unknown.
 */
export const withoutSuperseded = (readings: readonly EntryReading[]): readonly EntryReading[] =>
  readings.map((reading, index) => {
    const newer = readings.slice(0, index).filter(({ type }) => type === reading.type)
    const failing = new Set(newer.flatMap(({ monitors }) => monitors.filter(isFailing).map(({ name }) => name)))
    const covered = Math.max(-1, ...newer.map(({ mode }) => depthOf(mode)))
    const monitors = reading.monitors
      .filter(({ name }) => !failing.has(name))
      .map((monitor) => withoutCovered(monitor, covered))
      .filter(({ results }) => results.length > 0)
    return { ...reading, monitors }
  })

const isFailing = ({ level }: MonitorReading): boolean => isBad(level)

const withoutCovered = (monitor: MonitorReading, covered: number): MonitorReading => ({
  ...monitor,
  results: monitor.results.filter(({ depth = monitor.depth ?? 'Basic' }) => depthOf(depth) > covered),
})

/**
 * The end time of the last run of every configured type and mode, 0 before the first one. Unlike all other metrics,
 * this one never disappears: an alert on stopped runs must not resolve because the metric is missing.
 */
function lastRuns(runs: readonly RecentRun[], configured: readonly ServerType[]): readonly Sample[] {
  const ends = runs.map(({ type, mode, response }) => ({ type, mode, at: response.ExecutionMetrics?.EndDateTime }))
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
