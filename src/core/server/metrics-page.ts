import { reports } from '../reports/index.ts'
import type { Answer } from './answer.ts'
import { baseUrl } from './base-url.ts'
import { entryOf } from './entries.ts'
import type { Exchange } from './exchange.ts'
import type { Site } from './site.ts'

/** /metrics: the latest runs as this caller may see them, requests by status, and the process. Causes no run. */
export async function metricsPage(site: Site, exchange: Exchange): Promise<Answer> {
  const { default: prometheus } = await reports.prometheus()
  const target = baseUrl(site, exchange)
  const entries = site.runtime.recent(exchange.caller).map((run) => entryOf(run, target))
  const body = prometheus.render(entries) + (await site.metrics.render(site.open.size))
  return { status: 200, contentType: prometheus.contentType, body }
}
