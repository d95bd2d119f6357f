import { HealthCheckRequest } from '../protocol/index.ts'
import type { Pair } from '../wire/index.ts'
import { clean } from './log.ts'

/** What a log may repeat of a query. */
const harmless = new Set(['format', ...Object.keys(HealthCheckRequest.fields).map((name) => name.toLowerCase())])

/** The target for a log line: of the query only what a health check asks for. */
export function loggedPath(path: string, pairs: readonly Pair[]): string {
  const kept = pairs.filter(([name]) => harmless.has(name.toLowerCase()))
  const left = kept.length < pairs.length ? ['…'] : []
  const query = [...kept.map(([name, value]) => `${name}=${value}`), ...left].join('&')
  return clean(query === '' ? path : `${path}?${query}`)
}
